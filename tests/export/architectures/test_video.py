"""Video latents: convolutions over time and space, causal in time, and attention within frames and within places."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.export.architectures.conftest import Exported, assert_edits, assert_on_rows

WIDTH, HEADS = 8, 2


def attended(x: Tensor, qkv: nn.Linear, out: nn.Linear, causal: bool = False) -> Tensor:
    """Attention over the second axis of [B, N, C]."""
    batch, count, width = x.shape
    q, k, v = qkv(x).reshape(batch, count, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
    y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return out(y.transpose(1, 2).reshape(batch, count, width))


class Factorised(nn.Module):
    """Attention within every frame, then causally along time within every place, on [B, C, T, H, W]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)])
        self.out = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, width)])

    def forward(self, x: Tensor) -> Tensor:
        b, c, t, h, w = x.shape
        y = x.permute(0, 2, 3, 4, 1).reshape(b * t, h * w, c)
        y = y + attended(self.norms[0](y), self.qkv[0], self.out[0])
        y = y.reshape(b, t, h * w, c).permute(0, 2, 1, 3).reshape(b * h * w, t, c)
        y = y + attended(self.norms[1](y), self.qkv[1], self.out[1], causal=True)
        return y.reshape(b, h, w, t, c).permute(0, 4, 3, 1, 2)


class CausalConv(nn.Module):
    """A convolution that sees earlier frames only; the first frame stands for those before it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(width, width, 3, padding=(0, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(torch.cat([x[:, :, :1].repeat(1, 1, 2, 1, 1), x], dim=2))


class VideoUNet(nn.Module):
    """Separable and full 3-D convolutions, strided down and repeated up, around factorised attention."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv3d(4, WIDTH, (1, 3, 3), padding=(0, 1, 1))
        self.time = nn.Conv3d(WIDTH, WIDTH, (3, 1, 1), padding=(1, 0, 0))
        self.norm, self.causal = nn.GroupNorm(2, WIDTH), CausalConv(WIDTH)
        self.down = nn.Conv3d(WIDTH, WIDTH, 3, stride=(1, 2, 2), padding=1)
        self.middle = Factorised(WIDTH)
        self.last = nn.Conv3d(WIDTH, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.time(functional.silu(self.first(x)))
        y = y + self.causal(functional.silu(self.norm(y)))
        z = self.middle(self.down(functional.pad(y, (0, 0, 0, 0, 2, 0))[:, :, 2:]))
        z = functional.interpolate(z, scale_factor=(1.0, 2.0, 2.0), mode="nearest")
        return self.last(functional.silu(y + z))


@pytest.fixture(scope="module")
def video(exported) -> Exported:
    torch.manual_seed(0)
    return exported(VideoUNet(), (1, 4, 5, 8, 12), (2, 3, 4))


def test_everything_heavy_is_on_rows(video: Exported) -> None:
    assert_on_rows(video)


@pytest.mark.parametrize("group_norm", ["cached", "corrected"])
def test_edits(video: Exported, group_norm: str) -> None:
    assert_edits(video, (1, 2, 3, 3, 5, 8), group_norm=group_norm)
