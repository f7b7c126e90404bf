"""Finds the adapter of a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from retouch.errors import ModelError
from retouch.models._adapter import Adapter
from retouch.models.families import ADAPTERS

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["adapter_for", "adapters_of", "class_name_of"]


def class_name_of(module: Module) -> str:
    """Library and class of a module, as adapters name them."""
    kind = type(module)
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"


def adapters_of(model: str) -> tuple[Adapter, ...]:
    """The adapters of a class named ``library.Class``, one per part; none if its family is not known."""
    return tuple(adapter for adapter in ADAPTERS if model in adapter.models)


def adapter_for(model: str, part: str | None = None) -> Adapter:
    """The adapter of a class named ``library.Class``.

    Args:
        model: the class.
        part: which part of it, where it has several.

    Raises:
        ModelError: there is no adapter for the class, or the part is absent or not named.
    """
    found = adapters_of(model)
    if not found:
        known = ", ".join(sorted({name for adapter in ADAPTERS for name in adapter.models}))
        raise ModelError(
            f"There is no adapter for models of class {model}; there are some for {known}. Write one "
            "(models/README.md) and pass it as adapter=..., or export the model to ONNX and give that file."
        )
    chosen = [adapter for adapter in found if adapter.part == part]
    if chosen:
        return chosen[0]
    raise ModelError(
        f"A model of class {model} has the parts {_listed(adapter.part for adapter in found)}, "
        f"got {part!r}. Name one of them with --part, or part=... in Python."
    )


def _listed(parts: Iterable[str | None]) -> str:
    return ", ".join("none (the whole model)" if part is None else repr(part) for part in parts)
