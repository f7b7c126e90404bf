"""A network of a few thousand weights."""

from __future__ import annotations

import pytest

from retouch.models.code_lm import CodeLmConfig
from retouch.models.code_lm._network import CodeLm
from tests.random_code_lm import random_code_lm


@pytest.fixture(autouse=True, scope="module")
def one_thread(one_torch_thread: None) -> None:
    """Every test here runs on one."""


@pytest.fixture(scope="module")
def network() -> CodeLm:
    config = CodeLmConfig(
        hidden_size=32, num_hidden_layers=2, head_dim=8, intermediate_size=48, partial_rotary_factor=0.5, block_length=4
    )
    return random_code_lm(config, 0.3)
