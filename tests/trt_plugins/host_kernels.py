"""The kernels, compiled for the host, as functions of numpy arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from retouch.trt_plugins._kernel_library import ACTIVATIONS, WORKSPACE, KernelTail

KERNELS = Path(__file__).parents[2] / "trt_plugins" / "kernels"
COMPILER = shutil.which("g++")
TYPES = {"float32": 0, "float16": 1, "bfloat16": 2}
DTYPES = {"float32": np.dtype(np.float32), "float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
POISON = 0xA5
"""What outputs hold before: whatever is not written shows."""

Array = NDArray[np.generic]


def compile_host(folder: Path) -> Path:
    """The library of the kernels on the host shim."""
    assert COMPILER is not None
    path = folder / "libretouch_kernels_host.so"
    options = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fPIC", "-shared"]
    subprocess.run([COMPILER, *options, "-x", "c++", str(KERNELS / "launch.cu"), "-o", str(path)], check=True)
    return path


def poisoned(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """An array whose bytes all are the same odd value."""
    return np.full(int(np.prod(shape)) * dtype.itemsize, POISON, np.uint8).view(dtype).reshape(shape)


class HostKernels:
    """Calls of the library; every call checks that it succeeded and fills a poisoned output.

    Attributes:
        workspace: memory for products and attention of few rows, or none.
    """

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))
        self.workspace: Array | None = poisoned((WORKSPACE,), np.dtype(np.uint8))

    def gather_rows(self, rows: Array, cached: Array, halo: Array, pad: Array, neighbours: Array) -> Array:
        out = poisoned((*neighbours.shape, *rows.shape[1:]), rows.dtype)
        row_bytes = pad.nbytes
        self._call(
            "gather_rows",
            out,
            *_table(rows, cached, halo, pad),
            neighbours,
            neighbours.size,
            row_bytes,
        )
        return out

    def masked_merge(self, cached: Array, index: Array, rows: Array, *, in_place: bool = False) -> Array:
        axes = index.shape[1]
        out = cached if in_place else poisoned(cached.shape, cached.dtype)
        sizes = np.array(cached.shape[:axes], np.int64)
        row_bytes = int(np.prod(cached.shape[axes:])) * cached.itemsize
        self._call("masked_merge", out, cached, sizes, ctypes.c_int(axes), index, rows, len(index), row_bytes)
        return out

    def scatter_rows(
        self, cached: Array, index: Array, rows: Array, axis: int, end: int, *, in_place: bool = False
    ) -> Array:
        out = cached if in_place else poisoned(cached.shape, cached.dtype)
        lead, size = (int(np.prod(part)) for part in (cached.shape[:axis], cached.shape[axis:end]))
        row_bytes = int(np.prod(cached.shape[end:])) * cached.itemsize
        self._call("scatter_rows", out, cached, lead, size, index, rows, len(index), row_bytes)
        return out

    def edit_conv(
        self,
        rows: Array,
        cached: Array,
        halo: Array,
        pad: Array,
        neighbours: Array,
        weight: Array,
        bias: Array | None,
        tail: KernelTail | None = None,
    ) -> Array:
        out = poisoned((len(neighbours), len(weight)), rows.dtype)
        sizes = (len(neighbours), neighbours.shape[1], rows.shape[1], len(weight))
        operands = (*_table(rows, cached, halo, pad), neighbours, weight, bias, tail)
        self._call("edit_conv", _type(rows), out, *operands, *sizes, self.workspace)
        return out

    def row_linear(
        self, rows: Array, weight: Array, transposed: bool, bias: Array | None, tail: KernelTail | None = None
    ) -> Array:
        columns = weight.shape[0 if transposed else 1]
        out = poisoned((len(rows), columns), rows.dtype)
        operands = (rows, weight, ctypes.c_int(transposed), bias, tail)
        self._call("row_linear", _type(rows), out, *operands, *rows.shape, columns, self.workspace)
        return out

    def slots(self, rows: Array, keys: int) -> Array:
        out = poisoned((keys,), np.dtype(np.int32))
        self._call("fill_slots", out, rows, len(rows), keys)
        return out

    def edit_attention(
        self, query: Array, key: Array, value: Array, fresh: tuple[Array, Array], slot: Array, scale: float
    ) -> Array:
        queries, heads, width = query.shape
        out = poisoned((queries, heads, value.shape[2]), query.dtype)
        sizes = (heads, queries, key.shape[0], width, value.shape[2])
        operands = (query, key, value, *fresh, slot)
        self._call("edit_attention", _type(query), out, *operands, *sizes, ctypes.c_float(scale), self.workspace)
        return out

    def group_moments(self, rows: Array, cached: Array, index: Array, moments: Array, share: float) -> Array:
        out = poisoned(moments.shape, moments.dtype)
        sizes = (*rows.shape, moments.shape[1])
        self._call(
            "group_moments", _type(rows), out, rows, cached, len(cached), index, moments, *sizes, ctypes.c_float(share)
        )
        return out

    def edit_group_norm(
        self,
        rows: Array,
        moments: Array,
        factor: Array | None,
        shift: Array | None,
        epsilon: float,
        activation: str = "",
    ) -> Array:
        out = poisoned(rows.shape, rows.dtype)
        sizes = (*rows.shape, moments.shape[1])
        operands = (rows, moments, factor, shift, ctypes.c_int(ACTIVATIONS[activation]))
        self._call("edit_group_norm", _type(rows), out, *operands, *sizes, ctypes.c_float(epsilon))
        return out

    def _call(self, name: str, *arguments: object) -> None:
        converted = [_converted(argument) for argument in arguments]
        result = getattr(self.library, f"retouch_{name}")(*converted, ctypes.c_void_p(None))
        assert result == 0, f"{name} returned {result}"


def _table(rows: Array, cached: Array, halo: Array, pad: Array) -> tuple[object, ...]:
    return (rows, len(rows), cached, len(cached), halo, len(halo), pad)


def _type(array: Array) -> ctypes.c_int:
    return ctypes.c_int(TYPES[array.dtype.name])


def _converted(argument: object) -> object:
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return ctypes.c_void_p(argument.ctypes.data)
    if isinstance(argument, KernelTail):
        return ctypes.byref(argument)
    if argument is None:
        return ctypes.c_void_p(None)
    return ctypes.c_int64(argument) if isinstance(argument, int) else argument
