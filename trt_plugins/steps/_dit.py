"""A diffusion transformer of DiT's shape (Peebles and Xie, arXiv:2212.09748): XL/2 has 28 blocks of 16 heads of 72."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from retouch.trt_plugins.steps._keep import Keep
from retouch.trt_plugins.steps._kernels import TensorKernels
from retouch.trt_plugins.steps._step import Weights

__all__ = ["DitStep"]


@dataclass(frozen=True)
class _Place:
    index: Any
    mask: Any


class DitStep:
    """A step of such a transformer, its modulation given."""

    name = "DiT"

    def __init__(
        self,
        torch: Any,  # noqa: ANN401  (PyTorch is optional)
        kernels: TensorKernels,
        *,
        side: int = 32,
        blocks: int = 28,
        heads: int = 16,
        width: int = 72,
        device: str = "cuda",
        dtype: Any = None,  # noqa: ANN401
    ) -> None:
        """Chooses the shape; weights are made when they are first used."""
        self.side = side
        self._torch, self._kernels = torch, kernels
        self._blocks, self._heads, self._width = blocks, heads, width
        self._columns = heads * width
        self._options = {"device": device, "dtype": dtype or torch.float16}
        self._weights = Weights(torch, device, self._options["dtype"])

    def input(self, seed: int) -> Any:  # noqa: ANN401
        """A random input [side * side, channels]."""
        drawn = np.random.default_rng(seed).standard_normal((self.side**2, self._columns), np.float32)
        return self._torch.from_numpy(drawn).to(**self._options)

    def dense(self, x: Any, keep: Keep) -> Any:  # noqa: ANN401
        """The result for all rows, in PyTorch."""
        functional = self._torch.nn.functional
        for block in range(self._blocks):
            query, key, value = self._projected(x, block)
            key, value = keep.rows(f"{block}.key", key), keep.rows(f"{block}.value", value)
            by_head = (part.transpose(0, 1).unsqueeze(0) for part in (query, key, value))
            attended = functional.scaled_dot_product_attention(*by_head)[0].transpose(0, 1).reshape(len(x), -1)
            x = x + self._linear(attended, block, "out", self._columns) * self._vector(block, "gate")
            hidden = functional.gelu(
                self._linear(self._normed(x, block, 1), block, "up", 4 * self._columns), approximate="tanh"
            )
            x = x + self._linear(hidden, block, "down", self._columns) * self._vector(block, "gate2")
        return x

    def prepared(self, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a base run kept."""
        return kept

    def place(self, active: Any) -> _Place:  # noqa: ANN401
        """The active tokens."""
        mask = self._torch.from_numpy(np.ascontiguousarray(active).reshape(-1)).to(self._options["device"])
        return _Place(mask.nonzero().reshape(-1).contiguous(), mask)

    def masks(self, place: _Place) -> Mapping[int, Any]:
        """Which tokens are active."""
        return {self.side**2: place.mask}

    def edit(self, x: Any, kept: Mapping[str, Any], place: _Place) -> Any:  # noqa: ANN401
        """The result at the active rows, by the kernels."""
        kernels, columns = self._kernels, self._columns
        for block in range(self._blocks):
            query, key, value = (part.contiguous() for part in self._projected(x, block))
            cached = kept[f"{block}.key"], kept[f"{block}.value"]
            attended = kernels.edit_attention(query, key, value, cached, place.index).reshape(len(x), -1)
            out = self._parts(block, "out", columns, columns)
            x = kernels.row_linear(attended, *out, gate=self._vector(block, "gate"), residual=x)
            up = self._parts(block, "up", 4 * columns, columns)
            hidden = kernels.row_linear(self._normed(x, block, 1), *up, activation="TanhGelu")
            down = self._parts(block, "down", columns, 4 * columns)
            x = kernels.row_linear(hidden, *down, gate=self._vector(block, "gate2"), residual=x)
        return x

    def _projected(self, x: Any, block: int) -> Any:  # noqa: ANN401
        """Queries, keys and values [M, heads, width]."""
        projected = self._linear(self._normed(x, block, 0), block, "qkv", 3 * self._columns)
        return projected.reshape(len(x), 3, self._heads, self._width).unbind(1)

    def _normed(self, x: Any, block: int, which: int) -> Any:  # noqa: ANN401
        gain = self._weights.gain(f"{block}.scale{which}", self._columns)
        return self._torch.nn.functional.layer_norm(x, (self._columns,), gain, self._vector(block, f"shift{which}"))

    def _linear(self, x: Any, block: int, name: str, columns: int) -> Any:  # noqa: ANN401
        return self._torch.nn.functional.linear(x, *self._parts(block, name, columns, x.shape[1]))

    def _parts(self, block: int, name: str, rows: int, columns: int) -> tuple[Any, Any]:
        where = f"{block}.{name}"
        return self._weights.matrix(where, rows, columns), self._weights.vector(f"{where}.bias", rows)

    def _vector(self, block: int, name: str) -> Any:  # noqa: ANN401
        return self._weights.vector(f"{block}.{name}", self._columns)
