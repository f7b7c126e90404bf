"""What a reference model is: a configuration, its editable input and how the torch module is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from retouch.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Setting = int | float | bool | str | tuple[int, ...] | tuple[str, ...] | None
Configuration = Mapping[str, Setting]


@dataclass(frozen=True)
class BuiltModel:
    """A torch module that takes its inputs by position and returns one tensor.

    Attributes:
        module: the module, in evaluation mode.
        inputs: the example inputs in call order under the names they have in the exported graph; all
            have a leading batch axis of size one.
    """

    module: Module
    inputs: Mapping[str, Tensor]


@dataclass(frozen=True)
class ReferenceModel:
    """A model of known architecture with random weights.

    Attributes:
        name: name in the catalogue and stem of the exported file.
        editable: name of the graph input that carries the editable positions.
        axes: the axes of that input that carry them.
        configuration: everything the builder needs; two models with equal configurations are equal.
        builder: makes the module and its example inputs from the configuration. It only has to
            fix the architecture: ``build`` seeds the random numbers and draws the weights.
    """

    name: str
    editable: str
    axes: tuple[int, ...]
    configuration: Configuration = field(hash=False)
    builder: Callable[[Configuration], BuiltModel]

    def build(self) -> BuiltModel:
        """The module and its example inputs, the same on every call.

        Raises:
            ModelError: torch or diffusers is not installed.
        """
        with explained_if_missing(self.name):
            from retouch.validation.reference_models._weights import build_seeded

            return build_seeded(self)


@contextmanager
def explained_if_missing(name: str) -> Iterator[None]:
    """Turns a failing import of an optional package into an error that says how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModelError(
            f"building the reference model {name!r} needs the package {error.name!r}, which is not installed; "
            'pip install "retouch[torch]"'
        ) from error
