"""What a node costs beside its work, and what kernels add to the time that a session takes to load."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.engines.ort import load_onnxruntime
from retouch.export.ops import functions
from retouch.export.ops._domain import DOMAIN, VERSION
from retouch.ort_ep import register

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["load_times", "node_times"]

_NODES = 200
_CALLS = 50
_OPSET = 18


def node_times(repeats: int) -> Mapping[str, float]:
    """CPU time per node in microseconds: of RowsAdded, whose four numbers take no time, and of the stock Add."""
    ours = _chain([("RowsAdded", DOMAIN)] * _NODES)
    stock = _chain([("Add", "")] * _NODES)
    rows = np.zeros((1, 4), np.float32)
    sessions = {"Retouch": _session(ours, ours=True), "stock": _session(stock, ours=False)}
    empty = {name: _session(_chain(kind), ours=name == "Retouch") for name, kind in _ENDS.items()}
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(repeats):
        for name, run in sessions.items():
            own, without = _cpu(partial(run, rows)), _cpu(partial(empty[name], rows))
            times[name].append(1e6 * (own - without) / (_NODES - 1))
    return {name: statistics.median(values) for name, values in times.items()}


_ENDS: Mapping[str, list[tuple[str, str]]] = {"Retouch": [("RowsAdded", DOMAIN)], "stock": [("Add", "")]}


def load_times(graph: Path, repeats: int) -> Mapping[str, float]:
    """Seconds of CPU time that a session on a graph file takes to load, with kernels and on stock ones, in turn."""
    times: dict[str, list[float]] = {"Retouch": [], "stock": []}
    for _ in range(repeats):
        for name, taken in times.items():
            begin = time.process_time()
            _open(str(graph), ours=name == "Retouch")
            taken.append(time.process_time() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def _cpu(run: Callable[[], object]) -> float:
    begin = time.process_time()
    for _ in range(_CALLS):
        run()
    return (time.process_time() - begin) / _CALLS


def _chain(kinds: list[tuple[str, str]]) -> ir.Model:
    """Nodes that add the input to what the node before them made."""
    rows = ir.Value(name="rows", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["M", 4]))
    value, nodes = rows, []
    for number, (op_type, domain) in enumerate(kinds):
        node = ir.Node(domain, op_type, [value, rows], name=f"node_{number}")
        value = node.outputs[0]
        value.name, value.type, value.shape = f"value_{number}", rows.type, rows.shape
        nodes.append(node)
    imports = {"": _OPSET, DOMAIN: VERSION}
    graph = ir.Graph([rows], [value], nodes=nodes, opset_imports=imports, name="chain")
    return ir.Model(graph, ir_version=10, functions=functions(_OPSET, ["RowsAdded"]))


def _session(model: ir.Model, *, ours: bool) -> Callable[[np.ndarray], object]:
    session = _open(ir.serde.serialize_model(model).SerializeToString(), ours=ours)
    return lambda rows: session.run(None, {"rows": rows})


def _open(model: str | bytes, *, ours: bool) -> onnxruntime.InferenceSession:
    runtime = load_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    if ours:
        options.add_provider_for_devices(register().required(), {})
    providers = {} if ours else {"providers": ["CPUExecutionProvider"]}
    session: onnxruntime.InferenceSession = runtime.InferenceSession(model, options, **providers)
    return session
