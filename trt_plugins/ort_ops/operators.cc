// The operators of ai.retouch in the form that trt_plugins/_plugin_nodes.py writes: the parts of tails are attributes, and
// every operand has a place of its own, which may be empty.
#include "operator.h"

namespace retouch::ort {
namespace {

constexpr Operand kRows = {Kind::kNumber, false}, kPlaces = {Kind::kIndex, false}, kMoments = {Kind::kFloat, false};
constexpr Operand kPerhaps = {Kind::kNumber, true};

/// rows [A, ..], cached [N, ..], halo [H], pad [1, ..], neighbours [M, T].
const std::vector<Operand> kTable = {kRows, kRows, kPlaces, kRows, kPlaces};

std::vector<Operand> with(std::vector<Operand> first, const std::vector<Operand>& others) {
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

class GatherRows final : public Operator {
 public:
  const char* name() const override { return "GatherRows"; }
  std::vector<Operand> inputs() const override { return kTable; }
  int run(Call& call, const Settings&) const override {
    const std::vector<int64_t> rows = call.dims(0), neighbours = call.dims(4);
    std::vector<int64_t> dims = neighbours;
    dims.insert(dims.end(), rows.begin() + 1, rows.end());
    return retouch_gather_rows(call.out(0, dims), call.in(0), rows[0], call.in(1), call.dim(1, 0), call.index(2), call.dim(2, 0),
                               call.in(3), call.index(4), volume(neighbours), volume(rows, 1) * call.number_bytes(), call.stream());
  }
};

/// cached [.., row], index [M, K], rows [M, row].
class MaskedMerge final : public Operator {
 public:
  const char* name() const override { return "MaskedMerge"; }
  std::vector<Operand> inputs() const override { return {kRows, kPlaces, kRows}; }
  int run(Call& call, const Settings&) const override {
    const std::vector<int64_t> cached = call.dims(0), index = call.dims(1);
    if (index[1] > static_cast<int64_t>(cached.size())) return RETOUCH_NOT_SUPPORTED;
    const int axes = static_cast<int>(index[1]);
    return retouch_masked_merge(call.out(0, cached), call.in(0), cached.data(), axes, call.index(1), call.in(2), index[0],
                                volume(cached, static_cast<size_t>(axes)) * call.number_bytes(), call.stream());
  }
};

/// cached, index [M] over its axes from ``axis`` to ``end``, and rows of its shape with M in their place.
class ScatterRows final : public Operator {
 public:
  const char* name() const override { return "ScatterRows"; }
  std::vector<const char*> integers() const override { return {"axis", "end"}; }
  std::vector<Operand> inputs() const override { return {kRows, kPlaces, kRows}; }
  int run(Call& call, const Settings& is) const override {
    const std::vector<int64_t> cached = call.dims(0);
    const int64_t rank = static_cast<int64_t>(cached.size());
    if (is.integers[0] < 0 || is.integers[1] <= is.integers[0] || is.integers[1] > rank) return RETOUCH_NOT_SUPPORTED;
    const size_t axis = static_cast<size_t>(is.integers[0]), end = static_cast<size_t>(is.integers[1]);
    return retouch_scatter_rows(call.out(0, cached), call.in(0), volume(cached, 0, axis), volume(cached, axis, end), call.index(1),
                                call.in(2), call.dim(1, 0), volume(cached, end) * call.number_bytes(), call.stream());
  }
};

/// The operands of a tail, from an input on, and the attribute that says what comes last.
const std::vector<Operand> kTail = {kPerhaps, kPerhaps, kPerhaps, kPerhaps};
const std::vector<const char*> kTailNames = {"gated", "added", "kept", "affine", "activation"};
enum { kGated, kAdded, kKept, kAffine, kActivation };

std::vector<const char*> with_tail(std::vector<const char*> names) {
  names.insert(names.end(), kTailNames.begin(), kTailNames.end());
  return names;
}

RetouchTail tail_of(const Call& call, const int64_t* parts, size_t input, const std::vector<int64_t>& dims) {
  void* kept = parts[kKept] != 0 ? call.out(1, dims) : nullptr;
  return {call.in(input),     call.in(input + 1), kept,
          call.in(input + 2), call.in(input + 3), static_cast<int>(parts[kActivation])};
}

/// A table, weight [C_out, T * C], bias [C_out], and a tail's operands.
class EditConv final : public Operator {
 public:
  const char* name() const override { return "EditConv"; }
  std::vector<const char*> integers() const override { return with_tail({}); }
  std::vector<Operand> inputs() const override { return with(with(kTable, {kRows, kPerhaps}), kTail); }
  std::vector<Operand> outputs() const override { return {kRows, kPerhaps}; }
  int run(Call& call, const Settings& is) const override {
    const std::vector<int64_t> rows = call.dims(0), neighbours = call.dims(4), dims = {neighbours[0], call.dim(5, 0)};
    const RetouchTail tail = tail_of(call, is.integers.data(), 7, dims);
    return retouch_edit_conv(call.type(), call.out(0, dims), call.in(0), rows[0], call.in(1), call.dim(1, 0), call.index(2),
                             call.dim(2, 0), call.in(3), call.index(4), call.in(5), call.in(6), &tail, dims[0], neighbours[1], volume(rows, 1), dims[1],
                             call.workspace(RETOUCH_WORKSPACE), call.stream());
  }
};

/// rows [M, C], weight [C, C_out], or [C_out, C] if transB, bias [C_out], and a tail's operands.
class RowLinear final : public Operator {
 public:
  const char* name() const override { return "RowLinear"; }
  std::vector<const char*> integers() const override { return with_tail({"transB"}); }
  std::vector<Operand> inputs() const override { return with({kRows, kRows, kPerhaps}, kTail); }
  std::vector<Operand> outputs() const override { return {kRows, kPerhaps}; }
  int run(Call& call, const Settings& is) const override {
    const int transposed = static_cast<int>(is.integers[0]);
    const std::vector<int64_t> rows = call.dims(0), dims = {rows[0], call.dim(1, transposed != 0 ? 0 : 1)};
    const RetouchTail tail = tail_of(call, is.integers.data() + 1, 3, dims);
    return retouch_row_linear(call.type(), call.out(0, dims), call.in(0), call.in(1), transposed, call.in(2), &tail, rows[0], rows[1],
                              dims[1], call.workspace(RETOUCH_WORKSPACE), call.stream());
  }
};

/// query [M, H * D], recomputed key and value [R, H * ..], cached ones [N, H, ..], their row numbers [R, 1].
class EditAttention final : public Operator {
 public:
  const char* name() const override { return "EditAttention"; }
  std::vector<const char*> numbers() const override { return {"scale"}; }
  std::vector<Operand> inputs() const override { return {kRows, kRows, kRows, kRows, kRows, kPlaces}; }
  int run(Call& call, const Settings& is) const override {
    const std::vector<int64_t> key = call.dims(3), value = call.dims(4);
    char* space = static_cast<char*>(call.workspace(RETOUCH_WORKSPACE + static_cast<size_t>(key[0]) * sizeof(int32_t)));
    int32_t* slot = reinterpret_cast<int32_t*>(space + RETOUCH_WORKSPACE);
    const int failure = retouch_fill_slots(slot, call.index(5), call.dim(5, 0), key[0], call.stream());
    if (failure != 0) return failure;
    const int64_t queries = call.dim(0, 0);
    return retouch_edit_attention(call.type(), call.out(0, {queries, value[1] * value[2]}), call.in(0), call.in(3), call.in(4), call.in(1),
                                  call.in(2), slot, key[1], queries, key[0], key[2], value[2], is.numbers[0], space, call.stream());
  }
};

/// rows [M, C], cached [N, C], their places [M], moments [2, 1, groups] in single precision, factor and shift [C]; gives the
/// rows and the moments they were normalised by.
class EditGroupNorm final : public Operator {
 public:
  const char* name() const override { return "EditGroupNorm"; }
  std::vector<const char*> integers() const override { return {"groups", "activation"}; }
  std::vector<const char*> numbers() const override { return {"share", "epsilon"}; }
  std::vector<Operand> inputs() const override { return {kRows, kRows, kPlaces, kMoments, kPerhaps, kPerhaps}; }
  std::vector<Operand> outputs() const override { return {kRows, kMoments}; }
  int run(Call& call, const Settings& is) const override {
    const std::vector<int64_t> rows = call.dims(0);
    float* moments = static_cast<float*>(call.out(1, call.dims(3)));
    const int failure = retouch_group_moments(call.type(), moments, call.in(0), call.in(1), call.dim(1, 0), call.index(2),
                                              static_cast<const float*>(call.in(3)), rows[0], rows[1], is.integers[0], is.numbers[0],
                                              call.stream());
    if (failure != 0) return failure;
    return retouch_edit_group_norm(call.type(), call.out(0, rows), call.in(0), moments, call.in(4), call.in(5),
                                   static_cast<int>(is.integers[1]), rows[0], rows[1], is.integers[0], is.numbers[1], call.stream());
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

}  // namespace retouch::ort
