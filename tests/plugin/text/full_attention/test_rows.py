"""What must hold of every cache, whatever the text: ages, patterns, clusters, isolation, reports, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retouch.bundle import ClustersSpec, DecoderSpec, TextBundle
from retouch.errors import BundleError, FeedError, NonFiniteError, SamplingError
from retouch.text import TextModel, TextSession
from retouch.text.full_attention import (
    AnchoredCache,
    BlockCache,
    Canvas,
    DelayedCache,
    FocusCache,
    FullAttentionSampler,
    Kept,
    Measure,
    Moment,
    NoCache,
    Pattern,
    RowCost,
    SimilarityCache,
    UnmaskOptions,
    find_clusters,
    likeliest,
    separator_ids,
    surest,
)
from retouch.text.full_attention._find_clusters import _k_means
from retouch.text.full_attention._patterns import pattern_rows, with_least

PROMPT = "class A:"


@pytest.fixture(scope="module")
def model(random_bundle: TextBundle) -> TextModel:
    return TextModel(random_bundle, threads=1)


@given(st.integers(1, 200), st.data())
def test_patterns_hold_the_window_in_order(rows: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, rows - 1))
    high = data.draw(st.integers(low + 1, rows))
    window, stride = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 20))
    near = set(range(max(0, low - window), min(rows, high + window)))
    for pattern in Pattern:
        seen = pattern_rows(pattern, (low, high), rows, window, stride).tolist()
        assert seen == sorted(set(seen)) and near <= set(seen) <= set(range(rows))
        if pattern is Pattern.TREE:
            assert len(seen) <= len(near) + 2 * rows.bit_length() + 2
        if pattern is Pattern.SKIP:
            assert len(seen) <= len(near) + -(-rows // stride)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.data())
def test_contexts_hold_enough_tokens_that_are_no_masks(visible: list[bool], data: st.DataObject) -> None:
    rows = len(visible)
    context = np.array(sorted(data.draw(st.sets(st.integers(0, rows - 1)))), np.int64)
    around, least = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, 6))
    seen = with_least(context, np.array(visible), around, least)
    assert set(context) <= set(seen)
    assert np.array(visible)[seen].sum() >= min(least, sum(visible))
    added = [abs(row - around) for row in set(seen.tolist()) - set(context.tolist())]
    left = [abs(row - around) for row in range(rows) if visible[row] and row not in seen]
    assert not added or not left or max(added) <= min(left)


@settings(max_examples=40)
@given(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 8)), st.floats(0, 3), st.data())
def test_nothing_is_used_beyond_its_age_or_room(
    staleness: int, capacity: int | None, tolerance: float, data: st.DataObject
) -> None:
    clusters = ClustersSpec(4, (0, 0, 0, 1, 2, 2, 1, 0, 0), ((0.1, 0.5, 1.0), (0.2, 0.3, 2.0)), ((0.0,) * 5,) * 2)
    spec = DecoderSpec("none", 10, 9, 8, 4, 64, 8, 2, 1, 1, 8, 8, 8, 1e4, 1e-5)
    policy = AnchoredCache(tolerance=tolerance, staleness=staleness, warm_up=1, capacity=capacity)
    planner = policy.start(Canvas(spec, 16, 2, clusters))
    computed, block, since = np.zeros((2, 16), int), (2, 6), 0
    for step in range(data.draw(st.integers(1, 14))):
        if data.draw(st.booleans()) and since:
            block, since = (block[1], min(block[1] + 4, 16)) if block[1] < 16 else (2, 6), 0
        masked = np.zeros(16, bool)
        masked[block[0] :] = True
        targets = np.arange(*block)
        plan = planner.plan(Moment(step, since, np.full(16, 9), masked, block, np.array([3]), step, targets))
        for layer, rows in enumerate(plan.by_layer(2)):
            computed[layer, rows] = step
            assert set(targets) | {3} <= set(rows.tolist())
            served = np.setdiff1d(np.arange(16), rows)
            assert (step - computed[layer, served] <= staleness).all()
            if capacity is not None:
                assert len(set(clusters.of(16, block[0])[served])) <= capacity
            if since == 0:
                assert not len(served)
        since += 1


def test_texts_share_nothing(model: TextModel) -> None:
    """Two texts that are filled in turn become what each becomes alone."""
    for policy in (BlockCache(), SimilarityCache(answer_interval=3, whole_layers=1), FocusCache(smoothing=0.2)):
        sampler = FullAttentionSampler(model, policy, UnmaskOptions(block=8))
        alone = [sampler.generate(prompt, 16).tokens.tolist() for prompt in ("x = ", "class B:")]
        both = [sampler.begin(sampler.tokens_of(prompt), 16) for prompt in ("x = ", "class B:")]
        for _ in range(16):
            for denoising in both:
                first = int(np.flatnonzero(denoising.masked)[0])
                low = denoising.prompt + (first - denoising.prompt) // 8 * 8
                positions = low + np.flatnonzero(denoising.masked[low : low + 8])
                reading = denoising.read((low, low + 8), positions)
                tokens, confidence = likeliest(reading.logits, model.spec.mask_id, Measure.PROBABILITY)
                best = surest(confidence, sampler.options, 1)
                denoising.set(positions[best], tokens[best])
        assert [denoising.tokens.tolist() for denoising in both] == alone


def test_reports_count_rows_and_operations(model: TextModel) -> None:
    spec, rows, length = model.spec, 24, 16
    none = FullAttentionSampler(model, NoCache(), UnmaskOptions(block=8)).generate(PROMPT, length).report
    assert (none.rows_computed, none.flops_ratio, none.max_staleness) == (none.rows_total, 1.0, 0)
    assert none.rows_total == rows * spec.layers * length
    dual = FullAttentionSampler(model, BlockCache(Kept.DUAL), UnmaskOptions(block=8)).generate(PROMPT, length).report
    assert dual.rows_computed == spec.layers * 2 * (rows + 7 * 8)
    assert dual.max_staleness == 7
    cost, head = RowCost(spec), sum(range(1, 9)) * 2 * 2 * spec.hidden * spec.vocabulary
    body = spec.layers * cost.row(0, rows)
    assert dual.flops_ratio == pytest.approx((2 * (rows + 7 * 8) * body + head) / (length * rows * body + head))
    heads = spec.hidden * 2 * (spec.heads + spec.kv_heads) * spec.head_dim
    assert (
        cost.row(0, rows) == 2 * (heads + 3 * spec.hidden * spec.intermediate) + 4 * rows * spec.heads * spec.head_dim
    )


@pytest.mark.parametrize(
    ("options", "forwards"),
    [
        (UnmaskOptions(block=8, steps=4), 8),
        (UnmaskOptions(block=8, threshold=0.0), 2),
        (UnmaskOptions(block=8, threshold=1.0), 16),
        (UnmaskOptions(block=8, factor=1e-6), 16),
        (UnmaskOptions(block=8, factor=1e6), 2),
        (UnmaskOptions(block=12, steps=5), 9),
    ],
)
def test_options_say_how_many_masks_are_set(options: UnmaskOptions, forwards: int, model: TextModel) -> None:
    assert FullAttentionSampler(model, options=options).generate(PROMPT, 16).report.forwards == forwards


def test_how_sure_a_model_is() -> None:
    shares = np.array([[0.5, 0.2, 0.2, 0.1], [0.1, 0.6, 0.3, 0.0], [0.25, 0.25, 0.2, 0.3]])
    with np.errstate(divide="ignore"):
        logits = np.log(shares).astype(np.float32)
    tokens, probability = likeliest(logits, 3, Measure.PROBABILITY)
    assert tokens.tolist() == [0, 1, 0]  # the last row's likeliest is the mask
    np.testing.assert_allclose(probability, [0.5 / 0.9, 0.6, 0.25 / 0.7], rtol=1e-5)
    np.testing.assert_allclose(likeliest(logits, 3, Measure.MARGIN)[1], [0.3 / 0.9, 0.3, 0], atol=1e-6)
    entropy = likeliest(logits, 3, Measure.ENTROPY)[1]
    np.testing.assert_allclose(entropy[1], sum(x * np.log(x) for x in (0.1, 0.6, 0.3)), rtol=1e-5)
    assert surest(probability, UnmaskOptions(factor=0.95), 1).tolist() == [1]  # (1 + 1) * (1 - 0.6) = 0.8 < 0.95
    with pytest.raises(NonFiniteError):
        likeliest(np.full((1, 4), np.nan, np.float32), 3, Measure.PROBABILITY)


def test_a_rescoring_may_revise_what_was_set(model: TextModel) -> None:
    revising = FocusCache(window=4, rescore=8, revise=0.0)
    made = FullAttentionSampler(model, revising, UnmaskOptions(block=8)).generate(PROMPT, 24)
    fixed = FullAttentionSampler(model, replace(revising, revise=None), UnmaskOptions(block=8)).generate(PROMPT, 24)
    assert made.report.revised > 0 and fixed.report.revised == 0
    assert made.tokens[: made.prompt_tokens].tolist() == fixed.tokens[: fixed.prompt_tokens].tolist()
    assert not (made.tokens == model.spec.mask_id).any()


def test_an_end_token_ends_the_text(model: TextModel) -> None:
    ending = TextModel(model.bundle, threads=1)
    ids = FullAttentionSampler(model).tokens_of(PROMPT).tolist()
    tokens = FullAttentionSampler(model, options=UnmaskOptions(block=8)).generate(ids, 24).tokens.tolist()
    ending.own_tokenizer = None  # its end token would be another
    ending.spec = replace(model.spec, eos_id=tokens[12])
    made = FullAttentionSampler(ending, options=UnmaskOptions(block=8, stop_at_end=True)).generate(ids, 24)
    end = tokens.index(tokens[12], made.prompt_tokens)
    assert made.tokens.tolist() == tokens[: end + 1]
    assert made.text == ""


def test_clusters_are_found_stored_and_used(random_bundle: TextBundle, model: TextModel, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    for file in random_bundle.path.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    found = find_clusters(model, [PROMPT, "x = "], 24, count=3, reach=10, options=UnmaskOptions(block=8))
    assert found.count == 3 and set(found.labels) == {0, 1, 2} and len(found.labels) == 21
    stored = TextBundle.open(folder).with_clusters(found)
    assert TextBundle.open(folder).clusters == found
    assert stored.fingerprint == random_bundle.fingerprint
    made = FullAttentionSampler(TextModel(stored, threads=1), AnchoredCache()).generate(PROMPT, 24)
    assert made.report.max_staleness <= 2 and made.report.flops_ratio < 1
    (folder / "clusters.json").write_text("{}")
    with pytest.raises(BundleError, match="clusters.json"):
        TextBundle.open(folder)
    with pytest.raises(SamplingError, match="at least 9 places"):
        find_clusters(model, ["x"], 3, count=9)


def test_k_means_finds_what_is_apart() -> None:
    draw = np.random.default_rng(0)
    wanted = draw.integers(0, 4, 80)
    points = np.array([[0, 0], [5, 0], [0, 5], [5, 5]])[wanted] + 0.3 * draw.normal(size=(80, 2))
    labels = _k_means(points, 4, seed=1)
    assert len(set(zip(labels.tolist(), wanted.tolist(), strict=True))) == 4
    assert set(_k_means(np.zeros((5, 2)), 3, seed=0).tolist()) == {0, 1, 2}


def test_separators_are_found(model: TextModel) -> None:
    tokenizer = model.own_tokenizer
    assert tokenizer is not None
    pieces = tokenizer.pieces(separator_ids(tokenizer, model.spec.vocabulary, "()\n"))
    assert sorted(pieces) == ["\n", "(", ")"]


def test_bad_input_is_refused(model: TextModel) -> None:
    sampler = FullAttentionSampler(model)
    with pytest.raises(SamplingError, match="at most 256 tokens"):
        sampler.generate(PROMPT, 500)
    with pytest.raises(SamplingError, match="new tokens"):
        sampler.generate(PROMPT, 0)
    with pytest.raises(FeedError, match="mask"):
        sampler.generate([model.spec.mask_id], 4)
    with pytest.raises(SamplingError, match="find_clusters"):
        FullAttentionSampler(model, AnchoredCache()).generate(PROMPT, 4)
    with pytest.raises(SamplingError, match="exempt ids from 0 to 98, got 99"):
        FullAttentionSampler(model, FocusCache(exempt=(1, 99))).generate(PROMPT, 4)
    for wrong in (
        lambda: DelayedCache(0),
        lambda: DelayedCache(window=-1),
        lambda: SimilarityCache(share=1.5),
        lambda: SimilarityCache(answer_interval=0),
        lambda: AnchoredCache(staleness=-1),
        lambda: AnchoredCache(tolerance=float("nan")),
        lambda: AnchoredCache(capacity=-1),
        lambda: FocusCache(refresh=0),
        lambda: FocusCache(smoothing=2.0),
        lambda: UnmaskOptions(block=0),
        lambda: UnmaskOptions(threshold=1.1),
        lambda: UnmaskOptions(factor=0.0),
        lambda: UnmaskOptions(steps=2, threshold=0.9),
    ):
        with pytest.raises(SamplingError, match="Expected"):
            wrong()


def test_clusters_of_another_model_are_refused(model: TextModel) -> None:
    clusters = ClustersSpec(1, (0, 0, 0), ((0.1,),), ((0.0,) * 5,))
    with pytest.raises(SamplingError, match="2 layers, got 1"):
        AnchoredCache().start(Canvas(model.spec, 16, 2, clusters))


def test_block_diffusion_needs_causal_blocks(model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = replace(model.bundle.manifest, model=replace(model.spec, block_causal=False))
    with pytest.raises(SamplingError, match="FullAttentionSampler"):
        TextSession(TextBundle(model.bundle.path, manifest))
