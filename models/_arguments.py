"""From named inputs to the arguments of a module, and back from what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from retouch.models._adapter import Adapter
from retouch.models._input import Input

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["by_position", "example", "nested"]


def nested(values: Mapping[str, object]) -> dict[str, Any]:
    """Values with dotted names as dictionaries within dictionaries; one whose names are numbers becomes a tuple."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        *parents, last = path.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = value
    return {name: _closed(value) for name, value in tree.items()}


def _closed(node: object) -> object:
    if not isinstance(node, dict):
        return node
    inner = {name: _closed(value) for name, value in node.items()}
    if all(name.isdigit() for name in inner):
        return tuple(inner[name] for name in sorted(inner, key=int))
    return inner


def by_position(module: Module, adapter: Adapter, inputs: Sequence[Input]) -> Module:
    """A module that takes the inputs in order and returns the outputs that the adapter names, as a tuple."""
    from torch import nn

    names = [item.argument or item.name for item in inputs]

    class ByPosition(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
            arguments = nested({**adapter.arguments, **dict(zip(names, tensors, strict=True))})
            return tuple(adapter.call(self.module, **arguments).values())

    return cast("Module", ByPosition().eval())


def example(item: Input, module: Module, seed: int) -> Tensor:
    """An example tensor for an input, of the module's floating-point type where it is one of numbers."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    dtype = next(module.parameters()).dtype if item.dtype == "float" else getattr(torch, item.dtype)
    if item.fill is not None:
        return torch.full(item.shape, item.fill, dtype=dtype)
    if item.below:
        return torch.randint(item.below, item.shape, generator=generator).to(dtype)
    return torch.randn(item.shape, generator=generator).to(dtype)
