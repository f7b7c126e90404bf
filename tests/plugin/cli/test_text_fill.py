"""``retouch text fill``, ``cluster`` and ``bench`` of caches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retouch.models.code_lm import save_code_lm
from retouch.models.decoders import export_language_model
from retouch.text import TextModel
from retouch.text.full_attention import BlockCache, DelayedCache, FullAttentionSampler, Horizon, UnmaskOptions
from retouch.tokens import code_characters
from tests.plugin.cli.conftest import Call
from tests.random_code_lm import SMALL, random_code_lm

PROMPT = "class A:"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fill")
    save_code_lm(random_code_lm(SMALL, 0.6, 0.1), code_characters(), folder / "model", half=False)
    return export_language_model(folder / "model", folder / "bundle").path


def test_texts_are_those_of_the_sampler(call: Call, bundle: Path) -> None:
    options = UnmaskOptions(block=8, steps=4)
    for arguments, policy in [
        ((), None),
        (("--cache", "dual"), BlockCache()),
        (("--cache", "delayed", "--set", "interval=3", "--set", "window=none"), DelayedCache(3)),
        (("--cache", "delayed", "--set", "window=2", "--horizon", 8), Horizon(DelayedCache(window=2), 8)),
    ]:
        given = ("--block", 8, "--steps", 4, "--json", "-")
        data = call("text", "fill", bundle, "-p", PROMPT, "-n", 24, *arguments, *given).json
        wanted = FullAttentionSampler(TextModel(bundle, threads=1), policy, options).generate(PROMPT, 24)
        assert data["text"] == wanted.text and data["tokens"] == wanted.tokens.tolist()
        assert data["report"]["rows_computed"] == wanted.report.rows_computed
        assert data["report"]["errors"] is None


def test_audits_say_how_far_a_cache_is_off(call: Call, bundle: Path) -> None:
    called = call("text", "fill", bundle, "-p", PROMPT, "-n", 16, "--cache", "dual", "--audit")
    assert called.code == 0, called.error
    assert called.stdout.startswith(PROMPT)
    assert "steps old in the mean" in called.stderr
    assert "choices are the model's own" in called.stderr


def test_clusters_are_found_for_the_anchored_cache(call: Call, bundle: Path) -> None:
    anchored = ("text", "fill", bundle, "-p", PROMPT, "-n", 24, "--cache", "anchored")
    assert "retouch text cluster" in call(*anchored).error
    found = call("text", "cluster", bundle, "-p", PROMPT, "-p", "x = ", "-n", 24, "--count", 3)
    assert found.code == 0, found.error
    assert found.stdout.startswith("3 clusters of ")
    called = call(*anchored, "--json", "-")
    assert called.json["report"]["max_staleness"] <= 2
    rows = call("text", "bench", bundle, "--full-attention", "-n", 16, "--repeats", 1, "--json", "-").json
    names = [row["cache"] for row in rows]
    assert names[:2] == ["no cache", "prefix"] and "anchored" in names and "dual, horizon 64" in names
    assert (rows[0]["ratio"], rows[0]["flops"], rows[0]["same"], rows[0]["agreed"]) == (1, 1, 1, 1)
    assert all(row["flops"] < 1 for row in rows[1:])


def test_models_without_causal_blocks_are_filled_and_compared(call: Call, bundle: Path, tmp_path: Path) -> None:
    """Prompts of models without a tokenizer of ours are ids, and so are their texts."""
    folder = tmp_path / "plain"
    folder.mkdir()
    for file in bundle.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    manifest = json.loads((folder / "text.json").read_text())
    manifest["model"]["block_causal"] = False
    manifest["tokenizer"] = None
    del manifest["files"]["decode.onnx"]
    (folder / "text.json").write_text(json.dumps(manifest))
    assert "retouch text fill" in call("text", "generate", folder, "-p", "ids:1,2").error
    called = call("text", "fill", folder, "-p", "ids:5,9,2", "-n", 8)
    ids = FullAttentionSampler(TextModel(folder, threads=1)).generate([5, 9, 2], 8).tokens.tolist()
    assert called.stdout.split() == list(map(str, ids))
    rows = call("text", "bench", folder, "-p", "ids:5,9", "-n", 8, "--repeats", 1, "--json", "-").json
    assert rows[0]["cache"] == "no cache"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("-p", "ids:5,x"), "ids:5,9,2"),
        (("-p", ""), "at least one token"),
        (("-p", "a", "--cache", "delayed", "--set", "every=8"), "one of interval, window for the cache delayed"),
        (("-p", "a", "--cache", "delayed", "--set", "interval=often"), "interval to be of the kind int"),
        (("-p", "a", "--cache", "delayed", "--set", "interval=0"), "at least 1"),
        (("-p", "a", "--cache", "none", "--set", "interval=0"), "Expected no settings for the cache none, got"),
        (("-p", "a", "--cache", "dual", "--set", "kept=prefix"), "Expected no settings for the cache dual, got"),
        (("-p", "a", "--cache", "focus", "--set", "pattern=ring"), "Expected pattern to be one of"),
        (("-p", "a", "--steps", 4, "--threshold", 0.5), "one of steps, threshold and factor"),
        (("-p", "a", "--threshold", 0.5, "--measure", "entropy"), "Measure.PROBABILITY"),
    ],
)
def test_bad_input_is_explained(arguments: tuple[str, ...], match: str, call: Call, bundle: Path) -> None:
    called = call("text", "fill", bundle, *arguments)
    assert called.code == 2
    assert match in called.error
