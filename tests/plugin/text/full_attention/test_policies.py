"""Every cache against its paper's rule, written down in torch on the network's own weights: the same tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from retouch.bundle import ClustersSpec, TextBundle
from retouch.models.code_lm._network import CodeLm, _rotated
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

PROMPT, LENGTH, BLOCK = "class A:", 40, 16
CLUSTERS = ClustersSpec(
    reach=24,
    labels=tuple(0 if offset < -6 else 1 if offset < 0 else 2 if offset < 16 else 3 for offset in range(-24, 25)),
    rates=((0.02, 0.2, 0.5, 0.05), (0.03, 0.1, 0.4, 0.2)),
    gates=((0.1, 0.2, 0.0, 0.1, 0.0), (-0.2, 0.0, 0.3, 0.0, 0.1)),
)


@dataclass
class Layers:
    """The network's layers on single rows, with the caches of one text."""

    network: CodeLm
    rows: int
    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    attended: list[Tensor] = field(default_factory=list)
    fed: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        config = self.network.config
        for _ in self.network.model.layers:
            shape = (config.num_key_value_heads, self.rows, config.head_dim)
            self.keys.append(torch.zeros(shape))
            self.values.append(torch.zeros(shape))
            self.attended.append(torch.zeros(self.rows, config.hidden_size))
            self.fed.append(torch.zeros(self.rows, config.hidden_size))

    def embedded(self, ids: Tensor) -> Tensor:
        return self.network.model.word_embeddings(ids)

    def projected(self, index: int, h: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        config, attention = self.network.config, self.network.model.layers[index].attention
        x = self.network.model.layers[index].input_layernorm(h[rows])
        packed = attention.query_key_value(x).unflatten(-1, (-1, config.head_dim)).transpose(0, 1)
        query, key, value = packed.split((config.num_attention_heads,) + (config.num_key_value_heads,) * 2)
        turn = self.network.model.cos[rows], self.network.model.sin[rows]
        return (
            _rotated(attention.query_layernorm(query), turn),
            _rotated(attention.key_layernorm(key), turn),
            value,
        )

    def attend(self, index: int, query: Tensor, seen: Tensor) -> Tensor:
        keys, values = self.keys[index][:, seen], self.values[index][:, seen]
        mixed = functional.scaled_dot_product_attention(query[None], keys[None], values[None], enable_gqa=True)[0]
        return self.network.model.layers[index].attention.dense(mixed.transpose(0, 1).flatten(1))

    def feed(self, index: int, x: Tensor) -> Tensor:
        layer = self.network.model.layers[index]
        return layer.mlp(layer.post_attention_layernorm(x))

    def logits(self, h: Tensor) -> Tensor:
        return self.network.lm_head(self.network.model.norm(h))

    def update(self, index: int, h: Tensor, rows: Tensor, seen: Tensor | None = None, keep: float = 0.0) -> None:
        """Computes rows of one layer, and puts everything of them into the caches."""
        query, self.keys[index][:, rows], value = self.projected(index, h, rows)
        self.values[index][:, rows] = (1 - keep) * value + keep * self.values[index][:, rows]
        self.attended[index][rows] = self.attend(index, query, torch.arange(self.rows) if seen is None else seen)
        self.fed[index][rows] = self.feed(index, h[rows] + self.attended[index][rows])

    def through(self, ids: Tensor, rows: Tensor, seen: Tensor | None = None, keep: float = 0.0) -> Tensor:
        """Logits of all rows, after the same rows were computed in all layers."""
        h = self.embedded(ids)
        for index in range(len(self.network.model.layers)):
            self.update(index, h, rows, seen, keep)
            h = h + self.attended[index] + self.fed[index]
        return self.logits(h)


Step = tuple[int, int, int, int, Tensor, Tensor]  # forward, forward of the block, its ends, tokens, those just set
Logits = Callable[[Step], Tensor]


@torch.no_grad()
def _llada(network: CodeLm, prompt: list[int], logits: Logits, shift: int = 0) -> list[int]:
    """LLaDA's ``generate``, greedy, one token in every forward."""
    mask = network.config.mask_token_id
    x = torch.cat((torch.tensor(prompt), torch.full((LENGTH,), mask)))
    step, last = 0, torch.zeros(0, dtype=torch.int64)
    for low in range(len(prompt), len(x), BLOCK):
        high, first = min(low + BLOCK, len(x)), step
        while (x[low:high] == mask).any():
            scores = logits((step, step - first, low, high, x.clone(), last)).clone()
            scores = torch.cat((scores[:shift], scores[: len(scores) - shift]))
            scores[:, mask] = -torch.inf
            confidence, token = scores.softmax(-1).max(-1)
            confidence[x != mask] = -torch.inf
            confidence[high:] = -torch.inf
            best = confidence.argmax()
            x[best] = token[best]
            last, step = best[None], step + 1
    return x.tolist()


def _every(layers: Layers) -> Tensor:
    return torch.arange(layers.rows)


def _fast_dllm(layers: Layers, dual: bool) -> Logits:
    def logits(step: Step) -> Tensor:
        _, of_block, low, high, x, _ = step
        if of_block == 0:
            return layers.through(x, _every(layers))
        return layers.through(x, torch.arange(low, high if dual else layers.rows))

    return logits


def _dkv(layers: Layers, interval: int, window: int | None) -> Logits:
    def logits(step: Step) -> Tensor:
        t, _, low, high, x, last = step
        if t % interval == 0 or t <= 1:
            return layers.through(x, _every(layers))
        masked = x == layers.network.config.mask_token_id
        computed = masked.clone()
        if window is not None:
            computed[:low] = computed[high:] = False
            near = (_every(layers)[:, None] - last[None]).abs().min(1)[0] <= window
            computed |= near & (_every(layers) >= len(PROMPT))
        computed[last] = True
        return layers.through(x, torch.nonzero(computed)[:, 0])

    return logits


def _dllm_cache(layers: Layers, policy: SimilarityCache) -> Logits:
    """The paper's algorithm: keys, values, attention outputs and feed-forward outputs are kept apart."""

    def logits(step: Step) -> Tensor:
        t, _, low, high, x, last = step
        h = layers.embedded(x)
        for index in range(len(layers.network.model.layers)):
            prompt, answer = _every(layers)[: len(PROMPT)], _every(layers)[len(PROMPT) :]
            rows = prompt if t % policy.prompt_interval == 0 else prompt[:0]
            if index < policy.whole_layers:
                rows = prompt
            if t % policy.answer_interval == 0:
                rows = torch.cat((rows, answer))
            else:
                _, _, value = layers.projected(index, h, answer)
                old = layers.values[index][:, answer]
                alike = functional.cosine_similarity(value.transpose(0, 1).flatten(1), old.transpose(0, 1).flatten(1))
                if policy.near is not None:
                    own = x[low:high] == layers.network.config.mask_token_id
                    always = torch.zeros(layers.rows, dtype=torch.bool)
                    always[low:high] = own
                    always |= (_every(layers) - last).abs() <= policy.near
                    always[rows] = True
                    rows = torch.nonzero(always)[:, 0]
                    left = ~torch.isin(answer, rows)
                    answer, alike = answer[left], alike[left]
                    value = value[:, left]
                changed = answer[alike.argsort()[: int(policy.share * len(answer))]]
                layers.values[index][:, answer] = value
                rows = torch.cat((rows, answer if index < policy.whole_layers else changed))
            layers.update(index, h, rows)
            h = h + layers.attended[index] + layers.fed[index]
        return layers.logits(h)

    return logits


@dataclass
class Entries:
    """What is kept: layer, cluster, step, in the order of use."""

    policy: AnchoredCache
    clusters: ClustersSpec
    kept: dict[tuple[int, int, int], None] = field(default_factory=dict)

    def usable(self, layer: int, cluster: int, gate: float, t: int) -> bool:
        for age in range(1, self.policy.staleness + 1):
            key = (layer, cluster, t - age)
            if key in self.kept:
                if self.clusters.rates[layer][cluster] * gate * age > self.policy.tolerance:
                    return False
                self.kept[key] = self.kept.pop(key)
                return True
        return False

    def keep(self, layer: int, cluster: int, t: int) -> None:
        for key in [key for key in self.kept if key[:2] == (layer, cluster)]:
            del self.kept[key]
        self.kept[layer, cluster, t] = None
        while self.policy.capacity is not None and len(self.kept) > self.policy.capacity:
            del self.kept[next(iter(self.kept))]


def _anchored(layers: Layers, policy: AnchoredCache, clusters: ClustersSpec) -> Logits:
    entries = Entries(policy, clusters)

    def logits(step: Step) -> Tensor:
        t, of_block, low, high, x, last = step
        masked = x == layers.network.config.mask_token_id
        share = masked.float().mean().item()
        offsets = (_every(layers) - low).clamp(-clusters.reach, clusters.reach) + clusters.reach
        cluster_of = torch.tensor(clusters.labels)[offsets]
        h = layers.embedded(x)
        for index in range(len(layers.network.model.layers)):
            if of_block == 0 and index == 0:
                entries.kept.clear()
            angle = np.pi * share
            weights = clusters.gates[index]
            line = weights[0] + weights[1] * np.cos(angle) + weights[2] * np.cos(2 * angle)
            line += weights[3] * np.sin(angle) + weights[4] * np.sin(2 * angle)
            if of_block == 0 or t < policy.warm_up:
                due = list(range(clusters.count))
            else:
                due = [c for c in range(clusters.count) if not entries.usable(index, c, np.exp(line), t)]
            for cluster in due:
                entries.keep(index, cluster, t)
            rows = torch.isin(cluster_of, torch.tensor(due, dtype=torch.int64))
            if len(last):
                rows |= (_every(layers) - last).abs() <= policy.near
            rows[low:high] |= masked[low:high]
            layers.update(index, h, torch.nonzero(rows)[:, 0])
            h = h + layers.attended[index] + layers.fed[index]
        return layers.logits(h)

    return logits


def _focus(layers: Layers, policy: FocusCache) -> Logits:
    memory = {"seen": torch.zeros(0), "block": -1, "refreshed": 0, "rescored": 0}

    def seen_now(low: int, high: int, x: Tensor) -> Tensor:
        rows, visible = _every(layers), x != layers.network.config.mask_token_id
        start, end = max(low - policy.window, 0), min(high + policy.window, layers.rows)
        seen = (rows >= start) & (rows < end)
        if policy.pattern is Pattern.SKIP:
            seen |= rows % policy.stride == 0
        if policy.pattern is Pattern.TREE:
            powers = torch.tensor([2**k for k in range(10)])
            seen |= torch.isin(start - rows, powers) | torch.isin(rows - (end - 1), powers)
        seen |= torch.isin(x, torch.tensor(policy.exempt, dtype=torch.int64)) & visible
        while (seen & visible).sum() < min(policy.least_context, visible.sum()):
            distance = torch.where(visible & ~seen, (rows - low).abs(), 1000)
            seen[distance.argmin()] = True
        return seen

    def logits(step: Step) -> Tensor:
        t, _, low, high, x, last = step
        if t == 0 or (policy.rescore is not None and t - memory["rescored"] >= policy.rescore):
            memory.update(seen=seen_now(low, high, x), block=low, refreshed=t, rescored=t)
            return layers.through(x, _every(layers))
        rows = torch.zeros(layers.rows, dtype=torch.bool)
        rows[low:high] = (x == layers.network.config.mask_token_id)[low:high]
        rows[last] = True
        if low != memory["block"] or t - memory["refreshed"] >= policy.refresh:
            memory.update(seen=seen_now(low, high, x), block=low, refreshed=t)
            rows |= memory["seen"]
        seen = torch.nonzero(memory["seen"] | rows)[:, 0]
        return layers.through(x, torch.nonzero(rows)[:, 0], seen, policy.smoothing)

    return logits


# The first layer's values depend on tokens alone: there all but one are alike, and rounding chooses among them.
SIMILAR = SimilarityCache(prompt_interval=11, answer_interval=4, share=0.3, whole_layers=1)
ANCHORED = AnchoredCache(tolerance=0.25, staleness=3, near=2)
FOCUS = FocusCache(window=4, refresh=5, rescore=18, revise=None, smoothing=0.1)
CASES: dict[str, tuple[CachePolicy | None, Callable[[Layers], Logits]]] = {
    "none": (None, lambda layers: lambda step: layers.network(step[4][None], _every(layers))[0][0]),
    "prefix": (BlockCache(Kept.PREFIX), lambda layers: _fast_dllm(layers, dual=False)),
    "dual": (BlockCache(Kept.DUAL), lambda layers: _fast_dllm(layers, dual=True)),
    "delayed": (DelayedCache(6), lambda layers: _dkv(layers, 6, None)),
    "delayed, greedy": (DelayedCache(6, window=3), lambda layers: _dkv(layers, 6, 3)),
    "similarity": (SIMILAR, lambda layers: _dllm_cache(layers, SIMILAR)),
    "similarity, near": (
        replace(SIMILAR, near=2),
        lambda layers: _dllm_cache(layers, replace(SIMILAR, near=2)),
    ),
    "anchored": (ANCHORED, lambda layers: _anchored(layers, ANCHORED, CLUSTERS)),
    "anchored, few entries": (
        replace(ANCHORED, capacity=5),
        lambda layers: _anchored(layers, replace(ANCHORED, capacity=5), CLUSTERS),
    ),
    **{
        f"focus, {pattern.value}": (
            replace(FOCUS, pattern=pattern, exempt=(7, 8, 9)),
            lambda layers, pattern=pattern: _focus(layers, replace(FOCUS, pattern=pattern, exempt=(7, 8, 9))),
        )
        for pattern in Pattern
    },
    "focus, no window": (replace(FOCUS, window=0), lambda layers: _focus(layers, replace(FOCUS, window=0))),
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
    wanted = _llada(random_network, prompt, reference(layers))
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
        return layers.through(x, _every(layers) if of_block == 0 else rows)

    reference = CASES["none"][1](layers) if case == "none" else dual
    assert sampler.generate(PROMPT, LENGTH).tokens.tolist() == _llada(random_network, prompt, reference, shift=1)
