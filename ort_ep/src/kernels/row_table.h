// The rows that a neighbourhood reads from, without copying them together.
#pragma once

#include <vector>

#include "context.h"

namespace retouch {

/// The table [rows; cached[halo]; pad] of GatherRows and convolutions, whose five operands come first and in that order.
class RowTable {
 public:
  /// Reads the operands and checks that they fit; every index is checked here, once. In a batch, rows [B, C] are taken
  /// apart into those of its samples.
  RowTable(const char* op, const Context& context, bool batch = false);

  /// Rows of the result.
  size_t targets() const noexcept { return targets_; }

  /// How many rows a row is taken apart into.
  size_t samples() const noexcept { return samples_; }

  /// Entries per row of the result.
  size_t taps() const noexcept { return taps_; }

  /// The shape of a row.
  const Shape& row() const noexcept { return row_; }
  size_t row_bytes() const noexcept { return row_bytes_; }
  ONNXTensorElementDataType type() const noexcept { return type_; }

  /// The row that every sample of every target reads at every tap, target after target.
  const char* const* pointers() const noexcept { return pointers_.data(); }

 private:
  size_t targets_ = 0;
  size_t samples_ = 1;
  size_t taps_ = 0;
  Shape row_;
  size_t row_bytes_ = 0;
  ONNXTensorElementDataType type_ = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<const char*> pointers_;
};

}  // namespace retouch
