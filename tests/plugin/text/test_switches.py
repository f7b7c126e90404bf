"""A test vector for every point in which public implementations differ, on a model that follows a script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from retouch.bundle import DecoderSpec
from retouch.errors import NonFiniteError, SamplingError
from retouch.text import (
    PRESETS,
    BlockDiffusionSampler,
    EosRule,
    MaskChoice,
    Oscillation,
    Reader,
    SamplerOptions,
    Step,
    Tally,
    ZeroThreshold,
    preset,
)
from tests.plugin.text.conftest import Script

EOS, MASK = 8, 9
PLAIN = SamplerOptions(threshold=0.7, edit_threshold=0.5, eos=EosRule.IGNORED)

Rule = Callable[[np.ndarray, int], list[tuple[int, float]]]


def constant(*choices: tuple[int, float]) -> Rule:
    return lambda _ids, _start: list(choices)


def sample(
    spec: DecoderSpec, rule: Rule, options: SamplerOptions, *, prompt: tuple[int, ...] = (), length: int = 4
) -> tuple[list[int], Script, Tally]:
    script, tally = Script(spec, rule), Tally()
    blocks = BlockDiffusionSampler(spec, options).blocks(script, np.array(prompt, np.int64), length, tally=tally)
    return [token for block in blocks for token in block.new.tolist()], script, tally


def test_all_that_are_sure_are_set_at_once(script_spec: DecoderSpec) -> None:
    rule = constant((1, 0.9), (2, 0.6), (3, 0.8), (4, 0.65))
    answer, script, tally = sample(script_spec, rule, PLAIN)
    assert answer == [1, 2, 3, 4]
    assert [ids for _, ids in script.reads] == [
        [MASK] * 4,
        [1, MASK, 3, MASK],
        [1, MASK, 3, 4],  # none is sure: the best one
        [1, 2, 3, 4],  # nothing changes: the end, and what a cache now holds
    ]
    assert (tally.filled, tally.edited, tally.forwards) == (4, 0, 4)


def test_confidence_has_to_be_above_the_threshold(script_spec: DecoderSpec) -> None:
    rule = constant((1, 0.7), (2, 0.7), (3, 0.7), (4, 0.8))
    # In single precision 0.7 is what it is: neither above nor below itself.
    exactly = Script(script_spec, rule).read(np.full(4, MASK), 0)
    shares = np.exp(exactly - exactly.max(-1, keepdims=True))
    confidence = float((shares / shares.sum(-1, keepdims=True))[0, 1])
    _, script, _ = sample(script_spec, rule, replace(PLAIN, threshold=confidence, mask_choice=MaskChoice.ALLOWED))
    assert script.reads[1][1] == [MASK, MASK, MASK, 4]


def test_edits_come_from_the_same_logits_while_masks_are_left(script_spec: DecoderSpec) -> None:
    def rule(ids: np.ndarray, _start: int) -> list[tuple[int, float]]:
        first = 5 if ids[1] != MASK else 1
        return [(first, 0.8), (2, 0.6), (3, 0.55), (4, 0.55)]

    answer, script, tally = sample(script_spec, rule, PLAIN)
    assert [ids for _, ids in script.reads][:4] == [
        [MASK] * 4,
        [1, MASK, MASK, MASK],
        [1, 2, MASK, MASK],
        [5, 2, 3, MASK],  # edited and filled by one read
    ]
    assert answer == [5, 2, 3, 4]
    assert tally.edited == 1


def test_the_prompt_is_never_edited(script_spec: DecoderSpec) -> None:
    answer, script, tally = sample(script_spec, constant(*[(7, 0.99)] * 4), PLAIN, prompt=(1, 2, 3, 4, 5, 6), length=2)
    assert answer == [7, 7]
    assert tally.edited == 0
    assert script.reads[0] == (0, [1, 2, 3, 4])
    assert all(ids[:2] == [5, 6] for _, ids in script.reads[1:])


@pytest.mark.parametrize(
    ("meaning", "expected"), [(ZeroThreshold.EDIT_FREELY, [5, 2, 3, 4]), (ZeroThreshold.NO_EDITS, [1, 2, 3, 4])]
)
def test_edit_threshold_of_zero(meaning: ZeroThreshold, expected: list[int], script_spec: DecoderSpec) -> None:
    def rule(ids: np.ndarray, _start: int) -> list[tuple[int, float]]:
        full = MASK not in ids
        return [(5, 0.2) if full else (1, 0.9), (2, 0.9), (3, 0.9), (4, 0.9)]

    options = replace(PRESETS["speed"], zero_threshold=meaning, eos=EosRule.IGNORED)
    assert sample(script_spec, rule, options)[0] == expected


def test_a_schedule_asks_for_more_than_one(script_spec: DecoderSpec) -> None:
    rule = constant((1, 0.3), (2, 0.5), (3, 0.4), (4, 0.2))
    _, script, _ = sample(script_spec, rule, replace(PLAIN, steps=3))
    # Four tokens over three steps: two, one, one.
    assert [ids for _, ids in script.reads][:3] == [[MASK] * 4, [MASK, 2, 3, MASK], [1, 2, 3, MASK]]
    _, script, _ = sample(script_spec, rule, replace(PLAIN, min_transfer=3))
    assert script.reads[1][1] == [1, 2, 3, MASK]


def test_a_chosen_mask_is_excluded_and_counted(script_spec: DecoderSpec) -> None:
    rule = constant((MASK, 0.9), (2, 0.9), (3, 0.9), (4, 0.9))
    answer, _, tally = sample(script_spec, rule, PLAIN)
    assert answer[1:] == [2, 3, 4]
    assert answer[0] != MASK
    assert tally.mask_choices >= 1


def test_a_chosen_mask_that_is_allowed_is_tried_again(script_spec: DecoderSpec) -> None:
    def rule(ids: np.ndarray, _start: int) -> list[tuple[int, float]]:
        return [(MASK if ids[3] == MASK else 1, 0.8), (2, 0.9), (3, 0.9), (4, 0.6)]

    options = replace(PLAIN, mask_choice=MaskChoice.ALLOWED)
    answer, script, _ = sample(script_spec, rule, replace(options, min_transfer=4))
    assert script.reads[1][1] == [MASK, 2, 3, 4]
    assert answer == [1, 2, 3, 4]
    # One that comes back for ever gets the next best token in the end.
    answer, script, _ = sample(script_spec, constant((MASK, 0.8), (2, 0.9), (3, 0.9), (4, 0.9)), options)
    assert answer[1:] == [2, 3, 4]
    assert answer[0] != MASK
    assert len(script.reads) == 3


@pytest.mark.parametrize(
    ("rule_name", "reads", "expected"),
    [(EosRule.FINISHED_BLOCK, 4, [1, EOS]), (EosRule.COMMITTED, 1, [1, EOS]), (EosRule.IGNORED, 8, None)],
)
def test_when_an_end_ends_the_text(
    rule_name: EosRule, reads: int, expected: list[int] | None, script_spec: DecoderSpec
) -> None:
    rule = constant((1, 0.9), (EOS, 0.9), (3, 0.4), (4, 0.3))
    answer, script, _ = sample(script_spec, rule, replace(PLAIN, eos=rule_name), length=8)
    assert answer == (expected or [1, EOS, 3, 4] * 2)
    assert len(script.reads) == reads


def test_a_penalty_keeps_a_token_from_repeating_the_one_before(script_spec: DecoderSpec) -> None:
    def rule(ids: np.ndarray, _start: int) -> list[tuple[int, float]]:
        return [(1, 0.95), (1, 0.6), (3, 0.95), (4, 0.95)]

    assert sample(script_spec, rule, PLAIN)[0] == [1, 1, 3, 4]
    answer = sample(script_spec, rule, replace(PLAIN, stutter_penalty=5.0))[0]
    assert answer[0] == 1
    assert answer[1] != 1


@pytest.mark.parametrize("budget", range(1, 8))
def test_circles_end_as_their_budget_would_end_them(budget: int, script_spec: DecoderSpec) -> None:
    def rule(ids: np.ndarray, _start: int) -> list[tuple[int, float]]:
        turning = {1: 2, 2: 3, 3: 5, 5: 2}  # 1, then 2, 3, 5 for ever
        return [(turning.get(int(ids[0]), 1), 0.9), (2, 0.9), (3, 0.9), (4, 0.9)]

    results = {}
    for kind in Oscillation:
        options = replace(PLAIN, max_post_steps=budget, oscillation=kind)
        results[kind] = sample(script_spec, rule, options)
    assert results[Oscillation.STOP][0] == results[Oscillation.RUN_ON][0]
    stopped, run_on = results[Oscillation.STOP][2], results[Oscillation.RUN_ON][2]
    assert stopped.forwards == min(run_on.forwards, 5)
    assert (stopped.oscillations, run_on.exhausted) == (int(budget > 3), 1)


def test_a_block_that_was_read_as_it_ends_is_not_read_again(script_spec: DecoderSpec) -> None:
    rule = constant((1, 0.9), (2, 0.9), (3, 0.9), (4, 0.9))
    _, script, _ = sample(script_spec, rule, PLAIN, length=8)
    assert [start for start, _ in script.reads] == [0, 0, 4, 4]


def test_a_block_that_was_not_is_read_with_the_next(script_spec: DecoderSpec) -> None:
    rule = constant((1, 0.9), (2, 0.9), (3, 0.9), (4, 0.9))
    _, script, _ = sample(script_spec, rule, replace(PLAIN, edit_threshold=None), length=8)
    assert script.reads == [(0, [MASK] * 4), (0, [1, 2, 3, 4, MASK, MASK, MASK, MASK])]


def test_a_postponed_read_that_nothing_follows_is_made_by_itself(script_spec: DecoderSpec) -> None:
    script = Script(script_spec, constant(*[(1, 0.9)] * 4))
    reader = Reader(script)
    reader.postpone(np.array([1, 2, 3, 4]), 0)
    reader.postpone(np.array([5, 6, 7, 0]), 4)
    reader.read(np.array([0, 0, 0, 0]), 12)
    reader.finish()
    assert script.reads == [(0, [1, 2, 3, 4, 5, 6, 7, 0]), (12, [0, 0, 0, 0])]
    assert (reader.reads, reader.tokens) == (2, 12)


def test_a_callback_sees_every_change(script_spec: DecoderSpec) -> None:
    steps: list[Step] = []
    script = Script(script_spec, constant((1, 0.9), (2, 0.6), (3, 0.8), (4, 0.65)))
    list(BlockDiffusionSampler(script_spec, PLAIN).blocks(script, np.array([], int), 4, callback=steps.append))
    assert [step.tokens.tolist() for step in steps] == [[1, MASK, 3, MASK], [1, MASK, 3, 4], [1, 2, 3, 4]]
    assert [np.flatnonzero(step.filled).tolist() for step in steps] == [[0, 2], [3], [1]]


def test_a_callback_sees_where_circles_and_ends_lead(script_spec: DecoderSpec) -> None:
    def turning(ids: np.ndarray, _start: int) -> list[tuple[int, float]]:
        return [(2 if ids[0] == 1 else 1, 0.9), (2, 0.9), (3, 0.9), (4, 0.9)]

    def ending(ids: np.ndarray, _start: int) -> list[tuple[int, float]]:
        return [(EOS, 0.9), (2, 0.3), (3, 0.3), (4, 0.3)]

    for rule, options in [
        (turning, replace(PLAIN, max_post_steps=5)),
        (turning, replace(PLAIN, max_post_steps=6)),
        (ending, replace(PLAIN, eos=EosRule.COMMITTED)),
    ]:
        steps: list[Step] = []
        sampler = BlockDiffusionSampler(script_spec, options)
        (block,) = sampler.blocks(Script(script_spec, rule), np.array([], int), 4, callback=steps.append)
        assert steps[-1].tokens.tolist() == block.tokens.tolist()


def test_logits_that_are_not_finite_are_reported(script_spec: DecoderSpec) -> None:
    class Broken(Script):
        def read(self, ids: np.ndarray, start: int) -> np.ndarray:
            logits = super().read(ids, start)
            logits[2] = np.nan
            return logits

    script = Broken(script_spec, constant(*[(1, 0.9)] * 4))
    with pytest.raises(NonFiniteError, match="position 2"):
        list(BlockDiffusionSampler(script_spec, PLAIN).blocks(script, np.array([], int), 4))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"threshold": 1.1}, "threshold to be a number from 0 to 1, got 1.1"),
        ({"edit_threshold": -0.1}, "edit_threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"temperature": -1.0}, "temperature"),
        ({"top_p": 2.0}, "top_p"),
        ({"top_k": 0}, "top_k"),
        ({"min_transfer": 0}, "min_transfer"),
        ({"steps": 0}, "steps"),
        ({"max_post_steps": -1}, "max_post_steps"),
        ({"patience": True}, "patience"),
    ],
)
def test_options_are_checked(options: dict[str, float], match: str) -> None:
    with pytest.raises(SamplingError, match=match):
        SamplerOptions(**options)


def test_presets_have_names() -> None:
    assert preset("speed").edit_threshold == 0
    with pytest.raises(SamplingError, match="quality, speed"):
        preset("fast")
