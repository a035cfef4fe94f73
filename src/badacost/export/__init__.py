"""Models that run without this library: ONNX."""

from badacost.export.onnx_model import to_onnx
from badacost.export.pipelines import register_converters

__all__ = ["register_converters", "to_onnx"]
