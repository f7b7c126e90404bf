"""What users of other exporters reported, and inputs that do not fit."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from retouch import EditSession, Region
from retouch.errors import CoverageError, ExportError, FeedError, ModelError
from retouch.export import ExportOptions, export_onnx
from retouch.models import Adapter, Sizes, TorchOptions, condition, editable, export_torch
from retouch.models import _torch_onnx as tracing
from retouch.models._arguments import nested

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")


class Attending(torch.nn.Module):
    """Root-mean-square norm and attention, with rotary positions in double precision beside half-precision tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.config: dict[str, Any] = {}
        self.norm = torch.nn.RMSNorm(8)
        self.mix = torch.nn.Linear(8, 8)

    def forward(self, tokens: Any, positions: Any) -> Any:
        hidden = torch.nn.functional.rms_norm(self.norm(tokens), (8,))
        frequencies = 100.0 ** -torch.arange(4, dtype=torch.float64)
        angles = torch.outer(positions.to(torch.float64), frequencies).repeat_interleave(2, dim=-1)
        turned = torch.stack([-hidden[..., 1::2], hidden[..., ::2]], dim=-1).flatten(-2)
        heads = (hidden * angles.cos() + turned * angles.sin()).to(tokens.dtype)[:, None]
        attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, tokens[:, None])
        return self.mix(attended[:, 0])


ATTENDING = Adapter(
    "attending",
    (),
    lambda _, sizes: (
        editable("tokens", (sizes.batch, 12, 8), (1,)),
        condition("positions", (12,), dtype="int64", below=12),
    ),
    lambda module, **arguments: {"out": module(**arguments)},
)


@pytest.mark.parametrize(("opset", "half"), [(18, False), (20, False), (23, False), (18, True), (20, True)])
def test_rms_norm_and_double_rotary_positions(opset: int, half: bool, tmp_path: Path) -> None:
    """F.rms_norm has no form in torch's older exporter; half and double in one product make an invalid Einsum."""
    module = Attending().to(torch.float16 if half else torch.float32)
    bundle = export_torch(module, tmp_path / "bundle", TorchOptions(opset=opset, adapter=ATTENDING))
    assert bundle.manifest.coverage == 1.0
    assert bundle.manifest.inputs[0].dtype == ("float16" if half else "float32")


def test_half_precision_flux(tiny: Any, tmp_path: Path) -> None:
    sizes = Sizes(text=5, height=8, width=8)
    options = TorchOptions(sizes=sizes, export=ExportOptions(text="frozen"))
    bundle = export_torch(tiny("flux").half(), tmp_path / "bundle", options)
    assert {row.plan for row in bundle.manifest.plan} <= {"incremental", "hoisted", "constant", "frozen"}
    assert bundle.manifest.outputs[0].tensor.dtype == "float16"


def pixart_feeds(tokens: int = 77) -> dict[str, np.ndarray]:
    return {
        "hidden_states": np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32),
        "timestep": np.array([500]),
        "encoder_hidden_states": np.ones((1, tokens, 8), np.float32),
        "encoder_attention_mask": np.ones((1, tokens), np.float32),
    }


def test_feeds_of_another_size_or_type(tiny: Any, tmp_path: Path) -> None:
    """A prompt of two chunks on a graph for one, and timesteps as numbers of the other kind."""
    bundle = export_torch(tiny("pixart"), tmp_path / "bundle", TorchOptions(sizes=Sizes(text=77)))
    with EditSession(bundle) as session:
        with pytest.raises(FeedError, match=r"\(1, 77, 8\), got \(1, 154, 8\).*exported for"):
            session.base(pixart_feeds(154))
        whole = session.base(pixart_feeds())
        same = session.base({**pixart_feeds(), "timestep": np.array([500.0], np.float32)})
        assert np.array_equal(whole.outputs["out_hidden_states"], same.outputs["out_hidden_states"])
        with pytest.raises(FeedError, match=r"'timestep' of dtype int64, got float32.*500\.5"):
            session.base({**pixart_feeds(), "timestep": np.array([500.5], np.float32)})


def test_integer_timesteps_of_a_graph_that_wants_floats(tiny: Any, tmp_path: Path) -> None:
    module = Attending()
    adapter = Adapter("scaled", (), lambda _, sizes: (editable("tokens", (1, 12, 8), (1,)), condition("scale", (1,))),
                      lambda module, tokens, scale: {"out": module.mix(tokens) * scale})  # fmt: skip
    bundle = export_torch(module, tmp_path / "bundle", TorchOptions(adapter=adapter))
    tokens = np.ones((1, 12, 8), np.float32)
    with EditSession(bundle) as session:
        session.base({"tokens": tokens, "scale": np.array([981])})
        with pytest.raises(FeedError, match="'scale' of dtype float32, got int64"):
            session.base({"tokens": tokens, "scale": np.array([2**24 + 1])})


def test_models_move_with_their_weights(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_SINGLE_FILE_LIMIT", 0)
    folder = tmp_path / "made here"
    folder.mkdir()
    graph = tracing.trace(tiny("bert"), export_adapter("bert"), Sizes(), 18)
    graph.save(folder / "model.onnx")
    assert (folder / "model.onnx_data").is_file()
    moved = tmp_path / "déplacé là (2)"
    shutil.move(folder, moved)
    names = {v.name for v in onnx.load(moved / "model.onnx", load_external_data=False).graph.input}
    assert names == {"input_ids", "attention_mask"}
    bundle = export_onnx(moved / "model.onnx", tmp_path / "bündel 1", ExportOptions(example=graph.feeds))
    read_only(bundle.path)
    with EditSession(tmp_path / "bündel 1") as session:
        base = session.base(graph.feeds)
        ids = graph.feeds["input_ids"].copy()
        ids[0, 3] += 1
        edited = session.edit(base, {"input_ids": ids}, region=Region.from_spans([(3, 4)], ids.shape[1]))
        base.save(tmp_path / "base.run")
    assert np.abs(base.outputs["logits"] - graph.outputs["logits"]).max() < 1e-4
    assert (edited.outputs["logits"][0, 3] != base.outputs["logits"][0, 3]).any()


def export_adapter(name: str) -> Adapter:
    from retouch.models import adapter_for

    return adapter_for({"bert": "transformers.BertForMaskedLM"}[name])


def read_only(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        path.chmod(stat.S_IRUSR | (stat.S_IXUSR if path.is_dir() else 0))


def test_arguments_in_dictionaries_and_tuples() -> None:
    flat = {"a": 1, "b.x": 2, "b.y": 3, "c.1": 5, "c.0": 4, "c.10": 6}
    assert nested(flat) == {"a": 1, "b": {"x": 2, "y": 3}, "c": (4, 5, 6)}


def test_models_without_an_adapter(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no adapter for models of class torch\.Linear.*UNet2DModel"):
        export_torch(torch.nn.Linear(2, 2), tmp_path / "b")
    with pytest.raises(ModelError, match=r"no config\.json"):
        export_torch(tmp_path, tmp_path / "b")
    (tmp_path / "config.json").write_text('{"_class_name": "AutoencoderKL"}')
    with pytest.raises(ModelError, match="parts 'encoder', 'decoder', got None"):
        export_torch(tmp_path, tmp_path / "b")
    with pytest.raises(ModelError, match="cannot be loaded as"):
        export_torch(tmp_path, tmp_path / "b", TorchOptions(part="decoder"))
    assert not (tmp_path / "b").exists()


def test_sizes_that_do_not_fit(tiny: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be called with the inputs of family masked_lm"):
        export_torch(tiny("bert"), tmp_path / "b", TorchOptions(sizes=Sizes(tokens=99)))
    with pytest.raises(ExportError, match="for which image size"):
        Sizes().image(None)


def test_sizes_that_cut_patches_or_do_not_meet(tiny: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ExportError, match=r"height to be a multiple of 2 .*got 9\. Pass --fix height=8 or --fix height=10"
    ):
        export_torch(tiny("dit"), tmp_path / "b", TorchOptions(sizes=Sizes(height=9)))
    with pytest.raises(ExportError, match=r"width to be a multiple of 2 .*got 7"):
        export_torch(tiny("ddpm"), tmp_path / "b", TorchOptions(sizes=Sizes(height=8, width=7)))
    with pytest.raises(ExportError, match=r"With batch=1, height=1000000, width=100000 .* GiB.*Give smaller sizes"):
        export_torch(tiny("ddpm"), tmp_path / "b", TorchOptions(sizes=Sizes(height=1000000, width=100000)))


def test_wrong_axes_of_a_known_model(tiny: Any, tmp_path: Path) -> None:
    options = TorchOptions(export=ExportOptions(editable="hidden_states", axes=(1,)))
    with pytest.raises(CoverageError, match="computed on rows"):
        export_torch(tiny("dit"), tmp_path / "b", options)


def test_positions_of_roberta_follow_the_padding(tiny: Any) -> None:
    from retouch.models import adapter_for

    model, adapter = tiny("roberta"), adapter_for("transformers.RobertaForMaskedLM")
    ids = torch.randint(2, 32, (2, 7), generator=torch.Generator().manual_seed(0))
    ids[1, 4:] = model.config.pad_token_id
    mask = (ids != model.config.pad_token_id).long()
    with torch.no_grad():
        got, expected = adapter.call(model, input_ids=ids, attention_mask=mask)["logits"], model(ids, mask).logits
    assert torch.equal(got, expected)


def test_residuals_of_a_controlnet_are_named_like_a_unet_s_inputs(tiny: Any) -> None:
    from retouch.models import adapter_for

    unet, control = tiny("sd15"), tiny("controlnet")
    inputs = adapter_for("diffusers.UNet2DConditionModel", "controlled").inputs(unet.config, Sizes(text=5))
    wanted = {item.name: item.shape for item in inputs if "residual" in item.name}
    adapter = adapter_for("diffusers.ControlNetModel")
    feeds = {i.name: torch.zeros(i.shape) for i in adapter.inputs(control.config, Sizes(text=5, height=8, width=8))}
    with torch.no_grad():
        outputs = adapter.call(control, **feeds)
    assert {name: tuple(value.shape) for name, value in outputs.items()} == wanted
    assert feeds["controlnet_cond"].shape == (1, 3, 16, 16)
