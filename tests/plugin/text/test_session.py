"""What a session takes, keeps and refuses."""

from __future__ import annotations

import gc
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from retouch.bundle import DecoderSpec, TextBundle
from retouch.errors import FeedError, RegionError, RunError, RunFileError, SamplingError
from retouch.states import StateStore
from retouch.text import PRESETS, Masks, SamplerOptions, Step, TextSession, Window
from retouch.tokens import CharacterTokenizer, code_characters
from tests.full_disk import files_limited_to


@pytest.fixture(scope="module")
def session(random_bundle: TextBundle) -> Iterator[TextSession]:
    with TextSession(random_bundle, threads=1) as opened:
        yield opened


def test_blocks_come_as_they_are_finished(session: TextSession) -> None:
    told: list[Step] = []
    stream = session.stream("width = ", 30, callback=told.append)
    with pytest.raises(SamplingError, match="Take its blocks first"):
        _ = stream.generation
    seen: list[int] = []
    for block in stream:
        assert block.start == told[-1].start
        seen += block.new.tolist()
    made = stream.generation
    assert made.answer.tolist() == seen
    assert made.tokens.tolist() == session.generate("width = ", 30).tokens.tolist()
    assert made.report.tokens == len(seen)
    assert made.report.prefilled == len(session.tokens_of("width = ")) // 8 * 8
    assert made.report.filled >= len(seen)


def test_an_interrupted_text_leaves_nothing(session: TextSession) -> None:
    before = session.runs()

    def interrupt(step: Step) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.generate("width", 30, callback=interrupt)
    assert session.runs() == before


def test_ids_and_texts_are_alike(session: TextSession) -> None:
    ids = code_characters().encode("width")
    assert session.generate(ids, 9).tokens.tolist() == session.generate("width", 9).tokens.tolist()


def test_runs_are_kept_until_they_are_dropped(random_bundle: TextBundle) -> None:
    store = StateStore()
    with TextSession(random_bundle, threads=1, store=store) as opened:
        first = opened.generate("a", 9)
        second = opened.generate("b", 9)
        unrecorded = opened.generate("c", 9, record=False)
        assert opened.runs() == (first.id, second.id)
        opened.drop(first)
        for gone in (first, unrecorded.id, "nonsense"):
            with pytest.raises(RunError, match=f"Kept are: {second.id}"):
                opened.edit(gone, [(0, 1)])
    assert store.ids() == ()


def test_a_small_store_evicts_the_oldest(random_bundle: TextBundle) -> None:
    with TextSession(random_bundle, threads=1) as opened:
        size = sum(array.nbytes for array in opened.kept(opened.generate("a", 9)).values())
    with TextSession(random_bundle, threads=1, store=StateStore(budget=2 * size)) as opened:
        runs = [opened.generate(prompt, 9) for prompt in "abc"]
        gc.collect()
        assert opened.runs() == (runs[1].id, runs[2].id)
        with pytest.raises(RunError, match="evicted"):
            opened.edit(runs[0], [(0, 1)])


def test_prompts_are_checked(session: TextSession) -> None:
    spec = session.model.spec
    for prompt, match in [
        ("", "at least one token"),
        ([], "at least one token"),
        ([1, spec.mask_id], "without the mask token"),
        ([1, 4000], "from 0 to"),
        ("tab\t", "four spaces"),
        ("a \N{MEDIUM SHADE}", "characters that the tokenizer has"),  # what a mask is shown as
    ]:
        with pytest.raises(FeedError, match=match):
            session.generate(prompt, 9)
    for length in (0, -1, 2.5, True):
        with pytest.raises(SamplingError, match="number of new tokens"):
            session.generate("a", length)
    with pytest.raises(SamplingError, match="at most 256 tokens"):
        session.generate("a" * 250, 9)
    with pytest.raises(SamplingError, match="cache=False"):
        session.generate("a", 9, options=SamplerOptions(window=Window.ALL))
    with pytest.raises(SamplingError, match="seed"):
        session.generate("a", 9, seed=-1)
    with pytest.raises(SamplingError, match="presets"):
        session.generate("a", 9, options="fastest")


class _Marking:
    """A tokenizer that has a spelling for the mask, as many have."""

    def __init__(self, spec: DecoderSpec) -> None:
        self.vocabulary, self.mask_id, self.eos_id = spec.vocabulary, spec.mask_id, spec.eos_id

    def encode(self, text: str) -> list[int]:
        return [self.mask_id if part == "<|mask|>" else 1 for part in text.split()]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return ["<|mask|>" if token == self.mask_id else "x " for token in ids]


def test_a_mask_that_is_spelled_out_is_no_mask(random_bundle: TextBundle) -> None:
    """In a prompt, or in what an edit puts in, it would be chosen by the model instead of read by it."""
    with TextSession(random_bundle) as opened:
        assert opened.tokens_of("<|mask|>").max() < opened.model.spec.eos_id  # characters like any others
    with TextSession(random_bundle, tokenizer=_Marking(random_bundle.manifest.model)) as opened:
        with pytest.raises(FeedError, match="without the mask token"):
            opened.generate("a <|mask|> b", 9)
        base = opened.generate("a b", 9)
        with pytest.raises(FeedError, match="without the mask token"):
            opened.edit(base, [(0, 1)], "<|mask|>")


def test_other_tokenizers_are_refused(random_bundle: TextBundle) -> None:
    with pytest.raises(FeedError, match="vocabulary, mask and end"):
        TextSession(random_bundle, tokenizer=CharacterTokenizer("abc"))


def test_contexts_have_an_end(session: TextSession) -> None:
    for context in (session.model.context(8), session.model.uncached(8)):
        with pytest.raises(FeedError, match="at most 8 tokens"):
            context.read(np.zeros(9, np.int64), 0)


def test_spans_are_checked(session: TextSession) -> None:
    base = session.generate("width", 27)
    for spans, match in [
        ([], "at least one span"),
        ([(5, 99)], "within the text's 32 tokens"),
        ([(-1, 4)], "within"),
        ([(4, 2)], "within"),
        ([(1.5, 4)], "within"),
        ([(3, 3)], "select or to put in"),
        ([(1, 5), (4, 8)], "do not overlap"),
    ]:
        with pytest.raises(RegionError, match=match):
            session.edit(base, spans)
    for kept, match in [
        ({"spans": [(0, 1)], "characters": [(0, 1)]}, "either spans"),
        ({}, "either spans"),
        ({"spans": [(0, 1), (3, 4)], "replacement": "x"}, "single replacement"),
        ({"spans": [(0, 1), (3, 4)], "replacements": ["x"]}, "one replacement for each of 2"),
        ({"spans": [(0, 1)], "replacement": Masks(-1)}, "at least 0"),
        ({"spans": [(0, 32)], "replacement": Masks(0)}, "1 to 256 tokens"),
        ({"spans": [(0, 1)], "replacement": Masks(250)}, "1 to 256 tokens"),
        ({"characters": [(0, 999)]}, "characters"),
    ]:
        with pytest.raises(RegionError, match=match):
            session.edit(base, **kept)
    with pytest.raises(FeedError, match="mask token"):
        session.edit(base, [(0, 1)], [session.model.spec.mask_id])
    with pytest.raises(SamplingError, match="disagreement"):
        session.edit(base, [(0, 1)], disagreement=2)
    with pytest.raises(SamplingError, match="Window.BLOCKS"):
        session.edit(base, [(0, 1)], options=SamplerOptions(window=Window.ALL))


def test_places_in_the_text_become_tokens(session: TextSession) -> None:
    base = session.generate("def f():\n        a\n", 13, options=PRESETS["low-confidence"])
    text = base.text
    assert session.edit(base, characters=[(4, 5)], replacement="name").text == text[:4] + "name" + text[5:]
    # Two of four spaces, which are one token.
    assert session.edit(base, characters=[(11, 13)], replacement="--").text == text[:11] + "--" + text[13:]
    assert session.edit(base, characters=[(11, 11)], replacement="x").text == text[:11] + "x" + text[11:]
    assert session.edit(base, characters=[(9, 9)], replacement="x").text == text[:9] + "x" + text[9:]
    assert session.edit(base, characters=[(0, 3), (4, 5)], replacements=["class", "g"]).text == ("class g" + text[5:])
    with pytest.raises(RegionError, match="inside of one"):
        session.edit(base, characters=[(11, 11)], replacement=Masks(2))
    masked = session.edit(base, characters=[(4, 5)])
    assert len(masked.tokens) == len(base.tokens)
    assert np.flatnonzero(masked.tokens != base.tokens).tolist() in ([], [4])


def test_without_a_tokenizer_ids_are_asked_for(random_bundle: TextBundle) -> None:
    with TextSession(random_bundle, threads=1) as opened:
        opened._wording.tokenizer = None
        with pytest.raises(FeedError, match="without a tokenizer"):
            opened.generate("a", 9)
        made = opened.generate([1, 2], 9)
        assert made.text == ""
        with pytest.raises(FeedError, match="without a tokenizer"):
            opened.edit(made, characters=[(0, 1)])


def test_texts_survive_the_disk(random_bundle: TextBundle, tmp_path: Path) -> None:
    with TextSession(random_bundle, threads=1) as opened:
        base = opened.generate("width", 30, options=PRESETS["speed"])
        edited = opened.edit(base, [(12, 15)])
        opened.save(base, tmp_path / "base.text")
        opened.save(edited, tmp_path / "edited.text")
    with TextSession(random_bundle, threads=1) as opened:
        loaded = opened.load(tmp_path / "base.text")
        assert (loaded.text, loaded.options, loaded.report) == (base.text, base.options, base.report)
        assert opened.edit(loaded, [(12, 15)]).tokens.tolist() == edited.tokens.tolist()
        assert opened.load(tmp_path / "edited.text").report == edited.report


def test_texts_that_end_early_keep_the_rows_that_they_have(patterns_bundle: TextBundle, tmp_path: Path) -> None:
    with TextSession(patterns_bundle, threads=1) as opened:
        base = opened.generate("class WidthOwner:\n", 256)
        assert len(base.padded) < 256
        assert {array.shape[2] for array in opened.kept(base).values()} == {len(base.padded)}
        edited = opened.edit(base, characters=[(6, 11)], replacement="Depth")
        assert {array.shape[2] for array in opened.kept(edited).values()} == {len(edited.padded)}
        opened.save(base, tmp_path / "base.text")
    with TextSession(patterns_bundle, threads=1) as opened:
        again = opened.edit(opened.load(tmp_path / "base.text"), characters=[(6, 11)], replacement="Depth")
        assert again.text == edited.text and "DepthOwner" in again.text


def test_texts_are_written_whole_and_for_others_to_read(random_bundle: TextBundle, tmp_path: Path) -> None:
    folder = tmp_path / "a.text"
    with TextSession(random_bundle, threads=1) as opened:
        made = opened.generate("width", 9)
        with files_limited_to(4096), pytest.raises(RunFileError, match="Nothing was changed"):
            opened.save(made, folder)
        assert list(tmp_path.iterdir()) == []
        before = os.umask(0o027)
        try:
            opened.save(made, folder)
        finally:
            os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o640}


def test_changed_texts_are_refused(random_bundle: TextBundle, patterns_bundle: TextBundle, tmp_path: Path) -> None:
    folder = tmp_path / "a.text"
    with TextSession(random_bundle, threads=1) as opened:
        opened.save(opened.generate("width", 9), folder)
        with pytest.raises(RunFileError, match="no text_run.json"):
            opened.load(tmp_path)
        with TextSession(patterns_bundle) as other, pytest.raises(RunError, match="another one"):
            other.load(folder)
        record = (folder / "text_run.json").read_text()
        for old, new, match in [
            ('"schema_version": 2', '"schema_version": 1', "schema version"),
            ('"length"', '"breadth"', "breadth"),
            ('"eos": "finished block"', '"eos": "never"', "never"),
            ('"threshold": 0.7', '"threshold": 7', "from 0 to 1"),
            ('"tokens": [\n  ', '"tokens": [\n  9', "tokens of the model, got 9"),
            ('"length": 14', '"length": 140', "a text within them, got 16, 5 and 140"),
            ("{", "", "readable JSON"),
        ]:
            (folder / "text_run.json").write_text(record.replace(old, new, 1))
            with pytest.raises(RunFileError, match=match):
                opened.load(folder)
        (folder / "text_run.json").write_text(record)
        with (folder / "keys_values.safetensors").open("ab") as file:
            file.write(b"x")
        with pytest.raises(RunFileError, match="bytes, got"):
            opened.load(folder)
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "file").touch()
        with pytest.raises(RunFileError, match="not replaced"):
            opened.save(opened.generate("width", 9), tmp_path / "mine")
