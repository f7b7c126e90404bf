// EditAttention: active queries over the base run's keys and values with the recomputed ones laid over them.
//
// softmax(scale * Q K^T) V per head, where row n of K and V is a row of the overlay if ``slot[n]`` names one and the base
// run's row otherwise: nothing is merged in memory. Online softmax (Milakov and Gimelshein, arXiv:1805.02867; tiled as in
// FlashAttention-2, arXiv:2307.08691). Few queries make few blocks: these share the keys out among more blocks, whose parts a
// second kernel puts together. Floor: 4 * M * N * D operations and 2 * N * D * size bytes per head.
#pragma once

#include "attention_operands.cuh"
#include "copies.cuh"
#include "plain_attention.cuh"
#include "warp.cuh"

namespace retouch {

constexpr unsigned kAttentionThreads = 128;
constexpr int kAttentionQueries = 64;
constexpr float kLogTwoOfE = 1.4426950408889634f;

/// So many keys come at a time, into so many buffers: as much as 48 KiB of shared memory hold.
template <int Width>
struct Steps {
  static constexpr int kKeys = Width <= 80 ? 64 : 32;
  static constexpr int kBuffers = Width <= 160 ? 2 : 1;
};

/// Keys and values of a step. The pad keeps the rows that a warp reads at once out of each other's banks.
template <typename T, int Width>
struct AttentionTiles {
  alignas(16) T key[Steps<Width>::kKeys][Width + 8];
  alignas(16) T value[Steps<Width>::kKeys][Width + 8];
};

/// Eight numbers of a row from a channel on, into shared memory; zeros behind the last.
template <typename T>
__device__ __forceinline__ void take_eight(T* target, const T* row, int64_t channel, int64_t width, bool aligned) {
  static_assert(sizeof(T) == 2, "eight of these are what a copy moves");
  if (aligned) {
    start_copy(target, channel < width ? row + channel : row, channel < width);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) target[i] = channel + i < width ? row[channel + i] : from_float<T>(0.0f);
}

/// Starts to bring keys and values from a number on; zeros behind the last, since these are multiplied by as well.
template <typename T, int Width>
__device__ __forceinline__ void take_tiles(const AttentionOperands<T>& op, AttentionTiles<T, Width>& tiles, int64_t head, int64_t first) {
  constexpr int kEach = Width / 8;
  for (int place = static_cast<int>(threadIdx.x); place < Steps<Width>::kKeys * kEach; place += static_cast<int>(kAttentionThreads)) {
    const int key = place / kEach, channel = place % kEach * 8;
    const bool inside = first + key < op.keys;
    const int64_t number = inside ? first + key : 0;
    take_eight(&tiles.key[key][channel], op.key_row(head, number), channel, inside ? op.width : 0, op.aligned);
    take_eight(&tiles.value[key][channel], op.value_row(head, number), channel, inside ? op.value_width : 0, op.aligned);
  }
  close_copies();
}

/// The running softmax of the two query rows that a lane has a share of.
struct Softmax {
  float largest[2] = {kLowest, kLowest};
  float sum[2] = {0.0f, 0.0f};
};

/// Turns scores, which are logarithms to the base of two, into weights, and returns by what the sums so far shrink.
template <int Tiles>
__device__ __forceinline__ void rescale(Softmax& state, ProductTile (&scores)[Tiles], float (&shrink)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = state.largest[half];
#pragma unroll
    for (int j = 0; j < Tiles; ++j) largest = fmaxf(largest, fmaxf(scores[j].values[2 * half], scores[j].values[2 * half + 1]));
    largest = fmaxf(largest, shuffle_xor(largest, 1));
    largest = fmaxf(largest, shuffle_xor(largest, 2));
    shrink[half] = exp2f(state.largest[half] - largest);
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < Tiles; ++j) {
#pragma unroll
      for (int k = 2 * half; k < 2 * half + 2; ++k) {
        scores[j].values[k] = exp2f(scores[j].values[k] - largest);
        sum += scores[j].values[k];
      }
    }
    sum += shuffle_xor(sum, 1);
    sum += shuffle_xor(sum, 2);
    state.sum[half] = state.sum[half] * shrink[half] + sum;
    state.largest[half] = largest;
  }
}

/// The scores of a warp's queries at the keys of a step.
template <typename T, int Width, int Tiles>
__device__ __forceinline__ void score(ProductTile (&scores)[Tiles], const LeftTile (&query)[Width / 16], const AttentionTiles<T, Width>& tiles,
                                      unsigned lane) {
#pragma unroll
  for (unsigned j = 0; j < Tiles; j += 2) {
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) scores[j + k / 4].values[k % 4] = 0.0f;
#pragma unroll
    for (unsigned part = 0; part < Width / 16; ++part) {
      uint32_t keys[4];
      load_blocks(keys, &tiles.key[8 * j + lane / 16 * 8 + lane % 8][16 * part + lane / 8 % 2 * 8]);
      multiply<T>(scores[j], query[part], {{keys[0], keys[1]}});
      multiply<T>(scores[j + 1], query[part], {{keys[2], keys[3]}});
    }
  }
}

/// Adds the weighted values of a step.
template <typename T, int Width, int Tiles>
__device__ __forceinline__ void weigh(ProductTile (&sums)[Width / 8], const ProductTile (&scores)[Tiles], const AttentionTiles<T, Width>& tiles,
                                      unsigned lane) {
#pragma unroll
  for (unsigned part = 0; part < Tiles / 2; ++part) {
    // What a lane holds of the scores as a product is what it holds of them as a factor.
    LeftTile weights;
#pragma unroll
    for (unsigned pair = 0; pair < 4; ++pair) {
      const float* two = &scores[2 * part + pair / 2].values[pair % 2 * 2];
      weights.pairs[pair] = packed(from_float<T>(two[0]), from_float<T>(two[1]));
    }
#pragma unroll
    for (unsigned j = 0; j < Width / 8; j += 2) {
      uint32_t values[4];
      load_turned_blocks(values, &tiles.value[16 * part + lane / 8 % 2 * 8 + lane % 8][8 * j + lane / 16 * 8]);
      multiply<T>(sums[j], weights, {{values[0], values[1]}});
      multiply<T>(sums[j + 1], weights, {{values[2], values[3]}});
    }
  }
}

/// A block takes 64 queries of a head, a warp 16 of them. ``Width`` is the head's width rounded up. The next keys and values
/// are on their way while these are multiplied.
template <typename T, int Width>
__global__ void __launch_bounds__(kAttentionThreads) edit_attention_kernel(AttentionOperands<T> op) {
  constexpr int kKeys = Steps<Width>::kKeys, kBuffers = Steps<Width>::kBuffers;
  __shared__ AttentionTiles<T, Width> shared[kBuffers];
  static_assert(sizeof(shared) <= 48 * 1024, "what a block has without asking for more");
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
  const float scale = op.scale * kLogTwoOfE;
  if constexpr (kBuffers > 1) take_tiles<T, Width>(op, shared[0], head, begin);
  int now = 0;
  for (int64_t first = begin; first < end; first += kKeys) {
    if constexpr (kBuffers == 1) {
      __syncthreads();
      take_tiles<T, Width>(op, shared[0], head, first);
    }
    await_copies<0>();
    __syncthreads();
    const AttentionTiles<T, Width>& tiles = shared[now];
    if constexpr (kBuffers > 1) {
      now = 1 - now;
      if (first + kKeys < end) take_tiles<T, Width>(op, shared[now], head, first + kKeys);
    }
    ProductTile scores[kKeys / 8];
    score<T, Width>(scores, query, tiles, lane);
#pragma unroll
    for (unsigned j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) {
        const bool inside = first + 8 * j + 2 * t + k % 2 < op.keys;
        scores[j].values[k] = inside ? scores[j].values[k] * scale : kLowest;
      }
    float shrink[2];
    rescale(state, scores, shrink);
#pragma unroll
    for (int j = 0; j < Width / 8; ++j)
#pragma unroll
      for (int k = 0; k < 4; ++k) sums[j].values[k] *= shrink[k / 2];
    weigh<T, Width>(sums, scores, tiles, lane);
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
    total += part[1] * exp2f(part[0] - largest);
  }
  for (int64_t channel = threadIdx.x; channel < op.value_width; channel += kAttentionThreads) {
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) {
      const float* part = op.share(i, head, row);
      sum += part[channel] * exp2f(part[op.value_width] - largest);
    }
    op.out[(row * op.heads + head) * op.value_width + channel] = from_float<T>(sum / total);
  }
}

/// So many blocks keep a large chip busy, and so many keys are worth a block.
constexpr int64_t kBusyAttention = 256;
constexpr int64_t kLeastKeys = 256;

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
  constexpr int64_t kKeys = Steps<Width>::kKeys;
  op.each_keys = divided_up(divided_up(op.keys, parts), kKeys) * kKeys;
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

/// out [queries, heads, value_width]; widths up to 256. ``workspace`` has RETOUCH_WORKSPACE bytes, or is null.
template <typename T>
int edit_attention(AttentionOperands<T> op, void* workspace, Stream stream) {
  const int64_t width = op.width > op.value_width ? op.width : op.value_width;
  if (width > kMostWidth || op.keys == 0) return RETOUCH_NOT_SUPPORTED;
  if (op.queries == 0 || op.heads == 0 || op.value_width == 0) return 0;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(op.key) | reinterpret_cast<uintptr_t>(op.value) |
                              reinterpret_cast<uintptr_t>(op.new_key) | reinterpret_cast<uintptr_t>(op.new_value);
  op.aligned = addresses % sizeof(Vector16) == 0 && op.width % 8 == 0 && op.value_width % 8 == 0;
  // Stable Diffusion has heads of 40, 80 and 160, DiT-XL of 72: rounded up to powers of two, a third of the work would be zeros.
  if (width <= 32) return attend<T, 32>(op, workspace, stream);
  if (width <= 48) return attend<T, 48>(op, workspace, stream);
  if (width <= 64) return attend<T, 64>(op, workspace, stream);
  if (width <= 80) return attend<T, 80>(op, workspace, stream);
  if (width <= 128) return attend<T, 128>(op, workspace, stream);
  if (width <= 160) return attend<T, 160>(op, workspace, stream);
  return attend<T, 256>(op, workspace, stream);
}

template <>
inline int edit_attention<float>(AttentionOperands<float> op, void*, Stream stream) {
  return plain_attention(op, stream);
}

}  // namespace retouch
