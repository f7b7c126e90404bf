"""The execution provider: kernels for the ``ai.retouch`` operators as a plug-in library of ONNX Runtime.

Bundles run without it, by the operators' function bodies. Implement nothing here.
"""

from __future__ import annotations

__all__ = [
    # The library
    "LIBRARY_VARIABLE",
    "custom_ops_library",
    "library",
    # Its registration with ONNX Runtime
    "PROVIDER",
    "Availability",
    "register",
]

from retouch.ort_ep._library import LIBRARY_VARIABLE, custom_ops_library, library
from retouch.ort_ep._register import PROVIDER, Availability, register
