"""How fast single layers run on Retouch's kernels, on the stock ones and, for convolutions, dense."""

from __future__ import annotations

__all__ = [
    "DENSE",
    "STOCK",
    "Layer",
    "convolution",
    "linear",
    "load_times",
    "measure",
    "node_times",
    "weight_errors",
]

from retouch.validation.kernels._layers import Layer, convolution, linear
from retouch.validation.kernels._measure import DENSE, STOCK, measure, weight_errors
from retouch.validation.kernels._overhead import load_times, node_times
