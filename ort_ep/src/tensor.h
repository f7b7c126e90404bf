// A tensor in host memory, seen and not owned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "abi.h"

namespace retouch {

/// A shape of few axes, without memory of its own.
class Shape {
 public:
  static constexpr size_t kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);

  size_t rank() const noexcept { return rank_; }
  int64_t operator[](size_t axis) const noexcept { return dims_[axis]; }
  int64_t* data() noexcept { return dims_.data(); }
  const int64_t* data() const noexcept { return dims_.data(); }

  /// Makes room for that many axes. Throws if there are too many.
  void resize(size_t rank);

  /// Appends an axis.
  void push(int64_t dim);

  /// The product of the axes from `first` to before `last`.
  int64_t count(size_t first, size_t last) const noexcept;
  int64_t count(size_t first = 0) const noexcept { return count(first, rank_); }

  /// Whether a tensor can have it: no axis is negative, and their product is a number.
  bool is_possible() const noexcept;

  bool operator==(const Shape& other) const noexcept;
  std::string text() const;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  size_t rank_ = 0;
};

/// The size of an element in bytes, zero if it has no fixed one.
size_t element_size(ONNXTensorElementDataType type) noexcept;

/// A tensor in host memory; false where an optional one was left out.
struct Tensor {
  bool present = false;
  void* data = nullptr;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  Shape shape;

  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data);
  }
  explicit operator bool() const noexcept { return present; }
};

/// Throws an error that names the operator and the operand unless the condition holds.
void require(bool condition, const char* op, const std::string& expectation, const Tensor& got);

}  // namespace retouch
