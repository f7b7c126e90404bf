"""``retouch text``, and ``retouch export`` of a language model."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from retouch.models.code_lm import PATTERNS_MODEL
from retouch.text import Step, TextSession, preset
from retouch.text_view import TextView
from tests.plugin.cli.conftest import Call

PROMPT = "class WidthOwner:\n"


@pytest.fixture(scope="module")
def bundle(call: Call, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "patterns.bundle"
    called = call("export", PATTERNS_MODEL, "-o", path)
    assert called.code == 0, called.error
    assert "verified decode" in called.stdout
    return path


@pytest.fixture(scope="module")
def base(call: Call, bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "base.text"
    assert call("text", "generate", bundle, "-p", PROMPT, "-n", 90, "-o", path).code == 0
    return path


def test_texts_go_to_standard_output(call: Call, bundle: Path, tmp_path: Path) -> None:
    called = call("text", "generate", bundle, "-p", PROMPT, "-n", 40, "--preset", "low-confidence")
    assert called.code == 0
    assert called.stdout.startswith(PROMPT)
    assert "tokens per forward" in called.stderr
    (tmp_path / "prompt.txt").write_text(PROMPT)
    prompt = f"@{tmp_path / 'prompt.txt'}"
    again = call("text", "generate", bundle, "-p", prompt, "-n", 40, "--preset", "low-confidence", "--no-cache")
    assert again.stdout == called.stdout
    plain = ("--no-edits", "--threshold", 0.95, "--json", "-")
    figures = call("text", "generate", bundle, "-p", PROMPT, "-n", 40, *plain).json
    assert figures["text"].rstrip("\n") == called.stdout.rstrip("\n")
    assert figures["report"]["edited"] == 0
    together = call("text", "generate", bundle, "-p", PROMPT, "-n", 40, "--multi-block", 2, "--json", "-").json
    with TextSession(bundle, threads=1) as session:
        options = replace(preset("quality"), multi_block=2)
        assert together["text"] == session.generate(PROMPT, 40, options=options).text


def test_seeds_decide_what_is_drawn(call: Call, bundle: Path) -> None:
    drawn = [
        call("text", "generate", bundle, "-p", "class ", "-n", 40, "--temperature", 1.5, "--seed", seed).stdout
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_edits_are_of_texts_on_disk(call: Call, base: Path, tmp_path: Path) -> None:
    before = call("text", "edit", base, "--chars", "6:16", "--with", "DepthOwner", "-o", tmp_path / "next.text")
    assert before.code == 0, before.error
    assert before.stdout.startswith("class DepthOwner:")
    assert "exact (as asked for)" in before.stderr
    after = call("text", "edit", tmp_path / "next.text", "--find", "DepthOwner", "--with", "Width", "--json", "-").json
    assert after["text"].startswith("class Width:\n")
    assert after["report"]["mode"] == "exact"
    chosen = call("text", "edit", base, "--tokens", "40:44", "--mode", "frozen", "--json", "-").json
    assert chosen["report"]["settled"] >= 1
    assert chosen["report"]["refreshed"] == 0
    grown = call("text", "edit", base, "--tokens", "40:44", "--length", 6, "--json", "-").json
    assert len(grown["tokens"]) == len(chosen["tokens"]) + 2


def test_benchmarks_compare_ways(call: Call, bundle: Path) -> None:
    rows = call("text", "bench", bundle, "-n", 40, "--repeats", 1, "--json", "-").json
    ways = ["cached", "uncached", "causal, token by token"]
    assert [row["case"] for row in rows] == [*ways, "edit, exact", "edit, frozen", "edit, verify"]
    by_case = {row["case"]: row for row in rows}
    assert by_case["cached"]["ratio"] == 1
    assert by_case["cached"]["forwards"] == by_case["uncached"]["forwards"]
    assert all(by_case[case]["identical"] for case in ("cached", "uncached", "edit, exact", "edit, frozen"))
    assert by_case["edit, frozen"]["read"] < by_case["edit, exact"]["read"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("--tokens", "4-8"), "A:B, like 12:20"),
        (("--tokens", "4:4000"), "within the text's"),
        (("--find", "zebra"), "occurs 0 times"),
        (("--find", "self"), "times"),
        (("--tokens", "1:2", "--tokens", "5:6", "--length", "3"), "single span"),
        (("--tokens", "1:2", "--with", "a", "--with", "b"), "one replacement for each of 1"),
        (("--tokens", "1:2", "--preset", "fast"), "one of the presets"),
        ((), "(--chars, --find), got neither"),
        (("--tokens", "1:2", "--chars", "1:2"), "(--chars, --find), got both"),
    ],
)
def test_bad_edits_are_explained(arguments: tuple[str, ...], match: str, call: Call, base: Path) -> None:
    called = call("text", "edit", base, *arguments)
    assert called.code == 2
    assert match in called.error


def test_bad_input_is_explained(call: Call, bundle: Path, base: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    for arguments, match in [
        (("generate", bundle, "-p", "a", "--preset", "absent", "-o", tmp_path / "mine"), "is not a text's directory"),
        (("edit", base, "--find", "absent", "-o", tmp_path / "mine"), "is not a text's directory"),
        (("generate", bundle, "-p", ""), "at least one token"),
        (("generate", bundle, "-p", "a\tb"), "four spaces"),
        (("generate", bundle, "-p", "@nowhere"), "file of a prompt"),
        (("generate", bundle, "-p", "a", "--threshold", 2), "from 0 to 1"),
        (("generate", bundle, "-p", "a", "--no-edits", "--multi-block", 2), "Expected edits"),
        (("generate", tmp_path, "-p", "a"), "not a text bundle"),
        (("edit", tmp_path, "--tokens", "1:2"), "not the directory of a text"),
    ]:
        called = call("text", *arguments)
        assert called.code == 2
        assert match in called.error


def test_the_view_shows_what_happens_to_tokens(bundle: Path) -> None:
    with TextSession(bundle, threads=1) as session:
        spec = session.model.spec
        prompt = session.tokens_of("ab")
        view = TextView(session.tokenizer, spec.mask_id, prompt, len(prompt))
        block = np.full(spec.block, spec.mask_id)
        block[:2] = prompt
        block[2:5] = session.tokens_of("cde")
        nothing = np.zeros(spec.block, bool)
        filled, edited = nothing.copy(), nothing.copy()
        filled[3], edited[4] = True, True
        view.told(Step(0, block, filled, edited))
        console = Console(record=True, width=120, force_terminal=True, color_system="standard", file=io.StringIO())
        console.print(view.picture())
        shown = console.export_text(styles=True)
    assert "\x1b[2ma\x1b[0m\x1b[2mb" in shown
    assert "\x1b[1;32md" in shown
    assert "\x1b[1;30;43me" in shown
    assert shown.count("\N{MEDIUM SHADE}") == spec.block - 5
    assert "1 steps, 1 tokens edited" in shown
