"""Models that run without this library: ONNX."""

from badacost.export.onnx_model import register_converters, to_onnx

__all__ = ["register_converters", "to_onnx"]
