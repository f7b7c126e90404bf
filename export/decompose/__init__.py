"""Operators that ONNX Runtime's optimisers put into graphs, as standard ONNX operators again.

Importing this package registers all decompositions. *A new operator* is a function in the file of its family, decorated
with ``decomposition``.
"""

from __future__ import annotations

from retouch.export.decompose import activations, attention, norms, products, rotary
from retouch.export.decompose._pass import decompose

__all__ = ["decompose"]

_FAMILIES = (activations, attention, norms, products, rotary)
