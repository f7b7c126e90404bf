"""The catalogue, the cache of exports, and the exported graphs against torch."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from retouch.errors import ExportError, ModelError
from retouch.validation.reference_models import (
    BENCHMARK_MODELS,
    REFERENCE_MODELS,
    export_reference,
    load_feeds,
    reference_model,
)

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

TINY = [name for name in REFERENCE_MODELS if name.endswith("_tiny")]
LARGE = [name for name in REFERENCE_MODELS if name not in TINY and name not in BENCHMARK_MODELS]
TOLERANCE = 2e-5  # of the output's scale; fp32 sums in another order


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the export of one model and nothing else."""
    folder = tmp_path_factory.mktemp("written")
    export_reference("llada_tiny", folder)
    return folder


@pytest.fixture
def entry(written: Path, tmp_path: Path) -> Path:
    """A copy of that directory, to damage."""
    return shutil.copytree(written, tmp_path / "entry")


def run_graph(graph: Path, feeds: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
    """The graph's only output."""
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    (output,) = session.run(["out"], feeds)
    return np.asarray(output)


def run_torch(name: str, feeds: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
    """What the torch module returns for the feeds."""
    built = reference_model(name).build()
    with torch.no_grad():
        output = built.module(*(torch.from_numpy(feeds[key]) for key in built.inputs))
    return np.asarray(output.numpy())


def assert_equal_to_torch(name: str, graph: Path, feeds: dict[str, npt.NDArray[Any]]) -> None:
    expected = run_torch(name, feeds)
    got = run_graph(graph, feeds)
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= TOLERANCE * np.abs(expected).max()


def fingerprints(directory: Path) -> dict[str, tuple[int, int]]:
    """Inode and modification time of every file: unchanged only if nothing was written."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in directory.iterdir()}


class TestCatalogue:
    def test_holds_a_tiny_variant_of_every_family(self) -> None:
        families = {model.builder for model in REFERENCE_MODELS.values()}
        assert {REFERENCE_MODELS[name].builder for name in TINY} == families

    def test_benchmark_models_have_the_size_of_what_they_stand_for(self) -> None:
        sizes = {"ddpm_unet_256": 113.7e6, "sd_unet_77m_64": 77.6e6}
        assert set(sizes) == BENCHMARK_MODELS
        for name, size in sizes.items():
            model = reference_model(name)
            with torch.device("meta"):
                module = model.builder(model.configuration).module
            assert sum(parameter.numel() for parameter in module.parameters()) == pytest.approx(size, rel=1e-3)

    def test_unknown_name_lists_the_known_ones(self) -> None:
        with pytest.raises(ModelError, match=r"'dit_9000'.*dit_1024"):
            reference_model("dit_9000")

    @pytest.mark.parametrize("name", TINY)
    def test_editable_input_has_its_axes(self, name: str) -> None:
        model = reference_model(name)
        editable = model.build().inputs[model.editable]
        assert all(axis < editable.dim() for axis in model.axes)
        assert all(tensor.shape[0] == 1 for tensor in model.build().inputs.values())

    @pytest.mark.parametrize("name", TINY)
    def test_no_parameter_is_constant(self, name: str) -> None:
        parameters = dict(reference_model(name).build().module.named_parameters())
        constant = [key for key, value in parameters.items() if value.numel() > 1 and value.std() < 1e-3]
        assert not constant

    def test_build_is_reproducible_and_leaves_the_random_state_alone(self) -> None:
        torch.manual_seed(123)
        state = torch.random.get_rng_state()
        first = reference_model("dit_tiny").build()
        assert torch.equal(torch.random.get_rng_state(), state)
        torch.manual_seed(321)
        second = reference_model("dit_tiny").build()
        weights = second.module.state_dict()
        assert all(torch.equal(value, weights[key]) for key, value in first.module.state_dict().items())
        assert all(torch.equal(value, second.inputs[key]) for key, value in first.inputs.items())


class TestExportedGraph:
    @pytest.mark.parametrize("name", TINY)
    def test_tiny_equals_torch(self, name: str, reference_models: Path) -> None:
        graph = export_reference(name, reference_models)
        assert graph == reference_models / f"{name}.onnx"
        assert_equal_to_torch(name, graph, load_feeds(graph))

    @pytest.mark.slow
    @pytest.mark.parametrize("name", LARGE)
    def test_large_equals_torch(self, name: str, reference_models: Path) -> None:
        graph = export_reference(name, reference_models)
        assert_equal_to_torch(name, graph, load_feeds(graph))

    @pytest.mark.parametrize("name", TINY)
    def test_inputs_are_static_and_named(self, name: str, reference_models: Path) -> None:
        graph = onnx.load(export_reference(name, reference_models)).graph
        model = reference_model(name)
        assert [value.name for value in graph.input] == list(model.build().inputs)
        assert model.editable in {value.name for value in graph.input}
        assert all(dim.HasField("dim_value") for value in graph.input for dim in value.type.tensor_type.shape.dim)

    @pytest.mark.parametrize("name", TINY)
    def test_dynamic_batch_serves_other_batches(self, name: str, reference_models: Path) -> None:
        graph = export_reference(name, reference_models, dynamic_batch=True)
        assert graph.name == f"{name}.dynamic_batch.onnx"
        feeds = {key: np.concatenate([value] * 3) for key, value in load_feeds(graph).items()}
        editable = feeds[reference_model(name).editable]
        editable[1] = np.roll(editable[1], 1, axis=-1)
        assert_equal_to_torch(name, graph, feeds)

    def test_other_opset_lies_beside_the_default_one(self, reference_models: Path) -> None:
        default = export_reference("llada_tiny", reference_models)
        newer = export_reference("llada_tiny", reference_models, opset=23)
        assert default.is_file()
        assert onnx.load(default).opset_import[0].version == 18
        assert onnx.load(newer).opset_import[0].version == 23
        assert_equal_to_torch("llada_tiny", newer, load_feeds(newer))

    def test_opset_below_the_floor_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ExportError, match="at least 18, got 17"):
            export_reference("llada_tiny", tmp_path, opset=17)

    def test_weights_above_the_limit_lie_outside(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from retouch.validation.reference_models import _torch_export

        monkeypatch.setattr(_torch_export, "SINGLE_FILE_LIMIT", 100_000)
        graph = export_reference("llada_tiny", tmp_path)
        external = tmp_path / "llada_tiny.onnx.data"
        assert external.stat().st_size > graph.stat().st_size
        assert_equal_to_torch("llada_tiny", graph, load_feeds(graph))
        external.unlink()
        export_reference("llada_tiny", tmp_path)
        assert external.is_file()


class TestCache:
    def test_second_export_writes_nothing(self, entry: Path) -> None:
        before = fingerprints(entry)
        export_reference("llada_tiny", entry)
        assert fingerprints(entry) == before

    def test_only_the_files_of_the_entry_remain(self, written: Path) -> None:
        visible = {path.name for path in written.iterdir() if not path.name.startswith(".")}
        assert visible == {"llada_tiny.onnx", "llada_tiny.feeds.npz", "llada_tiny.json"}

    @pytest.mark.parametrize("damaged", ["llada_tiny.onnx", "llada_tiny.feeds.npz", "llada_tiny.json"])
    def test_truncated_file_is_exported_anew(self, damaged: str, entry: Path) -> None:
        content = {path: path.read_bytes() for path in entry.glob("llada_tiny*") if path.suffix != ".json"}
        (entry / damaged).write_bytes((entry / damaged).read_bytes()[:-100])
        graph = export_reference("llada_tiny", entry)
        assert {path: path.read_bytes() for path in content} == content
        assert_equal_to_torch("llada_tiny", graph, load_feeds(graph))

    def test_changed_configuration_is_exported_anew(self, entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from retouch.validation.reference_models import _export

        model = reference_model("llada_tiny")
        shorter = dataclasses.replace(model, configuration={**model.configuration, "tokens": 32})
        monkeypatch.setattr(_export, "reference_model", lambda name: shorter)
        graph = export_reference("llada_tiny", entry)
        assert graph == entry / "llada_tiny.onnx"
        assert load_feeds(graph)["ids"].shape == (1, 32)
        assert run_graph(graph, load_feeds(graph)).shape == (1, 32, 128)

    def test_failed_export_keeps_the_previous_files(self, entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from retouch.validation.reference_models import _export

        before = fingerprints(entry)
        monkeypatch.setattr(_export, "RECIPE", -1)
        monkeypatch.setattr(np, "savez", _disk_full)
        with pytest.raises(OSError, match="disk full"):
            export_reference("llada_tiny", entry)
        assert fingerprints(entry) == before

    def test_record_tells_what_was_exported(self, reference_models: Path) -> None:
        graph = export_reference("dit_tiny", reference_models)
        record = json.loads(graph.with_suffix(".json").read_text(encoding="utf-8"))
        assert record["editable"] == "x"
        assert record["axes"] == [2, 3]
        assert record["opset"] == 18
        assert record["configuration"]["num_layers"] == 2
        assert record["files"]["dit_tiny.onnx"] == graph.stat().st_size


class TestWithoutTorch:
    HIDE = "import sys; sys.modules['torch'] = sys.modules['diffusers'] = None\n"

    def test_cached_export_is_found(self, reference_models: Path) -> None:
        graph = export_reference("dit_tiny", reference_models)
        script = (
            f"{self.HIDE}"
            "from retouch.validation.reference_models import export_reference, load_feeds\n"
            f"print(len(load_feeds(export_reference('dit_tiny', {str(graph.parent)!r}))))"
        )
        assert _python(script) == "3"

    def test_missing_export_says_what_to_install(self, tmp_path: Path) -> None:
        script = (
            f"{self.HIDE}"
            "from retouch.errors import ModelError\n"
            "from retouch.validation.reference_models import export_reference\n"
            "try:\n"
            f"    export_reference('dit_tiny', {str(tmp_path)!r})\n"
            "except ModelError as error:\n"
            "    print(error)"
        )
        assert "retouch[torch]" in _python(script)


def _python(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _disk_full(*_: object, **__: object) -> None:
    raise OSError("disk full")
