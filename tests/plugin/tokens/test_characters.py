"""A tokenizer of characters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retouch.errors import FeedError
from retouch.tokens import CharacterTokenizer, check_tokens, code_characters

CODE = code_characters()


@given(st.text(st.sampled_from("\n abc(){}~"), max_size=60))
def test_texts_survive(text: str) -> None:
    ids = CODE.encode(text)
    assert CODE.decode(ids) == text
    assert not {CODE.mask_id, CODE.eos_id} & set(ids)


def test_four_spaces_are_one_token() -> None:
    assert CODE.pieces(CODE.encode("      x")) == ["    ", " ", " ", "x"]


def test_special_tokens_show_in_no_text() -> None:
    assert CODE.decode([CODE.eos_id]) == ""
    assert CODE.pieces([CODE.mask_id]) != [""]
    assert CODE.vocabulary == len(CODE.symbols) + 2


@pytest.mark.parametrize("text", ["a\tb", "naïve", "░"])
def test_other_characters_are_refused(text: str) -> None:
    with pytest.raises(FeedError, match="at position"):
        CODE.encode(text)


@pytest.mark.parametrize("symbols", [(), ("a", "a"), ("a", "")])
def test_symbols_have_to_differ(symbols: tuple[str, ...]) -> None:
    with pytest.raises(FeedError, match="differ"):
        CharacterTokenizer(symbols)


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        ([[1, 2]], "flat list"),
        ([1.5], "flat list"),
        ([0, 10], "from 0 to 9, got 10 at position 1"),
        ([-1], "from 0 to 9"),
        ([3, 8], "mask token"),
    ],
)
def test_ids_are_checked(ids: list[object], match: str) -> None:
    with pytest.raises(FeedError, match=match):
        check_tokens(ids, 10, 8, "the prompt")


def test_good_ids_are_copied() -> None:
    given_ids = np.array([1, 2], np.int32)
    checked = check_tokens(given_ids, 10, 8, "the prompt")
    assert checked.dtype == np.int64
    assert checked.tolist() == [1, 2]
    assert check_tokens([], 10, 8, "the prompt").shape == (0,)
