"""EditAttention by way of ONNX's Attention, which TensorRT has one layer for.

Before: the body of EditAttention is a product, a softmax and a product. After: the body merges keys and values as it
did and gives them to Attention (opset 23); nodes stay as they are. Queries are scaled first: the scale of Attention is
an attribute, and that of EditAttention a value.
"""

from __future__ import annotations

from functools import cache

import onnx

__all__ = ["with_native_attention"]

_NAME = "EditAttention"
_TEXT = """
<ir_version: 10, opset_import: ["" : 23, "ai.retouch" : 1]>
only_a_function (float[1] x) => (float[1] y) { y = Identity(x) }
<domain: "ai.retouch", opset_import: ["" : 23]>
EditAttention (query, key, value, cached_key, cached_value, index, scale) => (rows) {
    key_row = Shape<start = 1>(cached_key)
    value_row = Shape<start = 1>(cached_value)
    zero = Constant<value_ints = [0]>()
    by_key_head = Concat<axis = 0>(zero, key_row)
    by_value_head = Concat<axis = 0>(zero, value_row)
    new_keys = Reshape(key, by_key_head)
    new_values = Reshape(value, by_value_head)
    own_queries = Reshape(query, by_key_head)
    merged_keys = ScatterND(cached_key, index, new_keys)
    merged_values = ScatterND(cached_value, index, new_values)
    scaled = Mul(own_queries, scale)
    queries = Transpose<perm = [1, 0, 2]>(scaled)
    keys = Transpose<perm = [1, 0, 2]>(merged_keys)
    values = Transpose<perm = [1, 0, 2]>(merged_values)
    one_of_queries = Unsqueeze(queries, zero)
    one_of_keys = Unsqueeze(keys, zero)
    one_of_values = Unsqueeze(values, zero)
    attended = Attention<scale = 1.0>(one_of_queries, one_of_keys, one_of_values)
    by_head = Squeeze(attended, zero)
    turned = Transpose<perm = [1, 0, 2]>(by_head)
    columns = ReduceProd<keepdims = 1>(value_row)
    flat = Concat<axis = 0>(zero, columns)
    rows = Reshape(turned, flat)
}
"""


def with_native_attention(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model whose EditAttention has that body."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for function in changed.functions:
        if function.name == _NAME:
            function.CopyFrom(_native())
    return changed


@cache
def _native() -> onnx.FunctionProto:
    function: onnx.FunctionProto = onnx.parser.parse_model(_TEXT).functions[0]
    return function
