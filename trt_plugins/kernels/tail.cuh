// Tails: what is done to the rows of a product while they are in registers (export/ops/tails.py).
//
// y = act(((x * gate) + residual) * factor + shift), each part where it is asked for; what there is before the affine map may
// be kept as a second result. Floor, beside the product's: M * C numbers for the residual, as many for what is kept.
#pragma once

#include "launch.h"
#include "platform.cuh"

namespace retouch {

__device__ __forceinline__ float activated(float x, int activation) {
  switch (activation) {
    case RETOUCH_SILU: return x / (1.0f + expf(-x));
    case RETOUCH_GELU: return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case RETOUCH_TANH_GELU: return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    default: return x;
  }
}

template <typename T>
struct Tail {
  const T* gate;      // [columns], or null
  const T* residual;  // [rows, columns], or null
  T* kept;            // [rows, columns], or null
  const T* factor;    // [columns], or null together with shift
  const T* shift;
  int activation;

  /// What becomes of a number of a product of ``columns`` columns.
  __device__ __forceinline__ float apply(float x, int64_t row, int64_t column, int64_t columns) const {
    if (gate != nullptr) x *= to_float(gate[column]);
    if (residual != nullptr) x += to_float(residual[row * columns + column]);
    if (kept != nullptr) kept[row * columns + column] = from_float<T>(x);
    if (factor != nullptr) x = x * to_float(factor[column]) + to_float(shift[column]);
    return activated(x, activation);
  }
};

template <typename T>
Tail<T> typed_tail(const RetouchTail* tail) {
  if (tail == nullptr) return {nullptr, nullptr, nullptr, nullptr, nullptr, RETOUCH_NO_ACTIVATION};
  return {static_cast<const T*>(tail->gate),   static_cast<const T*>(tail->residual), static_cast<T*>(tail->kept),
          static_cast<const T*>(tail->factor), static_cast<const T*>(tail->shift),    tail->activation};
}

}  // namespace retouch
