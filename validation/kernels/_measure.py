"""Times a layer on the engines that can run it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnx_ir as ir

from retouch.calibrate import interleaved
from retouch.engines.ort import OrtEngine
from retouch.ort_ep import PROVIDER
from retouch.validation.kernels._layers import Arrays, Layer

__all__ = ["measure"]

_STOCK = "CPUExecutionProvider"


def measure(layer: Layer, *, threads: int = 1, repeats: int = 15) -> dict[str, float]:
    """GFLOP/s by name: on ``Retouch``'s kernels, on ``stock`` ones and, if the layer has that form, ``dense``.

    Raises:
        EngineMissingError: Retouch's kernels are not there.
    """
    ours, stock = OrtEngine([PROVIDER], threads), OrtEngine([_STOCK], threads)
    with tempfile.TemporaryDirectory() as folder:
        actions = {
            "Retouch": _action(ours, layer.model, layer.feeds, Path(folder)),
            "stock": _action(stock, layer.model, layer.feeds, Path(folder)),
        }
        if layer.dense is not None and layer.dense_feeds is not None:
            actions["dense"] = _action(stock, layer.dense, layer.dense_feeds, Path(folder))
        samples = interleaved(actions, repeats)
    work = {"Retouch": layer.flops, "stock": layer.flops, "dense": layer.dense_flops}
    return {name: work[name] / sample.cpu_ms / 1e6 for name, sample in samples.items()}


def _action(engine: OrtEngine, model: ir.Model, feeds: Arrays, folder: Path) -> Callable[[], object]:
    file = folder / "layer.onnx"
    ir.save(model, file)
    binding = engine.open(file).bind({name: engine.value(array) for name, array in feeds.items()})
    return partial(binding.run, {})
