"""Text as token ids: what a tokenizer has to offer, and one of characters. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # What a text model needs
    "Tokenizer",
    "check_tokens",
    # Characters
    "CharacterTokenizer",
    "code_characters",
]

from retouch.tokens._characters import CharacterTokenizer, code_characters
from retouch.tokens._tokenizer import Tokenizer, check_tokens
