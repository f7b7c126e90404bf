#include "kernels/ops.h"

#include <algorithm>

namespace retouch {
namespace {

std::vector<Op> made_ops() {
  std::vector<Op> all = {edit_attention(), gather_rows(), group_moments(), masked_merge(), moment_affine(), scatter_rows(), stacked_attention()};
  for (const TailForm& tail : tail_forms()) {
    for (bool batch : {false, true}) {
      all.push_back(depthwise_edit_conv(tail, batch));
      all.push_back(edit_conv(tail, batch));
      all.push_back(grouped_edit_conv(tail, batch));
      all.push_back(row_linear(tail, batch));
      if (tail.only_maps()) {
        for (bool stacked : {false, true}) all.push_back(edit_group_norm(tail, batch, stacked));
      }
      if (!tail.is_empty()) all.push_back(rows(tail, batch));
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
