"""Weights kept as shorter numbers, where users ask for them: what it errs, what it leaves alone, what reports say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retouch import Bundle, EditSession, EngineMissingError, InferenceSession, Result, RetouchError
from retouch.bundle import BreakEven
from retouch.calibrate import calibrate_weights
from retouch.engines.ort import OrtEngine, WeightStorage
from retouch.validation.accuracy import ValidationOptions, validate
from tests.ort_ep.small_bundle import REGION, export_small, feed

# Half a unit of the last place of a weight, and with bfloat16 perhaps of a row, in each of three layers.
LARGEST = {WeightStorage.FLOAT16: 3 * 2.0**-11, WeightStorage.BFLOAT16: 6 * 2.0**-8}
SHORTER = list(LARGEST)


def edited(bundle: Bundle, weights: str, *, fallback: bool = False) -> tuple[np.ndarray, Result]:
    with EditSession(bundle, threads=1, weights=weights) as session:
        run = session.base(feed(0))
        return np.array(run.outputs["y"]), session.edit(run, feed(1), region=REGION, fallback=fallback)


@pytest.mark.parametrize("weights", SHORTER)
def test_edits_err_by_the_rounding_of_weights_and_leave_other_rows_alone(
    bundle: Bundle, weights: WeightStorage
) -> None:
    base, exact = edited(bundle, "float32")
    same_base, kept = edited(bundle, weights)
    np.testing.assert_array_equal(same_base, base)
    difference = np.abs(kept.outputs["y"] - exact.outputs["y"])
    assert 0 < difference.max() <= LARGEST[weights] * np.abs(exact.outputs["y"]).max()
    (active,) = set(kept.report.active_rows.values())
    assert (kept.outputs["y"] == base).all(axis=(0, 1)).sum() == 16 * 16 - active
    assert kept.report.kernels == exact.report.kernels


def test_reports_name_the_storage_and_what_was_measured(bundle: Bundle) -> None:
    report = edited(bundle, "float16")[1].report
    assert (report.weights, report.weights_error) == (WeightStorage.FLOAT16, None)
    assert "weights      float16, which adds an unknown error (calibrate_weights measures it)" in str(report)
    exact = edited(bundle, "float32")[1].report
    assert (exact.weights, exact.weights_error) == (WeightStorage.FLOAT32, 0.0)
    assert "weights" not in str(exact)


def test_what_shorter_weights_err_is_measured_and_kept_in_the_manifest(tmp_path: Path) -> None:
    bundle = export_small(tmp_path)
    lines: list[str] = []
    errors = calibrate_weights(bundle, threads=1, feeds=feed(0), progress=lines.append)
    assert lines == ["weights as float16", "weights as bfloat16"]
    assert all(0 < errors[weights] <= LARGEST[weights] for weights in SHORTER)
    assert errors[WeightStorage.FLOAT16] < errors[WeightStorage.BFLOAT16]
    again = Bundle.open(bundle.path)
    assert {f"weights.{weights}": error for weights, error in errors.items()}.items() <= dict(
        again.manifest.verification
    ).items()
    report = edited(again, "bfloat16")[1].report
    assert report.weights_error == errors[WeightStorage.BFLOAT16]
    assert f"weights      bfloat16, which added {report.weights_error:.1e} of the output's scale" in str(report)


def test_without_kernels_nothing_is_measured(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETOUCH_ORT_EP_LIBRARY", "/nowhere/lib.so")
    assert calibrate_weights(bundle) == {}
    assert not any(name.startswith("weights") for name in Bundle.open(bundle.path).manifest.verification)


def test_a_full_run_has_the_weights_as_they_are(bundle: Bundle) -> None:
    limit = BreakEven(OrtEngine().name, 1, 0.0)
    dense = Bundle(bundle.path, bundle.manifest.replace(break_even={limit.engine: limit}))
    report = edited(dense, "float16", fallback=True)[1].report
    assert (report.path, report.weights, report.weights_error) == ("dense", WeightStorage.FLOAT32, 0.0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda b: EditSession(b, weights="int4"), RetouchError, "one of 'float32', 'float16', 'bfloat16', got 'int4'"),
        (lambda b: EditSession(b, weights="float16", engine="tensorrt"), RetouchError, "weights as they are for"),
        (lambda b: EditSession(b, ["CPUExecutionProvider"], weights="float16").base(feed(0)), EngineMissingError,
         "Expected Retouch's kernels to keep weights as float16, but the providers that were asked for do not include"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_an_error(
    bundle: Bundle, make: Callable[[Bundle], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(bundle)


def test_applications_of_onnxruntime_edit_on_the_kernels_with_the_weights_they_ask_for(bundle: Bundle) -> None:
    session = InferenceSession(bundle, providers=["CPUExecutionProvider"], weights="bfloat16")
    with session.record() as recording:
        session.run(None, feed(0))
    with session.edit(recording, REGION, fallback=False) as editing:
        session.run(None, feed(1))
    assert editing.reports[0].weights is WeightStorage.BFLOAT16
    assert editing.reports[0].kernels


@pytest.mark.parametrize("weights", SHORTER)
def test_a_validation_measures_the_error_and_checks_what_is_kept(bundle: Bundle, weights: WeightStorage) -> None:
    plain = ValidationOptions(areas=(0.1,), drift=0, threads=1)
    for options, least, most in (
        (plain, 0.0, 2e-6),
        (replace(plain, weights=weights), 2e-5, LARGEST[weights]),
    ):
        figures = validate(bundle, options, lambda _: None).figures
        assert figures.passed
        outputs = [output for case in figures.cases for output in case.outputs if case.kind == "area"]
        assert all(least <= output.oracle_error <= most and output.kept_identical for output in outputs)
