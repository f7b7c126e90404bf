"""A network of a few thousand weights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from retouch.models.code_lm import CodeLmConfig
from retouch.models.code_lm._network import CodeLm


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Threads of torch wait for each other longer than this network takes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def network() -> CodeLm:
    torch.manual_seed(0)
    config = CodeLmConfig(
        hidden_size=32, num_hidden_layers=2, head_dim=8, intermediate_size=48, partial_rotary_factor=0.5, block_length=4
    )
    made = CodeLm(config)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, 0.0 if parameter.ndim > 1 else 1.0, 0.3)
    return made.eval()
