// EditGroupNorm: active rows normalised by moments that follow what they changed, scaled and shifted per channel.
//
// out = act((x - mean[group]) / sqrt(variance[group] + epsilon) * factor + shift). Moments move by the sums of x - y and of
// (x - y)(x + y - 2 mean) over the rows, y being cached (export/ops/edit_group_norm.py). Floor: 2 * M * C * size bytes for the
// rows, as many for the moments.
#pragma once

#include "tail.cuh"
#include "warp.cuh"

namespace retouch {

constexpr unsigned kNormThreads = 256;

template <typename T>
struct NormOperands {
  T* out;                // [rows, channels]
  const T* in;           // [rows, channels]
  const float* moments;  // [2, groups]: means, then variances
  const T* factor;       // [channels], or null for ones
  const T* shift;        // [channels], or null for zeros
  int activation;
  int64_t rows, channels, groups;
  float epsilon;
};

/// A thread keeps its channel and goes down the rows: what belongs to the channel is computed once.
template <typename T>
__global__ void __launch_bounds__(kNormThreads) edit_group_norm_kernel(NormOperands<T> op) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kNormThreads + threadIdx.x;
  if (channel >= op.channels) return;
  const int64_t group = channel / (op.channels / op.groups);
  const float factor = op.factor == nullptr ? 1.0f : to_float(op.factor[channel]);
  const float offset = op.shift == nullptr ? 0.0f : to_float(op.shift[channel]);
  const float mean = op.moments[group], scale = factor / sqrtf(op.moments[op.groups + group] + op.epsilon);
  // The mean is taken off first: behind the product, large means would leave their rounding.
  for (int64_t row = blockIdx.y; row < op.rows; row += gridDim.y) {
    const int64_t place = row * op.channels + channel;
    op.out[place] = from_float<T>(activated((to_float(op.in[place]) - mean) * scale + offset, op.activation));
  }
}

template <typename T>
struct MomentOperands {
  float* out;  // [2, groups]
  const T* in;
  const T* cached;  // [cached_rows, channels]
  int64_t cached_rows;
  const int64_t* index;  // [rows]: where the rows are in cached; one outside of it is passed over
  const float* moments;  // [2, groups], those of cached
  int64_t rows, channels, groups;
  float share;
};

/// A block takes a group. Differences are taken number by number, so that no large sums cancel.
template <typename T>
__global__ void __launch_bounds__(kNormThreads) group_moments_kernel(MomentOperands<T> op) {
  __shared__ float partial[2][kNormThreads / kWarpSize];
  const int64_t group = blockIdx.x, width = op.channels / op.groups, count = op.rows * width;
  const float mean = op.moments[group];
  float moved = 0.0f, widened = 0.0f;
  for (int64_t place = threadIdx.x; place < count; place += kNormThreads) {
    const int64_t row = place / width, channel = group * width + place % width, old = op.index[row];
    if (old < 0 || old >= op.cached_rows) continue;
    const float x = to_float(op.in[row * op.channels + channel]), y = to_float(op.cached[old * op.channels + channel]);
    moved += x - y;
    widened += (x - y) * (x + y - 2.0f * mean);
  }
  for (unsigned mask = kWarpSize / 2; mask > 0; mask /= 2) {
    moved += shuffle_xor(moved, mask);
    widened += shuffle_xor(widened, mask);
  }
  if (lane_number() == 0) {
    partial[0][threadIdx.x / kWarpSize] = moved;
    partial[1][threadIdx.x / kWarpSize] = widened;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  float sums[2] = {0.0f, 0.0f};
  for (unsigned warp = 0; warp < kNormThreads / kWarpSize; ++warp)
    for (int i = 0; i < 2; ++i) sums[i] += partial[i][warp];
  const float shifted = sums[0] * op.share;
  op.out[group] = mean + shifted;
  op.out[op.groups + group] = fmaxf(op.moments[op.groups + group] + sums[1] * op.share - shifted * shifted, 0.0f);
}

template <typename T>
int group_moments(const MomentOperands<T>& op, Stream stream) {
  if (op.groups == 0) return 0;
  RETOUCH_LAUNCH(group_moments_kernel<T>, dim3(static_cast<unsigned>(op.groups)), dim3(kNormThreads), stream, op);
  return last_error();
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
