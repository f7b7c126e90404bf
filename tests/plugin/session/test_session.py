"""Base runs and edits on exported bundles, through the public API."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from retouch import EditSession, FeedError, NonFiniteError, Region, RegionError, RegionPolicy, RunError
from retouch.bundle import BreakEven, Bundle, update_manifest
from retouch.engines.ort import OrtEngine
from retouch.export import export_onnx
from retouch.validation.reference_models import export_reference

BOX = Region.from_boxes([(4, 4, 9, 9)], (16, 16), "fast")


@pytest.fixture(scope="module")
def model(reference_models: Path) -> Path:
    return export_reference("ddpm_unet_tiny", reference_models)


@pytest.fixture(scope="module")
def bundle(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_onnx(model, tmp_path_factory.mktemp("unet") / "bundle")


@pytest.fixture
def session(bundle: Bundle):
    with EditSession(bundle, threads=1) as session:
        yield session


def feeds(seed: int, bundle: Bundle) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    made = {}
    for spec in bundle.manifest.inputs:
        noise = generator.standard_normal(spec.shape)
        made[spec.name] = noise.astype(spec.dtype) if len(spec.shape) > 1 else np.full(spec.shape, 500, spec.dtype)
    return made


def full(model: Path, given: dict[str, np.ndarray]) -> np.ndarray:
    stock = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return stock.run(None, given)[0]


def test_base_is_the_original_model(session: EditSession, bundle: Bundle, model: Path) -> None:
    given = feeds(0, bundle)
    run = session.base(given)
    (output,) = run.outputs.values()
    np.testing.assert_allclose(output, full(model, given), atol=2e-6)


def test_edit_changes_active_rows_only(session: EditSession, bundle: Bundle) -> None:
    run = session.base(feeds(0, bundle))
    result = session.edit(run, {"x": feeds(1, bundle)["x"]}, region=BOX)
    (new,), (old,) = result.outputs.values(), run.outputs.values()
    grid = bundle.manifest.editable.grid
    mask = BOX.active(bundle.manifest.grids, bundle.manifest.grid(grid)).mask(grid)
    assert np.array_equal(new[..., ~mask], old[..., ~mask])
    assert np.abs(new - old)[..., mask].min(axis=0).max() > 1e-3
    assert result.report.path == "edit"
    assert result.report.active_rows[grid] == int(mask.sum())


def test_unchanged_input_gives_the_base_output(session: EditSession, bundle: Bundle) -> None:
    run = session.base(feeds(0, bundle))
    result = session.edit(run.id, region=BOX)
    (new,), (old,) = result.outputs.values(), run.outputs.values()
    assert np.abs(new - old).max() <= 5e-6 * np.abs(old).max()


def test_all_rows_with_corrected_moments_is_the_full_run(bundle: Bundle, model: Path) -> None:
    with EditSession(bundle, threads=1, group_norm="corrected") as session:
        run, given = session.base(feeds(0, bundle)), feeds(1, bundle)
        (new,) = session.edit(run, given, region=Region.full((16, 16)), fallback=False).outputs.values()
        expected = full(model, given)
        assert np.abs(new - expected).max() <= 2e-5 * np.abs(expected).max()


def test_prepared_values_follow_the_conditions(session: EditSession, bundle: Bundle) -> None:
    run = session.base(feeds(0, bundle))
    other = {"t": np.full_like(feeds(0, bundle)["t"], 20)}
    reports = [session.edit(run, change, region=BOX).report.prepared for change in ({}, {}, other, other)]
    assert reports == ["computed", "reused", "partly", "reused"]  # the moments do not depend on t
    (a,), (b,) = (session.edit(run, change, region=BOX).outputs.values() for change in ({}, other))
    assert np.abs(a - b).max() > 1e-3


@pytest.mark.parametrize("record", [True, False])
def test_commit_makes_the_edit_the_next_base(session: EditSession, bundle: Bundle, record: bool) -> None:
    run = session.base(feeds(0, bundle))
    result = session.edit(run, {"x": feeds(1, bundle)["x"]}, region=BOX, record=record)
    committed = result.commit()
    again = session.edit(committed.id, region=BOX)
    (new,), (old,) = again.outputs.values(), result.outputs.values()
    assert np.abs(new - old).max() <= 5e-6 * np.abs(old).max()
    assert run.id in session.runs()


def test_values_serve_several_runs_and_edits(session: EditSession, bundle: Bundle) -> None:
    given, change = feeds(0, bundle), {"x": feeds(1, bundle)["x"]}
    values = session.values({name: array for name, array in given.items() if name != "x"})
    run = session.base({"x": given["x"], **values})
    edited = [session.edit(run, {**change, **values}, region=BOX) for _ in range(2)]
    expected = session.edit(session.base(given), change, region=BOX)
    for result in edited:
        np.testing.assert_array_equal(*(next(iter(one.outputs.values())) for one in (result, expected)))
    with pytest.raises(FeedError, match="extra 'z'"):
        session.values({"z": np.zeros(1)})


def _errors_in_a_row(bundle: Bundle, model: Path, policy: str | RegionPolicy) -> list[float]:
    """After each of ten edits, what the last commit errs, over how far the full model's output has moved."""
    errors = []
    with EditSession(bundle, threads=1, group_norm="corrected") as session:
        run = session.base(feeds(0, bundle))
        start = full(model, dict(run.feeds))
        generator = np.random.default_rng(7)
        for _ in range(10):
            y, x = generator.integers(0, 12, 2)
            region = Region.from_boxes([(y, x, y + 4, x + 4)], (16, 16), policy)
            change = {"x": generator.standard_normal((1, 3, 16, 16)).astype(np.float32)}
            run = session.edit(run, change, region=region, record=True, fallback=False).commit()
            expected = full(model, dict(run.feeds))
            (got,) = run.outputs.values()
            errors.append(float(np.abs(got - expected).mean() / np.abs(expected - start).mean()))
    return errors


def test_ten_edits_in_a_row_err_no_more_than_one(bundle: Bundle, model: Path) -> None:
    first, *_, last = _errors_in_a_row(bundle, model, "balanced")
    assert last <= first < 0.5


def test_ten_edits_of_all_rows_in_a_row_are_the_full_model(bundle: Bundle, model: Path) -> None:
    """What commits keep is used by the next edits in all its parts, and rounding does not add up."""
    assert max(_errors_in_a_row(bundle, model, RegionPolicy(dilation=16))) < 2e-6


def test_dense_fallback_is_announced_and_keeps_outside(bundle: Bundle, model: Path, tmp_path: Path) -> None:
    copy = export_onnx(model, tmp_path / "bundle")
    limit = BreakEven(OrtEngine().name, 1, 0.05)
    update_manifest(copy.path, copy.manifest.replace(break_even={OrtEngine().name: limit}))
    with EditSession(copy.path, threads=1) as session:
        run, given = session.base(feeds(0, bundle)), feeds(1, bundle)
        result = session.edit(run, given, region=BOX, record=True)
        assert result.report.path == "dense"
        assert "break-even of 0.050" in result.report.reason
        (new,), (old,) = result.outputs.values(), run.outputs.values()
        assert (new == old).any() and (new != old).any()
        assert session.edit(run, given, region=BOX, fallback=False).report.path == "edit"
        assert session.edit(result.commit(), region=BOX).report.path == "dense"
    never = copy.manifest.replace(break_even={OrtEngine().name: BreakEven(OrtEngine().name, 1, 2.0)})
    with EditSession(Bundle(copy.path, never), threads=1) as session:
        report = session.edit(session.base(feeds(0, bundle)), given, region=BOX).report
        assert report.path == "edit" and report.reason.endswith("edits were measured to be faster up to all of them")


def test_threads_share_one_session(session: EditSession, bundle: Bundle) -> None:
    run = session.base(feeds(0, bundle))
    changes = [{"x": feeds(seed, bundle)["x"]} for seed in range(8)]
    alone = [session.edit(run, change, region=BOX).outputs for change in changes]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda change: session.edit(run, change, region=BOX).outputs, changes))
    for a, b in zip(alone, together, strict=True):
        for name in a:
            assert np.array_equal(a[name], b[name])


def test_bad_feeds(session: EditSession, bundle: Bundle) -> None:
    good = feeds(0, bundle)
    with pytest.raises(FeedError, match="missing 't'"):
        session.base({"x": good["x"]})
    with pytest.raises(FeedError, match="extra 'z'"):
        session.base({**good, "z": good["x"]})
    with pytest.raises(FeedError, match=r"shape \(1, 3, 16, 16\), got \(1, 3, 8, 8\)"):
        session.base({**good, "x": good["x"][..., ::2, ::2]})
    with pytest.raises(NonFiniteError, match="NaN"):
        session.base({**good, "x": np.full_like(good["x"], np.nan)})


def test_bad_regions_and_runs(session: EditSession, bundle: Bundle) -> None:
    run = session.base(feeds(0, bundle))
    with pytest.raises(RegionError):
        session.edit(run, region=np.ones((8, 8), dtype=bool))
    with pytest.raises(RegionError):
        session.edit(run, region=np.zeros((16, 16), dtype=bool))
    with pytest.raises(RunError, match="not known|unknown"):
        session.edit("nonsense", region=BOX)
    session.drop(run)
    with pytest.raises(RunError, match="was dropped"):
        session.edit(run, region=BOX)


def test_close_returns_to_the_constructed_state(bundle: Bundle) -> None:
    session = EditSession(bundle, threads=1)
    session.base(feeds(0, bundle))
    session.close()
    assert session.runs() == ()
    session.base(feeds(0, bundle))
    assert len(session.runs()) == 1


def test_changes_outside_of_the_active_rows_are_counted(session: EditSession, bundle: Bundle) -> None:
    given = feeds(0, bundle)
    run = session.base(given)
    changed = given["x"].copy()
    changed[..., 5, 5] += 1
    assert session.edit(run, {"x": changed}, region=BOX).report.ignored == 0
    changed[0, :, 0, :3] = np.nan
    report = session.edit(run, {"x": changed}, region=BOX).report
    assert report.ignored == 3
    assert "3 changed positions" in str(report)
    assert session.edit(run, region=BOX).report.ignored == 0
