"""Times a layer on the engines that can run it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.engines.ort import OrtEngine, WeightStorage
from retouch.ort_ep import PROVIDER
from retouch.validation.kernels._layers import Arrays, Layer

__all__ = ["DENSE", "STOCK", "in_turn", "measure", "weight_errors"]

STOCK, DENSE = "stock", "dense"

_PROVIDER = "CPUExecutionProvider"
_WARM_UPS = 2
_LARGEST_CACHE = 96 << 20
"""Bytes to read so that no cache holds a weight any more."""

_Run = Callable[[], NDArray[Any]]


def measure(layer: Layer, *, threads: int = 1, repeats: int = 15, cold: bool = True) -> dict[str, float]:
    """GFLOP/s by name: our kernels' by the weights' storage, ``stock`` ones and, if there is that form, ``dense``.

    Process CPU time, medians, in turn.

    Args:
        layer: the layer.
        threads: threads of ONNX Runtime.
        repeats: timed rounds.
        cold: whether weights come from memory, as in a model that is larger than the caches.

    Raises:
        EngineMissingError: Retouch's kernels are not there.
    """
    with tempfile.TemporaryDirectory() as folder:
        times = in_turn(_actions(layer, threads, Path(folder)), repeats, cold=cold)
    work = {name: layer.dense_flops if name == DENSE else layer.flops for name in times}
    return {name: work[name] / taken / 1e9 for name, taken in times.items()}


def in_turn(actions: Mapping[str, _Run], repeats: int, *, cold: bool = False) -> dict[str, float]:
    """Process CPU time of actions that take turns, in seconds: medians by name.

    Args:
        actions: what to time.
        repeats: timed rounds, after some that are not.
        cold: whether caches are filled with something else before every action.
    """
    evicting = np.ones(_LARGEST_CACHE // 8 if cold else 0)
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(_WARM_UPS + repeats):
        for name, action in actions.items():
            evicting.sum()
            begin = time.process_time()
            action()
            times[name].append(time.process_time() - begin)
    return {name: float(np.median(taken[_WARM_UPS:])) for name, taken in times.items()}


def weight_errors(layer: Layer) -> dict[str, float]:
    """By storage what shorter weights err: the root mean square of the difference over that of the result."""
    with tempfile.TemporaryDirectory() as folder:
        results = {storage: _ours(layer, storage, 1, Path(folder))() for storage in WeightStorage}
    exact = results.pop(WeightStorage.FLOAT32).astype(np.float64)
    scale = float(np.sqrt(np.mean(exact**2)))
    return {str(storage): float(np.sqrt(np.mean((got - exact) ** 2))) / scale for storage, got in results.items()}


def _actions(layer: Layer, threads: int, folder: Path) -> dict[str, _Run]:
    actions = {str(storage): _ours(layer, storage, threads, folder) for storage in WeightStorage}
    stock = OrtEngine([_PROVIDER], threads)
    actions[STOCK] = _run(stock, layer.model, layer.feeds, folder)
    if layer.dense is not None and layer.dense_feeds is not None:
        actions[DENSE] = _run(stock, layer.dense, layer.dense_feeds, folder)
    return actions


def _ours(layer: Layer, storage: WeightStorage, threads: int, folder: Path) -> _Run:
    return _run(OrtEngine([PROVIDER], threads, storage), layer.model, layer.feeds, folder)


def _run(engine: OrtEngine, model: ir.Model, feeds: Arrays, folder: Path) -> _Run:
    file = folder / "layer.onnx"
    ir.save(model, file)
    binding = engine.open(file).bind({name: engine.value(array) for name, array in feeds.items()})
    return lambda: next(iter(binding.run({}).values())).numpy()
