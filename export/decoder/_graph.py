"""The graphs of a decoder, in operators of opset 18 and functions of these."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from retouch.bundle import DecoderSpec
from retouch.export.decoder._attention import Attention
from retouch.export.decoder._draft import Draft
from retouch.export.decoder._feed_forward import feed_forward
from retouch.export.decoder._stored import StoredWeights
from retouch.export.ops import add_functions

__all__ = ["decoder_graph", "finished", "plain_graph", "zeros"]

_OPSET = 18
_IR_VERSION = 10


def decoder_graph(spec: DecoderSpec, weights: StoredWeights, *, cached: bool) -> ir.Model:
    """The model as a graph of any number of tokens of any number of texts, with logits for each of them.

    Args:
        spec: the model's shape.
        weights: its weights.
        cached: whether keys and values lie in inputs that the graph updates, or are computed of all tokens at once.
            :class:`retouch.bundle.TextBundle` has the inputs and outputs.
    """
    draft = Draft(spec, weights)
    attention = Attention(draft, cached=cached)
    return finished(draft, [_logits(draft, attention, "tokens"), *attention.updated], "decode" if cached else "full")


def plain_graph(spec: DecoderSpec, weights: StoredWeights, tokens: int) -> ir.Model:
    """The model as a graph of ``ids`` [1, tokens] alone, in which all tokens see each other."""
    draft = Draft(spec, weights, tokens)
    return finished(draft, [_logits(draft, Attention(draft, cached=False, masked=False), tokens)], "plain")


def finished(draft: Draft, outputs: list[ir.Value], name: str) -> ir.Model:
    """The model that a draft has become."""
    graph = ir.Graph(
        draft.inputs,
        outputs,
        nodes=draft.nodes,
        initializers=draft.initializers,
        opset_imports={"": _OPSET},
        name=name,
    )
    model = ir.Model(graph, ir_version=_IR_VERSION, producer_name="retouch")
    add_functions(model)
    return model


def _logits(draft: Draft, attention: Attention, tokens: int | str) -> ir.Value:
    x = draft.op("Gather", draft.weight("embedding"), draft.ids)
    for layer in range(draft.spec.layers):
        x = draft.op("Add", x, attention.layer(layer, draft.normed(x, f"{layer}.attention_norm")))
        x = draft.op("Add", x, feed_forward(draft, layer, draft.normed(x, f"{layer}.feed_forward_norm")))
    logits = draft.product(draft.normed(x, "norm"), "head")
    draft.name(
        logits, "logits", ir.DataType.FLOAT, ("batch" if isinstance(tokens, str) else 1, tokens, draft.spec.vocabulary)
    )
    return logits


def zeros(spec: DecoderSpec, rows: int) -> dict[str, np.ndarray]:
    """Empty keys and values of all layers, by the names of the graph's inputs."""
    names = [f"{kind}.{layer}" for layer in range(spec.layers) for kind in ("keys", "values")]
    return {name: np.zeros(spec.cache_shape(rows), np.float32) for name in names}
