// The operators of ai.retouch, as TensorRT sees them.
#include "plugin.h"

namespace retouch::trt {
namespace {

/// Operands that begin with a table of rows: rows [A, ..], cached [N, ..], halo [H], pad [1, ..], neighbours [M, T].
class OfTable : public Operator {
 public:
  bool takes(int32_t input, DataType type, DataType first) const override {
    return input == 2 || input == 4 ? type == DataType::kINT64 : is_number(first) && type == first;
  }
};

class GatherRows final : public OfTable {
 public:
  const char* name() const override { return "GatherRows"; }
  int32_t inputs() const override { return 5; }
  void shape(const DimsExprs* in, DimsExprs& out) const override {
    out.nbDims = in[0].nbDims + 1;
    out.d[0] = in[4].d[0];
    out.d[1] = in[4].d[1];
    for (int32_t axis = 1; axis < in[0].nbDims; ++axis) out.d[axis + 1] = in[0].d[axis];
  }
  int run(const Call& call, float) const override {
    const PluginTensorDesc* in = call.inputs;
    return retouch_gather_rows(call.out[0], call.in[0], in[0].dims.d[0], call.in[1], static_cast<const int64_t*>(call.in[2]),
                               in[2].dims.d[0], call.in[3], static_cast<const int64_t*>(call.in[4]), volume(in[4].dims),
                               volume(in[0].dims, 1) * number_bytes(in[0].type), call.stream);
  }
};

/// cached [.., row], index [M, K], rows [M, row].
class MaskedMerge : public Operator {
 public:
  const char* name() const override { return "MaskedMerge"; }
  int32_t inputs() const override { return 3; }
  bool takes(int32_t input, DataType type, DataType first) const override {
    return input == 1 ? type == DataType::kINT64 : is_number(first) && type == first;
  }
  void shape(const DimsExprs* in, DimsExprs& out) const override { out = in[0]; }
  int run(const Call& call, float) const override {
    const Dims& cached = call.inputs[0].dims;
    const Dims& index = call.inputs[1].dims;
    int64_t sizes[Dims::MAX_DIMS];
    for (int32_t axis = 0; axis < cached.nbDims; ++axis) sizes[axis] = cached.d[axis];
    const int32_t axes = static_cast<int32_t>(index.d[1]);
    return retouch_masked_merge(call.out[0], call.in[0], sizes, axes, static_cast<const int64_t*>(call.in[1]), call.in[2], index.d[0],
                                volume(cached, axes) * number_bytes(call.inputs[0].type), call.stream);
  }
};

/// The same in the cached tensor's own memory, where TensorRT allows it (PreviewFeature::kALIASED_PLUGIN_IO_10_03).
class ScatterRows final : public MaskedMerge {
 public:
  const char* name() const override { return "ScatterRows"; }
  int32_t aliased() const override { return 0; }
};

/// A table, weight [C_out, T * C], bias [C_out].
class EditConv final : public OfTable {
 public:
  const char* name() const override { return "EditConv"; }
  int32_t inputs() const override { return 7; }
  void shape(const DimsExprs* in, DimsExprs& out) const override {
    out.nbDims = 2;
    out.d[0] = in[4].d[0];
    out.d[1] = in[5].d[0];
  }
  int run(const Call& call, float) const override {
    const PluginTensorDesc* in = call.inputs;
    return retouch_edit_conv(type_number(in[0].type), call.out[0], call.in[0], in[0].dims.d[0], call.in[1],
                             static_cast<const int64_t*>(call.in[2]), in[2].dims.d[0], call.in[3],
                             static_cast<const int64_t*>(call.in[4]), call.in[5], call.in[6], in[4].dims.d[0], in[4].dims.d[1],
                             volume(in[0].dims, 1), in[5].dims.d[0], call.stream);
  }
};

/// query [H, M, D], key and value [H, N, D], recomputed key and value [H, R, D], their row numbers [R].
class EditAttention final : public Operator {
 public:
  const char* name() const override { return "EditAttention"; }
  int32_t inputs() const override { return 6; }
  const char* attribute() const override { return "scale"; }
  bool takes(int32_t input, DataType type, DataType first) const override {
    return input == 5 ? type == DataType::kINT64 : is_number(first) && type == first;
  }
  void shape(const DimsExprs* in, DimsExprs& out) const override { out = in[0]; }
  size_t workspace(const DynamicPluginTensorDesc* in) const override { return static_cast<size_t>(in[1].max.d[1]) * sizeof(int32_t); }
  int run(const Call& call, float scale) const override {
    const PluginTensorDesc* in = call.inputs;
    int32_t* slot = static_cast<int32_t*>(call.workspace);
    const int64_t keys = in[1].dims.d[1];
    const int failure = retouch_fill_slots(slot, static_cast<const int64_t*>(call.in[5]), in[5].dims.d[0], keys, call.stream);
    if (failure != 0) return failure;
    return retouch_edit_attention(type_number(in[0].type), call.out[0], call.in[0], call.in[1], call.in[2], call.in[3], call.in[4], slot,
                                  in[0].dims.d[0], in[0].dims.d[1], keys, in[3].dims.d[1], in[0].dims.d[2], scale, call.stream);
  }
};

/// rows [M, C], moments [2, .., groups] in single precision, gain [C], bias [C].
class EditGroupNorm final : public Operator {
 public:
  const char* name() const override { return "EditGroupNorm"; }
  int32_t inputs() const override { return 4; }
  const char* attribute() const override { return "epsilon"; }
  bool takes(int32_t input, DataType type, DataType first) const override {
    return input == 1 ? type == DataType::kFLOAT : is_number(first) && type == first;
  }
  void shape(const DimsExprs* in, DimsExprs& out) const override { out = in[0]; }
  int run(const Call& call, float epsilon) const override {
    const PluginTensorDesc* in = call.inputs;
    return retouch_edit_group_norm(type_number(in[0].type), call.out[0], call.in[0], static_cast<const float*>(call.in[1]), call.in[2],
                                   call.in[3], in[0].dims.d[0], volume(in[0].dims, 1), volume(in[1].dims) / 2, epsilon, call.stream);
  }
};

}  // namespace

const std::vector<const Operator*>& operators() {
  static const GatherRows gather;
  static const MaskedMerge merge;
  static const ScatterRows scatter;
  static const EditConv conv;
  static const EditAttention attention;
  static const EditGroupNorm norm;
  static const std::vector<const Operator*> all = {&gather, &merge, &scatter, &conv, &attention, &norm};
  return all;
}

}  // namespace retouch::trt
