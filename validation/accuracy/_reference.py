"""The masked reference of a bundle, made from its base graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.passes import common as passes

from retouch.bundle import Bundle
from retouch.export.analysis import analyse
from retouch.export.canonicalise import canonicalise
from retouch.export.load import load_model
from retouch.export.verify import masked_reference
from retouch.export.verify.runner import Runner
from retouch.region import ActiveRows
from retouch.session import Moments
from retouch.validation.accuracy._feeds import Feeds


class Reference(Protocol):
    """Runs the masked reference."""

    def run(self, base: Feeds, edit: Feeds, active: ActiveRows) -> Mapping[str, NDArray[Any]]:
        """The outputs that an edit with those active rows has to give."""


class TwinReference:
    """The masked reference as it is: base run and edit in one graph. An edit does not see those before it."""

    def __init__(self, model: ir.Model) -> None:
        self._runner = Runner.from_model(model)

    def run(self, base: Feeds, edit: Feeds, active: ActiveRows) -> Mapping[str, NDArray[Any]]:
        """The outputs that an edit with those active rows has to give."""
        return self._runner.run({**named("old.", base), **named("new.", edit), **masks(active)})


def bundle_reference(bundle: Bundle, mode: Moments) -> ir.Model:
    """The masked reference of a bundle's base graph.

    It is made from what the exporter kept of the model, by the exporter's analysis: which values carry rows is taken
    over, how rows are computed is not.
    """
    model = _model(bundle)
    canonicalise(model)
    editable, grids = bundle.manifest.editable, bundle.manifest.grids
    recomputes = all(grid.joint is None or grid.joint.recomputed for grid in grids)
    analysis = analyse(model.graph, editable.input, editable.axes, recompute_text=recomputes)
    return masked_reference(model, analysis, corrected_moments=mode == "corrected")


def named(prefix: str, arrays: Feeds) -> dict[str, NDArray[Any]]:
    """The arrays, with a prefix before their names."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def masks(active: ActiveRows) -> dict[str, NDArray[Any]]:
    """The active rows as the masked reference wants them."""
    return {f"active.{grid}": active.mask(grid) for grid in active.rows}


def _model(bundle: Bundle) -> ir.Model:
    """The base graph without the outputs that keep states."""
    model = load_model(bundle.file(bundle.manifest.base_file)).model
    outputs = {output.tensor.name for output in bundle.manifest.outputs}
    for value in [value for value in model.graph.outputs if value.name not in outputs]:
        model.graph.outputs.remove(value)
    passes.RemoveUnusedNodesPass()(model)
    return model
