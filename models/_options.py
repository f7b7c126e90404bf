"""How to export from torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from retouch.export import ExportOptions
from retouch.models._adapter import Adapter
from retouch.models._input import Sizes

__all__ = ["TorchOptions"]


@dataclass(frozen=True)
class TorchOptions:
    """How to export from torch.

    Attributes:
        part: which part of the model, where it has several: ``encoder`` or ``decoder`` of an autoencoder,
            ``controlled`` for a UNet with the inputs of a ControlNet.
        sizes: the sizes to export for.
        opset: opset of the ONNX graph.
        graph: where the ONNX graph is kept; ``None`` keeps none.
        adapter: how the model is called; found by its class if not given.
        export: how the graph becomes a bundle; editable input and axes are the adapter's unless given. In a pipeline,
            ``precision`` is that of all components.
        precisions: precisions of single components of a pipeline, by folder: ``{"vae_decoder": "float32"}``.
    """

    part: str | None = None
    sizes: Sizes = field(default_factory=Sizes)
    opset: int = 18
    graph: Path | None = None
    adapter: Adapter | None = None
    export: ExportOptions = field(default_factory=ExportOptions)
    precisions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
