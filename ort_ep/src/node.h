// What can be asked of a node before and while its kernel is made.
#pragma once

#include <string>
#include <vector>

#include "abi.h"
#include "cpu/weight_storage.h"

namespace retouch {

/// The type of a value: element type, and the sizes of its axes, -1 where they are open; no axes if nothing is known.
struct ValueType {
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<int64_t> dims;

  bool is(ONNXTensorElementDataType type) const noexcept { return element == type; }

  /// Whether it has two axes, both known and none of them zero.
  bool is_matrix() const;

  /// Whether it is rows [M, C], or [M, B, C] of a batch of samples, all but M known and none of those zero.
  bool is_rows(bool batch) const;

  /// The axes of a row.
  std::vector<int64_t> row() const { return {dims.begin() + 1, dims.end()}; }

  /// Whether it was left out, or holds a number per column of rows [M, C] or [M, B, C]: [C], or [B, C] if every sample has
  /// its own, perhaps behind axes of size one. `row` is [C] or [B, C].
  bool is_optional_row(const std::vector<int64_t>& row) const;
};

/// A node of a graph that is being distributed over execution providers.
class Node {
 public:
  explicit Node(const OrtNode* node) : node_(node) {}

  std::string domain() const;
  std::string op_type() const;
  std::string name() const;

  /// The types of the operands; of undefined element type where one was left out.
  std::vector<ValueType> input_types() const;

  /// Whether somebody wants the first result.
  bool has_first_output() const;

  /// Whether an operand is the same in every run: a weight, or what is computed from weights alone.
  ///
  /// The runtime asks for the first time before it folds constants, and a node that is not claimed then is gone.
  bool is_constant(size_t input) const;

  /// An attribute.
  int64_t integer(const char* name, int64_t otherwise) const;

  const OrtNode* raw() const noexcept { return node_; }

 private:
  const OrtNode* node_;
};

/// The attributes of a node whose kernel is being made, and what the session asks of all kernels.
class Attributes {
 public:
  Attributes(const OrtKernelInfo* info, WeightStorage weights) noexcept : info_(info), weights_(weights) {}

  int64_t integer(const char* name, int64_t otherwise) const;

  /// How packed weights are to be kept.
  WeightStorage weights() const noexcept { return weights_; }

 private:
  const OrtKernelInfo* info_;
  WeightStorage weights_;
};

}  // namespace retouch
