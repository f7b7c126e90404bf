"""``retouch export`` of a torch model's directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retouch.bundle import Bundle

pytest.importorskip("diffusers")


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import transformers

    folder = tmp_path_factory.mktemp("torch") / "bert"
    config = transformers.BertConfig(
        vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder


def test_export_of_a_directory(call: Any, language_model: Path, tmp_path: Path) -> None:
    called = call("export", language_model, "-o", tmp_path / "b", "--fix", "tokens=12", "--opset", 20, "--no-calibrate")
    assert called.code == 0, called.stderr
    assert "trace BertForMaskedLM" in called.stderr and "coverage" in called.stdout
    manifest = Bundle.open(tmp_path / "b").manifest
    assert manifest.editable.input == "input_ids" and manifest.inputs[0].shape == (1, 12)
    assert manifest.model.opset == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fix", "rows=12"], "Expected --fix of a torch model to name batch, height, width, text, tokens, got rows"),
        (["--part", "decoder"], "has the parts none (the whole model), got 'decoder'"),
        (["--precision", "unet=float16"], "Only pipelines have components to name, got --precision unet=float16"),
        (["--precision", "float8"], "Expected precision to be 'float32' or 'float16', got 'float8'"),
        (
            ["--precision", "=float16"],
            "Expected --precision PRECISION or --precision COMPONENT=PRECISION, got '=float16'",
        ),
        (["--precision", "float16", "--precision", "float32"], "--precision gives everything two precisions"),
    ],
)
def test_options_that_do_not_fit(
    call: Any, language_model: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    called = call("export", language_model, "-o", tmp_path / "b", *options)
    assert called.code == 2
    assert message in called.error


def test_components_of_a_pipeline_have_their_precisions(call: Any, tmp_path: Path) -> None:
    import diffusers

    blocks = {"sample_size": 8, "block_out_channels": (8,), "layers_per_block": 1, "norm_num_groups": 4}
    unet = {"down_block_types": ("DownBlock2D",), "up_block_types": ("UpBlock2D",), "add_attention": False}
    diffusers.UNet2DModel(**blocks, **unet).save_pretrained(tmp_path / "ddpm" / "unet")
    diffusers.DDIMScheduler().save_pretrained(tmp_path / "ddpm" / "scheduler")
    index = {"unet": ["diffusers", "UNet2DModel"], "scheduler": ["diffusers", "DDIMScheduler"]}
    (tmp_path / "ddpm" / "model_index.json").write_text(json.dumps(index))
    common = ("export", tmp_path / "ddpm", "-o", tmp_path / "out", "--no-calibrate")
    called = call(*common, "--precision", "decoder=float16")
    assert called.code == 2
    assert "Expected precisions of components among 'unet', got one of 'decoder'" in called.error
    called = call(*common, "--precision", "unet=float16")
    assert called.code == 0, called.stderr
    assert "to float16" in called.stderr
    described = json.loads((tmp_path / "out" / "retouch.json").read_text())["components"]
    assert described["unet"]["precision"] == "float16"


def test_torch_options_of_a_file(call: Any, image_model: Path, tmp_path: Path) -> None:
    called = call("export", image_model, "-o", tmp_path / "b", "--opset", 20)
    assert called.code == 2
    assert "--part and --opset are for torch models" in called.error


def test_a_directory_without_a_model(call: Any, tmp_path: Path) -> None:
    called = call("export", tmp_path, "-o", tmp_path / "b")
    assert called.code == 2
    assert "There is no config.json" in called.error
