"""Attention of some queries over cached keys, on our kernel and in every form that stock kernels have for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.engines.ort import load_onnxruntime
from retouch.export.ops import functions
from retouch.ort_ep import register
from retouch.validation.kernels._measure import in_turn

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["OURS", "STOCK_ATTENTIONS", "attention_errors", "attention_times"]

OURS = "Retouch"

_OPSET, _HEADS, _DEPTH = 23, 8, 64
_CHECKED = 64

_MERGED = {"keys": "cached_key", "values": "cached_value"}
_MERGE = """
    new_key = Reshape(key, by_head)
    new_value = Reshape(value, by_head)
    keys = ScatterND(cached_key, index, new_key)
    values = ScatterND(cached_value, index, new_value)
"""
_PRODUCTS = """
    scaled = Mul(query, scale)
    queries = Reshape(scaled, by_head)
    turned_queries = Transpose<perm = [1, 0, 2]>(queries)
    turned_keys = Transpose<perm = [1, 2, 0]>(keys)
    turned_values = Transpose<perm = [1, 0, 2]>(values)
    scores = MatMul(turned_queries, turned_keys)
    weights = Softmax<axis = -1>(scores)
    mixed = MatMul(weights, turned_values)
    mixed_rows = Transpose<perm = [1, 0, 2]>(mixed)
    out = Reshape(mixed_rows, rows)
"""
_FUSED = """
    all_queries = Reshape(query, sample)
    all_keys = Reshape(keys, sample)
    all_values = Reshape(values, sample)
    mixed = {op}<{heads}, scale = 0.125>(all_queries, all_keys, all_values)
    out = Reshape(mixed, rows)
"""
_OURS = "out = ai.retouch.EditAttention(query, key, value, cached_key, cached_value, index, scale)"
_STOCK = {
    "products and softmax": _MERGE + _PRODUCTS,
    "Attention": _MERGE + _FUSED.format(op="Attention", heads="q_num_heads = 8, kv_num_heads = 8"),
    "MultiHeadAttention": _MERGE + _FUSED.format(op="com.microsoft.MultiHeadAttention", heads="num_heads = 8"),
}
STOCK_ATTENTIONS = tuple(_STOCK)
"""MatMul, Softmax, MatMul; ONNX's operator of opset 23; and ONNX Runtime's own one."""

_MODEL = """
<ir_version: 10, opset_import: ["" : 23, "ai.retouch" : 1, "com.microsoft" : 1]>
attention (
    float[{queries},512] query, float[{queries},512] key, float[{queries},512] value,
    float[{length},8,64] cached_key, float[{length},8,64] cached_value, int64[{queries},1] index, float scale
) => ({results})
<int64[3] by_head = {{0, 8, 64}}, int64[3] sample = {{1, -1, 512}}, int64[2] rows = {{-1, 512}}> {{
{nodes}
}}
"""

_Feeds = Mapping[str, NDArray[np.generic]]
_Run = Callable[[], NDArray[np.float32]]


def attention_times(queries: int, length: int, *, threads: int = 1, repeats: int = 15) -> Mapping[str, float]:
    """Seconds of CPU time by kernel, medians, in turn: our kernel and the stock forms.

    As many rows as there are queries were recomputed. Stock kernels put their keys and values into the caches first,
    in place: that spoils the caches for other edits, but is the fastest that they can do.
    """
    feeds = _feeds(queries, length)
    return in_turn({name: _run(name, feeds, threads) for name in (OURS, *STOCK_ATTENTIONS)}, repeats)


def attention_errors(queries: int, length: int) -> Mapping[str, float]:
    """The largest difference from double precision in the results of the first queries, by kernel."""
    feeds = _feeds(queries, length)
    exact = _exact(feeds)
    results = {name: _run(name, feeds, 1)()[: len(exact)] for name in (OURS, *STOCK_ATTENTIONS)}
    return {name: float(np.max(np.abs(result - exact))) for name, result in results.items()}


def _feeds(queries: int, length: int) -> _Feeds:
    rng = np.random.default_rng(0)
    rows = {name: rng.standard_normal((queries, _HEADS * _DEPTH), np.float32) for name in ("query", "key", "value")}
    caches = {name: rng.standard_normal((length, _HEADS, _DEPTH), np.float32) for name in _MERGED.values()}
    index = rng.permutation(length)[:queries, None].astype(np.int64)
    return {**rows, **caches, "index": index, "scale": np.array(_DEPTH**-0.5, np.float32)}


def _exact(feeds: _Feeds) -> NDArray[np.float64]:
    by_head = (-1, _HEADS, _DEPTH)
    query, key, value = (feeds[name].astype(np.float64).reshape(by_head) for name in ("query", "key", "value"))
    keys, values = (feeds[name].astype(np.float64) for name in _MERGED.values())
    keys[feeds["index"][:, 0]], values[feeds["index"][:, 0]] = key, value
    scores = np.einsum("mhd,nhd->hmn", query[:_CHECKED], keys) * _DEPTH**-0.5
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = np.einsum("hmn,nhd->mhd", weights / weights.sum(axis=-1, keepdims=True), values)
    exact: NDArray[np.float64] = mixed.reshape(len(mixed), -1)
    return exact


def _run(name: str, feeds: _Feeds, threads: int) -> _Run:
    """A run of a session whose operands and results are bound once; the merged caches lie where the caches do."""
    runtime, held = load_onnxruntime(), {}
    session = _session(name, feeds, threads)
    binding = session.io_binding()
    for each, array in feeds.items():
        held[each] = runtime.OrtValue.ortvalue_from_numpy(array.copy())
        binding.bind_ortvalue_input(each, held[each])
    for value in session.get_outputs():
        if value.name in _MERGED:
            binding.bind_ortvalue_output(value.name, held[_MERGED[value.name]])
        else:
            binding.bind_output(value.name, "cpu")

    def run() -> NDArray[np.float32]:
        session.run_with_iobinding(binding)
        result: NDArray[np.float32] = binding.get_outputs()[0].numpy()
        return result

    return run


def _session(name: str, feeds: _Feeds, threads: int) -> onnxruntime.InferenceSession:
    runtime, ours = load_onnxruntime(), name == OURS
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    if ours:
        options.add_provider_for_devices(register().required(), {"threads": str(threads)})
    providers = {} if ours else {"providers": ["CPUExecutionProvider"]}
    model = ir.serde.serialize_model(_model(name, feeds)).SerializeToString()
    session: onnxruntime.InferenceSession = runtime.InferenceSession(model, options, **providers)
    return session


def _model(name: str, feeds: _Feeds) -> ir.Model:
    queries, length = len(feeds["query"]), len(feeds["cached_key"])
    merged = "" if name == OURS else "".join(f", float[{length},8,64] {each}" for each in _MERGED)
    results = f"float[{queries},512] out{merged}"
    nodes = _STOCK.get(name, _OURS)
    model = ir.from_onnx_text(_MODEL.format(queries=queries, length=length, results=results, nodes=nodes))
    for function in functions(_OPSET, ["EditAttention"] if name == OURS else []):
        model.functions[function.identifier()] = function
    return model
