"""Edits by span against reading the edited text from its start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from retouch.bundle import TextBundle
from retouch.text import PRESETS, EditMode, EosRule, Generation, Masks, SamplerOptions, TextSession

OPTIONS = replace(PRESETS["quality"], eos=EosRule.IGNORED)
PROMPT, LENGTH, BLOCK = "class A", 70, 8


@pytest.fixture(scope="module")
def session(random_bundle: TextBundle) -> Iterator[TextSession]:
    with TextSession(random_bundle, threads=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def base(session: TextSession) -> Generation:
    return session.generate(PROMPT, LENGTH, options=OPTIONS)


def _read_whole(session: TextSession, made: Generation) -> dict[str, np.ndarray]:
    """Keys and values of a text read at once."""
    context = session.model.context(len(made.padded))
    context.read(made.padded, 0)
    return dict(context.keys_values())


def _assert_exact(session: TextSession, made: Generation, rows: slice = slice(None)) -> None:
    whole = _read_whole(session, made)
    for name, array in session.kept(made).items():
        np.testing.assert_allclose(array[:, :, rows], whole[name][:, :, rows], atol=1e-4)


def test_a_generation_keeps_exact_keys_and_values(session: TextSession, base: Generation) -> None:
    _assert_exact(session, base)
    assert len(base.tokens) == base.prompt_tokens + LENGTH
    assert base.text.startswith(PROMPT)


@pytest.mark.parametrize("span", [(10, 13), (20, 36), (0, 5), (70, 77), (15, 17)])
def test_exact_edits_are_what_sampling_in_place_gives(
    span: tuple[int, int], session: TextSession, base: Generation
) -> None:
    """The same loop, without a cache, over the base's text with the span masked."""
    made = session.edit(base, [span], mode=EditMode.EXACT)
    text = base.padded.copy()
    text[span[0] : span[1]] = session.model.spec.mask_id
    outside = np.ones(len(text), bool)
    outside[span[0] : span[1]] = False
    assert (made.padded[outside] == base.padded[outside]).all()
    assert made.tokens.tolist() == _settled_in_place(session, text, OPTIONS)[: len(base.tokens)]
    _assert_exact(session, made)


def _settled_in_place(session: TextSession, text: np.ndarray, options: SamplerOptions) -> list[int]:
    """Blocks with masks filled one after the other, every read a read of the whole text so far."""
    mask_id = session.model.spec.mask_id
    text = text.copy()
    for low in range(0, len(text), BLOCK):
        high, free, post = low + BLOCK, text[low : low + BLOCK] == mask_id, 0
        while free.any():
            old = text[low:high].copy()
            masked = old == mask_id
            post += not masked.any()
            if post > options.max_post_steps:
                break
            logits = session.model.uncached(high).read(text[:high], 0)[low:].copy()
            logits[:, mask_id] = -np.inf
            shares = np.exp(logits - logits.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            token, confidence = shares.argmax(-1), shares.max(-1)
            filled = masked & (confidence > options.threshold)
            if masked.any() and not filled.any():
                filled[np.where(masked, confidence, -1).argmax()] = True
            edited = ~masked & free & (confidence > options.edit_threshold) & (token != old)
            if not (filled | edited).any():
                break
            text[low:high] = np.where(filled | edited, token, old)
    return [int(token) for token in text]


def test_frozen_edits_read_the_span_alone(session: TextSession, base: Generation) -> None:
    made = session.edit(base, [(34, 38)], mode=EditMode.FROZEN)
    touched, kept = slice(32, 40), session.kept(made)
    _assert_exact(session, made, slice(0, 40))
    for name, array in session.kept(base).items():
        np.testing.assert_array_equal(kept[name][:, :, 40:], array[:, :, 40:])
        np.testing.assert_array_equal(kept[name][:, :, :32], array[:, :, :32])
    assert (np.delete(made.padded, range(34, 38)) == np.delete(base.padded, range(34, 38))).all()
    report = made.report
    assert (report.settled, report.refreshed, report.kept) == (1, 0, len(base.padded) // BLOCK - 1)
    assert report.recomputed == report.forwards * (touched.stop - touched.start)


def test_modes_agree_on_the_first_span_and_differ_in_cost(session: TextSession, base: Generation) -> None:
    made = {mode: session.edit(base, [(20, 36)], mode=mode, disagreement=1.0) for mode in EditMode}
    assert made[EditMode.EXACT].tokens.tolist() == made[EditMode.FROZEN].tokens.tolist()
    # Nothing is above a confidence of 1, so nothing is doubted.
    assert made[EditMode.VERIFY].tokens.tolist() == made[EditMode.EXACT].tokens.tolist()
    assert made[EditMode.FROZEN].report.recomputed < made[EditMode.EXACT].report.recomputed
    _assert_exact(session, made[EditMode.VERIFY])


def test_verified_edits_end_where_the_model_agrees(session: TextSession, base: Generation) -> None:
    """What is left unchanged by another round of verification was agreed to."""
    made = session.edit(base, [(10, 14)], mode=EditMode.VERIFY, disagreement=0.6)
    assert made.report.disagreed > 0
    later = np.arange(len(base.tokens)) >= 16
    assert (made.tokens != base.tokens)[later].any()
    assert made.tokens[:10].tolist() == base.tokens[:10].tolist()
    _assert_exact(session, made)


@pytest.mark.parametrize("mode", [EditMode.EXACT, EditMode.FROZEN])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_texts_grow_and_shrink(count: int, mode: EditMode, session: TextSession, base: Generation) -> None:
    made = session.edit(base, [(20, 24)], Masks(count), mode=mode)
    assert len(made.tokens) == len(base.tokens) - 4 + count
    assert made.tokens[:20].tolist() == base.tokens[:20].tolist()
    assert made.tokens[20 + count :].tolist() == base.tokens[24:].tolist()
    assert session.model.spec.mask_id not in made.padded
    assert made.report.mode == "exact"
    assert ("moved" in made.report.reason) == (mode is EditMode.FROZEN)
    _assert_exact(session, made)


def test_cutting_off_whole_blocks_reads_nothing(session: TextSession, base: Generation) -> None:
    made = session.edit(base, [(40, len(base.tokens))], Masks(0))
    assert made.tokens.tolist() == base.tokens[:40].tolist()
    assert (made.report.forwards, made.report.kept) == (0, 5)
    _assert_exact(session, made)
    ragged = session.edit(base, [(43, len(base.tokens))], Masks(0))
    assert (ragged.report.forwards, ragged.report.refreshed) == (1, 1)
    _assert_exact(session, ragged)


def test_given_tokens_come_in_as_they_are(session: TextSession, base: Generation) -> None:
    made = session.edit(base, [(16, 19)], "xyz", mode=EditMode.EXACT)
    assert made.text == base.text[: _place(base, session, 16)] + "xyz" + base.text[_place(base, session, 19) :]
    # One read for the block and all that follow.
    assert (made.report.forwards, made.report.settled) == (1, 0)
    _assert_exact(session, made)
    same = session.edit(base, [(16, 19)], base.tokens[16:19].tolist())
    assert same.report.changed == 0


def _place(made: Generation, session: TextSession, token: int) -> int:
    return len(session.text_of(made.tokens[:token]))


def test_several_spans_and_edits_of_edits(session: TextSession, base: Generation) -> None:
    made = session.edit(base, [(40, 44), (10, 12)], replacements=["!?", None], mode=EditMode.EXACT)
    assert made.text.count("!?") >= 1
    assert len(made.tokens) == len(base.tokens) - 2
    again = session.edit(made, [(60, 64)], mode=EditMode.EXACT)
    assert again.base is made
    assert made.base is base
    _assert_exact(session, again)
    straight = session.edit(base, [(10, 12), (40, 44)], replacements=[None, "!?"], mode=EditMode.EXACT)
    assert straight.tokens.tolist() == made.tokens.tolist()


def test_the_base_stays_as_it_was(session: TextSession, base: Generation) -> None:
    before = {name: array.copy() for name, array in session.kept(base).items()}
    tokens = base.tokens.tolist()
    session.edit(base, [(3, 60)], mode=EditMode.VERIFY, disagreement=0.2)
    assert base.tokens.tolist() == tokens
    for name, array in session.kept(base).items():
        np.testing.assert_array_equal(array, before[name])


def test_edits_are_drawn_from_seeds(session: TextSession, base: Generation) -> None:
    drawn = replace(OPTIONS, temperature=1.0)
    texts = [session.edit(base, [(20, 36)], options=drawn, seed=seed).tokens.tolist() for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_a_trained_model_fills_in_what_stands_around(patterns_bundle: TextBundle) -> None:
    with TextSession(patterns_bundle, threads=1) as opened:
        base = opened.generate("3 + 1 = 4\n", 60, options="quality")
        line = base.text.splitlines()[3]
        place = base.text.index(line) + len(line) - 1
        made = opened.edit(base, characters=[(place, place + 1)], mode=EditMode.FROZEN)
        assert made.text == base.text
        wrong = opened.edit(base, characters=[(place, place + 1)], replacement="~")
        right = opened.edit(wrong, characters=[(place, place + 1)])
        assert right.text == base.text
