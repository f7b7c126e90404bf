// A kernel's view of one call: its operands, its results and the runtime's threads.
#pragma once

#include <utility>

#include "tensor.h"

namespace retouch {

/// The tensor of a value of the runtime.
Tensor tensor_of(const OrtValue* value);

/// One call of a kernel.
class Context {
 public:
  explicit Context(OrtKernelContext* context) noexcept : context_(context) {}

  /// An operand; without data if it was left out.
  Tensor input(size_t index) const;

  /// A result, which may lie where an operand lies if the operator allows that.
  Tensor output(size_t index, const Shape& shape, ONNXTensorElementDataType type) const;

  /// Calls `body(i)` for every i below `count` on the session's threads. The body must not throw.
  template <typename Body>
  void parallel_for(size_t count, Body&& body) const {
    if (count == 1) return body(size_t{0});
    run(count, [](void* user, size_t index) { (*static_cast<std::remove_reference_t<Body>*>(user))(index); }, &body);
  }

 private:
  void run(size_t count, void (*body)(void*, size_t), void* user) const;

  OrtKernelContext* context_;
};

}  // namespace retouch
