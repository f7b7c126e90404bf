#include "tensor.h"

#include <algorithm>

#include "api.h"

namespace retouch {

Shape::Shape(std::initializer_list<int64_t> dims) {
  resize(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

void Shape::resize(size_t rank) {
  if (rank > kMaxRank) throw Error("retouch: expected a tensor of at most 8 axes, got " + std::to_string(rank));
  rank_ = rank;
}

void Shape::push(int64_t dim) {
  resize(rank_ + 1);
  dims_[rank_ - 1] = dim;
}

int64_t Shape::count(size_t first, size_t last) const noexcept {
  int64_t product = 1;
  for (size_t axis = first; axis < last; ++axis) product *= dims_[axis];
  return product;
}

bool Shape::is_possible() const noexcept {
  int64_t product = 1;
  for (size_t axis = 0; axis < rank_; ++axis) {
    if (dims_[axis] < 0 || __builtin_mul_overflow(product, dims_[axis], &product)) return false;
  }
  return true;
}

bool Shape::operator==(const Shape& other) const noexcept {
  return rank_ == other.rank_ && std::equal(dims_.begin(), dims_.begin() + rank_, other.dims_.begin());
}

std::string Shape::text() const {
  std::string text = "[";
  for (size_t axis = 0; axis < rank_; ++axis) text += (axis ? ", " : "") + std::to_string(dims_[axis]);
  return text + "]";
}

size_t element_size(ONNXTensorElementDataType type) noexcept {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
      return 1;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
      return 2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
      return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
      return 8;
    default:
      return 0;
  }
}

void require(bool condition, const char* op, const std::string& expectation, const Tensor& got) {
  if (condition) return;
  throw Error(std::string(op) + ": expected " + expectation + ", got shape " + got.shape.text());
}

}  // namespace retouch
