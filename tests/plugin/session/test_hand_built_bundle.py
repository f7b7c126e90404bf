"""Sessions on a bundle written by hand, against the masked reference in numpy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from retouch import EditSession, NonFiniteError, Region, RegionError, RetouchError, RunError
from retouch.bundle import BreakEven, Bundle, FileSpec
from retouch.engines.ort import OrtEngine
from retouch.states import StateStore

TOLERANCE = 2e-6
PATCH = Region.from_boxes([(2, 3, 5, 6)], (8, 8), "exact")


def near(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got, expected, atol=TOLERANCE * 10, rtol=1e-5)


def image(y: Any) -> Any:
    return y.transpose(2, 0, 1)[None]


def masks(region: Region, bundle: Bundle) -> dict[str, Any]:
    active = region.active(bundle.manifest.grids, bundle.manifest.grid("fine"))
    return {grid: active.mask(grid) for grid in ("fine", "coarse")}


def with_break_even(bundle: Bundle, share: float) -> Bundle:
    measured = {OrtEngine().name: BreakEven(OrtEngine().name, 1, share)}
    return Bundle(bundle.path, bundle.manifest.replace(break_even=measured))


@pytest.fixture(params=["cached", "corrected"])
def session(request: pytest.FixtureRequest, hand_built: Any) -> Any:
    with EditSession(hand_built.bundle, threads=1, group_norm=request.param) as session:
        session.mode = request.param
        yield session


def test_base_run(session: Any, hand_built: Any) -> None:
    feeds = hand_built.feeds()
    run = session.base(feeds)
    expected = hand_built.states(feeds)
    near(run.outputs["y"], image(expected["y"]))
    assert set(run.states) == ({"x", "m", "n", "q", "y"} | ({"b"} if session.mode == "corrected" else set()))
    for name, value in run.states.items():
        near(value.numpy(), expected[name].reshape(value.shape))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["exact", "fast", "faithful"])
def test_edit_is_the_masked_reference(session: Any, hand_built: Any, seed: int, policy: str) -> None:
    region = Region.from_mask(np.random.default_rng(seed).random((8, 8)) < 0.1 + 0.2 * seed, policy)
    base, changed = hand_built.feeds(0), hand_built.feeds(1, sigma=0.8)
    run = session.base(base)
    result = session.edit(run, changed, region=region)
    active = masks(region, hand_built.bundle)
    expected = hand_built.masked(changed, hand_built.states(base), active, session.mode)
    near(result.outputs["y"], image(expected["y"]))
    outside = ~active["fine"]
    assert np.array_equal(result.outputs["y"][..., outside], run.outputs["y"][..., outside])
    assert result.report.active_rows == {grid: int(mask.sum()) for grid, mask in active.items()}


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("dense", [True, False])
def test_commits_chain(hand_built: Any, record: bool, dense: bool) -> None:
    """Three edits, each based on the one before, follow the masked reference step by step."""
    bundle = with_break_even(hand_built.bundle, 0.0 if dense else 2.0)
    feeds = hand_built.feeds(0)
    expected = hand_built.states(feeds)
    with EditSession(bundle, threads=1, group_norm="corrected") as session:
        run = session.base(feeds)
        before = {name: value.numpy().copy() for name, value in run.states.items()}
        current = run
        for step in range(1, 4):
            region = Region.from_boxes([(step, 1, step + 3, 4)], (8, 8), "exact")
            change = {"x": hand_built.feeds(step)["x"], "sigma": np.array([0.5 + step / 8], np.float32)}
            result = session.edit(current, change, region=region, record=record)
            assert result.report.path == ("dense" if dense else "edit")
            current = result.commit()
            assert np.array_equal(current.outputs["y"], result.outputs["y"])
            if not dense:
                active = masks(region, bundle)
                expected = hand_built.masked(change, expected, active, "corrected")
                for name, value in current.states.items():
                    near(value.numpy(), expected[name].reshape(value.shape))
                near(current.feeds["x"], image(expected["x"]))
            again = session.edit(current, region=region, fallback=False)
            outside = ~masks(region, bundle)["fine"]
            assert np.array_equal(again.outputs["y"][..., outside], current.outputs["y"][..., outside])
        for name, value in run.states.items():
            assert np.array_equal(value.numpy(), before[name]), "a commit leaves its base run as it was"


def test_dense_fallback_keeps_inactive_rows(hand_built: Any) -> None:
    with EditSession(with_break_even(hand_built.bundle, 0.1), threads=1) as session:
        run = session.base(hand_built.feeds(0))
        changed = hand_built.feeds(1)
        result = session.edit(run, changed, region=PATCH, record=True)
        assert result.report.path == "dense"
        assert "break-even" in result.report.reason
        mask = masks(PATCH, hand_built.bundle)["fine"]
        full = image(hand_built.states(changed)["y"])
        near(result.outputs["y"][..., mask], full[..., mask])
        assert np.array_equal(result.outputs["y"][..., ~mask], run.outputs["y"][..., ~mask])
        assert session.edit(run, changed, region=PATCH, fallback=False).report.path == "edit"


def test_a_commit_forgets_what_its_mode_does_not_update(hand_built: Any) -> None:
    with EditSession(hand_built.bundle, threads=1, group_norm="corrected") as session:
        run = session.base(hand_built.feeds(0))
        committed = session.edit(run, hand_built.feeds(1), region=PATCH, group_norm="cached").commit()
        assert "b" not in committed.states
        assert session.edit(committed, region=PATCH, group_norm="cached").report.path == "edit"
        with pytest.raises(RunError, match="with 'corrected' GroupNorm moments reads"):
            session.edit(committed, region=PATCH)


def test_a_cached_session_keeps_too_little_for_corrected_edits(hand_built: Any) -> None:
    with EditSession(hand_built.bundle, threads=1) as session:
        run = session.base(hand_built.feeds(0))
        with pytest.raises(RunError, match="lacks 1 states"):
            session.edit(run, region=PATCH, group_norm="corrected")
        with pytest.raises(RetouchError, match="'auto', 'cached', 'corrected', got 'best'"):
            session.edit(run, region=PATCH, group_norm="best")


def test_results_own_their_memory(hand_built: Any) -> None:
    feeds = hand_built.feeds(0)
    with EditSession(hand_built.bundle, threads=1) as session:
        run = session.base(feeds)
        feeds["x"][:] = 7
        change = {"x": hand_built.feeds(1)["x"]}
        first = session.edit(run, change, region=PATCH)
        kept = first.outputs["y"].copy()
        change["x"][:] = 7
        session.edit(run, {"x": hand_built.feeds(2)["x"]}, region=PATCH)
        assert np.array_equal(first.outputs["y"], kept)
        assert np.array_equal(run.feeds["x"], hand_built.feeds(0)["x"])
        for array in (first.outputs["y"], run.outputs["y"], run.feeds["x"]):
            assert not array.flags.writeable


def test_prepared_inputs_follow_run_and_conditions(hand_built: Any) -> None:
    """Of the two, one depends on the condition alone and serves all runs, the other is the run's own."""
    with EditSession(hand_built.bundle, threads=1) as session:
        run, other = session.base(hand_built.feeds(0)), session.base(hand_built.feeds(5))

        def prepared(run: Any, sigma: float) -> tuple[str, ...]:
            report = session.edit(run, {"sigma": np.array([sigma], np.float32)}, region=PATCH).report
            return report.prepared, report.prepared_by["sigma"], report.prepared_by["states"]

        assert prepared(run, 0.5) == ("computed", "computed", "computed")
        assert prepared(run, 0.5) == ("reused", "reused", "reused")
        assert prepared(run, 0.6) == ("partly", "computed", "reused")
        assert prepared(other, 0.5) == ("partly", "reused", "computed")
        assert prepared(other, 0.6) == ("reused", "reused", "reused")


def test_threads_edit_one_session(hand_built: Any) -> None:
    regions = [Region.from_boxes([(i, i, i + 3, i + 3)], (8, 8), "exact") for i in range(4)]
    with EditSession(hand_built.bundle, threads=1) as session:
        runs = [session.base(hand_built.feeds(seed)) for seed in range(3)]
        jobs = [(run, {"x": hand_built.feeds(9 + i)["x"]}, regions[i % 4]) for i in range(12) for run in runs]
        alone = [session.edit(run, change, region=region).outputs["y"] for run, change, region in jobs]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda job: session.edit(job[0], job[1], region=job[2]).outputs["y"], jobs * 4))
    for index, got in enumerate(together):
        assert np.array_equal(got, alone[index % len(alone)])


def test_runs_of_another_bundle_are_refused(hand_built: Any) -> None:
    changed = hand_built.bundle.manifest.files | {"weights.bin": FileSpec(1, "1" * 64)}
    other = Bundle(hand_built.bundle.path, hand_built.bundle.manifest.replace(files=changed))
    store = StateStore()
    with EditSession(hand_built.bundle, store=store) as one, EditSession(other, store=store) as two:
        run = one.base(hand_built.feeds(0))
        for given in (run, run.id):
            with pytest.raises(RunError, match="fit only"):
                two.edit(given, region=PATCH)
        assert two.runs() == ()
    assert store.holds(run.id), "a store of the caller's own outlives the session"


def test_runs_go_away(hand_built: Any) -> None:
    session = EditSession(hand_built.bundle, threads=1)
    plain = session.base(hand_built.feeds(0), record=False)
    with pytest.raises(RunError, match="record=True"):
        session.edit(plain, region=PATCH)
    run = session.base(hand_built.feeds(0))
    result = session.edit(run, region=PATCH)
    run.close()
    run.close()
    with pytest.raises(RunError, match="was dropped"):
        result.commit()
    with pytest.raises(RunError, match="was dropped"):
        session.drop(run)
    kept = session.base(hand_built.feeds(0))
    session.close()
    session.close()
    with pytest.raises(RunError, match="not known"):
        session.edit(kept, region=PATCH)
    assert session.base(hand_built.feeds(0)).outputs["y"].shape == (1, 2, 8, 8)


def test_infinities_inside_the_region_are_reported(hand_built: Any) -> None:
    with EditSession(hand_built.bundle, threads=1) as session:
        run = session.base(hand_built.feeds(0))
        with pytest.raises(NonFiniteError, match="output 'y'"):
            session.edit(run, {"sigma": np.array([np.inf], np.float32)}, region=PATCH)


def test_regions_may_be_masks(hand_built: Any) -> None:
    with EditSession(hand_built.bundle, threads=1) as session:
        run = session.base(hand_built.feeds(0))
        reports = [session.edit(run, region=PATCH.mask, policy=policy).report for policy in ("exact", "fast", None)]
        assert [report.active_rows["fine"] for report in reports] == [9, 25, 64]
        assert "policy fast" in str(reports[1])
        assert session.edit(run, region=PATCH, policy="fast").report.active_rows["fine"] == 25
        with pytest.raises(RegionError, match="got list"):
            session.edit(run, region=PATCH.mask.tolist())
