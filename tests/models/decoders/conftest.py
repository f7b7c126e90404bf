"""A small language model with random weights, in a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from retouch.models.code_lm import CodeLmConfig, save_code_lm
from retouch.models.code_lm._network import CodeLm
from retouch.tokens import code_characters
from tests.random_code_lm import SMALL, random_code_lm

SHAPES = {
    "tied, shared heads": SMALL,
    "untied, partly rotated": CodeLmConfig(
        hidden_size=24,
        num_hidden_layers=2,
        num_key_value_heads=4,
        head_dim=16,
        intermediate_size=40,
        block_length=8,
        partial_rotary_factor=0.5,
        tie_word_embeddings=False,
    ),
}


@pytest.fixture(params=SHAPES)
def network(request: pytest.FixtureRequest) -> CodeLm:
    return random_code_lm(SHAPES[request.param], 0.25)


@pytest.fixture
def directory(network: CodeLm, tmp_path: Path) -> Path:
    save_code_lm(network, code_characters(), tmp_path / "model", half=False)
    return tmp_path / "model"
