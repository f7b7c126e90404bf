// A kernel's view of one call: its operands, its results and the runtime's threads.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "tensor.h"

namespace retouch {

/// The tensor of a value of the runtime.
Tensor tensor_of(const OrtValue* value);

/// One call of a kernel.
class Context {
 public:
  /// `threads` is the most that work is split over.
  Context(OrtKernelContext* context, size_t threads) noexcept : context_(context), threads_(threads) {}

  /// An operand; without data if it was left out.
  Tensor input(size_t index) const;

  /// A result, which may lie where an operand lies if the operator allows that.
  Tensor output(size_t index, const Shape& shape, ONNXTensorElementDataType type) const;

  /// How many threads are worth their start for some multiplications (and additions): at least one, at most all.
  size_t threads_for(size_t multiplications) const noexcept;

  /// Calls `body(i)` for every i below `count`, the next one whenever a thread of the session is free. What a call throws is
  /// thrown on, once all are done.
  template <typename Body>
  void parallel_for(size_t count, Body&& body) const {
    parallel_for(count, threads_, std::forward<Body>(body));
  }

  /// The same on fewer threads.
  template <typename Body>
  void parallel_for(size_t count, size_t threads, Body&& body) const {
    if (count > 1 && threads > 1) return run(count, std::min(count, threads), std::ref(body));
    for (size_t i = 0; i < count; ++i) body(i);
  }

 private:
  void run(size_t count, size_t threads, const std::function<void(size_t)>& body) const;

  OrtKernelContext* context_;
  size_t threads_;
};

}  // namespace retouch
