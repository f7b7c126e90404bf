#include "context.h"

#include <exception>
#include <memory>
#include <mutex>

#include "api.h"

namespace retouch {
namespace {

/// Calls from the runtime's threads, out of which nothing may be thrown.
struct Calls {
  const std::function<void(size_t)>& body;
  std::mutex mutex;
  std::exception_ptr thrown;

  void call(size_t index) noexcept {
    try {
      body(index);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      thrown = std::current_exception();
    }
  }
};

}  // namespace

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

void Context::run(size_t count, const std::function<void(size_t)>& body) const {
  if (count == 0) return;
  if (threads_ != 0 && count > threads_) {
    const Context unlimited(context_);
    return unlimited.parallel_for(threads_, [&](size_t part) {
      for (size_t i = count * part / threads_; i < count * (part + 1) / threads_; ++i) body(i);
    });
  }
  Calls calls{body, {}, {}};
  check(runtime().api->KernelContext_ParallelFor(context_, [](void* user, size_t index) { static_cast<Calls*>(user)->call(index); }, count, 0, &calls));
  if (calls.thrown) std::rethrow_exception(calls.thrown);
}

}  // namespace retouch
