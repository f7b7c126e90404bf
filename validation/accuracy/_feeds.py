"""Feeds of base runs and edits: from a file, or made up."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.bundle import Bundle, Manifest
from retouch.errors import FeedError
from retouch.export.model_file import read_model
from retouch.export.verify import example_feeds

Feeds = Mapping[str, NDArray[Any]]

EDIT_PREFIX = "edit."


@dataclass(frozen=True, eq=False)
class FeedSource:
    """Where feeds come from.

    Attributes:
        base: feeds of the base run.
        conditions: other conditions than the base run's; none if they cannot be made up.
    """

    base: Feeds
    conditions: Feeds
    _graph: ir.Graph
    _editable: str
    _given: Feeds

    @classmethod
    def of(cls, bundle: Bundle, file: Path | None) -> FeedSource:
        """The feeds of a file, completed with made-up ones.

        Raises:
            FeedError: the file cannot be read, or names what is no input.
            ExportError: an array does not fit its input.
        """
        graph = read_model(bundle.file(bundle.manifest.base_file)).graph
        editable = bundle.manifest.editable.input
        given = {} if file is None else _checked(_read(file), bundle.manifest, file)
        base = example_feeds(graph, editable, 0, {n: v for n, v in given.items() if not _is_edit(n, bundle.manifest)})
        edit = {n.removeprefix(EDIT_PREFIX): v for n, v in given.items() if _is_edit(n, bundle.manifest)}
        # Conditions that belong to given feeds are not replaced by something made up: models accept few of them.
        other = example_feeds(graph, editable, 1, edit) if file is None or edit else {}
        kept = {n: v for n, v in other.items() if n != editable and (file is None or n in edit)}
        changed = {
            n: v
            for n, v in kept.items()
            if not np.array_equal(v, base[n]) and (n in edit or not _frozen(n, bundle.manifest))
        }
        return cls(base, changed, graph, editable, {**{n: base[n] for n in given if n in base}, **given})

    def content(self, seed: int) -> NDArray[Any]:
        """Another content of the editable input: the file's, else drawn like the base run's."""
        name = self._editable
        if f"{EDIT_PREFIX}{name}" in self._given:
            edit = {name: self._given[f"{EDIT_PREFIX}{name}"]}
            return example_feeds(self._graph, name, 1, edit)[name]
        if name not in self._given:
            return example_feeds(self._graph, name, seed, {})[name]
        return _alike(self.base[name], np.random.default_rng(seed))


def _frozen(condition: str, manifest: Manifest) -> bool:
    """Whether edits refuse another condition, because only tokens depend on it that they leave as they were."""
    return leaves_tokens(manifest) and any(condition not in spec.conditions for spec in manifest.edits.values())


def leaves_tokens(manifest: Manifest) -> bool:
    """Whether edits leave the tokens beside the rows of a joint sequence as the base run computed them."""
    return any(grid.joint is not None and not grid.joint.recomputed for grid in manifest.grids)


def _alike(array: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
    """Noise with the array's mean and spread; of integers, the array's own values in random places."""
    if array.dtype.kind != "f":
        return generator.choice(array.reshape(-1), array.shape)
    noise = generator.normal(float(array.mean()), float(array.std()), array.shape)
    return noise.astype(array.dtype)


def _is_edit(name: str, manifest: Manifest) -> bool:
    inputs = {spec.name for spec in manifest.inputs}
    return name not in inputs and name.removeprefix(EDIT_PREFIX) in inputs


def _checked(given: Feeds, manifest: Manifest, file: Path) -> Feeds:
    inputs = [spec.name for spec in manifest.inputs]
    unknown = [name for name in given if name not in inputs and not _is_edit(name, manifest)]
    if unknown:
        raise FeedError(
            f"Expected {file} to hold arrays among {', '.join(map(repr, inputs))}, each also as {EDIT_PREFIX}NAME for "
            f"the edits, got {unknown[0]!r}."
        )
    return given


def _read(path: Path) -> Feeds:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise FeedError(
            f"Expected {path} to be a readable .npz file, got: {error}. Save it with numpy.savez."
        ) from error
