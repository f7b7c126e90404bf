"""What a cache makes of a model, measured beside it; and what is out of view."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from retouch.bundle import TextBundle
from retouch.models.code_lm._network import CodeLm
from retouch.text import Step, TextModel
from retouch.text.full_attention import (
    BlockCache,
    DelayedCache,
    FocusCache,
    FullAttentionSampler,
    Horizon,
    NoCache,
    SimilarityCache,
    UnmaskOptions,
)

PROMPT, LENGTH = "class A:", 32


@pytest.fixture(scope="module")
def model(random_bundle: TextBundle) -> TextModel:
    return TextModel(random_bundle, threads=1)


@torch.no_grad()
def test_divergences_are_those_of_torch(model: TextModel, random_network: CodeLm) -> None:
    sampler = FullAttentionSampler(model, BlockCache(), UnmaskOptions(block=8))
    denoising = sampler.begin(sampler.tokens_of(PROMPT), LENGTH, audit=True)
    found, agreed, mask = [], 0, model.spec.mask_id
    for number in range(12):
        low = 8 + number // 8 * 8
        positions = low + np.flatnonzero(denoising.masked[low : low + 8])
        got = torch.from_numpy(denoising.read((low, low + 8), positions).logits.copy())
        wanted = random_network(torch.from_numpy(denoising.tokens)[None], torch.arange(8 + LENGTH))[0][0, positions]
        got[:, mask] = wanted[:, mask] = -1e9
        agreed += int((got.argmax(-1) == wanted.argmax(-1)).sum())
        found += (
            torch.nn.functional.kl_div(got.log_softmax(-1), wanted.log_softmax(-1), reduction="none", log_target=True)
            .sum(-1)
            .tolist()
        )
        denoising.set(positions[:1], np.array([number]))
    assert denoising.audit is not None
    errors = denoising.audit.errors()
    assert errors.positions == len(found) and errors.agreed == agreed / len(found)
    assert errors.divergence == pytest.approx(np.mean(found), rel=1e-3)
    assert errors.worst == pytest.approx(max(found), rel=1e-3) and errors.worst > 1e-3


def test_an_audit_changes_nothing_else(model: TextModel) -> None:
    for policy in (NoCache(), DelayedCache(4), Horizon(BlockCache(), 8)):
        sampler = FullAttentionSampler(model, policy, UnmaskOptions(block=8))
        plain, audited = sampler.generate(PROMPT, LENGTH), sampler.generate(PROMPT, LENGTH, audit=True)
        assert plain.tokens.tolist() == audited.tokens.tolist()
        assert plain.report.errors is None and audited.report.errors is not None
        assert plain.report.rows_computed == audited.report.rows_computed
        assert (audited.report.errors.divergence < 1e-9) == isinstance(policy, NoCache)
        assert str(audited.report.errors) in str(audited.report)


def test_what_is_out_of_view_is_not_used(model: TextModel) -> None:
    """Ages are of what is seen, and nothing behind the horizon is computed once the first forward is over."""
    sampler = FullAttentionSampler(model, Horizon(NoCache(), 4), UnmaskOptions(block=8))
    made = sampler.generate(PROMPT, LENGTH).report
    first, layers = 8 + LENGTH, model.spec.layers
    in_view = [min(8 * number + 12, first) for number in (1, 2, 3, 4)]
    assert made.rows_computed == layers * (first + 8 * sum(in_view) - in_view[0])
    assert made.max_staleness == 0
    assert FullAttentionSampler(model, FocusCache(rescore=None)).generate(PROMPT, LENGTH).report.max_staleness > 0
    whole = SimilarityCache(answer_interval=3, whole_layers=1)
    far, none = (FullAttentionSampler(model, policy).generate(PROMPT, LENGTH) for policy in (Horizon(whole, 99), whole))
    assert far.tokens.tolist() == none.tokens.tolist()


def test_callbacks_are_told_of_every_change(model: TextModel) -> None:
    told: list[Step] = []
    made = FullAttentionSampler(model, options=UnmaskOptions(block=8, steps=4)).generate(
        PROMPT, LENGTH, callback=told.append
    )
    assert [int(step.filled.sum()) for step in told] == [2] * 16
    assert told[-1].tokens.tolist() == made.tokens.tolist()
    assert not any(step.edited.any() for step in told)
    revising = FocusCache(window=4, rescore=8, revise=0.0)
    told.clear()
    made = FullAttentionSampler(model, revising, UnmaskOptions(block=8)).generate(PROMPT, LENGTH, callback=told.append)
    assert sum(int(step.edited.sum()) for step in told) == made.report.revised > 0
