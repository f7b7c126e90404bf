"""A UNet of Stable Diffusion's shape (arXiv:2112.10752): 1.5 has levels of 320, 640, 1280 and 1280 channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retouch.trt_plugins.steps._keep import Keep
from retouch.trt_plugins.steps._kernels import Table, TensorKernels
from retouch.trt_plugins.steps._places import Level, levels
from retouch.trt_plugins.steps._step import Weights

__all__ = ["UnetStep"]

_EPSILON = 1e-5
_TAPS = 9


class UnetStep:
    """A step of such a UNet, conditions given. Positions are rows [height * width, channels] throughout."""

    name = "UNet"

    def __init__(
        self,
        torch: Any,  # noqa: ANN401  (PyTorch is optional)
        kernels: TensorKernels,
        *,
        side: int = 64,
        channels: Sequence[int] = (320, 640, 1280, 1280),
        attention: int = 3,
        heads: int = 8,
        groups: int = 32,
        text: tuple[int, int] = (77, 768),
        device: str = "cuda",
        dtype: Any = None,  # noqa: ANN401
    ) -> None:
        """Chooses the shape.

        Args:
            torch: PyTorch.
            kernels: the kernels.
            side: height and width of the input.
            channels: of every level.
            attention: so many levels have transformer blocks.
            heads: of attention.
            groups: of norms.
            text: tokens of the text, and their width.
            device: where it runs.
            dtype: in what it computes; by default float16.
        """
        self.side = side
        self._torch, self._kernels = torch, kernels
        self._channels, self._attention, self._heads, self._groups = tuple(channels), attention, heads, groups
        self._options = {"device": device, "dtype": dtype or torch.float16}
        self._weights = Weights(torch, device, self._options["dtype"])
        self._text = self._weights.matrix("text", *text) * text[1] ** 0.5

    def input(self, seed: int) -> Any:  # noqa: ANN401
        """A random input [side * side, channels]."""
        drawn = np.random.default_rng(seed).standard_normal((self.side**2, 4), np.float32)
        return self._torch.from_numpy(drawn).to(**self._options)

    def dense(self, x: Any, keep: Keep) -> Any:  # noqa: ANN401
        """The result for all rows, in PyTorch."""
        return self._network(_Dense(self, keep), x)

    def place(self, active: Any) -> list[Level]:  # noqa: ANN401
        """The levels of a region."""
        return levels(active, len(self._channels), self._torch, self._options["device"])

    def masks(self, place: list[Level]) -> Mapping[int, Any]:
        """Which rows are active, by the number of rows."""
        return {len(level.mask): level.mask for level in place}

    def edit(self, x: Any, kept: Mapping[str, Any], place: list[Level]) -> Any:  # noqa: ANN401
        """The result at the active rows, by the kernels."""
        return self._network(_Edited(self, kept, place), x)

    def _network(self, run: _Dense | _Edited, x: Any) -> Any:  # noqa: ANN401
        last = len(self._channels) - 1
        x = run.conv("in", x, self._channels[0], 0)
        skips = [x]
        for level, channels in enumerate(self._channels):
            for number in range(2):
                x = self._block(run, f"down{level}.{number}", x, channels, level)
                skips.append(x)
            if level < last:
                x = run.down(f"down{level}", x, level)
                skips.append(x)
        for number in range(2):
            x = run.resnet(f"middle.{number}", x, self._channels[-1], last)
        for level in range(last, -1, -1):
            for number in range(3):
                x = self._torch.cat([x, skips.pop()], 1)
                x = self._block(run, f"up{level}.{number}", x, self._channels[level], level)
            if level > 0:
                x = run.up(f"up{level}", x, level)
        return run.conv("out", run.normed("out.norm", x), 4, 0)

    def _block(self, run: _Dense | _Edited, name: str, x: Any, channels: int, level: int) -> Any:  # noqa: ANN401
        x = run.resnet(name, x, channels, level)
        return run.transformer(f"{name}.t", x, level) if level < self._attention else x

    def parts(self, name: str, rows: int, columns: int) -> tuple[Any, Any]:
        """A weight [rows, columns] and a bias."""
        return self._weights.matrix(name, rows, columns), self._weights.vector(f"{name}.bias", rows)

    def affine(self, name: str, channels: int) -> tuple[Any, Any]:
        """Gain and bias of a norm."""
        return self._weights.gain(f"{name}.gain", channels), self._weights.vector(f"{name}.bias", channels)

    def linear(self, name: str, x: Any, columns: int) -> Any:  # noqa: ANN401
        """A product with a weight, in PyTorch."""
        return self._torch.nn.functional.linear(x, *self.parts(name, columns, x.shape[1]))

    def layer_norm(self, name: str, x: Any) -> Any:  # noqa: ANN401
        """A layer norm, in PyTorch."""
        return self._torch.nn.functional.layer_norm(x, (x.shape[1],), *self.affine(name, x.shape[1]))

    def by_head(self, x: Any) -> Any:  # noqa: ANN401
        """Rows [M, C] as [M, heads, C / heads]."""
        return x.reshape(len(x), self._heads, -1).contiguous()

    def attended(self, query: Any, key: Any, value: Any) -> Any:  # noqa: ANN401
        """Attention of parts by head, in PyTorch."""
        parts = (part.transpose(0, 1).unsqueeze(0) for part in (query, key, value))
        found = self._torch.nn.functional.scaled_dot_product_attention(*parts)
        return found[0].transpose(0, 1).reshape(len(query), -1)

    def of_text(self, name: str, columns: int) -> tuple[Any, Any]:
        """Keys and values of the text."""
        key, value = (self.by_head(self.linear(f"{name}.{part}", self._text, columns)) for part in ("k", "v"))
        return key, value

    def prepared(self, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a base run kept; keys and values of the text; norms behind products as factors and shifts."""
        found = dict(kept)
        for name, value in kept.items():
            if name.endswith(".t.key"):
                block = name.removesuffix(".key")
                found[f"{block}.text"] = self.of_text(block, value.shape[1] * value.shape[2])
            elif name.endswith(".norm2"):
                found[f"{name}.map"] = self._map(name, value, kept[f"{name.removesuffix('.norm2')}.2"].shape[1])
        return found

    def _map(self, name: str, moments: Any, channels: int) -> tuple[Any, Any]:  # noqa: ANN401
        gain, bias = self.affine(name, channels)
        mean, variance = moments.repeat_interleave(channels // self._groups, 1)
        factor = gain.float() / (variance + _EPSILON).sqrt()
        return factor.to(gain.dtype), (bias.float() - mean * factor).to(gain.dtype)

    def gated(self, name: str, x: Any) -> Any:  # noqa: ANN401
        """The hidden layer of a feed-forward network with GELU as a gate."""
        hidden, gate = self.linear(name, x, 8 * x.shape[1]).chunk(2, 1)
        return (hidden * self._torch.nn.functional.gelu(gate)).contiguous()

    @property
    def torch(self) -> Any:  # noqa: ANN401
        """PyTorch."""
        return self._torch

    @property
    def kernels(self) -> TensorKernels:
        """The kernels."""
        return self._kernels

    @property
    def groups(self) -> int:
        """Groups of norms."""
        return self._groups


class _Dense:
    """All rows, in PyTorch."""

    def __init__(self, step: UnetStep, keep: Keep) -> None:
        self._step, self._keep = step, keep
        self._functional = step.torch.nn.functional

    def conv(self, name: str, x: Any, columns: int, _level: int, stride: int = 1) -> Any:  # noqa: ANN401
        return self._conv(name, self._keep.rows(name, x), columns, stride)

    def down(self, name: str, x: Any, _level: int) -> Any:  # noqa: ANN401
        return self.conv(name, x, x.shape[1], 0, stride=2)

    def up(self, name: str, x: Any, _level: int) -> Any:  # noqa: ANN401
        image = self._image(self._keep.rows(name, x))
        larger = self._functional.interpolate(image, scale_factor=2.0, mode="nearest")
        return self._conv(name, self._rows(larger), x.shape[1], 1)

    def normed(self, name: str, x: Any) -> Any:  # noqa: ANN401
        return self._functional.silu(self._norm(name, x))

    def resnet(self, name: str, x: Any, columns: int, level: int) -> Any:  # noqa: ANN401
        hidden = self.conv(f"{name}.1", self.normed(f"{name}.norm1", x), columns, level)
        hidden = self.conv(f"{name}.2", self.normed(f"{name}.norm2", hidden), columns, level)
        return hidden + (x if x.shape[1] == columns else self._step.linear(f"{name}.short", x, columns))

    def transformer(self, name: str, x: Any, _level: int) -> Any:  # noqa: ANN401
        step, columns = self._step, x.shape[1]
        inner = step.linear(f"{name}.in", self._norm(f"{name}.norm", x), columns)
        projected = step.linear(f"{name}.qkv", step.layer_norm(f"{name}.n1", inner), 3 * columns)
        query, key, value = (step.by_head(part) for part in projected.chunk(3, 1))
        key, value = self._keep.rows(f"{name}.key", key), self._keep.rows(f"{name}.value", value)
        inner = inner + step.linear(f"{name}.o1", step.attended(query, key, value), columns)
        asked = step.linear(f"{name}.q", step.layer_norm(f"{name}.n2", inner), columns)
        found = step.attended(step.by_head(asked), *step.of_text(name, columns))
        inner = inner + step.linear(f"{name}.o2", found, columns)
        hidden = step.gated(f"{name}.up", step.layer_norm(f"{name}.n3", inner))
        inner = inner + step.linear(f"{name}.down", hidden, columns)
        return x + step.linear(f"{name}.out", inner, columns)

    def _norm(self, name: str, x: Any) -> Any:  # noqa: ANN401
        gain, bias = self._step.affine(name, x.shape[1])
        by_group = x.reshape(len(x), self._step.groups, -1)
        moments = self._keep.moments(name, by_group)
        if moments is None:
            return self._rows(self._functional.group_norm(self._image(x), self._step.groups, gain, bias, _EPSILON))
        mean, variance = moments.reshape(2, 1, -1, 1)
        normed = (by_group.float() - mean) / (variance + _EPSILON).sqrt()
        return (normed.reshape(x.shape) * gain.float() + bias.float()).to(x.dtype)

    def _conv(self, name: str, x: Any, columns: int, stride: int) -> Any:  # noqa: ANN401
        weight, bias = self._step.parts(name, columns, _TAPS * x.shape[1])
        filters = weight.reshape(columns, 3, 3, x.shape[1]).permute(0, 3, 1, 2)
        return self._rows(self._functional.conv2d(self._image(x), filters, bias, stride=stride, padding=1))

    def _image(self, x: Any) -> Any:  # noqa: ANN401
        side = round(len(x) ** 0.5)
        return x.reshape(1, side, side, -1).permute(0, 3, 1, 2)

    def _rows(self, image: Any) -> Any:  # noqa: ANN401
        return image.permute(0, 2, 3, 1).reshape(-1, image.shape[1])


class _Edited:
    """The active rows, by the kernels."""

    def __init__(self, step: UnetStep, kept: Mapping[str, Any], place: list[Level]) -> None:
        self._step, self._kept, self._place = step, kept, place
        self._kernels = step.kernels

    def conv(self, name: str, x: Any, columns: int, level: int, **tail: Any) -> Any:  # noqa: ANN401
        return self._conv(name, x, columns, self._place[level].same, **tail)

    def down(self, name: str, x: Any, level: int) -> Any:  # noqa: ANN401
        return self._conv(name, x, x.shape[1], self._place[level + 1].down)

    def up(self, name: str, x: Any, level: int) -> Any:  # noqa: ANN401
        return self._conv(name, x, x.shape[1], self._place[level - 1].up)

    def normed(self, name: str, x: Any, activation: str = "Silu") -> Any:  # noqa: ANN401
        return self._kernels.edit_group_norm(x, self._kept[name], *self._step.affine(name, x.shape[1]), activation)

    def resnet(self, name: str, x: Any, columns: int, level: int) -> Any:  # noqa: ANN401
        factor, shift = self._kept[f"{name}.norm2.map"]
        hidden = self.conv(
            f"{name}.1", self.normed(f"{name}.norm1", x), columns, level, factor=factor, shift=shift, activation="Silu"
        )
        short = x if x.shape[1] == columns else self._linear(f"{name}.short", x, columns)
        return self.conv(f"{name}.2", hidden, columns, level, residual=short)

    def transformer(self, name: str, x: Any, level: int) -> Any:  # noqa: ANN401
        step, columns = self._step, x.shape[1]
        inner = self._linear(f"{name}.in", self.normed(f"{name}.norm", x, ""), columns)
        projected = step.linear(f"{name}.qkv", step.layer_norm(f"{name}.n1", inner), 3 * columns)
        query, key, value = (step.by_head(part) for part in projected.chunk(3, 1))
        cached = self._kept[f"{name}.key"], self._kept[f"{name}.value"]
        found = self._kernels.edit_attention(query, key, value, cached, self._place[level].index)
        inner = self._linear(f"{name}.o1", found.reshape(len(x), -1), columns, residual=inner)
        asked = step.linear(f"{name}.q", step.layer_norm(f"{name}.n2", inner), columns)
        found = step.attended(step.by_head(asked), *self._kept[f"{name}.text"])
        inner = self._linear(f"{name}.o2", found.contiguous(), columns, residual=inner)
        hidden = step.gated(f"{name}.up", step.layer_norm(f"{name}.n3", inner))
        inner = self._linear(f"{name}.down", hidden, columns, residual=inner)
        return self._linear(f"{name}.out", inner, columns, residual=x)

    def _conv(self, name: str, x: Any, columns: int, table: Table | None, **tail: Any) -> Any:  # noqa: ANN401
        assert table is not None
        parts = self._step.parts(name, columns, _TAPS * x.shape[1])
        return self._kernels.edit_conv(x, self._kept[name], table, *parts, **tail)

    def _linear(self, name: str, x: Any, columns: int, **tail: Any) -> Any:  # noqa: ANN401
        return self._kernels.row_linear(x, *self._step.parts(name, columns, x.shape[1]), **tail)
