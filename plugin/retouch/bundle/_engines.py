"""Engines that were built from a bundle's graphs ahead of time, as its manifest describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from retouch.files import FileSpec

ENGINES_FOLDER = "engines"
"""The folder of a bundle that holds them."""

BATCH = "batch"
"""The name of the batch where it is an open dim."""

VERSION_COMPATIBLE, PLUGINS, NATIVE_ATTENTION, REFIT, STRIPPED, OPEN_BATCH = TRAITS = (
    "version-compatible",
    "plugins",
    "native-attention",
    "refit",
    "stripped",
    "open-batch",
)
"""What an engine may be: one that later versions of the same major version read, one that needs Retouch's plugins, one
with the library's own attention, one whose weights can be replaced, one that holds no weights and gets them when it is
loaded, one that serves several batches."""


@dataclass(frozen=True)
class ProfileSpec:
    """The sizes that an engine is made for: a bucket of active row counts.

    Attributes:
        rows: the number of active rows of the editable grid that it is made for; a region of so many rows fits it
            unless it is scattered over so many places that it makes more rows active on other grids, or reads more
            inactive ones, than ``dims`` allows.
        dims: per open dim of the graph's inputs, by its name, the least, the usual and the largest size.
    """

    rows: int
    dims: Mapping[str, tuple[int, int, int]]

    def admits(self, sizes: Mapping[str, int]) -> bool:
        """Whether every open dim has a size that the profile allows."""
        return all(name in sizes and least <= sizes[name] <= largest for name, (least, _, largest) in self.dims.items())


@dataclass(frozen=True)
class EngineSpec:
    """A graph of the bundle as an inference library runs it. It is a file of the bundle's folder of engines.

    Attributes:
        graph: the graph's file.
        target: what runs it: ``tensorrt-rtx``, ``tensorrt`` or ``ort``.
        version: version of the library that built it; another one does not read it.
        precision: ``float32``, ``tf32``, ``float16`` or ``bfloat16``.
        devices: compute capabilities that it runs on, like ``8.9``, the name of the one card that it was tuned on, or
            execution providers of ONNX Runtime; none means what the library builds for by itself.
        traits: what else it is, among ``TRAITS``.
        outputs: names of its outputs.
        profiles: what sizes it is made for, smallest first; empty if no dim is open.
        source: digest of everything that it was made from and by.
        file: size and hash.
        batch_axes: where the batch is open, per input and output that has one, by its name, the axes that count it.
    """

    graph: str
    target: str
    version: str
    precision: str
    devices: tuple[str, ...]
    traits: tuple[str, ...]
    outputs: tuple[str, ...]
    profiles: tuple[ProfileSpec, ...]
    source: str
    file: FileSpec
    batch_axes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def profile_of(self, sizes: Mapping[str, int]) -> int | None:
        """The number of the first profile that allows those sizes, ``None`` if none does."""
        return next((number for number, profile in enumerate(self.profiles) if profile.admits(sizes)), None)
