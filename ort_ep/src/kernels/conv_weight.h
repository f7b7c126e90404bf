// The weights of a convolution of rows.
#pragma once

#include "cpu/row_product.h"
#include "node.h"
#include "tensor.h"

namespace retouch {

/// Weights as a matrix [C_out, T * C], or as models store them, [C_out, C, T].
struct ConvWeight {
  static constexpr const char* kForms = "weight [C_out, T * C] or [C_out, C, T]";

  /// Whether a node's operand has one of these forms, all axes known and none of them zero.
  static bool is(const ValueType& weight) noexcept;
  static bool is(const Tensor& weight) noexcept;

  explicit ConvWeight(const Tensor& weight) noexcept;

  /// Where the columns from one on come from.
  RowProduct::Source from(size_t column) const noexcept { return {data + column * depth, 1, depth, taps}; }

  const float* data;
  size_t columns;
  size_t depth;
  /// One for a matrix, which does not say how many it has.
  size_t taps;
};

}  // namespace retouch
