"""Plugins' nodes for onnx's reference evaluator, computed by the kernels on the host."""

from __future__ import annotations

import numpy as np
from onnx.reference.op_run import OpRun

from retouch.trt_plugins._kernel_library import KernelTail
from tests.trt_plugins.host_kernels import HostKernels, poisoned


def operators(kernels: HostKernels) -> list[type[OpRun]]:
    """A class for every plugin, as the evaluator wants it: attributes come by name, operands in order."""

    def tail_of(operands: list[np.ndarray], columns: int, rows: int, dtype: np.dtype, **parts: int) -> tuple:
        names = [
            *(["gate"] if parts["gated"] else []),
            *(["residual"] if parts["added"] else []),
            *(["factor", "shift"] if parts["affine"] else []),
        ]
        arrays = dict(zip(names, map(np.ascontiguousarray, operands), strict=True))
        if parts["kept"]:
            arrays["kept"] = poisoned((rows, columns), dtype)
        places = {name: array.ctypes.data for name, array in arrays.items()}
        return KernelTail(**places, activation=parts["activation"]), arrays

    class Base(OpRun):
        op_domain = "ai.retouch"

        def run(self, *inputs, linked_attributes=None, context=None):
            attributes = {
                a.name: a.i if a.type == 2 else a.f if a.type == 1 else a.s.decode() for a in self.onnx_node.attribute
            }
            assert attributes.pop("plugin_namespace") == "ai.retouch" and attributes.pop("plugin_version") == "3"
            assert "" not in self.onnx_node.input
            return self.compute([np.ascontiguousarray(x) for x in inputs], **attributes)

        def _run(self, *inputs):
            return self.run(*inputs)

    class GatherRows(Base):
        def compute(self, inputs):
            rows, cached, halo, pad, neighbours = inputs
            return (kernels.gather_rows(rows, cached, halo, pad, neighbours),)

    class MaskedMerge(Base):
        def compute(self, inputs):
            return (kernels.masked_merge(*inputs),)

    class ScatterRows(Base):
        def compute(self, inputs, axis, end):
            return (kernels.scatter_rows(*inputs, axis, end),)

    class EditConv(Base):
        def compute(self, inputs, biased, **parts):
            operands, weight = inputs[:5], inputs[5]
            tail, arrays = tail_of(inputs[6 + biased :], len(weight), len(inputs[4]), weight.dtype, **parts)
            out = kernels.edit_conv(*operands, weight, inputs[6] if biased else None, tail)
            return (out, *([arrays["kept"]] if parts["kept"] else []))

    class RowLinear(Base):
        def compute(self, inputs, biased, **parts):
            transposed = bool(parts.pop("transB"))
            rows, weight = inputs[:2]
            columns = weight.shape[0 if transposed else 1]
            tail, arrays = tail_of(inputs[2 + biased :], columns, len(rows), weight.dtype, **parts)
            out = kernels.row_linear(rows, weight, transposed, inputs[2] if biased else None, tail)
            return (out, *([arrays["kept"]] if parts["kept"] else []))

    class EditAttention(Base):
        def compute(self, inputs, scale):
            query, key, value, cached_key, cached_value, index = inputs
            slot = kernels.slots(index.reshape(-1), len(cached_key))
            queries = query.reshape(len(query), *cached_key.shape[1:])
            fresh = key.reshape(-1, *cached_key.shape[1:]), value.reshape(-1, *cached_value.shape[1:])
            out = kernels.edit_attention(queries, cached_key, cached_value, fresh, slot, scale)
            return (out.reshape(len(query), -1),)

    class EditGroupNorm(Base):
        def compute(self, inputs, groups, affine, activation, share, epsilon):
            rows, cached, index, moments, *operands = inputs
            after = kernels.group_moments(rows, cached, index, moments.reshape(2, groups), share)
            factor, shift = operands if affine else (None, None)
            names = {0: "", 1: "Silu", 2: "Gelu", 3: "TanhGelu"}
            normed = kernels.edit_group_norm(rows, after, factor, shift, epsilon, names[activation])
            return normed, after.reshape(moments.shape)

    return [GatherRows, MaskedMerge, ScatterRows, EditConv, RowLinear, EditAttention, EditGroupNorm]
