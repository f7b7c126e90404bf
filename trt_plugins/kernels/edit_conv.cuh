// EditConv: a convolution of the active rows as a matrix product whose left factor is gathered while it is read.
// RowLinear: the same with the rows themselves as the left factor.
//
// out [M, C_out] = columns [M, T * C] * weight [C_out, T * C] transposed + bias, where columns are the neighbours of every
// active row, which never exist in memory; then the tail. Floor: 2 * M * T * C * C_out operations; T * C * C_out * size bytes
// of weights, M * C_out * size of results, and every table row that is named at least once.
//
// Few rows make few blocks, each of which would read all of its weights alone. They share the depth out among more blocks,
// whose sums a second kernel adds in a fixed order: 8 * M * C_out bytes more for each share.
#pragma once

#include "row_table.cuh"
#include "tail.cuh"
#include "warp.cuh"

namespace retouch {

constexpr int kConvRows = 64;
constexpr int kConvColumns = 64;
constexpr int kConvDepth = 32;
constexpr unsigned kConvThreads = 128;
/// Numbers between the rows of a tile in shared memory: the pad keeps the lanes of a warp out of each other's banks.
constexpr int kConvPitch = kConvDepth + 8;
constexpr int kConvPart = 8;
constexpr int kConvParts = kConvRows * kConvDepth / kConvPart / static_cast<int>(kConvThreads);

template <typename T>
struct ConvOperands {
  T* out;
  RowTable table;
  const int64_t* neighbours;  // null where every row is its own only neighbour
  const T* weight;
  bool by_depth;  // whether the weight is [T * C, C_out]
  const T* bias;
  Tail<T> tail;
  int64_t rows, taps, channels, columns;
  /// Whether eight numbers of a row, and of the weight, can be read at once.
  bool aligned;
  float* shares;       // [blocks along depth, rows, columns] of sums, or null where one block has the whole depth
  int64_t each_depth;  // how much of the depth a block has

  __device__ __forceinline__ const char* neighbour(int64_t row, int64_t tap) const {
    return table.at(neighbours == nullptr ? row : neighbours[row * taps + tap], channels * static_cast<int64_t>(sizeof(T)));
  }
};

/// Eight numbers on the way from global to shared memory.
template <typename T>
struct alignas(16) Part {
  T numbers[kConvPart];
};

/// The numbers of a row of columns from ``depth`` on; zero behind the last.
template <typename T>
__device__ __forceinline__ Part<T> column_part(const ConvOperands<T>& op, int64_t row, int64_t depth) {
  Part<T> part;
  const int64_t all = op.taps * op.channels;
#pragma unroll
  for (int i = 0; i < kConvPart; ++i) part.numbers[i] = from_float<T>(0.0f);
  if (row >= op.rows || depth >= all) return part;
  if (op.aligned) {
    const int64_t tap = depth / op.channels;
    const char* source = op.neighbour(row, tap);
    return *reinterpret_cast<const Part<T>*>(source + (depth - tap * op.channels) * static_cast<int64_t>(sizeof(T)));
  }
  for (int i = 0; i < kConvPart && depth + i < all; ++i) {
    const int64_t tap = (depth + i) / op.channels;
    const char* source = op.neighbour(row, tap);
    part.numbers[i] = reinterpret_cast<const T*>(source)[depth + i - tap * op.channels];
  }
  return part;
}

/// The numbers of a row of the weight from ``depth`` on; zero behind the last.
template <typename T>
__device__ __forceinline__ Part<T> weight_part(const ConvOperands<T>& op, int64_t column, int64_t depth) {
  Part<T> part;
  const int64_t all = op.taps * op.channels;
#pragma unroll
  for (int i = 0; i < kConvPart; ++i) part.numbers[i] = from_float<T>(0.0f);
  if (column >= op.columns || depth >= all) return part;
  const T* source = op.weight + column * all + depth;
  if (op.aligned) return *reinterpret_cast<const Part<T>*>(source);
  for (int i = 0; i < kConvPart && depth + i < all; ++i) part.numbers[i] = source[i];
  return part;
}

/// Eight columns of the weight at one depth, where it is stored by depth; zero behind the last.
template <typename T>
__device__ __forceinline__ Part<T> depth_part(const ConvOperands<T>& op, int64_t column, int64_t depth) {
  Part<T> part;
#pragma unroll
  for (int i = 0; i < kConvPart; ++i) part.numbers[i] = from_float<T>(0.0f);
  if (depth >= op.taps * op.channels || column >= op.columns) return part;
  const T* source = op.weight + depth * op.columns + column;
  if (op.aligned && op.columns % kConvPart == 0) return *reinterpret_cast<const Part<T>*>(source);
  for (int i = 0; i < kConvPart && column + i < op.columns; ++i) part.numbers[i] = source[i];
  return part;
}

/// What a block multiplies next, in shared memory.
template <typename T>
struct ConvTiles {
  alignas(16) T left[kConvRows][kConvPitch];
  alignas(16) T right[kConvColumns][kConvPitch];
};

/// A quarter of a block's product per warp, 32 x 32, on tensor cores.
template <typename T>
struct ConvSum {
  ProductTile tiles[2][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int k = 0; k < 4; ++k) tiles[i][j].values[k] = 0.0f;
  }

  __device__ __forceinline__ void add(const ConvTiles<T>& shared, unsigned warp, unsigned lane) {
    const unsigned g = lane / 4, t = lane % 4, row0 = warp / 2 * 32, column0 = warp % 2 * 32;
#pragma unroll
    for (unsigned depth = 0; depth < kConvDepth; depth += 16) {
      LeftTile left[2];
#pragma unroll
      for (unsigned i = 0; i < 2; ++i)
#pragma unroll
        for (unsigned part = 0; part < 4; ++part)
          left[i].pairs[part] = pair_at(&shared.left[row0 + 16 * i + g + part % 2 * 8][depth + 2 * t + part / 2 * 8]);
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) {
        RightTile right;
#pragma unroll
        for (unsigned part = 0; part < 2; ++part)
          right.pairs[part] = pair_at(&shared.right[column0 + 8 * j + g][depth + 2 * t + part * 8]);
#pragma unroll
        for (unsigned i = 0; i < 2; ++i) multiply<T>(tiles[i][j], left[i], right);
      }
    }
  }

  /// Calls ``store(row, column, value)`` with every number of the product that the lane holds.
  template <typename Store>
  __device__ __forceinline__ void each(unsigned warp, unsigned lane, Store store) const {
    const unsigned g = lane / 4, t = lane % 4;
#pragma unroll
    for (unsigned i = 0; i < 2; ++i)
#pragma unroll
      for (unsigned j = 0; j < 4; ++j)
#pragma unroll
        for (unsigned k = 0; k < 4; ++k)
          store(warp / 2 * 32 + 16 * i + g + k / 2 * 8, warp % 2 * 32 + 8 * j + 2 * t + k % 2, tiles[i][j].values[k]);
  }
};

/// The same in single precision, 8 x 4 numbers per lane, on the ordinary units.
template <>
struct ConvSum<float> {
  float sums[8][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] = 0.0f;
  }

  __device__ __forceinline__ void add(const ConvTiles<float>& shared, unsigned warp, unsigned lane) {
    const unsigned row0 = warp / 2 * 32 + lane / 8, column0 = warp % 2 * 32 + lane % 8;
#pragma unroll 4
    for (unsigned depth = 0; depth < kConvDepth; ++depth) {
      float left[8], right[4];
#pragma unroll
      for (unsigned i = 0; i < 8; ++i) left[i] = shared.left[row0 + 4 * i][depth];
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) right[j] = shared.right[column0 + 8 * j][depth];
#pragma unroll
      for (unsigned i = 0; i < 8; ++i)
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) sums[i][j] += left[i] * right[j];
    }
  }

  template <typename Store>
  __device__ __forceinline__ void each(unsigned warp, unsigned lane, Store store) const {
#pragma unroll
    for (unsigned i = 0; i < 8; ++i)
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) store(warp / 2 * 32 + lane / 8 + 4 * i, warp % 2 * 32 + lane % 8 + 8 * j, sums[i][j]);
  }
};

template <typename T>
__global__ void __launch_bounds__(kConvThreads) edit_conv_kernel(ConvOperands<T> op) {
  __shared__ ConvTiles<T> shared;
  const unsigned thread = threadIdx.x, warp = thread / kWarpSize, lane = thread % kWarpSize;
  const int64_t row0 = static_cast<int64_t>(blockIdx.x) * kConvRows, column0 = static_cast<int64_t>(blockIdx.y) * kConvColumns;
  const int64_t begin = static_cast<int64_t>(blockIdx.z) * op.each_depth, all = op.taps * op.channels;
  const int64_t end = begin + op.each_depth < all ? begin + op.each_depth : all;
  ConvSum<T> sum;
  sum.clear();
  Part<T> left[kConvParts], right[kConvParts];
  auto fetch = [&](int64_t depth0) {
#pragma unroll
    for (int i = 0; i < kConvParts; ++i) {
      const int number = static_cast<int>(thread) + i * static_cast<int>(kConvThreads);
      const int64_t depth = depth0 + number % (kConvDepth / kConvPart) * kConvPart;
      left[i] = column_part(op, row0 + number / (kConvDepth / kConvPart), depth);
      right[i] = op.by_depth ? depth_part(op, column0 + number % (kConvColumns / kConvPart) * kConvPart,
                                          depth0 + number / (kConvColumns / kConvPart))
                             : weight_part(op, column0 + number / (kConvDepth / kConvPart), depth);
    }
  };
  fetch(begin);
  for (int64_t depth = begin; depth < end; depth += kConvDepth) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kConvParts; ++i) {
      const int number = static_cast<int>(thread) + i * static_cast<int>(kConvThreads);
      const int line = number / (kConvDepth / kConvPart), place = number % (kConvDepth / kConvPart) * kConvPart;
      *reinterpret_cast<Part<T>*>(&shared.left[line][place]) = left[i];
      if (!op.by_depth) {
        *reinterpret_cast<Part<T>*>(&shared.right[line][place]) = right[i];
        continue;
      }
      const int column = number % (kConvColumns / kConvPart) * kConvPart;
#pragma unroll
      for (int j = 0; j < kConvPart; ++j) shared.right[column + j][number / (kConvColumns / kConvPart)] = right[i].numbers[j];
    }
    __syncthreads();
    // The next tiles are on their way while these are multiplied.
    if (depth + kConvDepth < end) fetch(depth + kConvDepth);
    sum.add(shared, warp, lane);
  }
  sum.each(warp, lane, [&](unsigned row, unsigned column, float value) {
    if (row0 + row >= op.rows || column0 + column >= op.columns) return;
    const int64_t place = (row0 + row) * op.columns + column0 + column;
    if (op.shares != nullptr) {
      op.shares[static_cast<int64_t>(blockIdx.z) * op.rows * op.columns + place] = value;
      return;
    }
    const float bias = op.bias == nullptr ? 0.0f : to_float(op.bias[column0 + column]);
    op.out[place] = from_float<T>(op.tail.apply(value + bias, row0 + row, column0 + column, op.columns));
  });
}

constexpr unsigned kShareThreads = 256;

/// Adds the sums of the blocks along the depth.
template <typename T>
__global__ void __launch_bounds__(kShareThreads) add_shares_kernel(ConvOperands<T> op, int count) {
  const int64_t place = static_cast<int64_t>(blockIdx.x) * kShareThreads + threadIdx.x, all = op.rows * op.columns;
  if (place >= all) return;
  const int64_t row = place / op.columns, column = place - row * op.columns;
  float sum = op.bias == nullptr ? 0.0f : to_float(op.bias[column]);
  for (int i = 0; i < count; ++i) sum += op.shares[i * all + place];
  op.out[place] = from_float<T>(op.tail.apply(sum, row, column, op.columns));
}

/// So many blocks keep a large chip busy, and so much depth is worth a block.
constexpr int64_t kBusyBlocks = 256;
constexpr int64_t kLeastDepth = 4 * kConvDepth;
// Shares of fewer blocks than kBusyBlocks make less than twice as many blocks, each with at most one tile.
static_assert(2 * kBusyBlocks * kConvRows * kConvColumns * static_cast<int64_t>(sizeof(float)) <= RETOUCH_WORKSPACE,
              "a workspace for every product");

/// Into how many parts the depth is cut.
inline int64_t depth_parts(int64_t blocks, int64_t depth) {
  if (blocks >= kBusyBlocks) return 1;
  const int64_t wanted = divided_up(kBusyBlocks, blocks), possible = depth / kLeastDepth;
  return wanted < possible ? wanted : possible < 1 ? 1 : possible;
}

/// out [rows, columns]; see above. ``workspace`` has RETOUCH_WORKSPACE bytes, or is null.
template <typename T>
int edit_conv(ConvOperands<T> op, void* workspace, Stream stream) {
  if (op.rows == 0 || op.columns == 0) return 0;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(op.table.rows) | reinterpret_cast<uintptr_t>(op.table.cached) |
                              reinterpret_cast<uintptr_t>(op.table.pad) | reinterpret_cast<uintptr_t>(op.weight);
  op.aligned = op.channels % kConvPart == 0 && addresses % sizeof(Vector16) == 0;
  const int64_t depth = op.taps * op.channels, tall = divided_up(op.rows, kConvRows), wide = divided_up(op.columns, kConvColumns);
  const int64_t parts = workspace == nullptr ? 1 : depth_parts(tall * wide, depth);
  op.each_depth = divided_up(divided_up(depth, parts), kConvDepth) * kConvDepth;
  // Rounded up, parts may be fewer.
  const int64_t used = depth == 0 ? 1 : divided_up(depth, op.each_depth);
  op.shares = used > 1 ? static_cast<float*>(workspace) : nullptr;
  const dim3 grid(static_cast<unsigned>(tall), static_cast<unsigned>(wide), static_cast<unsigned>(used));
  RETOUCH_LAUNCH(edit_conv_kernel<T>, grid, dim3(kConvThreads), stream, op);
  if (used > 1) {
    const dim3 blocks(static_cast<unsigned>(divided_up(op.rows * op.columns, kShareThreads)));
    RETOUCH_LAUNCH(add_shares_kernel<T>, blocks, dim3(kShareThreads), stream, op, static_cast<int>(used));
  }
  return last_error();
}

}  // namespace retouch
