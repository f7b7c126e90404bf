"""Several edits of one run in one run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch import EditRequest, EditSession, Region
from retouch.bundle import Bundle, MomentsSpec
from retouch.calibrate import sample_feeds
from retouch.export import ExportOptions, export_onnx
from retouch.region import merged_output
from retouch.session import Result, Run
from retouch.validation.reference_models import export_reference

ATTENTIONS = {
    "written_out": """
      t = Transpose <perm = [0, 2, 1]> (x)
      scores = MatMul (x, t)
      weights = Softmax <axis = -1> (scores)
      y = MatMul (weights, x)
    """,
    "operator": "y = Attention <q_num_heads = 1, kv_num_heads = 1, scale = 1.0> (x, x, x)",
}
MODELS = ["ddpm_unet_tiny", "dit_tiny", "llada_tiny"]


@pytest.fixture(scope="module", params=MODELS)
def bundle(request: pytest.FixtureRequest, reference_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    model = export_reference(request.param, reference_models)
    return export_onnx(model, tmp_path_factory.mktemp(request.param) / "bundle", ExportOptions(verify=False))


@pytest.fixture
def session(bundle: Bundle):
    with EditSession(bundle, threads=1) as session:
        yield session


def _requests(bundle: Bundle, places: list[int], size: int = 1) -> list[EditRequest]:
    manifest = bundle.manifest
    dims, name = manifest.grid(manifest.editable.grid).dims, manifest.editable.input
    made = []
    for seed, place in enumerate(places):
        region = Region.from_boxes([(*[place] * len(dims), *[place + size] * len(dims))], dims, "exact")
        made.append(EditRequest(region, {name: sample_feeds(manifest, seed=seed + 1)[name]}))
    return made


def _alone(session: EditSession, run: str, request: EditRequest) -> Result:
    return session.edit(run, request.feeds, region=request.region, fallback=False)


def _assert_outside_kept(bundle: Bundle, run: Run, request: EditRequest, result: Result) -> None:
    """The active rows put into the base output give the result."""
    manifest = bundle.manifest
    assert isinstance(request.region, Region)
    active = request.region.active(manifest.grids, manifest.grid(manifest.editable.grid))
    for spec in manifest.outputs:
        base, got = run.outputs[spec.tensor.name], result.outputs[spec.tensor.name]
        np.testing.assert_array_equal(merged_output(spec, base, got, active), got)


def test_every_result_is_that_of_its_own_run(session: EditSession, bundle: Bundle) -> None:
    run = session.base(sample_feeds(bundle.manifest))
    requests = _requests(bundle, [2, 3, 7, 2])
    results = session.edit_many(run, requests)
    assert [result.report.stacked for result in results] == [4] * 4
    for request, result in zip(requests, results, strict=True):
        expected = _alone(session, run.id, request)
        assert result.report.active_rows == expected.report.active_rows
        for name, output in expected.outputs.items():
            scale = float(np.abs(output).max())
            np.testing.assert_allclose(result.outputs[name], output, atol=5e-6 * scale)
        _assert_outside_kept(bundle, run, request, result)


def test_an_edit_of_several_can_be_committed(session: EditSession, bundle: Bundle) -> None:
    run = session.base(sample_feeds(bundle.manifest))
    requests = _requests(bundle, [2, 7])
    committed = session.edit_many(run, requests)[1].commit()
    single = _alone(session, run.id, requests[1]).commit()
    for name, output in single.outputs.items():
        np.testing.assert_array_equal(committed.outputs[name], output)


def test_what_does_not_pay_or_fit_runs_on_its_own_and_says_why(session: EditSession, bundle: Bundle) -> None:
    run = session.base(sample_feeds(bundle.manifest))
    large, small, other = _requests(bundle, [0, 1, 2])
    manifest = bundle.manifest
    large = EditRequest(Region.full(manifest.grid(manifest.editable.grid).dims), large.feeds)
    results = session.edit_many(run, [large, small, other], fallback=False)
    assert [result.report.stacked for result in results] == [1, 2, 2]
    assert "does not pay" in results[0].report.reason
    assert session.edit_many(run, []) == []
    assert "no other edit" in session.edit_many(run, [small])[0].report.reason


@pytest.mark.parametrize("bundle", ["ddpm_unet_tiny", "dit_tiny"], indirect=True)
def test_edits_with_different_conditions_run_one_by_one(session: EditSession, bundle: Bundle) -> None:
    manifest = bundle.manifest
    condition = next(spec.name for spec in manifest.inputs if spec.name != manifest.editable.input)
    run = session.base(sample_feeds(manifest))
    first, second = _requests(bundle, [2, 7])
    changed = np.asarray(run.feeds[condition]) + 1
    second = EditRequest(second.region, {**second.feeds, condition: changed})
    results = session.edit_many(run, [first, second])
    assert [result.report.stacked for result in results] == [1, 1]
    assert "different conditions" in results[1].report.reason
    expected = session.edit(run, second.feeds, region=second.region)
    for name, output in expected.outputs.items():
        np.testing.assert_array_equal(results[1].outputs[name], output)


def test_corrected_moments_are_those_of_every_edit_by_itself(bundle: Bundle) -> None:
    with EditSession(bundle, threads=1, group_norm="corrected") as session:
        run = session.base(sample_feeds(bundle.manifest))
        # The same rows more than once, and a change that moves the moments far.
        requests = _requests(bundle, [2, 3, 7, 2])
        name = bundle.manifest.editable.input
        if np.issubdtype(requests[2].feeds[name].dtype, np.floating):
            requests[2] = EditRequest(requests[2].region, {name: requests[2].feeds[name] * 50 + 30})
        results = session.edit_many(run, requests)
        assert [result.report.stacked for result in results] == [4] * 4
        assert {result.report.group_norm for result in results} == {"corrected"}
        for request, result in zip(requests, results, strict=True):
            expected = _alone(session, run.id, request)
            for output, value in expected.outputs.items():
                scale = float(np.abs(value).max())
                np.testing.assert_allclose(result.outputs[output], value, atol=5e-6 * scale)
            _assert_outside_kept(bundle, run, request, result)


@pytest.mark.parametrize("bundle", ["ddpm_unet_tiny"], indirect=True)
def test_edits_with_the_same_moments_share_a_run(bundle: Bundle) -> None:
    """Where every edit chooses its moments, those of both kinds come mixed, and results stay in order."""
    means = np.linspace(np.log(0.03), np.log(4.0), 16)
    shifts = tuple((-1.5, float(mean), -1.0, 0.0, 0.0, 0.0) for mean in means)
    errors = {"cached": tuple(float(np.exp(mean) / 5) for mean in means), "corrected": (0.1,) * 16}
    calibrated = Bundle(bundle.path, bundle.manifest.replace(moments=MomentsSpec((), shifts, errors, 0.9)))
    with EditSession(calibrated, threads=1) as session:
        feeds = sample_feeds(bundle.manifest)
        run, name = session.base(feeds), bundle.manifest.editable.input
        moves = {1: 0.01, 4: 3.0, 7: 0.02, 10: 4.0, 12: 0.03}
        requests = [
            EditRequest(request.region, {name: feeds[name] + np.float32(by)})
            for request, by in zip(_requests(bundle, list(moves), size=2), moves.values(), strict=True)
        ]
        results = session.edit_many(run, requests)
        assert [result.report.group_norm == "corrected" for result in results] == [by > 1 for by in moves.values()]
        assert [result.report.stacked for result in results] == [3, 2, 3, 2, 3]
        alone = session.edit_many(run, requests[:2])
        assert ["no other edit takes" in result.report.reason for result in alone] == [True, True]
        for request, result in zip(requests, results, strict=True):
            for output, value in _alone(session, run.id, request).outputs.items():
                np.testing.assert_allclose(result.outputs[output], value, atol=5e-6 * float(np.abs(value).max()))


@pytest.mark.parametrize("form", ATTENTIONS)
def test_keys_that_are_hidden_may_outweigh_all_others(tmp_path: Path, form: str) -> None:
    """A softmax over scores of which the hidden are far larger than the others would leave nothing of these."""
    bundle = export_onnx(_attention(tmp_path / "model.onnx", form), tmp_path / "bundle")
    with EditSession(bundle, threads=1) as session:
        feeds = sample_feeds(bundle.manifest)
        run = session.base(feeds)
        sharp = {"x": np.full_like(feeds["x"], 40.0)}
        mild = {"x": np.full_like(feeds["x"], 5.0)}
        masks = np.eye(64, dtype=bool)[:2]
        requests = [EditRequest(masks[0], sharp), EditRequest(masks[1], mild)]
        results = session.edit_many(run, requests)
        assert [result.report.stacked for result in results] == [2, 2]
        for request, result in zip(requests, results, strict=True):
            expected = session.edit(run, request.feeds, region=request.region).outputs["y"]
            np.testing.assert_allclose(result.outputs["y"], expected, atol=5e-6 * float(np.abs(expected).max()))


@pytest.mark.parametrize("form", ATTENTIONS)
def test_attention_shares_a_run_in_every_form(tmp_path: Path, form: str) -> None:
    bundle = export_onnx(_attention(tmp_path / "model.onnx", form), tmp_path / "bundle")
    with EditSession(bundle, threads=1) as session:
        run = session.base(sample_feeds(bundle.manifest))
        requests = _requests(bundle, [3, 5, 4])
        results = session.edit_many(run, requests)
        assert [result.report.stacked for result in results] == [3] * 3
        for request, result in zip(requests, results, strict=True):
            expected = _alone(session, run.id, request).outputs["y"]
            np.testing.assert_allclose(result.outputs["y"], expected, atol=5e-6 * float(np.abs(expected).max()))
            _assert_outside_kept(bundle, run, request, result)


def _attention(path: Path, form: str) -> Path:
    text = f"""
    <ir_version: 10, opset_import: ["" : 23]>
    g (float[1,64,8] x) => (float[1,64,8] y) {{ {ATTENTIONS[form]} }}
    """
    onnx.save(onnx.parser.parse_model(text), path)
    return path
