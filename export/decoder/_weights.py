"""The weights of a decoder under names of their own, whatever a checkpoint calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec
from retouch.errors import ModelError

__all__ = ["DecoderWeights"]


class DecoderWeights:
    """Looks weights up by name, as float32; matrices are [out, in], as torch has them.

    The names are ``embedding`` [vocabulary, hidden], ``head`` [vocabulary, hidden], ``norm`` [hidden], and for every
    layer ``<layer>.attention_norm`` [hidden], ``.qkv`` [(heads + 2 * kv_heads) * head_dim, hidden], ``.output``
    [hidden, heads * head_dim], ``.feed_forward_norm`` [hidden], ``.gate`` and ``.up`` [intermediate, hidden] and
    ``.down`` [hidden, intermediate]; where the model has them ``.query_norm`` and ``.key_norm`` [head_dim] and
    ``.qkv_bias``. Layers with experts have ``.router`` [experts, hidden], ``.router_bias`` [experts],
    ``.expert_gate.<expert>``, ``.expert_up.<expert>``, ``.expert_down.<expert>``, and ``.shared_gate``, ``.shared_up``
    and ``.shared_down``, in the place of ``.gate``, ``.up`` and ``.down``.
    """

    def __init__(self, spec: DecoderSpec, read: Callable[[str], NDArray[Any]]) -> None:
        """Reads nothing yet.

        Args:
            spec: the model's shape.
            read: gives a weight by name.
        """
        self._spec = spec
        self._read = read

    def __call__(self, name: str) -> NDArray[np.float32]:
        """The weight of that name.

        Raises:
            ModelError: it does not have the shape that the configuration gives it.
        """
        array = np.asarray(self._read(name), np.float32)
        wanted = self.shape(name)
        if array.shape != wanted:
            raise ModelError(
                f"Expected the weight {name} to have the shape {wanted}, got {array.shape}. The configuration does not "
                "belong to these weights."
            )
        return array

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of the weight of that name."""
        spec = self._spec
        kind = _kind(name)
        if kind.startswith(("router", "expert", "shared")):
            return self._expert_shape(kind)
        packed = (spec.heads + 2 * spec.kv_heads) * spec.head_dim
        return {
            "embedding": (spec.vocabulary, spec.hidden),
            "head": (spec.vocabulary, spec.hidden),
            "norm": (spec.hidden,),
            "attention_norm": (spec.hidden,),
            "qkv": (packed, spec.hidden),
            "qkv_bias": (packed,),
            "query_norm": (spec.head_dim,),
            "key_norm": (spec.head_dim,),
            "output": (spec.hidden, spec.heads * spec.head_dim),
            "feed_forward_norm": (spec.hidden,),
            "gate": (spec.intermediate, spec.hidden),
            "up": (spec.intermediate, spec.hidden),
            "down": (spec.hidden, spec.intermediate),
        }[kind]

    def _expert_shape(self, kind: str) -> tuple[int, ...]:
        experts, hidden = self._spec.experts, self._spec.hidden
        assert experts is not None
        if kind.startswith("router"):
            return (experts.count,) if kind == "router_bias" else (experts.count, hidden)
        width = experts.shared_width if kind.startswith("shared") else experts.width
        return (hidden, width) if kind.endswith("down") else (width, hidden)


def _kind(name: str) -> str:
    """What a weight is: its name without the numbers of layer and expert."""
    return next(part for part in name.split(".") if not part.isdigit())
