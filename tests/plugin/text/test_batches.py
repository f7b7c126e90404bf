"""Several texts at once are what each is alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from retouch.bundle import TextBundle
from retouch.errors import FeedError, NonFiniteError, RegionError, SamplingError
from retouch.text import Candidate, EditMode, EosRule, Generation, Masks, SamplerOptions, TextSession, Window, preset

_PROMPTS = ("def f():\n", "a", "class Wide:\n    x = 1\n    y = 2\n")

KeysValues = Mapping[str, np.ndarray]


@pytest.fixture(scope="module")
def session(random_bundle: TextBundle) -> Iterator[TextSession]:
    with TextSession(random_bundle, threads=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def base(session: TextSession) -> Generation:
    options = SamplerOptions(threshold=0.3, edit_threshold=0.5, eos=EosRule.IGNORED)
    return session.generate("def f():\n", 60, options=options)


@pytest.mark.parametrize(
    "options",
    [
        preset("quality"),
        SamplerOptions(threshold=0.2, edit_threshold=0.0),
        SamplerOptions(threshold=0.2, edit_threshold=None, temperature=1.0, eos=EosRule.IGNORED),
    ],
    ids=["quality", "free edits", "drawn"],
)
def test_batches_give_what_prompts_give_alone(options: SamplerOptions, session: TextSession) -> None:
    """Prompts of other lengths, other blocks, other numbers of steps; a seed each."""
    made = session.generate_many(_PROMPTS, 50, options=options, seeds=[1, 2, 3])
    assert [one.seed for one in made] == [1, 2, 3]
    for prompt, seed, one in zip(_PROMPTS, (1, 2, 3), made, strict=True):
        alone = session.generate(prompt, 50, options=options, seed=seed)
        assert one.tokens.tolist() == alone.tokens.tolist()
        assert (one.report.forwards, one.report.edited) == (alone.report.forwards, alone.report.edited)
        for name, states in session.kept(alone).items():
            np.testing.assert_allclose(session.kept(one)[name], states, rtol=1e-3, atol=1e-4)


def test_candidates_give_what_edits_give_alone(session: TextSession, base: Generation) -> None:
    candidates = [
        Candidate([(20, 28)], seed=1, options=SamplerOptions(temperature=1.0, edit_threshold=None)),
        Candidate([(20, 28)], mode=EditMode.FROZEN),
        Candidate([(12, 14)], Masks(9), mode=EditMode.VERIFY),
        Candidate(characters=[(0, 3)], replacement="class"),
        Candidate([(40, 44), (60, 62)], replacements=[None, "ab"], mode=EditMode.FROZEN),
    ]
    made = session.edit_many(base, candidates)
    for candidate, one in zip(candidates, made, strict=True):
        alone = session.edit(
            base,
            candidate.spans,
            candidate.replacement,
            replacements=candidate.replacements,
            characters=candidate.characters,
            mode=candidate.mode,
            options=candidate.options,
            seed=candidate.seed,
        )
        assert one.base is base
        assert one.tokens.tolist() == alone.tokens.tolist()
        assert (one.report.forwards, one.report.kept) == (alone.report.forwards, alone.report.kept)
        for name, states in session.kept(alone).items():
            np.testing.assert_allclose(session.kept(one)[name], states, rtol=1e-3, atol=1e-4)


def test_reads_that_are_due_are_made_together(session: TextSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight texts take about as many runs as the one that takes the most, and those that ended are left out."""
    binds: list[int] = []
    bind = session.model.decode.bind
    monkeypatch.setattr(
        session.model.decode, "bind", lambda arrays: binds.append(len(arrays["keys.0"])) or bind(arrays)
    )
    options = SamplerOptions(threshold=0.2, edit_threshold=None, temperature=1.0)
    made = session.generate_many(["a"] * 8, 60, options=options, seeds=range(8), record=False)
    assert len({one.text for one in made}) > 1
    assert binds[0] == 8
    assert binds[-1] < 8  # an end ended some earlier
    assert made[0].id not in session.runs()


def test_one_that_fails_ends_the_batch(session: TextSession, base: Generation) -> None:
    before = session.runs()
    with pytest.raises(RegionError, match="within the text"):
        session.edit_many(base, [Candidate([(1, 3)]), Candidate([(1, 900)])])
    with pytest.raises(FeedError, match="at least one token"):
        session.generate_many(["a", ""], 10)
    with pytest.raises(SamplingError, match="one seed for each"):
        session.generate_many(["a", "b"], 10, seeds=[1])
    with pytest.raises(SamplingError, match=r"Window\.ALL"):
        session.generate_many(["a"], 10, options=SamplerOptions(window=Window.ALL))
    assert session.generate_many([], 10) == []
    assert session.runs() == before


def test_a_run_that_fails_is_told_to_every_text(session: TextSession, monkeypatch: pytest.MonkeyPatch) -> None:
    bind = session.model.decode.bind

    class Broken:
        def __init__(self, arrays: KeysValues) -> None:
            self._real = bind(arrays)

        def run(self, feeds: KeysValues) -> KeysValues:
            return {"logits": np.full_like(self._real.run(feeds)["logits"], np.nan)}

    monkeypatch.setattr(session.model.decode, "bind", Broken)
    with pytest.raises(NonFiniteError):
        session.generate_many(["a", "bc"], 10)
