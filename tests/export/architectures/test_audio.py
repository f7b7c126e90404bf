"""Audio latents: convolutions along time, causal ones among them, pooling, resizing and causal attention."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.export.architectures.conftest import Exported, assert_edits, assert_on_rows

WIDTH = 8


class Causal(nn.Module):
    """A dilated convolution that sees earlier positions only."""

    def __init__(self, width: int, dilation: int, mode: str) -> None:
        super().__init__()
        self.conv, self.reach, self.mode = nn.Conv1d(width, width, 3, dilation=dilation), 2 * dilation, mode

    def forward(self, x: Tensor) -> Tensor:
        if self.mode == "chomp":
            padded = functional.pad(x, (self.reach, self.reach))
            return self.conv(padded)[..., : x.shape[-1]]
        return self.conv(functional.pad(x, (self.reach, 0), mode=self.mode))


class AudioUNet(nn.Module):
    """Causal convolutions of every kind, down by a stride and by pooling, up by a transposed one and by resizing."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(3, WIDTH, 7, padding=3)
        self.zeros, self.edges = Causal(WIDTH, 1, "constant"), Causal(WIDTH, 2, "replicate")
        self.chomped, self.norm = Causal(WIDTH, 1, "chomp"), nn.GroupNorm(2, WIDTH)
        self.down = nn.Conv1d(WIDTH, WIDTH, 4, stride=2, padding=1)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up = nn.ConvTranspose1d(WIDTH, WIDTH, 4, stride=2, padding=1)
        self.last = nn.Conv1d(WIDTH, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        y = y + self.zeros(functional.silu(self.norm(y)))
        y = y + self.chomped(functional.silu(y)) + self.edges(functional.silu(y))
        z = functional.avg_pool1d(self.down(y), 2).transpose(1, 2)
        q, k, v = self.qkv(z).chunk(3, dim=-1)
        hidden = torch.full((z.shape[1], z.shape[1]), float("-inf")).triu(1)
        z = z + self.out((q @ k.transpose(1, 2) * WIDTH**-0.5 + hidden).softmax(-1) @ v)
        z = functional.interpolate(z.transpose(1, 2), scale_factor=2.0, mode="linear")
        return self.last(functional.silu(y + self.up(z)))


@pytest.fixture(scope="module")
def audio(exported) -> Exported:
    torch.manual_seed(0)
    return exported(AudioUNet(), (1, 3, 96), (2,))


def test_everything_heavy_is_on_rows(audio: Exported) -> None:
    assert_on_rows(audio)


@pytest.mark.parametrize("group_norm", ["cached", "corrected"])
def test_edits(audio: Exported, group_norm: str) -> None:
    assert_edits(audio, (30, 37), group_norm=group_norm)
