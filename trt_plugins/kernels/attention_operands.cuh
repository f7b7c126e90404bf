// What attention reads: the base run's keys and values, and the recomputed ones that lie over them.
#pragma once

#include "launch.h"
#include "platform.cuh"

namespace retouch {

constexpr float kLowest = -1e30f;
/// The widest head that there is a kernel for.
constexpr int64_t kMostWidth = 256;

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

}  // namespace retouch
