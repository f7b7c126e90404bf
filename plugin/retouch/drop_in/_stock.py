"""ONNX Runtime's own classes, which drop-in sessions extend and use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retouch.engines.ort import load_onnxruntime, rest_between_runs

if TYPE_CHECKING:
    import onnxruntime
    from onnxruntime import InferenceSession as StockSession
    from onnxruntime import IOBinding, OrtValue
else:
    onnxruntime = load_onnxruntime()  # which says how to install it
    StockSession = onnxruntime.InferenceSession
    IOBinding, OrtValue = onnxruntime.IOBinding, onnxruntime.OrtValue

__all__ = ["IOBinding", "OrtValue", "StockSession", "new_options", "plain_options"]

_FATAL_ONLY = 3


def new_options() -> onnxruntime.SessionOptions:
    """Options as onnxruntime sets them, but for a session that has others beside it."""
    options = onnxruntime.SessionOptions()
    rest_between_runs(options)
    return options


def plain_options() -> onnxruntime.SessionOptions:
    """Options of a session that runs a graph as it is written, and says nothing about it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL_ONLY
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options
