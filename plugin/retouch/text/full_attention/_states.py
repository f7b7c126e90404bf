"""What forwards of one text leave behind, and the forwards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from retouch.engines.ort import InPlaceBinding
from retouch.text._model import Logits, TextModel, Tokens
from retouch.text.full_attention._policy import RowPlan, Rows

States = Mapping[str, NDArray[np.float32]]


class RowStates:
    """Keys, values and what every layer added, of all rows of one text, in place.

    Attributes:
        arrays: the states, by the names of the graphs' inputs.
        rows: number of rows.
    """

    def __init__(self, model: TextModel, rows: int) -> None:
        """Empty states; texts share nothing.

        Args:
            model: the model.
            rows: tokens of the text.
        """
        spec = model.spec
        cache = {f"{kind}.{n}": spec.cache_shape(rows) for kind in ("keys", "values") for n in range(spec.layers)}
        shapes: dict[str, tuple[int, ...]] = {
            **cache,
            **{f"added.{n}": (rows, spec.hidden) for n in range(spec.layers)},
        }
        self.arrays: States = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        self.rows = rows
        self._model = model

    def forward(self, tokens: Tokens, plan: RowPlan, wanted: Rows) -> tuple[Logits, tuple[Rows, ...]]:
        """The logits [W, vocabulary] of wanted rows, and the rows that every layer computed.

        Args:
            tokens: all tokens of the text [N].
            plan: what to compute.
            wanted: rows [W].
        """
        layers = self._model.spec.layers
        rows = plan.by_layer(layers)
        feeds = {"ids": tokens[None], "wanted": wanted, **{f"rows.{n}": own for n, own in enumerate(rows)}}
        if len(plan.candidates):
            feeds |= {"context": self._context(plan), "candidates": plan.candidates, "count": np.array([plan.count])}
            results = self._similar.run(feeds)
            picked = tuple(np.union1d(own, results[f"picked.{n}"]) for n, own in enumerate(rows))
            return results["logits"][0], picked
        if plan.context is not None or plan.keep:
            feeds |= {"context": self._context(plan), "keep": np.array([plan.keep], np.float32)}
            return self._focus.run(feeds)["logits"][0], rows
        return self._chosen.run(feeds)["logits"][0], rows

    def _context(self, plan: RowPlan) -> Rows:
        return np.arange(self.rows) if plan.context is None else plan.context

    @cached_property
    def _chosen(self) -> InPlaceBinding:
        return self._model.rows_program("rows").bind(self.arrays)

    @cached_property
    def _similar(self) -> InPlaceBinding:
        return self._model.rows_program("similar").bind(self.arrays)

    @cached_property
    def _focus(self) -> InPlaceBinding:
        return self._model.rows_program("focus").bind(self.arrays)
