"""What a family is, to the benchmarks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retouch.models import Sizes

RATIO_PER_FLOP = 1.2
RATIO_OF_NOTHING = 0.06
AREAS = (0.05, 0.1, 0.25)


@dataclass(frozen=True)
class TorchSource:
    """A model of torch with random weights.

    Attributes:
        model: library and class, such as ``diffusers.UNet2DModel``.
        configuration: the class's configuration.
        sizes: the sizes to export for.
        part: which part of the model.
        text: what edits do with text tokens; see ``ExportOptions``.
    """

    model: str
    configuration: Mapping[str, Any] = field(hash=False)
    sizes: Sizes = field(default_factory=Sizes)
    part: str | None = None
    text: str = "recompute"

    @property
    def key(self) -> str:
        """A text that changes with whatever the model depends on."""
        sizes = (self.sizes.batch, self.sizes.height, self.sizes.width, self.sizes.text, self.sizes.tokens)
        return json.dumps([self.model, dict(self.configuration), sizes, self.part, self.text], sort_keys=True)


@dataclass(frozen=True)
class ReferenceSource:
    """A model of ``retouch.validation.reference_models``."""

    name: str


@dataclass(frozen=True)
class Family:
    """A model that stands for its family.

    Attributes:
        name: its name on the command line.
        title: its name on the page.
        source: where the model comes from.
        targets: by area, the ratio to stay under, beside the bound that holds for every family.
    """

    name: str
    title: str
    source: TorchSource | ReferenceSource
    targets: Mapping[float, float] = field(default_factory=dict, hash=False)

    @property
    def areas(self) -> tuple[float, ...]:
        """The shares of the editable positions that are measured."""
        return tuple(sorted({*AREAS, *self.targets}))


def bound(flop_ratio: float) -> float:
    """The largest ratio of edit to full run that is as it should be, for an edit with that share of the FLOPs."""
    return RATIO_PER_FLOP * flop_ratio + RATIO_OF_NOTHING
