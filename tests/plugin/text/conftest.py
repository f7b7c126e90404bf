"""Language models for tests: one with random weights, the trained one of patterns, and one that follows a script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec, TextBundle
from retouch.models.code_lm import PATTERNS_MODEL, save_code_lm
from retouch.models.code_lm._network import CodeLm
from retouch.models.decoders import export_language_model
from retouch.tokens import code_characters
from tests.random_code_lm import SMALL, random_code_lm

Tokens = NDArray[np.int64]


@pytest.fixture(autouse=True, scope="module")
def one_thread(one_torch_thread: None) -> None:
    """Every test here runs on one."""


@pytest.fixture(scope="session")
def random_network() -> CodeLm:
    """Its choices are arbitrary, and seldom sure."""
    return random_code_lm(replace(SMALL, block_length=8, max_position_embeddings=256), 0.6, 0.1)


@pytest.fixture(scope="session")
def random_bundle(random_network: CodeLm, tmp_path_factory: pytest.TempPathFactory) -> TextBundle:
    folder = tmp_path_factory.mktemp("random")
    save_code_lm(random_network, code_characters(), folder / "model", half=False)
    return export_language_model(folder / "model", folder / "bundle")


@pytest.fixture(scope="session")
def patterns_bundle(tmp_path_factory: pytest.TempPathFactory) -> TextBundle:
    """The trained model: it knows what comes next in accessors, logs and sums."""
    return export_language_model(PATTERNS_MODEL, tmp_path_factory.mktemp("patterns") / "bundle")


class Script:
    """A context that looks up, for the tokens of a block, the choice and the confidence at every position."""

    def __init__(self, spec: DecoderSpec, rule: Callable[[Tokens, int], list[tuple[int, float]]]) -> None:
        self.reads: list[tuple[int, list[int]]] = []
        self._spec = spec
        self._rule = rule

    def read(self, ids: Tokens, start: int) -> NDArray[np.float32]:
        """Logits that give every choice its confidence, and all other tokens equal shares of the rest."""
        self.reads.append((start, ids.tolist()))
        logits = np.zeros((len(ids), self._spec.vocabulary), np.float32)
        for offset in range(0, len(ids), self._spec.block):
            block = slice(offset, offset + self._spec.block)
            for row, (token, confidence) in zip(logits[block], self._rule(ids[block], start + offset), strict=True):
                row[:] = np.log((1 - confidence) / (self._spec.vocabulary - 1))
                row[token] = np.log(confidence)
        return logits


@pytest.fixture
def script_spec() -> DecoderSpec:
    """Ten ids, of which 8 is the end and 9 the mask; blocks of four."""
    return DecoderSpec("script", 10, 9, 8, 4, 64, 8, 1, 1, 1, 8, 8, 8, 1e4, 1e-5)
