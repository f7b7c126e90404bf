"""Pipelines keep running as they are; their sessions record, and repeat what they recorded as edits."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import retouch
from retouch import BundleError, FeedError, RunError
from retouch.export import ExportOptions, export_onnx

Paint = Callable[..., np.ndarray]


class Part:
    """A component as diffusers' ``OnnxRuntimeModel`` holds its session."""

    def __init__(self, path: Path) -> None:
        self.model = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


class Pipeline:
    """A sampling loop with guidance in one call of batch two, or in two calls, and a decoder behind it."""

    def __init__(self, root: Path) -> None:
        self.unet, self.vae_decoder = Part(root / "unet" / "model.onnx"), Part(root / "vae_decoder" / "model.onnx")
        self.vae_encoder = self.tokenizer = None

    def __call__(self, prompt: int, steps: tuple[int, ...] = (900, 500, 100), swapped: bool = False) -> np.ndarray:
        latents = _normal(0, 1, 4, 8, 8)
        text = np.concatenate([_normal(99, 1, 5, 8), _normal(prompt, 1, 5, 8)])
        batch = self.unet.model.get_inputs()[0].shape[0]
        for step in steps:
            time = np.array([step], np.int64)
            if batch == 2:
                feeds = {"sample": latents.repeat(2, 0), "timestep": time, "encoder_hidden_states": text}
                noise = self.unet.model.run(None, feeds)[0]
            else:
                halves = {}
                for half in (1, 0) if swapped else (0, 1):
                    feeds = {"sample": latents, "timestep": time, "encoder_hidden_states": text[half : half + 1]}
                    halves[half] = self.unet.model.run(["out_sample"], feeds)[0]
                noise = np.concatenate([halves[0], halves[1]])
            latents = (latents - 0.1 * (noise[:1] + 3 * (noise[1:] - noise[:1]))).astype(np.float32)
        return self.vae_decoder.model.run(None, {"latent_sample": latents})[0]


def _normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.fixture(params=["pipeline_directory", "pipeline_of_two_calls"])
def pipeline(request: Any) -> Pipeline:
    return Pipeline(request.getfixturevalue(request.param))


@pytest.fixture
def mask() -> np.ndarray:
    """A corner of the image of 16x16, which is two by two latents."""
    image = np.zeros((16, 16), bool)
    image[2:6, 2:6] = True
    return image


def test_a_pipeline_records_and_edits(pipeline, mask) -> None:
    stock = pipeline(1)
    unet = pipeline.unet.model
    attached = retouch.attach(pipeline)
    assert sorted(attached.sessions) == ["unet", "vae_decoder"]
    assert pipeline(1).tobytes() == stock.tobytes()
    with attached.record() as recording:
        base = pipeline(1)
    np.testing.assert_allclose(base, stock, atol=1e-5)
    assert recording.calls["vae_decoder"] == 1 and recording.calls["unet"] in (3, 6)
    with attached.edit(mask, policy="exact") as editing:
        edited = pipeline(2)
    changed = (edited != base).any((0, 1))
    assert changed[mask].all() and not changed[~mask].any()
    assert len(editing.reports["unet"]) == recording.calls["unet"]
    assert recording.bytes == sum(part.bytes for part in recording.parts.values())
    attached.detach()
    assert pipeline.unet.model is unet and pipeline(1).tobytes() == stock.tobytes()
    attached.detach()
    with pytest.raises(RunError, match="detached"), attached.record():
        pass
    with pytest.raises(RunError, match="detached"):
        recording.parts["unet"].require()


def test_edits_in_a_row_and_older_recordings(pipeline, mask) -> None:
    elsewhere = mask[::-1, ::-1]
    with retouch.attach(pipeline) as attached:
        with attached.record("base") as recording:
            base = pipeline(1)
        with attached.edit(mask, policy="exact", record=True):
            first = pipeline(2)
        with attached.edit(elsewhere, policy="exact"):
            second = pipeline(3)
        with attached.edit(elsewhere, "base", policy="exact"):
            third = pipeline(3)
        recording.close()
        with pytest.raises(RunError), attached.edit(elsewhere, recording):
            pass
    assert (second[..., mask] == first[..., mask]).all() and (second[..., elsewhere] != first[..., elsewhere]).all()
    assert (third[..., mask] == base[..., mask]).all()


def test_calls_that_are_not_those_of_the_recording(pipeline_of_two_calls, mask) -> None:
    pipeline = Pipeline(pipeline_of_two_calls)
    with retouch.attach(pipeline) as attached:
        with pytest.raises(RunError, match="Run the pipeline inside of"), attached.edit(mask):
            pass
        with attached.record():
            pipeline(1)
        with pytest.raises(FeedError, match="same number of steps"), attached.edit(mask):
            pipeline(1, steps=(800, 400))
        with pytest.raises(RunError, match="at most the 6 calls"), attached.edit(mask):
            pipeline(1, steps=(900, 500, 100, 50))
        with pytest.raises(FeedError, match="must not swap"), attached.edit(mask):
            pipeline(1, swapped=True)
        with pytest.warns(UserWarning, match="edit saw no call"), attached.edit(mask):
            pass
        with pytest.warns(UserWarning, match="recording saw no call"), attached.record():
            pass


def test_bundles_elsewhere_and_bundles_that_are_not_there(pipeline_directory, tmp_path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(pipeline_directory, bare, ignore=shutil.ignore_patterns("bundle"))
    with pytest.raises(BundleError, match=r"beside a model of Pipeline.*retouch export"):
        retouch.attach(Pipeline(bare))
    with pytest.raises(BundleError, match="among unet, vae_decoder, got controlnet"):
        retouch.attach(Pipeline(bare), bundles={"controlnet": tmp_path})
    with pytest.raises(BundleError, match="the model that"):
        retouch.attach(Pipeline(bare), bundles={"unet": pipeline_directory / "vae_decoder" / "bundle"})
    attached = retouch.attach(Pipeline(bare), bundles={"unet": pipeline_directory / "unet" / "bundle"})
    assert list(attached.sessions) == ["unet"]
    with pytest.raises(BundleError, match="none of its components"):
        retouch.attach(object())


def test_drop_in_sessions_stay_where_they_are(pipeline_directory, mask) -> None:
    pipeline = Pipeline(pipeline_directory)
    pipeline.unet.model = mine = retouch.InferenceSession(pipeline_directory / "unet" / "model.onnx")
    with mine.record("mine"):
        pipeline(1)
    with retouch.attach(pipeline) as attached:
        assert attached.sessions["unet"] is mine
        with attached.record("ours"):
            pipeline(1)
        assert [recording.id for recording in mine.recordings()] == ["mine", "ours"]
    assert pipeline.unet.model is mine and [recording.id for recording in mine.recordings()] == ["mine"]


def test_sessions_are_opened_on_a_model_or_its_bundle(pipeline_directory, tmp_path) -> None:
    folder = pipeline_directory / "unet"
    for path in (folder / "model.onnx", folder / "bundle"):
        session = retouch.InferenceSession(path)
        assert session._model_path == str(folder / "model.onnx") and session.bundle.path == folder / "bundle"
    shutil.copytree(folder / "bundle", tmp_path / "mine.bundle")
    shutil.copy(folder / "model.onnx", tmp_path / "mine.onnx")
    for name in ("mine.onnx", "mine.bundle"):
        assert retouch.InferenceSession(tmp_path / name)._model_path == str(tmp_path / "mine.onnx")
    shutil.copy(pipeline_directory / "vae_decoder" / "model.onnx", tmp_path / "mine.onnx")
    with pytest.raises(BundleError, match="SHA-256"):
        retouch.InferenceSession(tmp_path / "mine.onnx")
    assert retouch.InferenceSession(tmp_path / "mine.bundle")._model_path.endswith("base.onnx")
    shutil.rmtree(tmp_path / "mine.bundle")
    with pytest.raises(BundleError, match=r"retouch export mine\.onnx -o mine\.bundle"):
        retouch.InferenceSession(tmp_path / "mine.onnx")


def test_a_damaged_record_of_a_pipeline(pipeline_directory, tmp_path) -> None:
    shutil.copytree(pipeline_directory, tmp_path / "copy")
    record = tmp_path / "copy" / "retouch.json"
    for text in ("{", json.dumps({"components": {"unet": 1}})):
        record.write_text(text)
        with pytest.raises(BundleError, match=r"retouch\.json to be the record"):
            retouch.InferenceSession(tmp_path / "copy" / "unet" / "bundle")
    record.write_text(json.dumps({"components": {}}))
    retouch.InferenceSession(tmp_path / "copy" / "unet" / "bundle")


def test_a_model_of_open_sizes_keeps_them(tmp_path, write_text_model) -> None:
    path = tmp_path / "open.onnx"
    text = """
    open (float[batch,4,8,8] x) => (float[batch,4,8,8] y) {
        hidden = Conv<pads = [1, 1, 1, 1]>(x, w)
        y = Sigmoid(hidden)
    }
    """
    write_text_model(path, text, {"w": (4, 4, 3, 3)})
    export_onnx(path, tmp_path / "open.bundle", ExportOptions(editable="x", axes=(2, 3)))
    session, stock = retouch.InferenceSession(path), onnxruntime.InferenceSession(path)
    assert session.get_inputs()[0].shape == session.get_outputs()[0].shape == ["batch", 4, 8, 8]
    three = _normal(0, 3, 4, 8, 8)
    assert session.run(None, {"x": three})[0].tobytes() == stock.run(None, {"x": three})[0].tobytes()
    with pytest.raises(FeedError, match=r"shape \(1, 4, 8, 8\), got \(3, 4, 8, 8\)"), session.record():
        session.run(None, {"x": three})
    with session.record() as recording:
        session.run(None, {"x": three[:1]})
    assert recording.calls == 1
