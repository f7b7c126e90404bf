"""Finished texts with their keys and values, under their ids and on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from retouch.errors import RunError
from retouch.states import StateStore
from retouch.text._generation import Generation
from retouch.text._model import KeysValues, TextModel, Tokens
from retouch.text._run_files import check_record, read_text_record, read_text_run, write_text_run
from retouch.text._together import Recorded
from retouch.text._wording import Wording

_KEYS_VALUES = "keys and values"


class KeptTexts:
    """The texts that a session made; what makes them is in :class:`TextSession`.

    Attributes:
        model: the model.
    """

    def __init__(self, model: TextModel, wording: Wording, store: StateStore) -> None:
        self.model = model
        self._wording = wording
        self._store = store
        self._generations: dict[str, Generation] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the texts that this session made, and their keys and values."""
        for run in list(self._generations):
            self.drop(run)

    def runs(self) -> tuple[str, ...]:
        """The ids of the texts that can be edited, the oldest first."""
        kept = set(self._store.ids(self.model.bundle.fingerprint))
        return tuple(run for run in self._generations if run in kept)

    def drop(self, run: Generation | str) -> None:
        """Forget a text, and its keys and values."""
        name = run if isinstance(run, str) else run.id
        self._generations.pop(name, None)
        self._store.drop(name)

    def text_of(self, tokens: Tokens) -> str:
        """The text of tokens; empty without a tokenizer."""
        return self._wording.text(tokens)

    def keep(self, made: Generation, states: KeysValues) -> None:
        """Keep a text and the keys and values of its tokens, which nobody changes any more.

        An answer that ends early leaves rows behind it, which are let go.

        Raises:
            RunError: they do not fit into the store.
        """
        rows = len(made.padded)
        cut = {name: np.ascontiguousarray(array[:, :, :rows]) for name, array in states.items()}
        values = {name: self.model.engine.value(array) for name, array in cut.items()}
        self._store.put(made.id, self.model.bundle.fingerprint, {_KEYS_VALUES: values})
        self._generations[made.id] = made

    def kept(self, run: Generation | str) -> KeysValues:
        """The keys and values of a text (read-only), by the names of the graph's inputs.

        Raises:
            RunError: see :meth:`edit`.
        """
        return self._kept(self._known(run))

    def save(self, run: Generation | str, path: str | Path) -> None:
        """Writes a text and its keys and values into a directory, in one step, for :meth:`load`.

        Raises:
            RunError: see :meth:`edit`.
            RunFileError: it cannot be written, or something else is there.
        """
        made, bundle = self._known(run), self.model.bundle
        write_text_run(Path(path), made, self._kept(made), bundle.path, bundle.fingerprint)

    def load(self, path: str | Path) -> Generation:
        """The text in a directory, kept like one that was made here; edits of it give what edits before gave.

        Raises:
            RunError: it was made with another bundle.
            RunFileError: the directory is none of a text, or was changed.
        """
        folder, spec = Path(path), self.model.spec
        record = read_text_record(folder)
        if record.bundle_fingerprint != self.model.bundle.fingerprint:
            raise RunError(
                f"Expected a text of this bundle, but {path} was made with another one ({record.bundle}). "
                "Open that one."
            )
        check_record(folder, record, spec)
        text = self.text_of(np.array(record.tokens[: record.length], np.int64))
        made, states = read_text_run(folder, record, spec, text)
        self.keep(made, states)
        return made

    def _keep_all(self, recorded: Sequence[Recorded]) -> list[Generation]:
        for made, states in recorded:
            if states is not None:
                self.keep(made, states)
        return [made for made, _ in recorded]

    def _kept(self, base: Generation) -> KeysValues:
        values = self._store.get(base.id, self.model.bundle.fingerprint, _KEYS_VALUES)
        return {name: value.numpy() for name, value in values.items()}

    def _known(self, run: Generation | str) -> Generation:
        name = run if isinstance(run, str) else run.id
        if name not in self._generations:
            raise RunError(
                f"Expected the id of a text that this session keeps, but {name!r} was not recorded, was dropped, or is "
                f"another session's. Kept are: {', '.join(self.runs()) or 'none'}."
            )
        return self._generations[name]
