#include "context.h"

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>

#include "api.h"

namespace retouch {
namespace {

/// A thread takes some microseconds to start; one multiplies so often in about five of them.
constexpr size_t kLeastMultiplications = 256 << 10;

/// Calls from the runtime's threads, out of which nothing may be thrown. Every thread takes the next one until none is left.
class Calls {
 public:
  Calls(const std::function<void(size_t)>& body, size_t count) : body_(body), count_(count) {}

  void work() noexcept {
    try {
      for (size_t i = next_++; i < count_; i = next_++) body_(i);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      thrown = std::current_exception();
    }
  }

  std::exception_ptr thrown;

 private:
  const std::function<void(size_t)>& body_;
  const size_t count_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
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

size_t Context::threads_for(size_t multiplications) const noexcept {
  return std::max<size_t>(1, std::min(threads_, multiplications / kLeastMultiplications));
}

void Context::run(size_t count, size_t threads, const std::function<void(size_t)>& body) const {
  Calls calls(body, count);
  check(runtime().api->KernelContext_ParallelFor(context_, [](void* user, size_t) { static_cast<Calls*>(user)->work(); }, threads, 0, &calls));
  if (calls.thrown) std::rethrow_exception(calls.thrown);
}

}  // namespace retouch
