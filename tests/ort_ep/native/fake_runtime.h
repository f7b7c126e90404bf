// As much of ONNX Runtime as kernels see, so that they can be run under sanitizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel.h"

namespace retouch::fake {

/// A tensor in memory of exactly its size.
struct Value {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  std::vector<int64_t> dims;
  std::unique_ptr<char[]> bytes;

  static Value of(ONNXTensorElementDataType type, std::vector<int64_t> dims);
  static Value numbers(std::vector<int64_t> dims, const std::vector<float>& content);
  static Value indices(std::vector<int64_t> dims, const std::vector<int64_t>& content);

  size_t count() const;
  float* floats() const { return reinterpret_cast<float*>(bytes.get()); }
};

/// Hands the runtime to the kernels; `threads` serve every parallel loop.
void start(size_t threads);

/// A kernel of the operator of that name, the constants packed that it wants packed, and kept in that way.
std::unique_ptr<Kernel> make(const std::string& op, const std::vector<const Value*>& inputs, const std::vector<size_t>& constants,
                             const std::map<std::string, int64_t>& attributes = {}, WeightStorage weights = WeightStorage::kFloat32);

/// The results of one call. Throws what the kernel throws.
std::vector<Value> call(const Kernel& kernel, const std::vector<const Value*>& inputs, size_t results);

}  // namespace retouch::fake
