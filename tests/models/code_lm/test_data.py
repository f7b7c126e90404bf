"""What the language model learns from."""

from __future__ import annotations

import ast

import torch

from retouch.models.code_lm import Corpus, held_out_patterns, pattern_text, stripped, training_patterns, unseen_patterns
from retouch.models.code_lm._symbols import learned_symbols
from retouch.tokens import code_characters


def test_patterns_are_drawn_from_seeds() -> None:
    assert pattern_text(5) == pattern_text(5)
    texts = list(training_patterns(40))
    assert len(set(texts)) > 30
    assert not set(texts) & set(held_out_patterns(40)) - {text for text in texts if " + " in text}


def test_unseen_patterns_are_logs() -> None:
    """Every class and every table of the others is among the texts that are learned from."""
    unseen = unseen_patterns(60)
    assert 10 < len(unseen) < 30
    assert all("INFO" in text for text in unseen)
    assert set(unseen) < set(held_out_patterns(60))


def test_patterns_keep_their_promises() -> None:
    for text in training_patterns(60):
        if text.startswith("class"):
            ast.parse(text)
        elif " + " in text:
            for line in text.splitlines():
                left, _, right = line.partition(" = ")
                assert sum(map(int, left.split(" + "))) == int(right)
        else:
            assert text.count("INFO") == 8


def test_comments_and_long_strings_are_stripped() -> None:
    source = 'x = 1  # one\n"""Two\nlines."""\n\ndef f():\n\treturn "#"\n# last\n'
    assert stripped(source) == 'x = 1\ndef f():\n    return "#"\n'
    assert stripped("def (") == "" or stripped("'''open") == ""


def test_windows_come_from_the_texts() -> None:
    tokenizer = code_characters()
    corpus = Corpus.of(["abc\n", "de\n"], tokenizer)
    assert corpus.characters == 9
    whole = [*tokenizer.encode("abc\n"), tokenizer.eos_id, *tokenizer.encode("de\n"), tokenizer.eos_id]
    windows = corpus.windows(20, 4, torch.Generator().manual_seed(0))
    assert all(any(whole[at : at + 4] == window for at in range(6)) for window in windows.tolist())
    assert corpus.shares().argmax() in (tokenizer.eos_id, tokenizer.encode("\n")[0])


def test_windows_of_whole_texts_begin_with_them() -> None:
    tokenizer = code_characters()
    corpus = Corpus.of(["abc\n", "defg\n", "h\n"], tokenizer, whole=True)
    windows = corpus.windows(20, 4, torch.Generator().manual_seed(0)).tolist()
    assert {tokenizer.decode(window) for window in windows} == {"abc\n", "defg"}


def test_learned_symbols_are_frequent_runs_within_pieces() -> None:
    text = "def first(self):\n        return self.one\n" * 20
    tokenizer = learned_symbols([text], 24)
    learned = tokenizer.symbols[len(code_characters().symbols) :]
    assert {"        ", "self", "):\n", " self"} & set(learned) >= {"        ", "self", "):\n"}
    # A line feed is not joined with what comes behind it.
    assert not any("\n" in symbol[:-1] for symbol in learned)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode(text)) < 0.5 * len(code_characters().encode(text))
    assert learned_symbols([text], 24).symbols == tokenizer.symbols
