#include "kernels/ops.h"

#include <algorithm>

namespace retouch {
namespace {

using Operands = std::vector<Signature::Operand>;

constexpr Signature::Operand kFloat{Kind::kFloat}, kIndex{Kind::kIndex}, kAny{Kind::kAny}, kBias{Kind::kFloat, true};

Op with(Op op, Operands inputs, size_t results = 1) {
  op.signature = {std::move(inputs), results};
  return op;
}

/// An operator whose operands those of its tail follow.
Op with(Op op, Operands inputs, const TailForm& tail, size_t results = 1) {
  for (int given = tail.gated + tail.added + 2 * tail.affine; given > 0; --given) inputs.push_back(kFloat);
  return with(std::move(op), std::move(inputs), results + tail.kept);
}

/// In a batch the form of the result comes before the operands of the tail.
Operands product(Operands inputs, bool batch) {
  if (batch) inputs.push_back(kIndex);
  return inputs;
}

std::vector<Op> made_ops() {
  const Operands convolution{kFloat, kFloat, kIndex, kFloat, kIndex, kFloat, kBias}, linear{kFloat, kFloat, kBias};
  const Operands norm{kFloat, kFloat, kIndex, kFloat, kIndex, kFloat, kFloat}, stacked_norm{kFloat, kFloat, kIndex, kFloat, kIndex, kFloat, kFloat, kIndex, kIndex};
  std::vector<Op> all = {
      with(edit_attention(), {kFloat, kFloat, kFloat, kFloat, kFloat, kIndex, kFloat}),
      with(stacked_attention(), {kFloat, kFloat, kFloat, kFloat, kFloat, kFloat, kFloat}),
      with(gather_rows(), {kAny, kAny, kIndex, kAny, kIndex}),
      with(group_moments(), {kFloat, kIndex}),
      with(masked_merge(), {kAny, kIndex, kAny}),
      with(moment_affine(), {kFloat, kIndex, kFloat, kIndex}, 2),
      with(scatter_rows(), {kAny, kIndex, kAny}),
      with(token_linear(), {kFloat, kFloat}),
  };
  for (const TailForm& tail : tail_forms()) {
    for (bool batch : {false, true}) {
      all.push_back(with(depthwise_edit_conv(tail, batch), convolution, tail));
      all.push_back(with(edit_conv(tail, batch), product(convolution, batch), tail));
      all.push_back(with(grouped_edit_conv(tail, batch), product(convolution, batch), tail));
      all.push_back(with(row_linear(tail, batch), product(linear, batch), tail));
      if (tail.only_maps()) {
        all.push_back(with(edit_group_norm(tail, batch, false), norm, tail, 2));
        all.push_back(with(edit_group_norm(tail, batch, true), stacked_norm, tail));
      }
      if (!tail.is_empty()) all.push_back(with(rows(tail, batch), {kFloat}, tail));
    }
  }
  return all;
}

}  // namespace

const std::vector<Op>& ops() {
  static const std::vector<Op> all = made_ops();
  return all;
}

const Op* find_op(const std::string& name) {
  const auto found = std::find_if(ops().begin(), ops().end(), [&](const Op& op) { return name == op.name; });
  return found == ops().end() ? nullptr : &*found;
}

}  // namespace retouch
