#include "kernels/ops.h"

#include <algorithm>

namespace retouch {

const std::vector<const Op*>& ops() {
  static const std::vector<const Op*> all = {&kEditConv, &kGatherRows, &kMaskedMerge, &kRowLinear};
  return all;
}

const Op* find_op(const std::string& name) {
  const auto found = std::find_if(ops().begin(), ops().end(), [&](const Op* op) { return name == op->name; });
  return found == ops().end() ? nullptr : *found;
}

}  // namespace retouch
