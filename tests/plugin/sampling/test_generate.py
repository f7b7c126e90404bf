"""Generations against the loop of a pipeline."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from retouch import EditSession, NonFiniteError, RunError, SamplingError
from retouch.sampling import Conditions, Denoiser, Guidance, Progress, Recording, Schedule, generate, progress_bar
from retouch.states import StateStore
from tests.plugin.sampling.schedulers import SCHEDULERS


@pytest.mark.parametrize(("kind", "options"), SCHEDULERS)
def test_a_generation_is_that_of_a_pipeline(
    setting: Any, denoiser: Denoiser, full_loop: Any, kind: str, options: dict
) -> None:
    plan = setting.schedule(kind, **options)
    trajectory = generate(denoiser, plan, setting.asked(), seed=7)
    expected = full_loop.run(plan, setting.asked(), 7)
    assert len(trajectory.steps) == len(expected) - 1 == len(plan.timesteps)
    for index, latents in enumerate(expected):
        close = 1e-5 * np.abs(latents).max()
        np.testing.assert_allclose(
            trajectory.before(index), latents, rtol=0, atol=close, err_msg=f"before step {index}"
        )
    assert [step.time for step in trajectory.steps] == list(plan.timesteps)


def test_guidance_in_one_call_is_guidance_in_two(setting: Any, denoiser: Denoiser, pair_denoiser: Denoiser) -> None:
    plan = setting.schedule()
    two, one = (generate(network, plan, setting.asked(), seed=1) for network in (denoiser, pair_denoiser))
    np.testing.assert_allclose(one.latents, two.latents, rtol=0, atol=1e-5)
    assert [len(step.runs) for step in (one.steps[0], two.steps[0])] == [1, 2]
    assert pair_denoiser.latents_shape == denoiser.latents_shape == setting.shape


def test_without_guidance_a_step_is_one_call(
    setting: Any, denoiser: Denoiser, pair_denoiser: Denoiser, full_loop: Any
) -> None:
    plain = Conditions(setting.text(1))
    expected = full_loop.run(setting.schedule(), plain, 2)[-1]
    for network in (denoiser, pair_denoiser):
        trajectory = generate(network, setting.schedule(), plain, seed=2)
        np.testing.assert_allclose(trajectory.latents, expected, rtol=0, atol=1e-6)
        assert len(trajectory.steps[0].runs) == 1


def test_given_latents_are_where_it_starts(setting: Any, denoiser: Denoiser) -> None:
    start = np.random.default_rng(0).standard_normal(setting.shape)
    trajectory = generate(denoiser, setting.schedule(), setting.asked(), latents=start)
    np.testing.assert_array_equal(trajectory.before(0), start.astype(np.float32))
    with pytest.raises(SamplingError, match=r"Expected latents of shape \(1, 2, 8, 8\), got \(1, 2, 4, 4\)"):
        generate(denoiser, setting.schedule(), setting.asked(), latents=np.zeros((1, 2, 4, 4)))


@pytest.mark.parametrize(
    ("recording", "kept"),
    [
        (Recording(), (0, 1, 2, 3, 4)),
        (Recording(stride=2), (0, 2, 4)),
        (Recording(stride=3), (1, 4)),
        (Recording(last=2), (3, 4)),
        (Recording(stride=2, last=4), (2, 4)),
        (Recording(last=0), ()),
    ],
)
def test_a_recording_keeps_the_steps_it_says(
    setting: Any, denoiser: Denoiser, recording: Recording, kept: tuple[int, ...]
) -> None:
    trajectory = generate(denoiser, setting.schedule(), setting.asked(), recording=recording)
    assert trajectory.recorded == kept
    assert len(denoiser.session.runs()) == 2 * len(kept)
    assert trajectory.bytes == sum(run.bytes for step in trajectory.steps for run in step.runs)
    assert (trajectory.bytes > 0) == bool(kept)
    trajectory.close()
    trajectory.close()
    assert denoiser.session.runs() == () and trajectory.bytes == 0


def test_the_callback_sees_every_step(setting: Any, denoiser: Denoiser) -> None:
    seen: list[Progress] = []
    trajectory = generate(denoiser, setting.schedule(), setting.asked(), callback=seen.append)
    assert [(item.index, item.steps) for item in seen] == [(index, 5) for index in range(5)]
    for item in seen:
        np.testing.assert_array_equal(item.latents[0], trajectory.before(item.index + 1))


def test_the_bar_says_how_many_steps_were_made(setting: Any, denoiser: Denoiser) -> None:
    drawn = io.StringIO()
    with progress_bar("generate", Console(file=drawn, width=80)) as callback:
        generate(denoiser, setting.schedule(), setting.asked(), callback=callback)
    last = drawn.getvalue().strip().splitlines()[-1]
    assert last.startswith("generate")
    assert "5/5" in last


def test_a_cancelled_generation_leaves_nothing(setting: Any, denoiser: Denoiser, progress_limit) -> None:
    other = generate(denoiser, setting.schedule(), setting.asked())
    kept = denoiser.session.runs()
    with pytest.raises(KeyboardInterrupt):
        generate(denoiser, setting.schedule(), setting.asked(), callback=progress_limit(3))
    assert denoiser.session.runs() == kept
    assert other.bytes > 0


def test_values_that_are_not_finite_leave_nothing(setting: Any, denoiser: Denoiser) -> None:
    broken = Conditions({"text": np.full((1, 3, 4), np.nan, np.float32)}, setting.text(0), 3.0)
    with pytest.raises(NonFiniteError):
        generate(denoiser, setting.schedule(), broken)
    assert denoiser.session.runs() == ()


def test_a_store_too_small_for_all_steps_is_an_error(setting: Any, network: Any) -> None:
    with EditSession(network.bundle, threads=1) as session:
        one = generate(Denoiser(session), setting.schedule(steps=1), setting.asked()).bytes
    store = StateStore(budget=3 * one)
    with EditSession(network.bundle, threads=1, store=store) as session:
        with pytest.raises(RunError, match="evicted to keep the states within"):
            generate(Denoiser(session), setting.schedule(), setting.asked())
        assert session.runs() == ()
        assert generate(
            Denoiser(session), setting.schedule(), setting.asked(), recording=Recording(last=1)
        ).recorded == (4,)


def test_what_does_not_fit_says_so(setting: Any, denoiser: Denoiser, network: Any) -> None:
    with pytest.raises(SamplingError, match="Expected at least 1 step"):
        setting.schedule(steps=0)
    with pytest.raises(SamplingError, match="Expected a scheduler of diffusers, got object"):
        Schedule(object(), 5)
    with pytest.raises(SamplingError, match="finite guidance scale"):
        Conditions({}, guidance=float("nan"))
    with pytest.raises(SamplingError, match=r"name the inputs of the positive ones, \['text'\], got \['prompt'\]"):
        Conditions(setting.text(1), {"prompt": setting.text(1)["text"]})
    with pytest.raises(SamplingError, match="even batch"):
        generate(Denoiser(denoiser.session, Guidance.BATCH), setting.schedule(), setting.asked())
    with pytest.raises(
        SamplingError, match=r"Expected an input of the bundle among sample, timestep, text, got 'time'"
    ):
        generate(Denoiser(denoiser.session, timestep="time"), setting.schedule(), setting.asked())
    with pytest.raises(SamplingError, match=r"Expected an output of the bundle among prediction, got 'noise'"):
        generate(Denoiser(denoiser.session, output="noise"), setting.schedule(), setting.asked())
    for options in ({"stride": 0}, {"last": -1}, {"stride": 1.5}, {"last": True}):
        with pytest.raises(SamplingError, match="Recording"):
            Recording(**options)
    assert denoiser.session.runs() == ()


def test_schedules_that_make_the_same_steps_have_one_fingerprint(setting: Any) -> None:
    assert setting.schedule().fingerprint == setting.schedule().fingerprint
    others = [setting.schedule(steps=6), setting.schedule("EulerDiscreteScheduler"), setting.schedule(beta_end=0.03)]
    assert len({plan.fingerprint for plan in (setting.schedule(), *others)}) == 4
