"""The inputs of a model as an adapter declares them, and the sizes they are made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from retouch.errors import ExportError

__all__ = [
    "Config",
    "Input",
    "Role",
    "Sizes",
    "check_multiple",
    "condition",
    "editable",
    "image_size",
    "patch_size",
    "step",
]

Config = Mapping[str, Any]
"""A model's configuration, as its ``config.json`` has it."""


class Role(Enum):
    """What an input is to an edit."""

    EDITABLE = "carries the positions that edits select"
    CONDITION = "the same in all steps of a sampling loop: what depends on it alone is computed once"
    STEP = "another one in every step of a sampling loop"


@dataclass(frozen=True)
class Input:
    """One input.

    Attributes:
        name: its name in the ONNX graph.
        shape: its shape.
        role: what it is to an edit.
        axes: for the editable input, the axes that carry positions.
        dtype: ``float`` for the module's own floating-point type, else the name of an integer type.
        fill: what example elements are: this number, or drawn if ``None``.
        below: drawn integers stay below this.
        argument: the module's argument, if it has another name. Dots lead into dictionaries, numbers into tuples:
            ``added_cond_kwargs.time_ids``, ``down_block_additional_residuals.0``.
    """

    name: str
    shape: tuple[int, ...]
    role: Role
    axes: tuple[int, ...] = ()
    dtype: str = "float"
    fill: float | None = None
    below: int = 0
    argument: str | None = None


def editable(name: str, shape: tuple[int, ...], axes: tuple[int, ...], *, below: int = 0) -> Input:
    """The editable input: latents drawn from a normal distribution, or token ids if ``below`` is given."""
    return Input(name, shape, Role.EDITABLE, axes, "int64" if below else "float", below=below)


def condition(
    name: str,
    shape: tuple[int, ...],
    *,
    dtype: str = "float",
    fill: float | None = None,
    below: int = 0,
    argument: str | None = None,
) -> Input:
    """An input that stays the same during sampling."""
    return Input(name, shape, Role.CONDITION, (), dtype, fill, below, argument)


def step(name: str, shape: tuple[int, ...], fill: float, *, dtype: str = "float") -> Input:
    """An input that changes in every step, such as the timestep."""
    return Input(name, shape, Role.STEP, (), dtype, fill)


@dataclass(frozen=True)
class Sizes:
    """The sizes a model is exported for; ``None`` takes what its configuration or its family says.

    Attributes:
        batch: images or sequences in one call; two for guidance without a classifier.
        height: rows of the editable image or latents.
        width: columns of the editable image or latents.
        text: tokens of the text condition.
        tokens: tokens of an editable sequence.
    """

    batch: int = 1
    height: int | None = None
    width: int | None = None
    text: int | None = None
    tokens: int | None = None

    def image(self, default: int | Sequence[int] | None) -> tuple[int, int]:
        """Height and width, by default those of a configuration: one number, or two."""
        rows, columns = (default, default) if default is None or isinstance(default, int) else default
        height = rows if self.height is None else self.height
        width = columns if self.width is None else self.width
        if height is None or width is None:
            raise ExportError(
                "The model's configuration does not say for which image size it is made. "
                "Pass it: --fix height=64 --fix width=64, or Sizes(height=64, width=64)."
            )
        return height, width


def check_multiple(sizes: Sizes, multiple: int) -> None:
    """Refuses a height or width that is no multiple of that number.

    Raises:
        ExportError: says which sizes are.
    """
    for name, size in (("height", sizes.height), ("width", sizes.width)):
        if size is not None and size % multiple:
            near = [number for number in (size // multiple * multiple, -(-size // multiple) * multiple) if number]
            raise ExportError(
                f"Expected {name} to be a multiple of {multiple} for this model, which cuts images into patches or "
                f"halves and doubles them, got {size}. Pass {' or '.join(f'--fix {name}={number}' for number in near)}."
            )


def patch_size(config: Config) -> int:
    """The side of a patch, of which a transformer makes a token."""
    return int(config.get("patch_size") or 1)


def image_size(config: Config, sizes: Sizes) -> tuple[int, int]:
    """Height and width of the editable image, by default the configuration's ``sample_size``."""
    return sizes.image(config.get("sample_size"))
