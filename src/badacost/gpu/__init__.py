"""The compiled loops of badacost for CUDA, with the same results to the last bit (CuPy)."""
