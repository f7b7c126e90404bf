"""Measurements of texts: the same tokens in torch, and scores of patterns."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.bench import measure_text
from retouch.models.code_lm import PATTERNS_MODEL, held_out_patterns, load_code_lm
from retouch.models.decoders import export_language_model
from retouch.text import PRESETS, SamplerOptions, TextSession
from retouch.validation.text import score_patterns
from retouch.validation.text._torch_contexts import TorchCached, TorchUncached


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> TextSession:
    bundle = export_language_model(PATTERNS_MODEL, tmp_path_factory.mktemp("patterns") / "bundle")
    return TextSession(bundle, threads=1)


def test_all_ways_give_the_same_tokens(session: TextSession) -> None:
    network = load_code_lm(PATTERNS_MODEL)
    others = {"torch": lambda _: TorchCached(network), "torch, uncached": lambda rows: TorchUncached(network, rows)}
    for options in (PRESETS["quality"], PRESETS["low-confidence"]):
        rows = measure_text(session, "class WidthOwner:\n", 40, options, repeats=1, others=others)
        causal = next(row for row in rows if row["case"] == "causal, token by token")
        assert (causal["forwards"], causal["read"]) == (40, 18 + 39)
        ways = [row for row in rows if not row["case"].startswith(("edit", "causal"))]
        assert [row["case"] for row in ways] == ["cached", "uncached", "torch", "torch, uncached"]
        assert all(row["identical"] for row in ways)
        assert len({(row["forwards"], row["read"]) for row in ways}) == 1


def test_contexts_of_torch_read_several_blocks_at_once(session: TextSession) -> None:
    network, ids = load_code_lm(PATTERNS_MODEL), np.arange(64)
    wanted = session.model.uncached(64).read(ids, 0)
    for context in (TorchCached(network), TorchUncached(network, 64)):
        context.read(ids[:16], 0)
        np.testing.assert_allclose(context.read(ids[16:48], 16), wanted[16:48], atol=1e-3)
        np.testing.assert_allclose(context.read(ids[48:], 48), wanted[48:], atol=1e-3)


def test_patterns_are_scored_by_what_follows(session: TextSession) -> None:
    texts = list(held_out_patterns(6))
    # One token per read, and every block is read once more, together with the next one.
    slow = score_patterns(session, texts, SamplerOptions(threshold=1.0, edit_threshold=None))
    assert slow.tokens_per_forward == pytest.approx(1, abs=0.05)
    assert slow.right > 0.5
    fast = score_patterns(session, texts, PRESETS["speed"])
    assert fast.tokens_per_forward > 2
    assert 0 <= fast.exact <= fast.right <= 1
