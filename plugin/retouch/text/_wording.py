"""Prompts, replacements and spans, given as texts or as token ids."""

from __future__ import annotations

from collections.abc import Sequence

from retouch.bundle import DecoderSpec
from retouch.errors import FeedError, RegionError
from retouch.text._generation import Generation
from retouch.text._model import Tokens
from retouch.text._places import Places
from retouch.text._spans import Patch, Replacement, patches, replacement_tokens
from retouch.tokens import Tokenizer, check_tokens

Prompt = str | Sequence[int]
Pairs = Sequence[tuple[int, int]]


class Wording:
    """Turns what a caller gives into tokens.

    Attributes:
        tokenizer: the tokenizer; ``None`` if there is none.
    """

    def __init__(self, spec: DecoderSpec, tokenizer: Tokenizer | None) -> None:
        self.tokenizer = tokenizer
        self._spec = spec
        if tokenizer is not None:
            _check_tokenizer(tokenizer, spec)

    def tokens(self, text: Prompt, what: str) -> Tokens:
        """The tokens of a text, or ids checked; ``what`` names them in messages."""
        ids = self._tokenizer_for(what).encode(text) if isinstance(text, str) else text
        return check_tokens(ids, self._spec.vocabulary, self._spec.mask_id, what)

    def prompt(self, given: Prompt) -> Tokens:
        """The tokens of a prompt, of which there has to be one."""
        ids = self.tokens(given, "the prompt")
        if not len(ids):
            raise FeedError("Expected a prompt of at least one token, got an empty one. Give the text's first words.")
        return ids

    def text(self, tokens: Tokens) -> str:
        """The text of tokens; empty without a tokenizer."""
        return "" if self.tokenizer is None else "".join(self.tokenizer.pieces(tokens.tolist()))

    def patches(
        self,
        base: Generation,
        spans: Pairs | None,
        characters: Pairs | None,
        replacement: Replacement,
        replacements: Sequence[Replacement] | None,
    ) -> list[Patch]:
        """The patches of an edit; :meth:`TextSession.edit` says what they are made of."""
        if (spans is None) == (characters is None):
            raise RegionError("Expected either spans of tokens or characters, got both or neither. Give one of them.")
        places = spans if characters is None else characters
        assert places is not None
        given = _one_each(replacement, replacements, len(places))
        if characters is not None:
            pieces = self._tokenizer_for("places in the text").pieces(base.tokens.tolist())
            found = [Places(pieces).span(place, text) for place, text in zip(characters, given, strict=True)]
            places, given = [span for span, _ in found], [text for _, text in found]
        tokens = [self._replacement(one) for one in given]
        return patches(places, tokens, len(base.tokens), self._spec)

    def _replacement(self, given: Replacement) -> Tokens | None:
        if given is None:
            return None
        if isinstance(given, str):
            return self.tokens(given, "the replacement")
        return replacement_tokens(given, self._spec)

    def _tokenizer_for(self, what: str) -> Tokenizer:
        if self.tokenizer is None:
            raise FeedError(
                f"Expected token ids for {what}: the bundle came without a tokenizer. Give ids, or a tokenizer=..."
            )
        return self.tokenizer


def _one_each(replacement: Replacement, replacements: Sequence[Replacement] | None, count: int) -> list[Replacement]:
    if replacements is None and replacement is not None and count != 1:
        raise RegionError(f"Expected replacements=[...] with one for each of {count} spans, got a single replacement.")
    given = [replacement] * count if replacements is None else list(replacements)
    if len(given) != count or (replacements is not None and replacement is not None):
        raise RegionError(f"Expected one replacement for each of {count} spans, got {len(given)}. Give as many.")
    return given


def _check_tokenizer(tokenizer: Tokenizer, spec: DecoderSpec) -> None:
    has = (tokenizer.vocabulary, tokenizer.mask_id, tokenizer.eos_id)
    wants = (spec.vocabulary, spec.mask_id, spec.eos_id)
    if has != wants:
        raise FeedError(
            f"Expected a tokenizer with vocabulary, mask and end {wants}, as the model has, got {has}. Take the one "
            "that the model was trained with."
        )
