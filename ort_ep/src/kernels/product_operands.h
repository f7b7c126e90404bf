// Operands of products with a constant weight: what stands behind it.
#pragma once

#include <vector>

#include "kernels/tail_form.h"
#include "node.h"

namespace retouch {

/// Where the operands of a product are, its weight being that one; rows may be those of a batch of samples.
struct ProductOperands {
  size_t weight;
  bool batch;

  size_t bias() const noexcept { return weight + 1; }

  /// The first one of the tail. In a batch it comes behind the form of the result, which only the function body reads.
  size_t tail() const noexcept { return bias() + (batch ? 2 : 1); }

  /// Whether a kernel takes those of a node behind a weight of so many columns, if the weight is constant.
  bool fit(const Node& node, const std::vector<ValueType>& types, const TailForm& form, int64_t columns) const;
};

}  // namespace retouch
