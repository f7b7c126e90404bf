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
    layer ``<layer>.attention_norm`` [hidden], ``.qkv`` [(heads + 2 * kv_heads) * head_dim, hidden], ``.query_norm`` and
    ``.key_norm`` [head_dim], ``.output`` [hidden, heads * head_dim], ``.feed_forward_norm`` [hidden], ``.gate`` and
    ``.up`` [intermediate, hidden] and ``.down`` [hidden, intermediate].
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
        wanted = self._shape(name.rpartition(".")[2])
        if array.shape != wanted:
            raise ModelError(
                f"Expected the weight {name} to have the shape {wanted}, got {array.shape}. The configuration does not "
                "belong to these weights."
            )
        return array

    def _shape(self, kind: str) -> tuple[int, ...]:
        spec = self._spec
        return {
            "embedding": (spec.vocabulary, spec.hidden),
            "head": (spec.vocabulary, spec.hidden),
            "norm": (spec.hidden,),
            "attention_norm": (spec.hidden,),
            "qkv": ((spec.heads + 2 * spec.kv_heads) * spec.head_dim, spec.hidden),
            "query_norm": (spec.head_dim,),
            "key_norm": (spec.head_dim,),
            "output": (spec.hidden, spec.heads * spec.head_dim),
            "feed_forward_norm": (spec.hidden,),
            "gate": (spec.intermediate, spec.hidden),
            "up": (spec.intermediate, spec.hidden),
            "down": (spec.hidden, spec.intermediate),
        }[kind]
