"""Language models become text bundles whose graphs give what torch gives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from retouch.bundle import TEXT_SCHEMA_VERSION, TextBundle
from retouch.errors import BundleError, ModelError, VerificationError
from retouch.models.code_lm._network import CodeLm, block_mask
from retouch.models.decoders import decoder_for, export_language_model, is_language_model
from retouch.text import TextModel


@torch.no_grad()
def _torch_logits(network: CodeLm, ids: np.ndarray, block: int) -> np.ndarray:
    positions = torch.arange(len(ids))
    logits, _ = network(torch.from_numpy(ids)[None], positions, block_mask(positions, positions, block))
    return logits[0].numpy()


def test_graphs_give_what_torch_gives(network: CodeLm, directory: Path, tmp_path: Path) -> None:
    bundle = export_language_model(directory, tmp_path / "bundle")
    assert all(error < 1e-5 for error in bundle.manifest.verification.values())
    model, block = TextModel(bundle, threads=1), network.config.block_length
    ids = np.random.default_rng(1).integers(0, 99, 4 * block)
    wanted = _torch_logits(network, ids, block)
    np.testing.assert_allclose(model.uncached(len(ids)).read(ids, 0), wanted, atol=2e-5)
    full = model.uncached(len(ids), window=True).read(ids, 0)
    np.testing.assert_allclose(full, _torch_logits(network, ids, len(ids)), atol=2e-5)
    cached = model.context(len(ids))
    np.testing.assert_allclose(cached.read(ids[: 2 * block], 0), wanted[: 2 * block], atol=2e-5)
    cached.read(np.full(block, 98), 2 * block)
    for start in (2 * block, 3 * block):
        got = cached.read(ids[start : start + block], start)
        np.testing.assert_allclose(got, wanted[start : start + block], atol=2e-5)


def test_keys_and_values_are_updated_where_they_lie(directory: Path, tmp_path: Path) -> None:
    model = TextModel(export_language_model(directory, tmp_path / "bundle"), threads=1)
    context, tokens = model.context(64), 2 * model.spec.block
    context.read(np.arange(tokens), 0)
    context.read(np.arange(tokens), tokens)
    arrays = context.keys_values()
    before = {name: array.copy() for name, array in arrays.items()}
    context.read(np.arange(tokens) + 1, tokens)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array[:, :, :tokens], before[name][:, :, :tokens])
        assert (array[:, :, tokens : 2 * tokens] != before[name][:, :, tokens : 2 * tokens]).any(-1).all()
        assert not array[:, :, 2 * tokens :].any()


def test_contexts_start_from_kept_keys_and_values(directory: Path, tmp_path: Path) -> None:
    model = TextModel(export_language_model(directory, tmp_path / "bundle"), threads=1)
    block = model.spec.block
    whole, ids = model.context(4 * block), np.arange(4 * block)
    whole.read(ids, 0)
    again = model.context(5 * block, whole.keys_values())
    np.testing.assert_array_equal(again.read(ids[block:][:block], block), whole.read(ids[:block] + block, block))
    for name, array in again.keys_values().items():
        np.testing.assert_allclose(array[:, :, : 4 * block], whole.keys_values()[name], atol=1e-5)
        assert not array[:, :, 4 * block :].any()


def test_shards_are_read_as_one_file_is(directory: Path, tmp_path: Path) -> None:
    whole = export_language_model(directory, tmp_path / "whole")
    tensors = load_file(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {name: f"model-{index % 2}.safetensors" for index, name in enumerate(names)}
    for shard in sorted(set(shards.values())):
        save_file({name: tensors[name] for name in names if shards[name] == shard}, directory / shard)
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    assert export_language_model(directory, tmp_path / "sharded").fingerprint == whole.fingerprint
    for index in ("{}", '{"weight_map": {"a": 1}}', "{"):
        (directory / "model.safetensors.index.json").write_text(index)
        with pytest.raises(ModelError, match=r"index\.json"):
            export_language_model(directory, tmp_path / "sharded")


def test_bad_models_are_refused(directory: Path, tmp_path: Path) -> None:
    assert is_language_model(directory)
    assert not is_language_model(tmp_path)
    tensors = load_file(directory / "model.safetensors")
    norm = "model.norm.weight"

    def refused(error: type[Exception], match: str, **changed: np.ndarray) -> None:
        save_file({**tensors, **changed}, directory / "model.safetensors")
        with pytest.raises(error, match=match):
            export_language_model(directory, tmp_path / "bundle")
        assert not (tmp_path / "bundle").exists()

    refused(ModelError, "weight norm to have the shape", **{norm: np.ones(7, np.float32)})
    refused(VerificationError, "nothing was written", **{norm: np.full_like(tensors[norm], np.nan)})
    del tensors[norm]
    refused(ModelError, "no tensor model.norm.weight")
    (directory / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ModelError, match="cannot be read"):
        export_language_model(directory, tmp_path / "bundle")
    (directory / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="holds neither"):
        export_language_model(directory, tmp_path / "bundle")
    config = json.loads((directory / "config.json").read_text())
    del config["head_dim"]
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="'head_dim'"):
        export_language_model(directory, tmp_path / "bundle")
    with pytest.raises(ModelError, match="no adapter for language models of type 'gpt2'"):
        decoder_for("gpt2")


def test_a_tokenizer_of_another_model_is_refused(directory: Path, tmp_path: Path) -> None:
    file = directory / "tokenizer.json"
    data = json.loads(file.read_text())
    for symbols in (data["symbols"][:-1], [*data["symbols"], "more"]):
        file.write_text(json.dumps({**data, "symbols": symbols}))
        with pytest.raises(ModelError, match="list 97 symbols"):
            export_language_model(directory, tmp_path / "bundle")


def test_bundles_are_checked(directory: Path, tmp_path: Path) -> None:
    bundle = export_language_model(directory, tmp_path / "bundle")
    assert TextBundle.open(bundle.path) == bundle
    with pytest.raises(BundleError, match="not a text bundle"):
        TextBundle.open(tmp_path)
    manifest = bundle.path / "text.json"
    text = manifest.read_text()
    manifest.write_text(text.replace(f'"schema_version": {TEXT_SCHEMA_VERSION}', '"schema_version": 999'))
    with pytest.raises(BundleError, match=f"schema version {TEXT_SCHEMA_VERSION}, got 999"):
        TextBundle.open(bundle.path)
    manifest.write_text(text.replace('"heads"', '"hats"'))
    with pytest.raises(BundleError, match="hats"):
        TextBundle.open(bundle.path)
    manifest.write_text(text)
    with (bundle.path / "weights.bin").open("r+b") as file:
        file.write(b"\xff")
    with pytest.raises(BundleError, match="was changed"):
        TextBundle.open(bundle.path)
    TextBundle.open(bundle.path, check="size")
