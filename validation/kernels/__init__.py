"""How fast single layers and attentions run on Retouch's kernels, on the stock ones and, for convolutions, dense."""

from __future__ import annotations

__all__ = [
    "DENSE",
    "OURS",
    "STOCK",
    "STOCK_ATTENTIONS",
    "Layer",
    "attention_errors",
    "attention_times",
    "convolution",
    "linear",
    "load_times",
    "measure",
    "node_times",
    "weight_errors",
]

from retouch.validation.kernels._attention import OURS, STOCK_ATTENTIONS, attention_errors, attention_times
from retouch.validation.kernels._layers import Layer, convolution, linear
from retouch.validation.kernels._measure import DENSE, STOCK, measure, weight_errors
from retouch.validation.kernels._overhead import load_times, node_times
