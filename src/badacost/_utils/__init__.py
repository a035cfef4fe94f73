"""Helpers of every layer: array types, threads, exact sums, argument checks, progress."""
