// EditAttention: active queries over the base run's keys and values with the recomputed ones laid over them.
//
// softmax(scale * Q K^T) V per head, where row n of K and V is a row of the overlay if ``slot[n]`` names one and the base
// run's row otherwise: nothing is merged in memory. Online softmax (Milakov and Gimelshein, arXiv:1805.02867; tiled as in
// FlashAttention-2, arXiv:2307.08691). Few queries make few blocks: these share the keys out among more blocks, whose parts a
// second kernel puts together. Floor: 4 * M * N * D operations and 2 * N * D * size bytes per head.
#pragma once

#include "launch.h"
#include "warp.cuh"

namespace retouch {

template <typename T>
struct AttentionOperands {
  T* out;          // [queries, heads, value_width]
  const T* query;  // [queries, heads, width]
  const T* key;    // [keys, heads, width], the base run's
  const T* value;  // [keys, heads, value_width]
  const T* new_key;  // [any, heads, width], recomputed
  const T* new_value;
  const int32_t* slot;  // [keys]: number of the recomputed row, or negative
  int64_t heads, queries, keys, width, value_width;
  float scale;
  /// Whether eight numbers of a row can be read at once.
  bool aligned;
  float* shares;      // [blocks along the keys, heads, queries, value_width + 2], or null where one block has all keys
  int64_t each_keys;  // how many keys a block has

  /// A part of a query's result: sums of weighted values, then the largest score and the sum of the weights.
  __device__ __forceinline__ float* share(int64_t part, int64_t head, int64_t row) const {
    return shares + ((part * heads + head) * queries + row) * (value_width + 2);
  }

  __device__ __forceinline__ const T* key_row(int64_t head, int64_t number) const {
    const int32_t place = slot[number];
    return (place < 0 ? key + number * heads * width : new_key + place * heads * width) + head * width;
  }
  __device__ __forceinline__ const T* value_row(int64_t head, int64_t number) const {
    const int32_t place = slot[number];
    return (place < 0 ? value + number * heads * value_width : new_value + place * heads * value_width) + head * value_width;
  }
};

/// Eight numbers of a row on their way to shared memory.
template <typename T>
struct alignas(16) Eight {
  T numbers[8];
};

/// The numbers of a row from a channel on; zero behind the last.
template <typename T>
__device__ __forceinline__ Eight<T> eight_of(const T* row, int64_t channel, int64_t width, bool aligned) {
  if (aligned && channel + 8 <= width) return *reinterpret_cast<const Eight<T>*>(row + channel);
  Eight<T> found;
#pragma unroll
  for (int i = 0; i < 8; ++i) found.numbers[i] = channel + i < width ? row[channel + i] : from_float<T>(0.0f);
  return found;
}

/// Names for every key the row of the overlay that replaces it.
__global__ void __launch_bounds__(256) clear_slots_kernel(int32_t* slot, int64_t keys) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (number < keys) slot[number] = -1;
}
__global__ void __launch_bounds__(256) fill_slots_kernel(int32_t* slot, const int64_t* rows, int64_t count, int64_t keys) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (number < count && rows[number] >= 0 && rows[number] < keys) slot[rows[number]] = static_cast<int32_t>(number);
}

/// slot [keys] of the rows [count] that are recomputed.
inline int fill_slots(int32_t* slot, const int64_t* rows, int64_t count, int64_t keys, Stream stream) {
  if (keys == 0) return 0;
  RETOUCH_LAUNCH(clear_slots_kernel, dim3(static_cast<unsigned>(divided_up(keys, 256))), dim3(256), stream, slot, keys);
  if (count == 0) return last_error();
  RETOUCH_LAUNCH(fill_slots_kernel, dim3(static_cast<unsigned>(divided_up(count, 256))), dim3(256), stream, slot, rows, count, keys);
  return last_error();
}

constexpr unsigned kAttentionThreads = 128;
constexpr int kAttentionQueries = 64;
constexpr int kAttentionKeys = 32;
constexpr float kLowest = -1e30f;

/// Keys of a step as [key][width], values turned to [width][key], so that pairs along the summed axis lie together.
template <typename T, int Width>
struct AttentionTiles {
  alignas(16) T key[kAttentionKeys][Width + 8];
  alignas(16) T value[Width][kAttentionKeys + 8];
};

template <typename T, int Width>
__device__ __forceinline__ void load_tiles(const AttentionOperands<T>& op, AttentionTiles<T, Width>& shared, int64_t head, int64_t first) {
  constexpr int kEach = Width / 8;
  for (int place = static_cast<int>(threadIdx.x); place < kAttentionKeys * kEach; place += static_cast<int>(kAttentionThreads)) {
    // Neighbouring threads take neighbouring keys of the values, which they turn: their stores then lie side by side.
    const int key = place / kEach, channel = place % kEach * 8, turned = place % kAttentionKeys, from = place / kAttentionKeys * 8;
    const bool inside = first + key < op.keys, other = first + turned < op.keys;
    // What lies behind the last key is no number to multiply by: zero.
    const Eight<T> keys = eight_of(inside ? op.key_row(head, first + key) : op.key, inside ? channel : op.width, op.width, op.aligned);
    const Eight<T> values =
        eight_of(other ? op.value_row(head, first + turned) : op.value, other ? from : op.value_width, op.value_width, op.aligned);
    *reinterpret_cast<Eight<T>*>(&shared.key[key][channel]) = keys;
#pragma unroll
    for (int i = 0; i < 8; ++i) shared.value[from + i][turned] = values.numbers[i];
  }
}

/// The running softmax of the two query rows that a lane has a share of.
struct Softmax {
  float largest[2] = {kLowest, kLowest};
  float sum[2] = {0.0f, 0.0f};
};

/// Turns scores into weights, and returns by what the sums so far shrink.
template <int Tiles>
__device__ __forceinline__ void rescale(Softmax& state, ProductTile (&scores)[Tiles], float (&shrink)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = state.largest[half];
#pragma unroll
    for (int j = 0; j < Tiles; ++j) largest = fmaxf(largest, fmaxf(scores[j].values[2 * half], scores[j].values[2 * half + 1]));
    largest = fmaxf(largest, shuffle_xor(largest, 1));
    largest = fmaxf(largest, shuffle_xor(largest, 2));
    shrink[half] = expf(state.largest[half] - largest);
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < Tiles; ++j) {
#pragma unroll
      for (int k = 2 * half; k < 2 * half + 2; ++k) {
        scores[j].values[k] = expf(scores[j].values[k] - largest);
        sum += scores[j].values[k];
      }
    }
    sum += shuffle_xor(sum, 1);
    sum += shuffle_xor(sum, 2);
    state.sum[half] = state.sum[half] * shrink[half] + sum;
    state.largest[half] = largest;
  }
}

/// A block takes 64 queries of a head, a warp 16 of them; keys come by 32. ``Width`` is the head's width rounded up.
template <typename T, int Width>
__global__ void __launch_bounds__(kAttentionThreads) edit_attention_kernel(AttentionOperands<T> op) {
  __shared__ AttentionTiles<T, Width> shared;
  const unsigned warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize, g = lane / 4, t = lane % 4;
  const int64_t head = blockIdx.y, row0 = static_cast<int64_t>(blockIdx.x) * kAttentionQueries + warp * 16;
  LeftTile query[Width / 16];
#pragma unroll
  for (unsigned part = 0; part < Width / 16; ++part)
#pragma unroll
    for (unsigned pair = 0; pair < 4; ++pair) {
      const int64_t row = row0 + g + pair % 2 * 8, channel = 16 * part + 2 * t + pair / 2 * 8;
      const T* source = op.query + (row * op.heads + head) * op.width + channel;
      const T low = row < op.queries && channel < op.width ? source[0] : from_float<T>(0.0f);
      const T high = row < op.queries && channel + 1 < op.width ? source[1] : from_float<T>(0.0f);
      query[part].pairs[pair] = packed(low, high);
    }
  ProductTile sums[Width / 8];
#pragma unroll
  for (int j = 0; j < Width / 8; ++j)
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[j].values[k] = 0.0f;
  Softmax state;
  const int64_t begin = static_cast<int64_t>(blockIdx.z) * op.each_keys;
  const int64_t end = begin + op.each_keys < op.keys ? begin + op.each_keys : op.keys;
  for (int64_t first = begin; first < end; first += kAttentionKeys) {
    __syncthreads();
    load_tiles<T, Width>(op, shared, head, first);
    __syncthreads();
    ProductTile scores[kAttentionKeys / 8];
#pragma unroll
    for (unsigned j = 0; j < kAttentionKeys / 8; ++j) {
#pragma unroll
      for (int k = 0; k < 4; ++k) scores[j].values[k] = 0.0f;
#pragma unroll
      for (unsigned part = 0; part < Width / 16; ++part) {
        const RightTile right = {{pair_at(&shared.key[8 * j + g][16 * part + 2 * t]), pair_at(&shared.key[8 * j + g][16 * part + 2 * t + 8])}};
        multiply<T>(scores[j], query[part], right);
      }
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        const bool inside = first + 8 * j + 2 * t + k % 2 < op.keys;
        scores[j].values[k] = inside ? scores[j].values[k] * op.scale : kLowest;
      }
    }
    float shrink[2];
    rescale(state, scores, shrink);
#pragma unroll
    for (int j = 0; j < Width / 8; ++j)
#pragma unroll
      for (int k = 0; k < 4; ++k) sums[j].values[k] *= shrink[k / 2];
#pragma unroll
    for (unsigned part = 0; part < kAttentionKeys / 16; ++part) {
      // What a lane holds of the scores as a product is what it holds of them as a factor.
      LeftTile weights;
#pragma unroll
      for (unsigned pair = 0; pair < 4; ++pair) {
        const float* two = &scores[2 * part + pair / 2].values[pair % 2 * 2];
        weights.pairs[pair] = packed(from_float<T>(two[0]), from_float<T>(two[1]));
      }
#pragma unroll
      for (unsigned j = 0; j < Width / 8; ++j) {
        const RightTile right = {
            {pair_at(&shared.value[8 * j + g][16 * part + 2 * t]), pair_at(&shared.value[8 * j + g][16 * part + 2 * t + 8])}};
        multiply<T>(sums[j], weights, right);
      }
    }
  }
#pragma unroll
  for (unsigned j = 0; j < Width / 8; ++j)
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      const int64_t row = row0 + g + k / 2 * 8, channel = 8 * j + 2 * t + k % 2;
      if (row >= op.queries || channel >= op.value_width) continue;
      if (op.shares != nullptr)
        op.share(blockIdx.z, head, row)[channel] = sums[j].values[k];
      else
        op.out[(row * op.heads + head) * op.value_width + channel] = from_float<T>(sums[j].values[k] / state.sum[k / 2]);
    }
  if (op.shares == nullptr || t != 0) return;
  for (int half = 0; half < 2; ++half) {
    const int64_t row = row0 + g + half * 8;
    if (row >= op.queries) continue;
    float* place = op.share(blockIdx.z, head, row) + op.value_width;
    place[0] = state.largest[half];
    place[1] = state.sum[half];
  }
}

/// Puts the parts of every query's result together; a block takes one query of one head.
template <typename T>
__global__ void __launch_bounds__(kAttentionThreads) join_shares_kernel(AttentionOperands<T> op, int count) {
  const int64_t row = blockIdx.x, head = blockIdx.y;
  float largest = kLowest, total = 0.0f;
  for (int i = 0; i < count; ++i) largest = fmaxf(largest, op.share(i, head, row)[op.value_width]);
  for (int i = 0; i < count; ++i) {
    const float* part = op.share(i, head, row) + op.value_width;
    total += part[1] * expf(part[0] - largest);
  }
  for (int64_t channel = threadIdx.x; channel < op.value_width; channel += kAttentionThreads) {
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) {
      const float* part = op.share(i, head, row);
      sum += part[channel] * expf(part[op.value_width] - largest);
    }
    op.out[(row * op.heads + head) * op.value_width + channel] = from_float<T>(sum / total);
  }
}

constexpr unsigned kPlainWarps = 4;
constexpr int kPlainChannels = 8;

/// The same in single precision on the ordinary units: a warp takes one query, a lane one key of 32 and every 32nd channel.
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

/// So many blocks keep a large chip busy, and so many keys are worth a block.
constexpr int64_t kBusyAttention = 256;
constexpr int64_t kLeastKeys = 8 * kAttentionKeys;

/// Into how many parts the keys are cut.
template <typename T>
int64_t key_parts(const AttentionOperands<T>& op, int64_t blocks) {
  if (blocks >= kBusyAttention) return 1;
  const int64_t room = RETOUCH_WORKSPACE / (op.heads * op.queries * (op.value_width + 2) * static_cast<int64_t>(sizeof(float)));
  int64_t parts = divided_up(kBusyAttention, blocks);
  if (parts > op.keys / kLeastKeys) parts = op.keys / kLeastKeys;
  if (parts > room) parts = room;
  return parts < 1 ? 1 : parts;
}

template <typename T, int Width>
int attend(AttentionOperands<T> op, void* workspace, Stream stream) {
  const int64_t tall = divided_up(op.queries, kAttentionQueries);
  const int64_t parts = workspace == nullptr ? 1 : key_parts(op, tall * op.heads);
  op.each_keys = divided_up(divided_up(op.keys, parts), kAttentionKeys) * kAttentionKeys;
  const int64_t used = divided_up(op.keys, op.each_keys);
  op.shares = used > 1 ? static_cast<float*>(workspace) : nullptr;
  const dim3 grid(static_cast<unsigned>(tall), static_cast<unsigned>(op.heads), static_cast<unsigned>(used));
  RETOUCH_LAUNCH((edit_attention_kernel<T, Width>), grid, dim3(kAttentionThreads), stream, op);
  if (used > 1) {
    const dim3 blocks(static_cast<unsigned>(op.queries), static_cast<unsigned>(op.heads));
    RETOUCH_LAUNCH(join_shares_kernel<T>, blocks, dim3(kAttentionThreads), stream, op, static_cast<int>(used));
  }
  return last_error();
}

constexpr int64_t kMostWidth = 256;

/// out [queries, heads, value_width]; widths up to 256. ``workspace`` has RETOUCH_WORKSPACE bytes, or is null.
template <typename T>
int edit_attention(AttentionOperands<T> op, void* workspace, Stream stream) {
  const int64_t width = op.width > op.value_width ? op.width : op.value_width;
  if (width > kMostWidth || op.keys == 0) return RETOUCH_NOT_SUPPORTED;
  if (op.queries == 0 || op.heads == 0 || op.value_width == 0) return 0;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(op.key) | reinterpret_cast<uintptr_t>(op.value) |
                              reinterpret_cast<uintptr_t>(op.new_key) | reinterpret_cast<uintptr_t>(op.new_value);
  op.aligned = addresses % sizeof(Eight<T>) == 0 && op.width % 8 == 0 && op.value_width % 8 == 0;
  if (width <= 32) return attend<T, 32>(op, workspace, stream);
  if (width <= 64) return attend<T, 64>(op, workspace, stream);
  if (width <= 128) return attend<T, 128>(op, workspace, stream);
  return attend<T, 256>(op, workspace, stream);
}

template <>
inline int edit_attention<float>(AttentionOperands<float> op, void*, Stream stream) {
  if (op.value_width > kMostWidth || op.keys == 0) return RETOUCH_NOT_SUPPORTED;
  if (op.queries == 0 || op.heads == 0 || op.value_width == 0) return 0;
  const dim3 grid(static_cast<unsigned>(divided_up(op.queries, kPlainWarps)), static_cast<unsigned>(op.heads));
  RETOUCH_LAUNCH(plain_attention_kernel, grid, dim3(kPlainWarps * kWarpSize), stream, op);
  return last_error();
}

}  // namespace retouch
