#include "context.h"

#include <memory>

#include "api.h"

namespace retouch {

Tensor tensor_of(const OrtValue* value) {
  Tensor tensor;
  if (value == nullptr) return tensor;
  tensor.present = true;
  const OrtApi* api = runtime().api;
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  check(api->GetTensorTypeAndShape(value, &raw));
  std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> info(raw, api->ReleaseTensorTypeAndShapeInfo);
  check(api->GetTensorElementType(raw, &tensor.type));
  size_t rank = 0;
  check(api->GetDimensionsCount(raw, &rank));
  tensor.shape.resize(rank);
  check(api->GetDimensions(raw, tensor.shape.data(), rank));
  // The interface has one function for reading and writing; operands are not written to.
  check(api->GetTensorMutableData(const_cast<OrtValue*>(value), &tensor.data));
  return tensor;
}

Tensor Context::input(size_t index) const {
  const OrtApi* api = runtime().api;
  size_t count = 0;
  check(api->KernelContext_GetInputCount(context_, &count));
  const OrtValue* value = nullptr;
  if (index < count) check(api->KernelContext_GetInput(context_, index, &value));
  return tensor_of(value);
}

Tensor Context::output(size_t index, const Shape& shape, ONNXTensorElementDataType type) const {
  const OrtApi* api = runtime().api;
  OrtValue* value = nullptr;
  check(api->KernelContext_GetOutput(context_, index, shape.data(), shape.rank(), &value));
  Tensor tensor{value != nullptr, nullptr, type, shape};
  if (tensor) check(api->GetTensorMutableData(value, &tensor.data));
  return tensor;
}

void Context::run(size_t count, void (*body)(void*, size_t), void* user) const {
  if (count != 0) check(runtime().api->KernelContext_ParallelFor(context_, body, count, 0, user));
}

}  // namespace retouch
