"""The CUDA kernels' library, called with addresses of memory."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from retouch.errors import EngineError, EngineMissingError

__all__ = ["ACTIVATIONS", "KernelLibrary", "KernelTail", "TYPES", "WORKSPACE"]

TYPES = {"float32": 0, "float16": 1, "bfloat16": 2}
"""The numbers of element types in the library's functions."""

WORKSPACE = 8 << 20
"""Bytes of memory that products and attention of few rows want (``RETOUCH_WORKSPACE`` of ``launch.h``)."""

ACTIVATIONS = {"": 0, "Silu": 1, "Gelu": 2, "TanhGelu": 3}
"""The numbers of activations in tails, by their names in those of operators."""


class KernelTail(ctypes.Structure):
    """``RetouchTail`` of ``launch.h``: addresses, or none, and the number of an activation."""

    _fields_ = (
        ("gate", ctypes.c_void_p),
        ("residual", ctypes.c_void_p),
        ("kept", ctypes.c_void_p),
        ("factor", ctypes.c_void_p),
        ("shift", ctypes.c_void_p),
        ("activation", ctypes.c_int),
    )


_P, _L, _I, _F = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
_TABLE = (_P, _L, _P, _L, _P, _L, _P)
_SIGNATURES = {
    "gather_rows": (_P, *_TABLE, _P, _L, _L, _P),
    "masked_merge": (_P, _P, _P, _I, _P, _P, _L, _L, _P),
    "scatter_rows": (_P, _P, _L, _L, _P, _P, _L, _L, _P),
    "edit_conv": (_I, _P, *_TABLE, _P, _P, _P, _P, _L, _L, _L, _L, _P, _P),
    "row_linear": (_I, _P, _P, _P, _I, _P, _P, _L, _L, _L, _P, _P),
    "fill_slots": (_P, _P, _L, _L, _P),
    "edit_attention": (_I, *(_P,) * 7, *(_L,) * 5, _F, _P, _P),
    "group_moments": (_I, _P, _P, _P, _L, _P, _P, _L, _L, _L, _F, _P),
    "edit_group_norm": (_I, *(_P,) * 5, _I, _L, _L, _L, _F, _P),
}


class KernelLibrary:
    """The functions of ``kernels/launch.h``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Loads the library.

        Raises:
            EngineMissingError: it is not there, or does not load.
        """
        try:
            self._library = ctypes.CDLL(str(Path(path)))
        except OSError as error:
            raise EngineMissingError(
                f"Expected the kernels' library at {path}, got: {error}. Build it with `make kernels`, or name another."
            ) from error

    def call(self, name: str, *arguments: float | None) -> None:
        """Starts a kernel.

        Args:
            name: the function, without its prefix.
            arguments: as ``launch.h`` has them; addresses as numbers.

        Raises:
            EngineError: there is no kernel for what was asked, or CUDA reports an error.
        """
        function = getattr(self._library, f"retouch_{name}")
        function.argtypes = _SIGNATURES[name]
        code = function(*arguments)
        if code != 0:
            raise EngineError(f"Expected the kernel {name} to start, but it returned {code} (an error of CUDA).")
