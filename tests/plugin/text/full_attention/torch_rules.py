"""The rules of the papers' caches, written out in torch over the layers of a small network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from retouch.bundle import ClustersSpec
from retouch.models.code_lm._network import CodeLm, _rotated
from retouch.text.full_attention import (
    AnchoredCache,
    FocusCache,
    Pattern,
    SimilarityCache,
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
def llada(network: CodeLm, prompt: list[int], logits: Logits, shift: int = 0) -> list[int]:
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


def every(layers: Layers) -> Tensor:
    return torch.arange(layers.rows)


def fast_dllm(layers: Layers, dual: bool) -> Logits:
    def logits(step: Step) -> Tensor:
        _, of_block, low, high, x, _ = step
        if of_block == 0:
            return layers.through(x, every(layers))
        return layers.through(x, torch.arange(low, high if dual else layers.rows))

    return logits


def dkv_rows(layers: Layers, interval: int, window: int | None, step: Step) -> Tensor:
    t, _, low, high, x, last = step
    if t % interval == 0 or t <= 1:
        return every(layers)
    masked = x == layers.network.config.mask_token_id
    computed = masked.clone()
    if window is not None:
        computed[:low] = computed[high:] = False
        near = (every(layers)[:, None] - last[None]).abs().min(1)[0] <= window
        computed |= near & (every(layers) >= len(PROMPT))
    computed[last] = True
    return torch.nonzero(computed)[:, 0]


def dkv(layers: Layers, interval: int, window: int | None) -> Logits:
    return lambda step: layers.through(step[4], dkv_rows(layers, interval, window, step))


def horizon(layers: Layers, reach: int, rows_of: Callable[[Step], Tensor]) -> Logits:
    """Nothing behind the horizon is there, after a first forward that computes everything."""
    ends = [layers.rows]

    def logits(step: Step) -> Tensor:
        t, _, _, high, x, _ = step
        end = min(high + reach, layers.rows)
        rows = rows_of(step)
        came = torch.arange(max(ends[1:], default=0), end)
        ends.append(end)
        shown = torch.unique(torch.cat((rows[rows < end], came)))
        return layers.through(x, every(layers) if t == 0 else shown, None if t == 0 else torch.arange(end))

    return logits


def dllm_cache(layers: Layers, policy: SimilarityCache) -> Logits:
    """The paper's algorithm: keys, values, attention outputs and feed-forward outputs are kept apart."""

    def logits(step: Step) -> Tensor:
        t, _, low, high, x, last = step
        h = layers.embedded(x)
        for index in range(len(layers.network.model.layers)):
            prompt, answer = every(layers)[: len(PROMPT)], every(layers)[len(PROMPT) :]
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
                    always |= (every(layers) - last).abs() <= policy.near
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


def anchored(layers: Layers, policy: AnchoredCache, clusters: ClustersSpec) -> Logits:
    entries = Entries(policy, clusters)

    def logits(step: Step) -> Tensor:
        t, of_block, low, high, x, last = step
        masked = x == layers.network.config.mask_token_id
        share = masked.float().mean().item()
        offsets = (every(layers) - low).clamp(-clusters.reach, clusters.reach) + clusters.reach
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
                rows |= (every(layers) - last).abs() <= policy.near
            rows[low:high] |= masked[low:high]
            layers.update(index, h, torch.nonzero(rows)[:, 0])
            h = h + layers.attended[index] + layers.fed[index]
        return layers.logits(h)

    return logits


def focus(layers: Layers, policy: FocusCache) -> Logits:
    memory = {"seen": torch.zeros(0), "block": -1, "refreshed": 0, "rescored": 0}

    def seen_now(low: int, high: int, x: Tensor) -> Tensor:
        rows, visible = every(layers), x != layers.network.config.mask_token_id
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
            return layers.through(x, every(layers))
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
