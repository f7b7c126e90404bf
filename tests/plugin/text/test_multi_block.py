"""Blocks that are edited together, against a loop in torch whose mask is written down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from retouch.bundle import DecoderSpec, TextBundle
from retouch.errors import SamplingError
from retouch.models.code_lm._network import CodeLm, block_mask
from retouch.text import (
    BlockDiffusionSampler,
    EosRule,
    SamplerOptions,
    Step,
    Tally,
    TextReport,
    TextSession,
    Window,
)

_BLOCK = 8
_SINGLE = SamplerOptions(threshold=0.3, edit_threshold=0.4, eos=EosRule.IGNORED, max_post_steps=5)
_PROMPT = "def first(x):\n"  # 16 tokens: two blocks


@pytest.fixture(scope="module")
def session(random_bundle: TextBundle) -> Iterator[TextSession]:
    with TextSession(random_bundle, threads=1) as opened:
        yield opened


@torch.no_grad()
def _edited_together(network: CodeLm, tokens: list[int], start: int, options: SamplerOptions) -> list[int]:
    """Tokens from a start on, edited while all of them see each other."""
    ids = torch.tensor(tokens)
    positions = torch.arange(len(ids))
    mask = block_mask(positions, positions, _BLOCK) | (positions >= start)[:, None]
    seen = {tuple(tokens)}
    assert options.edit_threshold is not None
    for _ in range(options.max_post_steps):
        logits = network(ids[None], positions, mask)[0][0]
        logits[:, network.config.mask_token_id] = -torch.inf
        confidence, choice = logits.softmax(-1).max(-1)
        edited = (positions >= start) & (confidence > options.edit_threshold) & (choice != ids)
        if not edited.any():
            break
        ids = torch.where(edited, choice, ids)
        if tuple(ids.tolist()) in seen:
            break
        seen.add(tuple(ids.tolist()))
    return [int(token) for token in ids]


@pytest.mark.parametrize("count", [2, 3])
def test_blocks_are_edited_as_if_they_were_one(count: int, session: TextSession, random_network: CodeLm) -> None:
    prompt = session.tokens_of(_PROMPT)[: count * _BLOCK].tolist() + [5] * (count * _BLOCK)
    prompt = prompt[: count * _BLOCK]
    single = session.generate(prompt, count * _BLOCK, options=_SINGLE)
    together = session.generate(prompt, count * _BLOCK, options=replace(_SINGLE, multi_block=count))
    wanted = _edited_together(random_network, single.tokens.tolist(), len(prompt), _SINGLE)
    assert wanted != single.tokens.tolist()
    assert together.tokens.tolist() == wanted


def test_keys_and_values_are_those_of_single_blocks(session: TextSession) -> None:
    """What comes after sees the edited blocks as reading the text from its start would give them."""
    made = session.generate(_PROMPT, 60, options=replace(_SINGLE, multi_block=2))
    assert isinstance(made.report, TextReport)
    fresh = session.model.context(len(made.padded))
    fresh.read(made.padded, 0)
    for name, states in fresh.keys_values().items():
        np.testing.assert_allclose(session.kept(made)[name], states, rtol=1e-3, atol=1e-4)


def test_blocks_come_with_their_group_and_changes_are_told(session: TextSession) -> None:
    steps: list[Step] = []
    stream = session.stream("a", 40, options=replace(_SINGLE, multi_block=2), callback=steps.append)
    blocks = [(block.start, block.tokens.tolist()) for block in stream]
    assert [start for start, _ in blocks] == [0, 8, 16, 24, 32, 40]
    assert stream.generation.padded.tolist() == [token for _, tokens in blocks for token in tokens]
    last = {step.start: step.tokens.tolist() for step in steps}
    assert [last[start] for start, _ in blocks] == [tokens for _, tokens in blocks]
    assert stream.generation.tokens[0] == session.tokens_of("a")[0]


class _Scripted:
    """A context whose widened reads toggle the token at a place between two."""

    def __init__(self, spec: DecoderSpec) -> None:
        self._spec = spec

    def read(self, ids: np.ndarray, start: int) -> np.ndarray:
        del start
        return self._sure(np.where(ids == self._spec.mask_id, 1, ids))

    def read_widened(self, ids: np.ndarray, start: int, block: int) -> np.ndarray:
        del start, block
        return self._sure(np.where(np.arange(len(ids)) == 2, 3 - ids, ids))

    def _sure(self, tokens: np.ndarray) -> np.ndarray:
        return np.where(np.arange(self._spec.vocabulary) == tokens[:, None], np.float32(9), np.float32(0))


@pytest.mark.parametrize(("temperature", "edited"), [(0.0, 2), (0.5, 4)])
def test_circles_of_groups_are_stopped(temperature: float, edited: int, script_spec: DecoderSpec) -> None:
    options = SamplerOptions(
        threshold=0.5, edit_threshold=0.0, temperature=temperature, multi_block=2, eos=EosRule.IGNORED
    )
    tally = Tally()
    sampler = BlockDiffusionSampler(script_spec, options)
    blocks = list(sampler.blocks(_Scripted(script_spec), np.zeros(0, np.int64), 8, tally=tally))
    assert len(blocks) == 2
    assert (tally.oscillations, tally.edited) == (1, edited)


def test_where_blocks_cannot_see_each_other_it_is_refused(session: TextSession) -> None:
    options = replace(_SINGLE, multi_block=2)
    with pytest.raises(SamplingError, match="single text with a cache"):
        session.generate("a", 20, options=options, cache=False)
    with pytest.raises(SamplingError, match="single text with a cache"):
        session.generate_many(["a", "b"], 20, options=options)
    with pytest.raises(SamplingError, match="Expected edits"):
        SamplerOptions(edit_threshold=None, multi_block=2)
    with pytest.raises(SamplingError, match="Expected edits"):
        SamplerOptions(window=Window.ALL, multi_block=2)
    with pytest.raises(SamplingError, match="multi_block to be an integer"):
        SamplerOptions(multi_block=0)
