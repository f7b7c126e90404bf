"""Drop-in sessions on the bundle written by hand, and a pipeline of two small models written as text."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import retouch
from retouch.export import ExportOptions, export_onnx

# Needs packages of its own (see the extra `optimum`): `make test-optimum` runs it.
collect_ignore = [] if importlib.util.find_spec("optimum") else ["test_optimum.py", "test_optimum_graphs.py"]

HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
UNET = """
unet (float[BATCH,4,8,8] sample, int64[1] timestep, float[BATCH,5,8] encoder_hidden_states)
    => (float[BATCH,4,8,8] out_sample)
    <int64[1] one = {1}, int64[4] wide = {BATCH, 8, 1, 1}, float thousand = {1000}> {
    time = Cast<to = 1>(timestep)
    share = Div(time, thousand)
    text = ReduceMean<keepdims = 0>(encoder_hidden_states, one)
    scaled = Mul(text, share)
    condition = Reshape(scaled, wide)
    hidden = Conv<pads = [1, 1, 1, 1]>(sample, w_in)
    sum = Add(hidden, condition)
    gate = Sigmoid(sum)
    active = Mul(sum, gate)
    out_sample = Conv<pads = [1, 1, 1, 1]>(active, w_out)
}
"""
DECODER = """
decoder (float[1,4,8,8] latent_sample) => (float[1,3,16,16] sample) <float[4] twice = {1, 1, 2, 2}> {
    hidden = Conv<pads = [1, 1, 1, 1]>(latent_sample, w_in)
    gate = Sigmoid(hidden)
    active = Mul(hidden, gate)
    large = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(
        active, "", twice)
    sample = Conv<pads = [1, 1, 1, 1]>(large, w_out)
}
"""


def write_model(path: Path, text: str, shapes: dict[str, tuple[int, ...]]) -> None:
    """A model in onnx's text form, with weights drawn at random."""
    model = onnx.parser.parse_model(HEADER + text)
    generator = np.random.default_rng(5)
    for name, shape in shapes.items():
        weights = generator.standard_normal(shape, dtype=np.float32) / np.sqrt(np.prod(shape[1:]))
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights.astype(np.float32), name))
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


@pytest.fixture
def write_text_model() -> Callable[..., None]:
    return write_model


@pytest.fixture(scope="session")
def pipeline_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline as ``retouch export`` writes it: ``unet`` for guidance in one call, ``vae_decoder``."""
    return write_pipeline(tmp_path_factory.mktemp("pipeline"), batch=2)


@pytest.fixture(scope="session")
def pipeline_of_two_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a ``unet`` for guidance in two calls."""
    return write_pipeline(tmp_path_factory.mktemp("two_calls"), batch=1)


def write_pipeline(root: Path, batch: int) -> Path:
    weights = {"w_in": (8, 4, 3, 3), "w_out": (4, 8, 3, 3)}
    write_model(root / "unet" / "model.onnx", UNET.replace("BATCH", str(batch)), weights)
    write_model(root / "vae_decoder" / "model.onnx", DECODER, {"w_in": (8, 4, 3, 3), "w_out": (3, 8, 3, 3)})
    for component, editable in (("unet", "sample"), ("vae_decoder", "latent_sample")):
        folder = root / component
        options = ExportOptions(editable=editable, axes=(2, 3))
        export_onnx(folder / "model.onnx", folder / "bundle", options)
    record = {"components": {"unet": {"steps": ["timestep"]}, "vae_decoder": {"steps": []}}}
    (root / "retouch.json").write_text(json.dumps(record))
    return root


@pytest.fixture(scope="session")
def stock(hand_built: Any) -> onnxruntime.InferenceSession:
    """onnxruntime's own session on the base graph of the bundle written by hand."""
    return onnxruntime.InferenceSession(hand_built.bundle.path / "base.onnx", providers=["CPUExecutionProvider"])


@pytest.fixture
def session(hand_built: Any) -> retouch.InferenceSession:
    return retouch.InferenceSession(hand_built.bundle.path, providers=["CPUExecutionProvider"])


Loop = Callable[..., list[np.ndarray]]


@pytest.fixture
def loop(hand_built: Any) -> Loop:
    """An application: three steps with falling sigma, each fed what the one before gave."""

    def run(session: Any, change: float = 0.0, sigmas: tuple[float, ...] = (0.9, 0.5, 0.1)) -> list[np.ndarray]:
        x, outputs = hand_built.feeds()["x"].copy(), []
        x[:, :, 2:4, 2:4] += np.float32(change)
        for sigma in sigmas:
            (y,) = session.run(None, {"x": x, "sigma": np.array([sigma], np.float32)})
            outputs.append(y)
            x = (x - 0.3 * y).astype(np.float32)
        return outputs

    return run


@pytest.fixture
def box() -> np.ndarray:
    """Rows 2 and 3, columns 2 and 3 of the grid of 8x8."""
    mask = np.zeros((8, 8), bool)
    mask[2:4, 2:4] = True
    return mask


@pytest.fixture(scope="module")
def saved_pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Stable Diffusion with random weights and a tokenizer that knows letters, as diffusers saves it."""
    import diffusers
    import torch

    from retouch.validation.reference_models._weights import draw_weights

    folder = tmp_path_factory.mktemp("pipeline") / "sd"
    blocks = {"block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4}
    torch.manual_seed(0)
    unet = diffusers.UNet2DConditionModel(
        **blocks, sample_size=8, cross_attention_dim=8, attention_head_dim=2,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        **blocks, sample_size=16, down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2
    )
    for name, module in (("unet", unet), ("vae", vae)):
        draw_weights(module)
        module.save_pretrained(folder / name)
    scheduler = diffusers.DDIMScheduler(steps_offset=1, clip_sample=False, set_alpha_to_one=False)
    scheduler.save_pretrained(folder / "scheduler")
    write_text_part(folder)
    index = {
        "_class_name": "StableDiffusionPipeline",
        "_diffusers_version": diffusers.__version__,
        "vae": ["diffusers", "AutoencoderKL"],
        "unet": ["diffusers", "UNet2DConditionModel"],
        "scheduler": ["diffusers", "DDIMScheduler"],
        "text_encoder": ["transformers", "CLIPTextModel"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
    }
    (folder / "model_index.json").write_text(json.dumps(index))
    return folder


def write_text_part(folder: Path) -> None:
    """A text encoder, and a tokenizer that knows letters."""
    import transformers

    letters = "abcdefghijklmnopqrstuvwxyz"
    tokens = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    (folder / "tokenizer").mkdir()
    files = [folder / "tokenizer" / name for name in ("vocab.json", "merges.txt")]
    files[0].write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    files[1].write_text("#version: 0.2\n")
    tokenizer = transformers.CLIPTokenizer(*map(str, files), model_max_length=5)
    tokenizer.save_pretrained(folder / "tokenizer")
    configuration = transformers.CLIPTextConfig(
        vocab_size=len(tokens), hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=5, projection_dim=8, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    transformers.CLIPTextModel(configuration).save_pretrained(folder / "text_encoder")
