// EditAttention in single precision, on the ordinary units.
//
// Floor: 4 * M * N * D operations, and 2 * N * D * 4 bytes per head; a warp reads keys and values for one query alone.
#pragma once

#include "attention_operands.cuh"
#include "warp.cuh"

namespace retouch {

constexpr unsigned kPlainWarps = 4;
constexpr int kPlainChannels = 8;

/// A warp takes one query, a lane one key of 32 and every 32nd channel.
__global__ void __launch_bounds__(kPlainWarps* kWarpSize) plain_attention_kernel(AttentionOperands<float> op) {
  const unsigned warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int64_t head = blockIdx.y, query = static_cast<int64_t>(blockIdx.x) * kPlainWarps + warp;
  if (query >= op.queries) return;
  const float* own = op.query + (query * op.heads + head) * op.width;
  float sums[kPlainChannels] = {}, largest = kLowest, total = 0.0f;
  for (int64_t first = 0; first < op.keys; first += kWarpSize) {
    const int64_t number = first + lane;
    float score = kLowest;
    if (number < op.keys) {
      const float* key = op.key_row(head, number);
      score = 0.0f;
      for (int64_t channel = 0; channel < op.width; ++channel) score += own[channel] * key[channel];
      score *= op.scale;
    }
    float most = fmaxf(largest, score);
    for (unsigned mask = 16; mask > 0; mask /= 2) most = fmaxf(most, shuffle_xor(most, mask));
    const float weight = number < op.keys ? expf(score - most) : 0.0f, shrink = expf(largest - most);
    float sum = weight;
    for (unsigned mask = 16; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    total = total * shrink + sum;
    largest = most;
    for (int i = 0; i < kPlainChannels; ++i) sums[i] *= shrink;
    for (unsigned from = 0; from < kWarpSize; ++from) {
      const float share = shuffle_from(weight, from);
      if (first + from >= op.keys) continue;
      const float* value = op.value_row(head, first + from);
      for (int i = 0; i < kPlainChannels; ++i) {
        const int64_t channel = lane + static_cast<int64_t>(i) * kWarpSize;
        if (channel < op.value_width) sums[i] += share * value[channel];
      }
    }
  }
  for (int i = 0; i < kPlainChannels; ++i) {
    const int64_t channel = lane + static_cast<int64_t>(i) * kWarpSize;
    if (channel < op.value_width) op.out[(query * op.heads + head) * op.value_width + channel] = sums[i] / total;
  }
}

inline int plain_attention(const AttentionOperands<float>& op, Stream stream) {
  if (op.value_width > kMostWidth || op.keys == 0) return RETOUCH_NOT_SUPPORTED;
  if (op.queries == 0 || op.heads == 0 || op.value_width == 0) return 0;
  const dim3 grid(static_cast<unsigned>(divided_up(op.queries, kPlainWarps)), static_cast<unsigned>(op.heads));
  RETOUCH_LAUNCH(plain_attention_kernel, grid, dim3(kPlainWarps * kWarpSize), stream, op);
  return last_error();
}

}  // namespace retouch
