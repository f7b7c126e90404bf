"""Every cache against its paper's rule, written down in torch on the network's own weights: the same tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from retouch.bundle import TextBundle
from retouch.models.code_lm._network import CodeLm
from retouch.text import TextModel
from retouch.text.full_attention import (
    AnchoredCache,
    BlockCache,
    CachePolicy,
    DelayedCache,
    FocusCache,
    FullAttentionSampler,
    Kept,
    Pattern,
    RowPlan,
    RowStates,
    SimilarityCache,
    UnmaskOptions,
)
from tests.plugin.text.full_attention.torch_rules import (
    BLOCK,
    CLUSTERS,
    LENGTH,
    PROMPT,
    Layers,
    Logits,
    Step,
    anchored,
    dkv,
    dllm_cache,
    every,
    fast_dllm,
    focus,
    llada,
)

SIMILAR = SimilarityCache(prompt_interval=11, answer_interval=4, share=0.3, whole_layers=1)
ANCHORED = AnchoredCache(tolerance=0.25, staleness=3, near=2)
FOCUS = FocusCache(window=4, refresh=5, rescore=18, revise=None, smoothing=0.1)
CASES: dict[str, tuple[CachePolicy | None, Callable[[Layers], Logits]]] = {
    "none": (None, lambda layers: lambda step: layers.network(step[4][None], every(layers))[0][0]),
    "prefix": (BlockCache(Kept.PREFIX), lambda layers: fast_dllm(layers, dual=False)),
    "dual": (BlockCache(Kept.DUAL), lambda layers: fast_dllm(layers, dual=True)),
    "delayed": (DelayedCache(6), lambda layers: dkv(layers, 6, None)),
    "delayed, greedy": (DelayedCache(6, window=3), lambda layers: dkv(layers, 6, 3)),
    "similarity": (SIMILAR, lambda layers: dllm_cache(layers, SIMILAR)),
    "similarity, near": (
        replace(SIMILAR, near=2),
        lambda layers: dllm_cache(layers, replace(SIMILAR, near=2)),
    ),
    "anchored": (ANCHORED, lambda layers: anchored(layers, ANCHORED, CLUSTERS)),
    "anchored, few entries": (
        replace(ANCHORED, capacity=5),
        lambda layers: anchored(layers, replace(ANCHORED, capacity=5), CLUSTERS),
    ),
    **{
        f"focus, {pattern.value}": (
            replace(FOCUS, pattern=pattern, exempt=(7, 8, 9)),
            lambda layers, pattern=pattern: focus(layers, replace(FOCUS, pattern=pattern, exempt=(7, 8, 9))),
        )
        for pattern in Pattern
    },
    "focus, no window": (replace(FOCUS, window=0), lambda layers: focus(layers, replace(FOCUS, window=0))),
}


@pytest.fixture(scope="module")
def model(random_bundle: TextBundle, tmp_path_factory: pytest.TempPathFactory) -> TextModel:
    """The bundle with clusters of its own."""
    folder = tmp_path_factory.mktemp("clustered") / "bundle"
    folder.mkdir()
    for file in random_bundle.path.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return TextModel(TextBundle.open(folder).with_clusters(CLUSTERS), threads=1)


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_tokens_are_those_of_the_papers_rule(case: str, model: TextModel, random_network: CodeLm) -> None:
    policy, reference = CASES[case]
    sampler = FullAttentionSampler(model, policy, UnmaskOptions(block=BLOCK))
    prompt = sampler.tokens_of(PROMPT).tolist()
    layers = Layers(random_network, len(prompt) + LENGTH)
    wanted = llada(random_network, prompt, reference(layers))
    made = sampler.generate(PROMPT, LENGTH)
    assert made.tokens.tolist() == wanted
    assert made.report.forwards == made.report.tokens == LENGTH
    assert (made.report.flops_ratio < 0.9) == (policy is not None)


@torch.no_grad()
def test_the_rows_that_changed_most_are_computed(model: TextModel, random_network: CodeLm) -> None:
    draw, rows = np.random.default_rng(4), 40
    ids = draw.integers(0, 97, rows)
    states, layers = RowStates(model, rows), Layers(random_network, rows)
    states.forward(ids, RowPlan(np.arange(rows)), np.arange(1))
    layers.through(torch.from_numpy(ids), torch.arange(rows))
    ids[draw.permutation(rows)[:12]] += 1
    candidates, count = np.arange(5, 35), 7
    logits, computed = states.forward(
        ids, RowPlan(np.array([1, 2]), candidates=candidates, count=count), np.arange(rows)
    )
    h = layers.embedded(torch.from_numpy(ids))
    for index, own in enumerate(computed):
        _, _, value = layers.projected(index, h, torch.from_numpy(candidates))
        old = layers.values[index][:, candidates]
        alike = functional.cosine_similarity(value.transpose(0, 1).flatten(1), old.transpose(0, 1).flatten(1)).numpy()
        picked = np.isin(candidates, own)
        assert own[:2].tolist() == [1, 2] and picked.sum() == count
        assert alike[picked].max() <= alike[~picked].min() + 1e-5
        layers.values[index][:, candidates] = value
        layers.update(index, h, torch.from_numpy(own))
        h = h + layers.attended[index] + layers.fed[index]
    np.testing.assert_allclose(logits, layers.logits(h).numpy(), atol=2e-4)


@torch.no_grad()
@pytest.mark.parametrize("case", ["none", "dual"])
def test_models_that_predict_the_next_token_are_read_one_row_earlier(
    case: str, model: TextModel, random_network: CodeLm
) -> None:
    shifted = TextModel(model.bundle, threads=1)
    shifted.spec = replace(model.spec, shift=1)
    policy, _ = CASES[case]
    sampler = FullAttentionSampler(shifted, policy, UnmaskOptions(block=BLOCK))
    prompt = sampler.tokens_of(PROMPT).tolist()
    layers = Layers(random_network, len(prompt) + LENGTH)

    def dual(step: Step) -> Tensor:
        _, of_block, low, high, x, _ = step
        masks = torch.nonzero(x[low:high] == shifted.spec.mask_id)[:, 0] + low
        rows = torch.unique(torch.cat((torch.arange(low, high), masks - 1)))
        return layers.through(x, every(layers) if of_block == 0 else rows)

    reference = CASES["none"][1](layers) if case == "none" else dual
    assert sampler.generate(PROMPT, LENGTH).tokens.tolist() == llada(random_network, prompt, reference, shift=1)
