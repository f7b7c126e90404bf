"""Validation passes what is right and fails what is not."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from retouch import EditSession, FeedError, ModelError, NonFiniteError, Result
from retouch.bundle import Bundle, update_manifest
from retouch.errors import ExportError, VerificationError
from retouch.files import describe_file
from retouch.validation.accuracy import Validation, ValidationOptions, validate
from retouch.validation.accuracy import _run as run_module
from retouch.validation.accuracy import _steps_reference as steps_module

Quick = Callable[..., Validation]
Change = Callable[[np.ndarray, np.ndarray], np.ndarray]


def faults(validation: Validation) -> list[str]:
    return [f"{case.suite}, {case.name}: {fault}" for case in validation.figures.cases for fault in case.faults]


def test_a_unet_passes(unet: Bundle, unet_model: Path) -> None:
    validation = validate(
        unet, ValidationOptions((0.01, 0.06), policy="exact", original=unet_model, drift=3, threads=1), lambda _: None
    )
    figures = validation.figures
    assert figures.passed, faults(validation)
    assert {case.kind for case in figures.cases} == {"area", "shape", "no change", "conditions", "all rows", "drift"}
    for case in figures.cases:
        (output,) = case.outputs
        assert output.oracle_error is not None and output.oracle_error < 5e-6
        assert output.kept_identical is (None if case.kind == "all rows" else True)
    (everything,) = figures.of_kind("all rows")
    assert everything.group_norm == "corrected" and everything.outputs[0].full_error < 5e-6
    assert len(figures.of_kind("drift")) == 3
    blocks = figures.of_kind("area")
    assert [case.name for case in blocks] == ["block 1 %", "block 6 %"]
    inside, unedited = blocks[1].outputs[0].zones["inside"], blocks[1].outputs[0].unedited
    assert inside.psnr > unedited.psnr + 3 and inside.cosine > unedited.cosine


def test_corrected_moments_pass(unet: Bundle, quick: Quick) -> None:
    validation = quick(unet, group_norm="corrected", drift=1)
    assert validation.figures.passed, faults(validation)
    assert {case.group_norm for case in validation.figures.cases} == {"corrected"}
    assert [run.suite.name for run in validation.runs] == ["regions", "drift"]


def test_a_language_model_passes(llada: Bundle, quick: Quick) -> None:
    validation = quick(llada)
    assert validation.figures.passed, faults(validation)
    assert "conditions" not in {case.kind for case in validation.figures.cases}
    (unchanged,) = validation.figures.of_kind("no change")
    assert unchanged.outputs[0].full_error <= 5e-6  # fused kernels round otherwise than the full model


def spoiled(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, Result], Result]) -> None:
    """Has every edit changed before anybody sees it."""
    original = EditSession.edit

    def edit(self: EditSession, run: Any, *arguments: Any, **named: Any) -> Result:
        return change((self, run), original(self, run, *arguments, **named))

    monkeypatch.setattr(EditSession, "edit", edit)


def changed(result: Result, before: np.ndarray, change: Change) -> Result:
    ((name, array),) = result.outputs.items()
    return dataclasses.replace(result, outputs={name: change(before, array.copy())})


def one_active_element(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    if not np.array_equal(after, before):
        place = np.unravel_index(np.abs(after - before).argmax(), after.shape)
        after[place] += 2e-4 * np.abs(after).max()
    return after


def one_kept_element(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    places = np.argwhere(after == before)
    if len(places):
        place = tuple(places[len(places) // 2])
        after[place] = np.nextafter(after[place], np.float32(np.inf))
    return after


def test_a_changed_active_element_fails(llada: Bundle, monkeypatch: pytest.MonkeyPatch, quick: Quick) -> None:
    spoiled(monkeypatch, lambda at, result: changed(result, next(iter(at[1].outputs.values())), one_active_element))
    validation = quick(llada)
    assert not validation.figures.passed
    found = faults(validation)
    assert sum("off the oracle by 2.0e-04 of the scale (allowed 2e-05)" in fault for fault in found) >= 5, found
    assert not any("rows that are not active" in fault for fault in found)
    assert not validation.accuracy["regions.oracle-edit"]


def test_one_bit_of_a_kept_row_fails(llada: Bundle, monkeypatch: pytest.MonkeyPatch, quick: Quick) -> None:
    spoiled(monkeypatch, lambda at, result: changed(result, next(iter(at[1].outputs.values())), one_kept_element))
    validation = quick(llada)
    found = faults(validation)
    assert found and all("rows that are not active changed" in fault for fault in found)
    assert not validation.accuracy["regions.before-edit.kept"] and validation.accuracy["regions.oracle-edit"]


def test_a_commit_that_loses_the_edit_fails(llada: Bundle, monkeypatch: pytest.MonkeyPatch, quick: Quick) -> None:
    def forgetful(at: Any, result: Result) -> Result:
        session, run = at
        feeds = dict(run.feeds)
        return dataclasses.replace(result, _commit=lambda: session.base(feeds))

    spoiled(monkeypatch, forgetful)
    found = faults(quick(llada))
    assert any("drift, 2 in a row: output 'out': off the oracle" in fault for fault in found), found
    assert not any("1 in a row" in fault or fault.startswith("regions") for fault in found)


def test_an_edit_that_is_not_finite_is_named(llada: Bundle, monkeypatch: pytest.MonkeyPatch, quick: Quick) -> None:
    def edit(*_: Any, **__: Any) -> Result:
        raise NonFiniteError("nothing finite")

    monkeypatch.setattr(EditSession, "edit", edit)
    found = faults(quick(llada, drift=0))
    assert "regions, scattered: edit: output 'out' holds 8192 NaN and 0 infinite elements of 8192" in found


def test_a_broken_edit_graph_fails(llada: Bundle, tmp_path: Path, quick: Quick) -> None:
    shutil.copytree(llada.path, tmp_path / "broken")
    path = tmp_path / "broken" / llada.manifest.edits["cached"].file
    model = onnx.load(path, load_external_data=False)
    products = [node for node in model.graph.node if node.op_type == "Mul"]
    products[len(products) // 2].op_type = "Add"
    onnx.save(model, path)
    files = {**llada.manifest.files, path.name: describe_file(path)}
    update_manifest(tmp_path / "broken", llada.manifest.replace(files=files))
    found = faults(quick(Bundle.open(tmp_path / "broken"), drift=0))
    assert any("off the oracle" in fault for fault in found)
    assert any("no change" in fault and "off the full model" in fault for fault in found)


def test_edits_of_no_use_are_remarked_on(of_unet: Validation) -> None:
    figures = of_unet.figures
    (single,) = (case for case in figures.cases if case.name == "one position")
    worse = single.outputs[0].zones["inside"].psnr < single.outputs[0].unedited.psnr
    assert figures.passed and worse == any("one position, out:" in remark for remark in figures.remarks)


def test_asking_for_more_fails(llada: Bundle, quick: Quick) -> None:
    found = faults(quick(llada, min_psnr=200.0, drift=1))
    assert any("dB inside, at least 200.0 dB asked for" in fault for fault in found)
    assert not any("no change" in fault or "all rows" in fault for fault in found)


def test_feeds_of_ones_own(unet: Bundle, tmp_path: Path, quick: Quick) -> None:
    generator = np.random.default_rng(3)
    x, edit = (generator.standard_normal((1, 3, 16, 16)).astype(np.float32) for _ in range(2))
    np.savez(tmp_path / "feeds.npz", x=x, t=np.array([20]), **{"edit.x": edit})
    validation = quick(unet, feeds=tmp_path / "feeds.npz", drift=0)
    assert validation.figures.passed, faults(validation)
    assert "conditions" not in {case.kind for case in validation.figures.cases}
    case = validation.runs[0].suite.cases[0]
    assert np.array_equal(case.base["x"], x) and case.base["t"][0] == 20
    assert np.array_equal(case.edit["x"], np.where(case.region.mask, edit, x))


def test_base_feeds_alone_are_edited_in_their_own_manner(llada: Bundle, tmp_path: Path, quick: Quick) -> None:
    np.savez(tmp_path / "feeds.npz", ids=np.tile([3, 5], 32)[None])
    case = quick(llada, feeds=tmp_path / "feeds.npz", drift=0).runs[0].suite.cases[0]
    assert set(case.edit["ids"].reshape(-1).tolist()) == {3, 5}


def test_bad_feeds(unet: Bundle, tmp_path: Path, quick: Quick) -> None:
    np.savez(tmp_path / "unknown.npz", z=np.zeros(1))
    with pytest.raises(FeedError, match="'x', 't', each also as edit.NAME for the edits, got 'z'"):
        quick(unet, feeds=tmp_path / "unknown.npz")
    np.savez(tmp_path / "shape.npz", x=np.zeros((1, 3, 8, 8), np.float32))
    with pytest.raises(ExportError, match=r"shape \(1, 3, 8, 8\), expected \(1, 3, 16, 16\)"):
        quick(unet, feeds=tmp_path / "shape.npz")
    with pytest.raises(FeedError, match="readable .npz"):
        quick(unet, feeds=tmp_path / "none.npz")


def test_another_original_is_refused(llada: Bundle, unet_model: Path, quick: Quick) -> None:
    with pytest.raises(ModelError, match="that the bundle was exported from"):
        quick(llada, original=unet_model)


def test_without_room_edits_in_a_row_have_no_oracle(
    llada: Bundle, monkeypatch: pytest.MonkeyPatch, quick: Quick
) -> None:
    monkeypatch.setattr(steps_module, "LARGEST_STATE", 0)
    validation = quick(llada)
    assert validation.figures.passed
    assert "drift has no oracle" in validation.figures.remarks[0]
    assert {case.outputs[0].oracle_error for case in validation.figures.of_kind("drift")} == {None}


def test_missing_results_are_an_error(llada: Bundle, monkeypatch: pytest.MonkeyPatch, quick: Quick) -> None:
    monkeypatch.setattr(run_module, "to_feed_dict", lambda case: None)
    with pytest.raises(VerificationError, match="Polygraphy stopped"):
        quick(llada)
    monkeypatch.undo()
    original = run_module.Comparator.run
    monkeypatch.setattr(
        run_module.Comparator, "run", lambda runners, data_loader: original(runners, data_loader=data_loader[:-1])
    )
    with pytest.raises(VerificationError, match="Expected 7 results of 'full' in 'regions', got 6"):
        quick(llada)
