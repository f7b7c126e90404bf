// A kernel's view of one call: its operands, its results and the runtime's threads.
#pragma once

#include <functional>

#include "tensor.h"

namespace retouch {

/// The tensor of a value of the runtime.
Tensor tensor_of(const OrtValue* value);

/// One call of a kernel.
class Context {
 public:
  /// `threads` is the most that work is split over, if it is not zero.
  explicit Context(OrtKernelContext* context, size_t threads = 0) noexcept : context_(context), threads_(threads) {}

  /// An operand; without data if it was left out.
  Tensor input(size_t index) const;

  /// A result, which may lie where an operand lies if the operator allows that.
  Tensor output(size_t index, const Shape& shape, ONNXTensorElementDataType type) const;

  /// Calls `body(i)` for every i below `count` on the session's threads. What a call throws is thrown on, once all are done.
  template <typename Body>
  void parallel_for(size_t count, Body&& body) const {
    if (count == 1) return body(size_t{0});
    run(count, std::ref(body));
  }

 private:
  void run(size_t count, const std::function<void(size_t)>& body) const;

  OrtKernelContext* context_;
  size_t threads_;
};

}  // namespace retouch
