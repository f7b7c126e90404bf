"""The graphs of a decoder, in standard operators of opset 18."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from retouch.bundle import DecoderSpec
from retouch.export.decoder._attention import Attention
from retouch.export.decoder._draft import Draft
from retouch.export.decoder._weights import DecoderWeights

__all__ = ["decoder_graph"]

_OPSET = 18
_IR_VERSION = 10


def decoder_graph(spec: DecoderSpec, weights: DecoderWeights, *, cached: bool) -> ir.Model:
    """The model as a graph of any number of tokens of any number of texts, with logits for each of them.

    Args:
        spec: the model's shape.
        weights: its weights.
        cached: whether keys and values lie in inputs that the graph updates, or are computed of all tokens at once.
            :class:`retouch.bundle.TextBundle` has the inputs and outputs.
    """
    draft = Draft(spec, weights)
    attention = Attention(draft, cached=cached)
    x = draft.op("Gather", draft.weight("embedding"), draft.ids)
    for layer in range(spec.layers):
        x = draft.op("Add", x, attention.layer(layer, draft.normed(x, f"{layer}.attention_norm")))
        x = draft.op("Add", x, _feed_forward(draft, layer, draft.normed(x, f"{layer}.feed_forward_norm")))
    logits = draft.product(draft.normed(x, "norm"), "head")
    draft.name(logits, "logits", ir.DataType.FLOAT, ("batch", "tokens", spec.vocabulary))
    outputs = [logits, *attention.updated]
    graph = ir.Graph(
        draft.inputs,
        outputs,
        nodes=draft.nodes,
        initializers=draft.initializers,
        opset_imports={"": _OPSET},
        name="decode" if cached else "full",
    )
    return ir.Model(graph, ir_version=_IR_VERSION, producer_name="retouch")


def _feed_forward(draft: Draft, layer: int, x: ir.Value) -> ir.Value:
    gate, up = (draft.product(x, f"{layer}.{name}") for name in ("gate", "up"))
    opened = draft.op("Mul", draft.op("Mul", gate, draft.op("Sigmoid", gate)), up)
    return draft.product(opened, f"{layer}.down")


def zeros(spec: DecoderSpec, rows: int) -> dict[str, np.ndarray]:
    """Empty keys and values of all layers, by the names of the graph's inputs."""
    names = [f"{kind}.{layer}" for layer in range(spec.layers) for kind in ("keys", "values")]
    return {name: np.zeros(spec.cache_shape(rows), np.float32) for name in names}
