"""Completions of code and what Python says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from retouch.models.code_lm import PATTERNS_MODEL, CodeLmConfig, load_tokenizer
from retouch.models.code_lm._network import CodeLm, block_mask
from retouch.validation.text import (
    Completion,
    Verdict,
    code_prompts,
    demo_main,
    evaluate_main,
    judge,
    score_code,
)
from retouch.validation.text._causal import complete_causally


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("def f():\n    return 1\n    x = (", Verdict.ACCEPTED),  # the last line is cut off
        ("def f():\n    if x:\n", Verdict.UNFINISHED),
        ("x = (1,\n", Verdict.UNFINISHED),
        ("def f():\n    try:\n        x = 1\n", Verdict.UNFINISHED),
        ("def f(:\n", Verdict.REFUSED),
        ("def f():\n        x = 1\n    y = 2\n", Verdict.REFUSED),
        ("x = '\\d'\n", Verdict.ACCEPTED),
    ],
)
def test_python_judges_full_lines(text: str, verdict: Verdict) -> None:
    assert judge(text) is verdict


def test_a_last_line_counts_where_the_text_ended() -> None:
    assert judge("x = 1\ny = (", whole=True) is Verdict.UNFINISHED
    assert judge("x = 1\ny = (") is Verdict.ACCEPTED


def test_prompts_begin_functions_and_classes() -> None:
    prompts = code_prompts(20)
    assert len(set(prompts)) == 20
    assert all(prompt.startswith(("def ", "class ")) and prompt.count("\n") <= 3 for prompt in prompts)
    assert all(judge(prompt) is not Verdict.REFUSED for prompt in prompts)


def test_scores_count_verdicts_and_reads() -> None:
    ends = {"a = ": "1\n", "b = ": "(\n", "c = ": "= 2\n", "d = ": "3\n"}

    def complete(prompt: str) -> Completion:
        end = ends[prompt]
        return Completion(prompt + end, False, tokens=6, characters=len(end), forwards=3, edited=2)

    score = score_code(list(ends), complete)
    assert (score.accepted, score.unfinished, score.edited) == (0.5, 0.25, 2)
    assert (score.tokens_per_forward, score.characters_per_forward) == (2, sum(map(len, ends.values())) / 12)


@torch.no_grad()
def test_the_baseline_takes_the_likeliest_next_token() -> None:
    torch.manual_seed(0)
    network = CodeLm(CodeLmConfig(hidden_size=32, num_hidden_layers=2, head_dim=8, intermediate_size=48)).eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, 0.0 if parameter.ndim > 1 else 1.0, 0.5)
    tokenizer = load_tokenizer(PATTERNS_MODEL)
    made = complete_causally(network, tokenizer, 12, "def f(")
    ids = tokenizer.encode("def f(")
    while len(ids) < 18:
        positions = torch.arange(len(ids))
        logits = network(torch.tensor([ids]), positions, block_mask(positions, positions, 1))[0][0, -1]
        logits[tokenizer.mask_id] = -torch.inf
        ids.append(int(logits.argmax()))
        if ids[-1] == tokenizer.eos_id:
            break
    assert made.tokens == made.forwards <= 12
    assert made.text == tokenizer.decode(ids)


def test_networks_are_evaluated(tmp_path: Path) -> None:
    """With a network of patterns in the place of both; the figures of the real ones are in the card."""
    out = tmp_path / "figures.json"
    evaluate_main(PATTERNS_MODEL, PATTERNS_MODEL, PATTERNS_MODEL, count=8, tokens=20, batches=1, json_file=out)
    figures = json.loads(out.read_text())
    assert set(figures) == {"bits_per_character", "patterns", "patterns not learned from", "python"}
    assert set(figures["python"]) == {*figures["patterns"], "autoregressive"}
    assert figures["python"]["autoregressive"]["tokens_per_forward"] == 1
    assert figures["bits_per_character"]["patterns (at most)"] < 1
    assert figures["bits_per_character"]["python (at most)"] > 2


def test_the_demo_edits_what_it_completed(tmp_path: Path) -> None:
    demo_main(tmp_path, PATTERNS_MODEL, "class WidthOwner:\n", "Owner", "Title", tokens=240, repeats=1)
    data = json.loads((tmp_path / "texts.json").read_text())
    assert data["texts"]["exact"].startswith("class WidthTitle:\n")
    base, frozen = data["texts"]["base"], data["texts"]["frozen"]
    assert frozen != base
    assert frozen[:30] == base[:30]
    assert len([name for name in data["texts"] if name.startswith("frozen, candidate")]) == 8
    assert data["texts"]["frozen, candidate 1"] == frozen
    ratios = {row["name"]: row["ratio"] for row in data["rows"]}
    assert ratios["make it again"] == 1
    assert len(ratios) == 6
    assert (tmp_path / "texts.svg").read_text().startswith("<svg")
    assert (tmp_path / "base.text" / "text_run.json").is_file()
