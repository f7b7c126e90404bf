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
  int32_t inputs(const Settings&) const override { return 5; }
  void shapes(const DimsExprs* in, DimsExprs* out, const Settings&, IExprBuilder&) const override {
    out->nbDims = in[0].nbDims + 1;
    out->d[0] = in[4].d[0];
    out->d[1] = in[4].d[1];
    for (int32_t axis = 1; axis < in[0].nbDims; ++axis) out->d[axis + 1] = in[0].d[axis];
  }
  int run(const Call& call, const Settings&) const override {
    const PluginTensorDesc* in = call.inputs;
    return retouch_gather_rows(call.out[0], call.in[0], in[0].dims.d[0], call.in[1], in[1].dims.d[0],
                               static_cast<const int64_t*>(call.in[2]), in[2].dims.d[0], call.in[3],
                               static_cast<const int64_t*>(call.in[4]), volume(in[4].dims),
                               volume(in[0].dims, 1) * number_bytes(in[0].type), call.stream);
  }
};

/// A cached tensor, an index, and rows that go into it.
class OfMerge : public Operator {
 public:
  int32_t inputs(const Settings&) const override { return 3; }
  bool takes(int32_t input, DataType type, DataType first) const override {
    return input == 1 ? type == DataType::kINT64 : is_number(first) && type == first;
  }
  void shapes(const DimsExprs* in, DimsExprs* out, const Settings&, IExprBuilder&) const override { *out = in[0]; }
};

/// cached [.., row], index [M, K], rows [M, row].
class MaskedMerge final : public OfMerge {
 public:
  const char* name() const override { return "MaskedMerge"; }
  int run(const Call& call, const Settings&) const override {
    const Dims& cached = call.inputs[0].dims;
    const Dims& index = call.inputs[1].dims;
    if (index.d[1] > cached.nbDims) return RETOUCH_NOT_SUPPORTED;
    int64_t sizes[Dims::MAX_DIMS];
    for (int32_t axis = 0; axis < cached.nbDims; ++axis) sizes[axis] = cached.d[axis];
    const int32_t axes = static_cast<int32_t>(index.d[1]);
    return retouch_masked_merge(call.out[0], call.in[0], sizes, axes, static_cast<const int64_t*>(call.in[1]), call.in[2], index.d[0],
                                volume(cached, axes) * number_bytes(call.inputs[0].type), call.stream);
  }
};

/// cached, index [M] over its axes from ``axis`` to ``end``, and rows of its shape with M in their place. In the cached
/// tensor's own memory, where TensorRT is told to allow it (PreviewFeature::kALIASED_PLUGIN_IO_10_03).
class ScatterRows final : public OfMerge {
 public:
  const char* name() const override { return "ScatterRows"; }
  std::vector<const char*> integers() const override { return {"axis", "end"}; }
  int32_t aliased() const override { return 0; }
  int run(const Call& call, const Settings& is) const override {
    const Dims& cached = call.inputs[0].dims;
    const int32_t axis = is.integers[0], end = is.integers[1];
    if (axis < 0 || end <= axis || end > cached.nbDims) return RETOUCH_NOT_SUPPORTED;
    const int64_t lead = volume(cached, 0, axis), size = volume(cached, axis, end), row = volume(cached, end);
    return retouch_scatter_rows(call.out[0], call.in[0], lead, size, static_cast<const int64_t*>(call.in[1]), call.in[2],
                                call.inputs[1].dims.d[0], row * number_bytes(call.inputs[0].type), call.stream);
  }
};

size_t slots_bytes(int64_t keys) { return static_cast<size_t>(keys) * sizeof(int32_t); }

bool is_flag(int32_t value) { return value == 0 || value == 1; }

/// A tail as attributes and operands: gate [C], residual [M, C], factor and shift [C], of which a node has those it needs.
struct TailOperands {
  enum { kGated, kAdded, kKept, kAffine, kActivation, kCount };

  static bool knows(const int32_t* parts) {
    for (int32_t part = kGated; part < kActivation; ++part)
      if (!is_flag(parts[part])) return false;
    return parts[kActivation] >= RETOUCH_NO_ACTIVATION && parts[kActivation] <= RETOUCH_TANH_GELU;
  }
  static std::vector<const char*> names() { return {"gated", "added", "kept", "affine", "activation"}; }
  static int32_t inputs(const int32_t* parts) { return parts[kGated] + parts[kAdded] + 2 * parts[kAffine]; }
  /// The tail of a call whose operands begin at an input; what is kept is the second output.
  static RetouchTail of(const Call& call, const int32_t* parts, int32_t input) {
    RetouchTail tail = {nullptr, nullptr, nullptr, nullptr, nullptr, parts[kActivation]};
    if (parts[kGated] != 0) tail.gate = call.in[input++];
    if (parts[kAdded] != 0) tail.residual = call.in[input++];
    if (parts[kKept] != 0) tail.kept = call.out[1];
    if (parts[kAffine] != 0) {
      tail.factor = call.in[input++];
      tail.shift = call.in[input];
    }
    return tail;
  }
};

std::vector<const char*> with_tail(std::vector<const char*> names) {
  for (const char* name : TailOperands::names()) names.push_back(name);
  return names;
}

/// A table, weight [C_out, T * C], bias [C_out] if it is biased, and a tail's operands.
class EditConv final : public OfTable {
 public:
  const char* name() const override { return "EditConv"; }
  std::vector<const char*> integers() const override { return with_tail({"biased"}); }
  bool knows(const Settings& is) const override { return is_flag(is.integers[0]) && TailOperands::knows(&is.integers[1]); }
  int32_t inputs(const Settings& is) const override { return 6 + is.integers[0] + TailOperands::inputs(&is.integers[1]); }
  int32_t outputs(const Settings& is) const override { return 1 + is.integers[1 + TailOperands::kKept]; }
  void shapes(const DimsExprs* in, DimsExprs* out, const Settings& is, IExprBuilder&) const override {
    for (int32_t i = 0; i < outputs(is); ++i) {
      out[i].nbDims = 2;
      out[i].d[0] = in[4].d[0];
      out[i].d[1] = in[5].d[0];
    }
  }
  size_t workspace(const DynamicPluginTensorDesc*) const override { return RETOUCH_WORKSPACE; }
  int run(const Call& call, const Settings& is) const override {
    const PluginTensorDesc* in = call.inputs;
    const int32_t biased = is.integers[0];
    const RetouchTail tail = TailOperands::of(call, &is.integers[1], 6 + biased);
    return retouch_edit_conv(type_number(in[0].type), call.out[0], call.in[0], in[0].dims.d[0], call.in[1], in[1].dims.d[0],
                             static_cast<const int64_t*>(call.in[2]), in[2].dims.d[0], call.in[3],
                             static_cast<const int64_t*>(call.in[4]), call.in[5], biased != 0 ? call.in[6] : nullptr, &tail,
                             in[4].dims.d[0], in[4].dims.d[1], volume(in[0].dims, 1), in[5].dims.d[0], call.workspace,
                             call.stream);
  }
};

/// rows [M, C], weight [C, C_out], or [C_out, C] if transB, bias [C_out] if it is biased, and a tail's operands.
class RowLinear final : public Operator {
 public:
  const char* name() const override { return "RowLinear"; }
  std::vector<const char*> integers() const override { return with_tail({"transB", "biased"}); }
  bool knows(const Settings& is) const override {
    return is_flag(is.integers[0]) && is_flag(is.integers[1]) && TailOperands::knows(&is.integers[2]);
  }
  int32_t inputs(const Settings& is) const override { return 2 + is.integers[1] + TailOperands::inputs(&is.integers[2]); }
  int32_t outputs(const Settings& is) const override { return 1 + is.integers[2 + TailOperands::kKept]; }
  bool takes(int32_t, DataType type, DataType first) const override { return is_number(first) && type == first; }
  void shapes(const DimsExprs* in, DimsExprs* out, const Settings& is, IExprBuilder&) const override {
    for (int32_t i = 0; i < outputs(is); ++i) {
      out[i].nbDims = 2;
      out[i].d[0] = in[0].d[0];
      out[i].d[1] = in[1].d[is.integers[0] != 0 ? 0 : 1];
    }
  }
  size_t workspace(const DynamicPluginTensorDesc*) const override { return RETOUCH_WORKSPACE; }
  int run(const Call& call, const Settings& is) const override {
    const PluginTensorDesc* in = call.inputs;
    const int32_t transposed = is.integers[0], biased = is.integers[1];
    const RetouchTail tail = TailOperands::of(call, &is.integers[2], 2 + biased);
    return retouch_row_linear(type_number(in[0].type), call.out[0], call.in[0], call.in[1], transposed,
                              biased != 0 ? call.in[2] : nullptr, &tail, in[0].dims.d[0], in[0].dims.d[1],
                              in[1].dims.d[transposed != 0 ? 0 : 1], call.workspace, call.stream);
  }
};

/// query [M, H * D], recomputed key and value [R, H * ..], cached ones [N, H, ..], their row numbers [R, 1].
class EditAttention final : public Operator {
 public:
  const char* name() const override { return "EditAttention"; }
  std::vector<const char*> numbers() const override { return {"scale"}; }
  int32_t inputs(const Settings&) const override { return 6; }
  bool takes(int32_t input, DataType type, DataType first) const override {
    return input == 5 ? type == DataType::kINT64 : is_number(first) && type == first;
  }
  void shapes(const DimsExprs* in, DimsExprs* out, const Settings&, IExprBuilder& expressions) const override {
    *out = in[0];
    out->d[1] = expressions.operation(nvinfer1::DimensionOperation::kPROD, *in[4].d[1], *in[4].d[2]);
  }
  size_t workspace(const DynamicPluginTensorDesc* in) const override { return RETOUCH_WORKSPACE + slots_bytes(in[3].max.d[0]); }
  int run(const Call& call, const Settings& is) const override {
    const PluginTensorDesc* in = call.inputs;
    // The slots lie behind what the kernel shares out.
    int32_t* slot = reinterpret_cast<int32_t*>(static_cast<char*>(call.workspace) + RETOUCH_WORKSPACE);
    const Dims &key = in[3].dims, &value = in[4].dims;
    const int failure = retouch_fill_slots(slot, static_cast<const int64_t*>(call.in[5]), in[5].dims.d[0], value.d[0], call.stream);
    if (failure != 0) return failure;
    return retouch_edit_attention(type_number(in[0].type), call.out[0], call.in[0], call.in[3], call.in[4], call.in[1], call.in[2], slot,
                                  key.d[1], in[0].dims.d[0], key.d[0], key.d[2], value.d[2], is.numbers[0], call.workspace, call.stream);
  }
};

/// rows [M, C], cached [N, C], their places [M], moments [2, 1, groups] in single precision, then factor and shift [C] if it is
/// affine; gives the rows and the moments they were normalised by.
class EditGroupNorm final : public Operator {
 public:
  const char* name() const override { return "EditGroupNorm"; }
  std::vector<const char*> integers() const override { return {"groups", "affine", "activation"}; }
  std::vector<const char*> numbers() const override { return {"share", "epsilon"}; }
  bool knows(const Settings& is) const override {
    return is.integers[0] > 0 && is_flag(is.integers[1]) && is.integers[2] >= RETOUCH_NO_ACTIVATION &&
           is.integers[2] <= RETOUCH_TANH_GELU;
  }
  int32_t inputs(const Settings& is) const override { return 4 + 2 * is.integers[1]; }
  int32_t outputs(const Settings&) const override { return 2; }
  bool takes(int32_t input, DataType type, DataType first) const override {
    if (input == 2) return type == DataType::kINT64;
    return input == 3 ? type == DataType::kFLOAT : is_number(first) && type == first;
  }
  DataType gives(int32_t output, DataType first) const override { return output == 0 ? first : DataType::kFLOAT; }
  void shapes(const DimsExprs* in, DimsExprs* out, const Settings&, IExprBuilder&) const override {
    out[0] = in[0];
    out[1] = in[3];
  }
  int run(const Call& call, const Settings& is) const override {
    const PluginTensorDesc* in = call.inputs;
    const int64_t rows = in[0].dims.d[0], channels = in[0].dims.d[1], groups = is.integers[0];
    float* moments = static_cast<float*>(call.out[1]);
    const int failure = retouch_group_moments(type_number(in[0].type), moments, call.in[0], call.in[1], in[1].dims.d[0],
                                              static_cast<const int64_t*>(call.in[2]), static_cast<const float*>(call.in[3]), rows,
                                              channels, groups, is.numbers[0], call.stream);
    if (failure != 0) return failure;
    const bool affine = is.integers[1] != 0;
    return retouch_edit_group_norm(type_number(in[0].type), call.out[0], call.in[0], moments, affine ? call.in[4] : nullptr,
                                   affine ? call.in[5] : nullptr, is.integers[2], rows, channels, groups, is.numbers[1], call.stream);
  }
};

}  // namespace

const std::vector<const Operator*>& operators() {
  static const GatherRows gather;
  static const MaskedMerge merge;
  static const ScatterRows scatter;
  static const EditConv conv;
  static const RowLinear linear;
  static const EditAttention attention;
  static const EditGroupNorm norm;
  static const std::vector<const Operator*> all = {&gather, &merge, &scatter, &conv, &linear, &attention, &norm};
  return all;
}

}  // namespace retouch::trt
