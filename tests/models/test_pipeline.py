"""A whole pipeline: what diffusers loads from it, and what its bundles compute."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import retouch
from retouch import Bundle, EditSession, Region
from retouch.errors import ExportError, ModelError
from retouch.export import ExportOptions
from retouch.models import Sizes, TorchOptions, export_pipeline


@dataclass(frozen=True)
class Exported:
    path: Path
    bundles: Mapping[str, Bundle]
    steps: list[str]


@pytest.fixture(scope="module")
def exported(pipeline: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    steps: list[str] = []
    out = tmp_path_factory.mktemp("exported") / "out"
    bundles = export_pipeline(pipeline, out, TorchOptions(sizes=Sizes(batch=2, text=5)), tell=steps.append)
    return Exported(out, bundles, steps)


@pytest.fixture
def paint(exported: Exported, painter: Any) -> Any:
    """The pipeline of diffusers, loaded from the exported directory, and what it makes of a prompt."""
    return painter(exported.path)


def test_pipelines_on_onnx_runtime_load_it(pipeline: Path, exported: Exported, paint: Any) -> None:
    out, bundles = exported.path, exported.bundles
    assert sorted(bundles) == ["unet", "vae_decoder", "vae_encoder"]
    assert "copy tokenizer" in exported.steps
    assert json.loads((out / "model_index.json").read_text()) == json.loads((pipeline / "model_index.json").read_text())
    assert (out / "tokenizer" / "vocab.json").is_file() and (out / "scheduler" / "scheduler_config.json").is_file()
    assert not list(out.rglob("*.safetensors"))
    described = json.loads((out / "retouch.json").read_text())["components"]
    assert described["unet"] == {
        "family": "unet2d_condition", "graph": "unet/model.onnx", "bundle": "unet/bundle", "editable": "sample",
        "conditions": ["encoder_hidden_states"], "steps": ["timestep"],
    }  # fmt: skip
    assert "bundle" not in described["text_encoder"]

    for name in bundles:
        files, own = external_data(out / name / "model.onnx")
        assert files <= {"bundle/weights.bin", "model.onnx_data"} and "bundle/weights.bin" in files
        stored = sum(path.stat().st_size for path in (out / name).glob("model.onnx*"))
        assert stored < 0.2 * (out / name / "bundle" / "weights.bin").stat().st_size + own

    for name in described:
        assert (out / name / "config.json").is_file()
    image = paint.call(3)
    assert image.shape == (1, 16, 16, 3) and np.isfinite(image).all()
    with EditSession(bundles["vae_decoder"]) as session:
        base = session.base({"latent_sample": paint.latents})
        changed = {"latent_sample": paint.latents + 1}
        edited = session.edit(base, changed, region=Region.from_boxes([(0, 0, 2, 2)], (8, 8)))
    assert base.outputs["sample"].shape == (1, 3, 16, 16)
    assert (edited.outputs["sample"] != base.outputs["sample"]).any()


def external_data(path: Path) -> tuple[set[str], int]:
    """The files that a graph reads its weights from, and the bytes that the graph itself takes."""
    graph = onnx.load(path, load_external_data=False).graph
    entries = [{entry.key: entry.value for entry in tensor.external_data} for tensor in graph.initializer]
    return {entry["location"] for entry in entries if entry}, path.stat().st_size


def test_its_sessions_are_replaced_and_the_pipeline_edits(exported: Exported, paint: Any) -> None:
    stock = paint.call(3)
    mask = np.zeros((16, 16), bool)
    mask[4:8, 4:8] = True
    for name in ("unet", "vae_decoder"):
        paint.parts[name].model = retouch.InferenceSession(exported.path / name / "model.onnx")
    assert paint.call(3).tobytes() == stock.tobytes()
    with retouch.attach(paint.pipeline) as attached:
        with attached.record() as recording:
            base = paint.call(3)
        np.testing.assert_allclose(base, stock, atol=1e-5)
        assert recording.calls == {"unet": 2, "vae_encoder": 0, "vae_decoder": 1}
        with attached.edit(mask, policy="exact"):
            edited = paint.call(7)
    changed = (edited != base).any((0, 3))
    assert changed[mask].all() and not changed[~mask].any()
    assert paint.call(3).tobytes() == stock.tobytes()


def test_a_pipeline_that_is_not_one_of_ours_is_not_replaced(pipeline: Path) -> None:
    with pytest.raises(ExportError, match="not an exported pipeline"):
        export_pipeline(pipeline, pipeline)
    assert (pipeline / "unet" / "diffusion_pytorch_model.safetensors").is_file()


def test_an_exported_pipeline_with_other_files_in_it_is_not_replaced(pipeline: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    engine = "unet/bundle/engines/tensorrt-rtx/edit-float32-0123456789abcdef.engine"  # goes with its bundle
    (out / engine).parent.mkdir(parents=True)
    for name in ("model_index.json", "unet/model.onnx", "unet/notes.txt", engine):
        (out / name).write_text("mine")
    (out / "retouch.json").write_text(json.dumps({"files": ["model_index.json", "unet/model.onnx"]}))
    with pytest.raises(ExportError, match=r"holds unet/notes\.txt beside an exported pipeline; it is not replaced"):
        export_pipeline(pipeline, out)
    assert (out / "unet" / "notes.txt").read_text() == "mine"


def test_partners_that_are_none(pipeline: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"which has no retouch\.json"):
        export_pipeline(pipeline, tmp_path / "out", TorchOptions(export=ExportOptions(share=tmp_path)))
    assert not (tmp_path / "out").exists()


def test_nothing_editable(pipeline: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "scheduler").mkdir()
    (folder / "model_index.json").write_text(json.dumps({"scheduler": ["diffusers", "DDIMScheduler"]}))
    with pytest.raises(ExportError, match="adapter with an editable input"):
        export_pipeline(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ModelError, match=r"no model_index\.json"):
        export_pipeline(tmp_path / "absent", tmp_path / "out")
