"""Costs and qualities of caches: likelihoods against torch, and the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from retouch.models.code_lm import PATTERNS_MODEL, CorpusName, held_out_patterns, load_code_lm, load_tokenizer
from retouch.models.decoders import export_language_model
from retouch.text import TextModel
from retouch.text.full_attention import BlockCache, FullAttentionSampler, NoCache, UnmaskOptions
from retouch.validation.text import CacheFigures, caches_main, compare_caches, train_full_main
from retouch.validation.text._cache_cases import CacheCase, cache_cases
from retouch.validation.text._cache_page import Timings, write_page
from retouch.validation.text._caches import clustered, corpus_texts, plain_ms, rows_ms, windows
from retouch.validation.text._forced import forced_run

TOKENS = 48


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TextModel:
    learned, _ = corpus_texts(CorpusName.PATTERNS, TOKENS)
    bundle = export_language_model(PATTERNS_MODEL, tmp_path_factory.mktemp("caches") / "bundle")
    return TextModel(clustered(bundle, windows(learned, load_tokenizer(PATTERNS_MODEL), TOKENS, 2), 16), threads=1)


@pytest.fixture(scope="module")
def text() -> np.ndarray:
    return windows(held_out_patterns(2), load_tokenizer(PATTERNS_MODEL), TOKENS, 1)[0]


@torch.no_grad()
@pytest.mark.parametrize("steps", [None, 4])
def test_likelihoods_are_those_of_torch(steps: int | None, model: TextModel, text: np.ndarray) -> None:
    options = UnmaskOptions(block=16, steps=steps)
    run = forced_run(FullAttentionSampler(model, NoCache(), options), text, 16)
    assert sorted(np.concatenate(run.order).tolist()) == list(range(16, TOKENS))
    network, mask = load_code_lm(PATTERNS_MODEL), model.spec.mask_id
    x = torch.from_numpy(text).clone()
    x[16:] = mask
    nats = 0.0
    for told in run.order:
        logits = network(x[None], torch.arange(TOKENS))[0][0]
        logits[:, mask] = -torch.inf
        truth = torch.from_numpy(text)[told]
        nats -= logits.log_softmax(-1)[torch.from_numpy(told), truth].sum().item()
        x[torch.from_numpy(told)] = truth
    assert run.nats == pytest.approx(nats, rel=1e-4)
    assert run.tally.forwards == len(run.order) == (TOKENS - 16 if steps is None else 2 * steps)


def test_caches_tell_texts_in_the_same_order(model: TextModel, text: np.ndarray) -> None:
    options = UnmaskOptions(block=16)
    base = forced_run(FullAttentionSampler(model, NoCache(), options), text, 16)
    told = forced_run(FullAttentionSampler(model, BlockCache(), options), text, 16, base.order)
    assert [now.tolist() for now in told.order] == [now.tolist() for now in base.order]
    assert told.nats != base.nats


def test_every_family_is_on_the_page(model: TextModel, text: np.ndarray, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    cases = cache_cases((1, 2), each=2)
    rows = compare_caches(model, [text], cases, UnmaskOptions(block=16))
    assert [(row.flops, row.loss, row.cpu) for row in rows[:1]] == [(1.0, 0.0, 1.0)]
    assert all(row.flops < 1 for row in rows[1:])
    fewer = compare_caches(model, [text[:32]], cases, UnmaskOptions(block=16, steps=4))
    plain, by_rows = ({n: run(model, text, n, 3) for n in (1, 8)} for run in (plain_ms, rows_ms))
    times = Timings(plain, by_rows)
    write_page(tmp_path / "figures.md", rows, fewer, times, "a test")
    page = (tmp_path / "figures.md").read_text()
    assert all(f"| {case.family} | {case.settings} |" in page for case in cases)
    assert "32 tokens, 4 a forward | 8 texts of 48" in page
    assert (tmp_path / "figures.png").stat().st_size > 10_000


def test_figures_are_sums_over_texts(model: TextModel, text: np.ndarray) -> None:
    cases = [CacheCase("none", "", NoCache()), CacheCase("dual", "", BlockCache())]
    one, other = (compare_caches(model, [part], cases, UnmaskOptions(block=16))[1] for part in (text[:32], text[16:]))
    both: CacheFigures = compare_caches(model, [text[:32], text[16:]], cases, UnmaskOptions(block=16))[1]
    assert both.nats == pytest.approx((one.nats + other.nats) / 2)
    assert both.right == pytest.approx((one.right + other.right) / 2)


def test_held_out_code_is_other_code() -> None:
    """Patterns are few, so some of them are in both."""
    learned, unseen = (list(texts) for texts in corpus_texts(CorpusName.PYTHON, 512))
    assert not set(learned) & set(unseen)
    assert sum(map(len, unseen)) > 2 * 512


def test_a_network_is_trained(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(train_full_main)
    arguments = ["--out", str(tmp_path / "net"), "--steps", "2", "--batch", "2", "--length", "64", "--hidden", "64"]
    result = CliRunner().invoke(app, [*arguments, "--layers", "1"])
    assert result.exit_code == 0, result.output
    assert "1: " in result.output
    assert load_code_lm(tmp_path / "net").config.num_hidden_layers == 1


def test_some_caches_are_printed_for_other_texts(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(caches_main)
    given = ["--out", str(tmp_path), "--texts", "1", "--tokens", "48", "--block", "16", "--skip", "1"]
    result = CliRunner().invoke(app, [*given, "--only", "Fast-dLLM"])
    assert result.exit_code == 0, result.output
    rows = [line.split(":")[0] for line in result.output.splitlines() if "FLOPs" in line]
    assert rows == [
        "no cache, ",
        "Fast-dLLM, dual",
        "Fast-dLLM, prefix",
        "horizon, 64, Fast-dLLM, dual",
    ]
