"""A denoiser of Swin blocks: windows of attention, rolled every second time, with biases of relative positions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.export.architectures.conftest import Exported, assert_edits, assert_on_rows

WINDOW, HEADS, WIDTH = 4, 2, 16


def relative_positions(window: int) -> Tensor:
    """Which entry of the table of biases a pair of positions within a window reads."""
    places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
    apart = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + window - 1
    return apart[..., 0] * (2 * window - 1) + apart[..., 1]


def partition(x: Tensor, window: int) -> Tensor:
    batch, height, width, channels = x.shape
    x = x.view(batch, height // window, window, width // window, window, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window * window, channels)


def joined(windows: Tensor, window: int, height: int, width: int) -> Tensor:
    x = windows.view(-1, height // window, width // window, window, window, windows.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, height, width, windows.shape[-1])


class Attention(nn.Module):
    """Attention within windows, as Swin has it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * WINDOW - 1) ** 2, HEADS))
        self.register_buffer("index", relative_positions(WINDOW))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        windows, size, width = x.shape
        q, k, v = self.qkv(x).reshape(windows, size, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * (width // HEADS) ** -0.5) @ k.transpose(-2, -1)
        scores = scores + self.table[self.index.view(-1)].view(size, size, HEADS).permute(2, 0, 1).unsqueeze(0)
        if mask is not None:
            count = mask.shape[0]
            scores = scores.view(windows // count, count, HEADS, size, size) + mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, HEADS, size, size)
        x = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(windows, size, width)
        return self.out(x)


class Block(nn.Module):
    """A Swin block on [B, H, W, C]."""

    def __init__(self, width: int, shift: int, height: int, breadth: int) -> None:
        super().__init__()
        self.shift, self.norm, self.norm2 = shift, nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.register_buffer("mask", self._mask(height, breadth) if shift else None)

    def _mask(self, height: int, breadth: int) -> Tensor:
        """Positions that the roll brought together from opposite edges do not see each other."""
        parts = torch.zeros(1, height, breadth, 1)
        cuts = (slice(0, -WINDOW), slice(-WINDOW, -self.shift), slice(-self.shift, None))
        for number, (rows, columns) in enumerate((r, c) for r in cuts for c in cuts):
            parts[:, rows, columns] = number
        windows = partition(parts, WINDOW).squeeze(-1)
        return (windows.unsqueeze(1) != windows.unsqueeze(2)).float() * -100.0

    def forward(self, x: Tensor) -> Tensor:
        _, height, breadth, _ = x.shape
        y = self.norm(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), dims=(1, 2))
        y = joined(self.attention(partition(y, WINDOW), self.mask), WINDOW, height, breadth)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), dims=(1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class Merging(nn.Module):
    """Swin's patch merging: four strided slices, their channels joined."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.out = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        parts = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.out(self.norm(torch.cat(parts, dim=-1)))


class SwinDenoiser(nn.Module):
    """Two resolutions of Swin blocks; patches come in by a convolution and go out by a pixel shuffle."""

    def __init__(self, height: int, breadth: int) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, WIDTH, 2, stride=2)
        h, w = height // 2, breadth // 2
        self.fine = nn.Sequential(Block(WIDTH, 0, h, w), Block(WIDTH, 2, h, w))
        self.merging = Merging(WIDTH)
        self.coarse = nn.Sequential(Block(2 * WIDTH, 0, h // 2, w // 2), Block(2 * WIDTH, 2, h // 2, w // 2))
        self.up, self.last = nn.Linear(2 * WIDTH, 4 * WIDTH), nn.Conv2d(WIDTH, 12, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.fine(self.embed(x).permute(0, 2, 3, 1))
        z = self.up(self.coarse(self.merging(y))).permute(0, 3, 1, 2)
        return functional.pixel_shuffle(self.last(functional.pixel_shuffle(z, 2) + y.permute(0, 3, 1, 2)), 2)


@pytest.fixture(scope="module")
def swin(exported) -> Exported:
    torch.manual_seed(0)
    return exported(SwinDenoiser(32, 48), (1, 3, 32, 48), (2, 3))


def test_everything_heavy_is_on_rows(swin: Exported) -> None:
    assert_on_rows(swin)
    assert swin.bundle.manifest.stacked["cached"].graph is not None


def test_edits(swin: Exported) -> None:
    assert_edits(swin, (5, 9, 12, 20))


def test_queries_are_those_of_the_active_rows_only(swin: Exported) -> None:
    manifest = swin.bundle.manifest
    products = [row for row in manifest.plan if row.op == "MatMul" and row.flops]
    sizes = {grid.id: grid.rows for grid in manifest.grids}
    assert {sizes[row.grid] for row in products} == {16 * 24, 8 * 12}
    assert np.prod(manifest.grid(manifest.editable.grid).dims) == 32 * 48
