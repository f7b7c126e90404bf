// EditGroupNorm: active rows normalised by the base run's moments, scaled and shifted per channel.
//
// out = (x - mean[group]) / sqrt(variance[group] + epsilon) * gain + bias. Floor: 2 * M * C * size bytes.
#pragma once

#include "platform.cuh"

namespace retouch {

constexpr unsigned kNormThreads = 256;

template <typename T>
struct NormOperands {
  T* out;                // [rows, channels]
  const T* in;           // [rows, channels]
  const float* moments;  // [2, groups]: means, then variances
  const T* gain;         // [channels], or null for ones
  const T* bias;         // [channels], or null for zeros
  int64_t rows, channels, groups;
  float epsilon;
};

/// A thread keeps its channel and goes down the rows: the channel's scale and shift are computed once.
template <typename T>
__global__ void __launch_bounds__(kNormThreads) edit_group_norm_kernel(NormOperands<T> op) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kNormThreads + threadIdx.x;
  if (channel >= op.channels) return;
  const int64_t group = channel / (op.channels / op.groups);
  const float gain = op.gain == nullptr ? 1.0f : to_float(op.gain[channel]), bias = op.bias == nullptr ? 0.0f : to_float(op.bias[channel]);
  const float scale = gain / sqrtf(op.moments[op.groups + group] + op.epsilon);
  const float shift = bias - op.moments[group] * scale;
  for (int64_t row = blockIdx.y; row < op.rows; row += gridDim.y)
    op.out[row * op.channels + channel] = from_float<T>(to_float(op.in[row * op.channels + channel]) * scale + shift);
}

template <typename T>
int edit_group_norm(const NormOperands<T>& op, Stream stream) {
  if (op.rows == 0 || op.channels == 0) return 0;
  constexpr int64_t kMostRowBlocks = 4096;
  const dim3 grid(static_cast<unsigned>(divided_up(op.channels, kNormThreads)),
                  static_cast<unsigned>(op.rows < kMostRowBlocks ? op.rows : kMostRowBlocks));
  RETOUCH_LAUNCH(edit_group_norm_kernel<T>, grid, dim3(kNormThreads), stream, op);
  return last_error();
}

}  // namespace retouch
