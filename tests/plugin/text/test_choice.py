"""Drawn tokens against their distribution."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.text import MaskChoice, SamplerOptions
from retouch.text._choice import choose

SHARES = np.array([0.4, 0.3, 0.2, 0.1])
ALLOWED = MaskChoice.ALLOWED


def _drawn(count: int, options: SamplerOptions) -> tuple[np.ndarray, np.ndarray]:
    logits = np.tile(np.log(SHARES).astype(np.float32), (count, 1))
    choice = choose(logits, np.full(count, 9), options, 3, np.random.default_rng(0))
    return choice.tokens, choice.confidence


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (SamplerOptions(temperature=1.0, mask_choice=ALLOWED), SHARES),
        (SamplerOptions(temperature=0.5, mask_choice=ALLOWED), SHARES**2 / (SHARES**2).sum()),
        (SamplerOptions(temperature=1.0, top_k=2, mask_choice=ALLOWED), [4 / 7, 3 / 7, 0, 0]),
        (SamplerOptions(temperature=1.0, top_p=0.65, mask_choice=ALLOWED), [4 / 7, 3 / 7, 0, 0]),
        (SamplerOptions(temperature=1.0, top_p=0.71, mask_choice=ALLOWED), [4 / 9, 3 / 9, 2 / 9, 0]),
        (SamplerOptions(temperature=1.0, top_p=0.0, mask_choice=ALLOWED), [1, 0, 0, 0]),
        (SamplerOptions(temperature=1.0), [4 / 9, 3 / 9, 2 / 9, 0]),  # the fourth is the mask
    ],
)
def test_tokens_are_drawn_as_often_as_they_are_likely(options: SamplerOptions, expected: list[float]) -> None:
    tokens, confidence = _drawn(20_000, options)
    counts = np.bincount(tokens, minlength=4) / len(tokens)
    np.testing.assert_allclose(counts, expected, atol=0.015)
    np.testing.assert_allclose(confidence, np.asarray(expected)[tokens], atol=1e-6)


def test_greedy_confidence_is_that_of_all_tokens() -> None:
    logits = np.log(SHARES).astype(np.float32)[None]
    choice = choose(logits, np.array([9]), SamplerOptions(top_k=1, top_p=0.1, mask_choice=ALLOWED), 3, None)
    assert choice.tokens.tolist() == [0]
    np.testing.assert_allclose(choice.confidence, [0.4], rtol=1e-6)
