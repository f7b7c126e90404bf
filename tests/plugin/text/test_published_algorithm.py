"""The sampler against the published loop, written down plainly on torch without any cache."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from retouch.bundle import TextBundle
from retouch.models.code_lm import PATTERNS_MODEL, load_code_lm
from retouch.models.code_lm._network import CodeLm, block_mask
from retouch.text import PRESETS, EosRule, MaskChoice, Oscillation, SamplerOptions, TextSession, Window

Tokens = np.ndarray


@torch.no_grad()
def _published(network: CodeLm, prompt: Tokens, length: int, options: SamplerOptions) -> Tokens:
    """``generate`` of LLaDA2.1's remote code, greedy, for one text; the mask is never chosen unless allowed."""
    config = network.config
    size, mask_id = config.block_length, config.mask_token_id
    total = -(-(len(prompt) + length) // size) * size
    x = torch.full((total,), mask_id)
    x[: len(prompt)] = torch.from_numpy(prompt)
    in_prompt = torch.arange(total) < len(prompt)
    for low in range(len(prompt) // size * size, total, size):
        high, post = low + size, 0
        while True:
            old = x[low:high].clone()
            masked = old == mask_id
            post += 0 if masked.any() else 1
            if post > options.max_post_steps:
                break
            positions = torch.arange(high)
            span = high if options.window is Window.ALL else size
            logits = network(x[None, :high], positions, block_mask(positions, positions, span))[0][0, low:]
            if options.mask_choice is MaskChoice.EXCLUDED:
                logits[:, mask_id] = -torch.inf
            confidence, token = logits.softmax(-1).max(-1)
            chosen = masked & (confidence > options.threshold)
            if masked.any() and chosen.sum() < 1:
                chosen = torch.zeros_like(masked)
                chosen[torch.where(masked, confidence, -1).argmax()] = True
            edited = torch.zeros_like(masked)
            if options.edit_threshold is not None:
                differs = token != old
                edited = ~masked & ~in_prompt[low:high] & (confidence > options.edit_threshold) & differs
            x[low:high] = torch.where(chosen | edited, token, old)
            if not masked.any() and not edited.any():
                break
        answer = x[len(prompt) : high]
        if options.eos is EosRule.FINISHED_BLOCK and (answer == config.eos_token_id).any():
            break
    answer = x[len(prompt) : len(prompt) + length]
    ends = torch.nonzero(answer == config.eos_token_id)
    if options.eos is EosRule.FINISHED_BLOCK and len(ends):
        answer = answer[: ends[0, 0] + 1]
    return torch.cat((x[: len(prompt)], answer)).numpy()


CASES = {
    **PRESETS,
    "ignoring ends": replace(PRESETS["quality"], eos=EosRule.IGNORED),
    "few repairs": replace(PRESETS["speed"], max_post_steps=2),
    "no repairs": replace(PRESETS["speed"], max_post_steps=0),
    "circles run on": replace(PRESETS["speed"], oscillation=Oscillation.RUN_ON),
    "all see all": replace(PRESETS["quality"], window=Window.ALL),
}


@pytest.mark.parametrize("prompt", ["width", "class A:\n    def"])
@pytest.mark.parametrize("case", CASES)
def test_random_weights(case: str, prompt: str, random_network: CodeLm, random_bundle: TextBundle) -> None:
    options = CASES[case]
    with TextSession(random_bundle, threads=1) as session:
        wanted = _published(random_network, session.tokens_of(prompt), 20, options)
        cached = (False,) if options.window is Window.ALL else (True, False)
        for cache in cached:
            made = session.generate(prompt, 20, options=options, cache=cache)
            assert made.tokens.tolist() == wanted.tolist(), f"cache={cache}"


@pytest.mark.parametrize("preset", PRESETS)
def test_trained_weights(preset: str, patterns_bundle: TextBundle) -> None:
    network = load_code_lm(PATTERNS_MODEL)
    with TextSession(patterns_bundle, threads=1) as session:
        for prompt in ("class WidthOwner:\n    def", "3 + 1 = 4\n"):
            wanted = _published(network, session.tokens_of(prompt), 50, PRESETS[preset])
            made = session.generate(prompt, 50, options=preset)
            assert made.tokens.tolist() == wanted.tolist()


def test_circles_end_early_where_the_budget_would_end_them(random_bundle: TextBundle) -> None:
    """On random weights free edits go in circles; the text is that of the whole budget, for fewer reads."""
    with TextSession(random_bundle, threads=1) as session:
        stopped = session.generate("width", 60, options="speed")
        run_on = session.generate("width", 60, options=CASES["circles run on"])
    assert stopped.tokens.tolist() == run_on.tokens.tolist()
    assert stopped.report.oscillations > 0
    assert run_on.report.oscillations == 0
    assert run_on.report.exhausted >= stopped.report.oscillations
    assert stopped.report.forwards < run_on.report.forwards


def test_free_edits_with_a_temperature_are_stopped(random_bundle: TextBundle) -> None:
    drawn = replace(PRESETS["speed"], temperature=1.0)
    with TextSession(random_bundle, threads=1) as session:
        stopped = session.generate("width", 32, options=drawn, seed=3)
        run_on = session.generate("width", 32, options=replace(drawn, oscillation=Oscillation.RUN_ON), seed=3)
    assert stopped.report.oscillations > 0
    assert stopped.report.forwards < run_on.report.forwards
    assert run_on.report.exhausted > 0


def test_seeds_decide_with_and_without_a_cache(random_bundle: TextBundle) -> None:
    drawn = replace(PRESETS["quality"], temperature=0.8, top_k=20, top_p=0.9, eos=EosRule.IGNORED)
    with TextSession(random_bundle, threads=1) as session:
        texts = {
            (seed, cache): session.generate("width", 30, options=drawn, seed=seed, cache=cache).tokens.tolist()
            for seed in (1, 2)
            for cache in (True, False)
        }
    assert texts[1, True] == texts[1, False]
    assert texts[2, True] == texts[2, False]
    assert texts[1, True] != texts[2, True]
