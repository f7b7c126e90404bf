"""The kernels, called with PyTorch's tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retouch.trt_plugins._kernel_library import ACTIVATIONS, TYPES, WORKSPACE, KernelLibrary, KernelTail

__all__ = ["Table", "TensorKernels"]


@dataclass(frozen=True)
class Table:
    """Where a convolution of active rows reads.

    Attributes:
        halo: the inactive rows that are read [H], of the cached tensor.
        neighbours: per row of the result its neighbours [M, T], numbers in [active rows; halo; pad].
    """

    halo: Any
    neighbours: Any


class TensorKernels:
    """Functions of contiguous tensors on one device; results are new tensors of the operands' type."""

    def __init__(self, library: KernelLibrary, torch: Any) -> None:  # noqa: ANN401  (PyTorch is optional)
        self._library = library
        self._torch = torch
        self._workspace: Any = None

    def edit_conv(
        self,
        rows: Any,  # noqa: ANN401
        cached: Any,  # noqa: ANN401
        table: Table,
        weight: Any,  # noqa: ANN401
        bias: Any,  # noqa: ANN401
        **tail: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """A convolution at the rows of a table: weight [C_out, T * C]; the tail as :meth:`row_linear` has it."""
        targets, taps = table.neighbours.shape
        out = self._new(rows, targets, weight.shape[0])
        pad = self._torch.zeros_like(cached[:1])
        operands = (
            _at(rows),
            len(rows),
            _at(cached),
            len(cached),
            _at(table.halo),
            len(table.halo),
            _at(pad),
            _at(table.neighbours),
        )
        sizes = (targets, taps, rows.shape[1], weight.shape[0])
        self._call("edit_conv", rows, out, *operands, _at(weight), _at(bias), _tail(tail), *sizes, self._space(rows))
        return out

    def row_linear(self, rows: Any, weight: Any, bias: Any, **tail: Any) -> Any:  # noqa: ANN401
        """``rows`` times ``weight`` [C_out, C] transposed, plus ``bias``.

        Args:
            rows: [M, C].
            weight: [C_out, C].
            bias: [C_out].
            tail: ``gate``, ``residual``, ``factor``, ``shift``, ``activation``, as far as there are any.
        """
        out = self._new(rows, len(rows), weight.shape[0])
        sizes = (len(rows), rows.shape[1], weight.shape[0])
        operands = (_at(rows), _at(weight), 1, _at(bias), _tail(tail))
        self._call("row_linear", rows, out, *operands, *sizes, self._space(rows))
        return out

    def edit_attention(self, query: Any, key: Any, value: Any, cached: tuple[Any, Any], index: Any) -> Any:  # noqa: ANN401
        """Attention of [M, heads, width] over cached keys and values, those of the rows ``index`` [M] recomputed."""
        queries, heads, width = query.shape
        keys = len(cached[0])
        slot = self._torch.empty(keys, dtype=self._torch.int32, device=query.device)
        self._library.call("fill_slots", _at(slot), _at(index), len(index), keys, self._stream(query))
        out, space = self._new(query, queries, heads, width), self._space(query)
        operands = (_at(query), _at(cached[0]), _at(cached[1]), _at(key), _at(value), _at(slot))
        self._call("edit_attention", query, out, *operands, heads, queries, keys, width, width, width**-0.5, space)
        return out

    def edit_group_norm(self, rows: Any, moments: Any, gain: Any, bias: Any, activation: str = "") -> Any:  # noqa: ANN401
        """``rows`` normalised by moments [2, groups] in single precision, times gain plus bias, then the activation."""
        out = self._new(rows, *rows.shape)
        sizes = (*rows.shape, moments.shape[1])
        operands = (_at(rows), _at(moments), _at(gain), _at(bias), ACTIVATIONS[activation])
        self._call("edit_group_norm", rows, out, *operands, *sizes, 1e-5)
        return out

    def _space(self, like: Any) -> int:  # noqa: ANN401
        """Memory that all calls on a stream share."""
        if self._workspace is None or self._workspace.device != like.device:
            self._workspace = self._torch.empty(WORKSPACE, dtype=self._torch.uint8, device=like.device)
        return _at(self._workspace)

    def _new(self, like: Any, *shape: int) -> Any:  # noqa: ANN401
        return self._torch.empty(shape, dtype=like.dtype, device=like.device)

    def _call(self, name: str, like: Any, out: Any, *arguments: Any) -> None:  # noqa: ANN401
        kind = TYPES[str(like.dtype).removeprefix("torch.")]
        self._library.call(name, kind, _at(out), *arguments, self._stream(like))

    def _stream(self, like: Any) -> int | None:  # noqa: ANN401
        return int(self._torch.cuda.current_stream().cuda_stream) if like.is_cuda else None


def _at(tensor: Any) -> int:  # noqa: ANN401
    assert tensor.is_contiguous()
    return int(tensor.data_ptr())


def _tail(parts: Mapping[str, Any]) -> Any:  # noqa: ANN401
    activation = ACTIVATIONS[parts.get("activation", "")]
    places = {name: _at(parts[name]) for name in ("gate", "residual", "factor", "shift") if name in parts}
    return ctypes.byref(KernelTail(**places, activation=activation))
