"""What an adapter is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from retouch.models._input import Config, Input, Role, Sizes

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["Adapter", "Outputs", "named"]

Outputs = Mapping[str, "Tensor"]
"""The outputs of a call, under the names they get in the ONNX graph."""


def named(*names: str) -> Callable[..., Outputs]:
    """A call of the module's forward; the names go to the first outputs of its tuple."""

    def call(module: Module, **arguments: Any) -> Outputs:  # noqa: ANN401 (arguments may be anything)
        return dict(zip(names, module(**arguments, return_dict=False), strict=False))

    return call


@dataclass(frozen=True)
class Adapter:
    """How models of one class are exported.

    Attributes:
        family: name of the family, for messages.
        models: library and class of the models, such as ``diffusers.UNet2DModel``.
        inputs: the inputs of a model of that configuration, for some sizes.
        call: calls a module with its arguments and names its outputs.
        arguments: arguments that are no inputs, dotted like ``Input.argument``.
        part: which part of the model this is, where it has several that are exported on their own.
        folder: the pipeline folder that a part goes to; ``None`` means the component's own.
        multiple: what height and width have to be multiples of: patches, or levels that halve and double.
    """

    family: str
    models: tuple[str, ...]
    inputs: Callable[[Config, Sizes], tuple[Input, ...]]
    call: Callable[..., Outputs]
    arguments: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    part: str | None = None
    folder: str | None = None
    multiple: Callable[[Config], int] = lambda _: 1

    def editable(self, config: Config, sizes: Sizes) -> Input | None:
        """The editable input, if there is one: an encoder of text has none."""
        found = [item for item in self.inputs(config, sizes) if item.role is Role.EDITABLE]
        return found[0] if found else None
