"""Edits of a trajectory against a full recompute with the same frozen latents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retouch import RegionError, RunError, SamplingError
from retouch.sampling import (
    Change,
    Conditions,
    Denoiser,
    MissingStates,
    Recording,
    Trajectory,
    edit,
    edit_many,
    generate,
)
from tests.plugin.sampling.schedulers import WITH_ONE_OUTPUT


def scale_of(trajectory: Trajectory) -> float:
    return max(float(np.abs(step.latents).max()) for step in trajectory.steps)


def assert_frozen_outside(edited: Trajectory, base: Trajectory, mask: np.ndarray) -> None:
    """The latents outside a mask are the base's at every step, bit for bit; the finished ones differ inside."""
    outside = ~np.broadcast_to(mask, base.latents.shape)
    for index in range(len(base.steps) + 1):
        np.testing.assert_array_equal(edited.before(index)[outside], base.before(index)[outside])
    assert not np.array_equal(edited.latents, base.latents)


@pytest.mark.parametrize(("kind", "options"), WITH_ONE_OUTPUT)
def test_an_edit_is_a_full_recompute_with_frozen_latents(
    setting: Any, denoiser: Denoiser, full_loop: Any, kind: str, options: dict[str, Any]
) -> None:
    plan = setting.schedule(kind, **options)
    base = generate(denoiser, plan, setting.asked(1), seed=7)
    region, mask = setting.corner(), setting.corner().mask[None, None]
    edited = edit(base, region, setting.asked(2, guidance=4.0))
    assert_frozen_outside(edited, base, mask)
    expected = full_loop.run(plan, setting.asked(2, guidance=4.0), 7, (mask, base.steps, base.latents))
    for index, latents in enumerate(expected):
        np.testing.assert_allclose(edited.before(index), latents, rtol=0, atol=2e-5 * scale_of(base))
    assert edited.base is base and edited.region is region
    assert edited.report is not None and edited.report.staleness == (0,) * len(plan.timesteps)


def test_the_same_conditions_give_the_same_again(setting: Any, denoiser: Denoiser) -> None:
    base = generate(denoiser, setting.schedule("EulerAncestralDiscreteScheduler"), setting.asked(), seed=3)
    again = edit(base, setting.corner("exact"))
    np.testing.assert_allclose(again.latents, base.latents, rtol=0, atol=1e-5 * scale_of(base))


def test_strength_computes_the_last_steps_only(setting: Any, denoiser: Denoiser, full_loop: Any) -> None:
    plan = setting.schedule("DPMSolverMultistepScheduler", steps=6)
    base = generate(denoiser, plan, setting.asked(1), seed=7)
    edited = edit(base, setting.corner(), setting.asked(2), strength=0.5)
    assert edited.steps[:3] == base.steps[:3]
    assert edited.report is not None and edited.report.start == 3 and len(edited.report.runs) == 3
    mask = setting.corner().mask[None, None]
    assert_frozen_outside(edited, base, mask)
    # The history of a multistep scheduler is the base's: frozen everywhere up to the step where the edit begins.
    late = FrozenUntil(full_loop, 3)
    expected = late.run(plan, setting.asked(2), 7, mask, base)
    np.testing.assert_allclose(edited.latents, expected, rtol=0, atol=2e-5 * scale_of(base))


class FrozenUntil:
    """A full recompute that begins late: before that the base's outputs are taken everywhere."""

    def __init__(self, loop: Any, start: int) -> None:
        self._loop, self._start = loop, start

    def run(self, plan: Any, conditions: Conditions, seed: int, mask: np.ndarray, base: Trajectory) -> np.ndarray:
        import torch

        scheduler = type(plan.scheduler).from_config(plan.scheduler.config)
        scheduler.set_timesteps(plan.steps)
        latents = base.before(0)
        for index, time in enumerate(scheduler.timesteps):
            output = base.steps[index].output
            if index >= self._start:
                output = np.where(mask, self._loop._predict(np.array(latents), float(time), conditions), output)
            after = scheduler.step(torch.tensor(output), time, torch.tensor(latents)).prev_sample.numpy()
            latents = np.where(mask & (index >= self._start), after, base.before(index + 1))
        return latents


def test_other_noise_inside(setting: Any, denoiser: Denoiser) -> None:
    base = generate(denoiser, setting.schedule("DDPMScheduler"), setting.asked(), seed=7)
    mask = setting.corner().mask[None, None]
    other = edit(base, setting.corner(), seed=8)
    assert_frozen_outside(other, base, mask)
    fresh = generate(denoiser, setting.schedule("DDPMScheduler"), setting.asked(), seed=8, recording=Recording(last=0))
    inside = np.broadcast_to(mask, base.latents.shape)
    np.testing.assert_array_equal(other.before(0)[inside], fresh.before(0)[inside])
    assert other.seed == 8
    np.testing.assert_array_equal(edit(base, setting.corner(), seed=8).latents, other.latents)


@pytest.mark.parametrize("kind", ["DDIMScheduler", "FlowMatchEulerDiscreteScheduler", "EulerDiscreteScheduler"])
def test_other_noise_from_the_finished_latents(setting: Any, denoiser: Denoiser, kind: str) -> None:
    """As image-to-image does: the finished latents with noise of the step's size."""
    import torch

    plan = setting.schedule(kind)
    base = generate(denoiser, plan, setting.asked(), seed=7)
    varied = edit(base, setting.corner(), seed=8, strength=0.4)
    assert varied.report is not None and varied.report.start == 3
    assert_frozen_outside(varied, base, setting.corner().mask[None, None])
    generator = torch.Generator().manual_seed(8)
    torch.randn(setting.shape, generator=generator)
    noise = torch.randn(setting.shape, generator=generator)
    scheduler = type(plan.scheduler).from_config(plan.scheduler.config)
    scheduler.set_timesteps(plan.steps)
    finished, time = torch.tensor(base.latents), scheduler.timesteps[3:4]
    if hasattr(scheduler, "scale_noise"):
        expected = scheduler.scale_noise(finished, time, noise)
    else:
        expected = scheduler.add_noise(finished, noise, time)
    inside = np.broadcast_to(setting.corner().mask[None, None], base.latents.shape)
    np.testing.assert_allclose(varied.before(3)[inside], expected.numpy()[inside], rtol=0, atol=1e-6)


def test_edits_in_a_row_branches_and_undo(setting: Any, denoiser: Denoiser, full_loop: Any) -> None:
    plan = setting.schedule()
    base = generate(denoiser, plan, setting.asked(1), seed=7)
    first = edit(base, setting.corner(), setting.asked(2), record=True)
    other = type(setting.corner()).from_boxes([(5, 5, 8, 8)], setting.shape[2:], setting.corner().policy)
    second = edit(first, other, setting.asked(3))
    assert second.base is first and first.base is base
    mask = other.mask[None, None]
    assert_frozen_outside(second, first, mask)
    expected = full_loop.run(plan, setting.asked(3), 7, (mask, first.steps, first.latents))[-1]
    np.testing.assert_allclose(second.latents, expected, rtol=0, atol=2e-5 * scale_of(base))
    # Undo: the base is as it was, and another branch from it is what it would have been.
    branch = edit(base, other, setting.asked(3))
    assert_frozen_outside(branch, base, mask)
    kept = set(denoiser.session.runs())
    first.close()
    assert {run.id for step in base.steps for run in step.runs} == set(denoiser.session.runs()) < kept
    np.testing.assert_array_equal(edit(base, other, setting.asked(3)).latents, branch.latents)


def test_an_edit_that_was_not_recorded_cannot_be_edited(setting: Any, denoiser: Denoiser) -> None:
    base = generate(denoiser, setting.schedule(), setting.asked())
    edited = edit(base, setting.corner(), setting.asked(2), strength=0.5)
    for missing in MissingStates:
        with pytest.raises(RunError, match="record=False"):
            edit(edited, setting.corner(), setting.asked(3), missing=missing)


def test_states_of_other_steps_are_reported(setting: Any, denoiser: Denoiser) -> None:
    plan = setting.schedule(steps=8)
    exact = generate(denoiser, plan, setting.asked(), seed=1)
    reference = edit(exact, setting.corner("exact"), setting.asked(2))
    cases = {Recording(stride=3): (1, 0, 1, 1, 0, 1, 1, 0), Recording(last=2): (6, 5, 4, 3, 2, 1, 0, 0)}
    errors = []
    for recording, staleness in cases.items():
        base = generate(denoiser, plan, setting.asked(), seed=1, recording=recording)
        edited = edit(base, setting.corner("exact"), setting.asked(2))
        assert edited.report is not None and edited.report.staleness == staleness
        assert f"at most {max(staleness)} steps away" in str(edited.report)
        assert_frozen_outside(edited, base, setting.corner().mask[None, None])
        errors.append(np.abs(edited.latents - reference.latents).max())
    assert 0 < errors[0] < errors[1]


def test_missing_states_are_an_error_or_computed_again(setting: Any, denoiser: Denoiser) -> None:
    plan = setting.schedule()
    whole = generate(denoiser, plan, setting.asked())
    expected = edit(whole, setting.corner(), setting.asked(2)).latents
    base = generate(denoiser, plan, setting.asked())
    for run in base.steps[2].runs:
        run.close()
    kept = denoiser.session.runs()
    with pytest.raises(RunError, match="states of step 2 to be kept"):
        edit(base, setting.corner(), setting.asked(2))
    edited = edit(base, setting.corner(), setting.asked(2), missing=MissingStates.RECOMPUTE)
    np.testing.assert_array_equal(edited.latents, expected)
    assert edited.report is not None and edited.report.recomputed == (2,) and "steps 2" in str(edited.report)
    nothing = generate(denoiser, plan, setting.asked(), recording=Recording(last=0))
    with pytest.raises(RunError, match="none of its steps was"):
        edit(nothing, setting.corner(), setting.asked(2))
    again = edit(nothing, setting.corner(), setting.asked(2), missing=MissingStates.RECOMPUTE)
    np.testing.assert_array_equal(again.latents, expected)
    assert denoiser.session.runs() == kept


def test_several_edits_are_the_edits(setting: Any, denoiser: Denoiser, pair_denoiser: Denoiser) -> None:
    for network in (denoiser, pair_denoiser):
        base = generate(network, setting.schedule("EulerAncestralDiscreteScheduler"), setting.asked())
        shifted = type(setting.corner()).from_boxes([(4, 4, 6, 7)], setting.shape[2:], "exact")
        changes = [
            Change(setting.corner("exact"), setting.asked(2)),
            Change(shifted, setting.asked(2)),
            Change(shifted, seed=4),
        ]
        together = edit_many(base, changes)
        for change, edited in zip(changes, together, strict=True):
            alone = edit(base, change.region, change.conditions, seed=change.seed)
            np.testing.assert_allclose(edited.latents, alone.latents, rtol=0, atol=1e-5 * scale_of(base))
            assert_frozen_outside(edited, base, change.region.mask[None, None])
            assert edited.region is change.region and edited.report is not None
    assert edit_many(base, []) == []


def test_recorded_edits_together_can_be_edited_further(setting: Any, denoiser: Denoiser) -> None:
    base = generate(denoiser, setting.schedule(), setting.asked())
    changes = [Change(setting.corner(), setting.asked(seed)) for seed in (2, 3)]
    for change, edited in zip(changes, edit_many(base, changes, record=True), strict=True):
        alone = edit(base, change.region, change.conditions, record=True)
        further, reference = (edit(one, setting.corner(), setting.asked(5)) for one in (edited, alone))
        np.testing.assert_allclose(further.latents, reference.latents, rtol=0, atol=1e-5 * scale_of(base))


def test_a_cancelled_edit_leaves_nothing(setting: Any, denoiser: Denoiser, progress_limit: Any) -> None:
    base = generate(denoiser, setting.schedule(), setting.asked())
    kept = denoiser.session.runs()
    for limit in (1, 3, 5):
        with pytest.raises(KeyboardInterrupt):
            edit(base, setting.corner(), setting.asked(2), record=True, callback=progress_limit(limit))
    assert sorted(denoiser.session.runs()) == sorted(kept)
    expected = edit(base, setting.corner(), setting.asked(2)).latents
    np.testing.assert_array_equal(edit(base, setting.corner(), setting.asked(2)).latents, expected)


def test_what_does_not_fit_says_so(setting: Any, denoiser: Denoiser) -> None:
    base = generate(denoiser, setting.schedule(), setting.asked())
    region = setting.corner()
    with pytest.raises(SamplingError, match=r"grid of the latents, \(8, 8\), got one on \(16, 16\).*resampled"):
        edit(base, region.resampled((16, 16)), setting.asked(2))
    with pytest.raises(RegionError, match=r"box \(0, 0, 9, 9\) on a grid of shape \(8, 8\) is out of range"):
        type(region).from_boxes([(0, 0, 9, 9)], (8, 8))
    for strength in (0.0, 1.5, -1.0, float("nan")):
        with pytest.raises(SamplingError, match="strength above 0"):
            edit(base, region, strength=strength)
    with pytest.raises(SamplingError, match="Expected conditions with a negative side"):
        edit(base, region, Conditions(setting.text(2)))
    plain = generate(denoiser, setting.schedule(), Conditions(setting.text(1)))
    with pytest.raises(SamplingError, match="Expected conditions without a negative side"):
        edit(plain, region, setting.asked(2))


def test_a_trajectory_belongs_to_its_model(setting: Any, denoiser: Denoiser, pair_denoiser: Denoiser) -> None:
    base = generate(denoiser, setting.schedule(), setting.asked())
    pair_denoiser.session.open()
    with pytest.raises(RunError, match="dropped or evicted"):
        edit(replace(base, denoiser=pair_denoiser), setting.corner(), setting.asked(2))


def test_the_report_says_what_an_edit_costs(setting: Any, denoiser: Denoiser) -> None:
    base = generate(denoiser, setting.schedule(), setting.asked())
    full = edit(base, setting.corner("exact"), setting.asked(2)).report
    half = edit(base, setting.corner("exact"), setting.asked(2), strength=0.4).report
    assert full is not None and half is not None
    shares = {report.flop_ratio for step in full.runs for report in step}
    assert full.flop_ratio == pytest.approx(shares.pop()) and not shares
    assert half.flop_ratio == pytest.approx(0.4 * full.flop_ratio)
    assert "10 edit runs, 0 full runs" in str(full) and "4 edit runs" in str(half) and "3 before" in str(half)
