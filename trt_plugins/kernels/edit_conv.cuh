// EditConv: a convolution of the active rows as a matrix product whose left factor is gathered while it is read.
// RowLinear: the same with the rows themselves as the left factor.
//
// out [M, C_out] = columns [M, T * C] * weight [C_out, T * C] transposed + bias, where columns are the neighbours of every
// active row, which never exist in memory; then the tail. Floor: 2 * M * T * C * C_out operations; T * C * C_out * size bytes
// of weights, M * C_out * size of results, and every table row that is named at least once.
//
// Tiles of 64 or, for many rows of half precision, 128 rows by 64 columns; the next ones are on their way while a block
// multiplies, in three buffers (two in single precision). Few rows make few blocks, each of which would read all of its
// weights alone. They share the depth out among more blocks, whose sums a second kernel adds in a fixed order: 8 * M * C_out
// bytes more for each share.
#pragma once

#include "conv_sums.cuh"
#include "conv_tiles.cuh"

namespace retouch {

template <typename T, int Rows>
__global__ void __launch_bounds__(kConvThreads) edit_conv_kernel(ConvOperands<T> op) {
  constexpr int kBuffers = sizeof(T) == 2 ? 3 : 2;
  __shared__ ConvTiles<T, Rows> shared[kBuffers];
  static_assert(sizeof(shared) <= 48 * 1024, "what a block has without asking for more");
  const unsigned warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int64_t begin = static_cast<int64_t>(blockIdx.z) * op.each_depth, all = op.taps * op.channels;
  const int64_t end = begin + op.each_depth < all ? begin + op.each_depth : all;
  const int steps = static_cast<int>(divided_up(end - begin, kConvDepth));
  ConvLoader<T, Rows> loader;
  loader.row0 = static_cast<int64_t>(blockIdx.x) * Rows;
  loader.column0 = static_cast<int64_t>(blockIdx.y) * kConvColumns;
  if (steps > 0) loader.begin(op, begin);
  ConvSum<T, Rows> sum;
  sum.clear();
  for (int step = 0; step < kBuffers - 1; ++step) {
    if (step < steps) loader.take(op, shared[step], begin + step * kConvDepth);
    close_copies();
  }
  for (int step = 0; step < steps; ++step) {
    await_copies<kBuffers - 2>();
    __syncthreads();
    // All have read the buffer that is filled next.
    const int next = step + kBuffers - 1;
    if (next < steps) loader.take(op, shared[next % kBuffers], begin + static_cast<int64_t>(next) * kConvDepth);
    close_copies();
    sum.add(shared[step % kBuffers], op.by_depth, warp, lane);
  }
  sum.each(warp, lane, [&](unsigned in_rows, unsigned in_columns, float value) {
    const int64_t row = loader.row0 + in_rows, column = loader.column0 + in_columns;
    if (row >= op.rows || column >= op.columns) return;
    const int64_t place = row * op.columns + column;
    if (op.shares != nullptr) {
      op.shares[static_cast<int64_t>(blockIdx.z) * op.rows * op.columns + place] = value;
      return;
    }
    const float bias = op.bias == nullptr ? 0.0f : to_float(op.bias[column]);
    op.out[place] = from_float<T>(op.tail.apply(value + bias, row, column, op.columns));
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

/// So many rows fill the larger tiles, so much depth is worth a block, and so many blocks of 64 rows keep a large chip busy.
constexpr int64_t kManyRows = 512;
constexpr int64_t kLeastDepth = 4 * kConvDepth;
constexpr int64_t kBusyBlocks = 256;

/// Into how many parts the depth is cut, of so many blocks that have ``rows`` each.
template <typename T>
int64_t depth_parts(const ConvOperands<T>& op, int64_t blocks, int64_t rows) {
  const int64_t busy = kBusyBlocks * 64 / rows, possible = op.taps * op.channels / kLeastDepth;
  if (blocks >= busy) return 1;
  const int64_t room = RETOUCH_WORKSPACE / (op.rows * op.columns * static_cast<int64_t>(sizeof(float)));
  int64_t parts = divided_up(busy, blocks);
  if (parts > possible) parts = possible;
  if (parts > room) parts = room;
  return parts < 1 ? 1 : parts;
}

template <typename T, int Rows>
int convolve(ConvOperands<T> op, void* workspace, Stream stream) {
  const int64_t depth = op.taps * op.channels, tall = divided_up(op.rows, Rows), wide = divided_up(op.columns, kConvColumns);
  const int64_t parts = workspace == nullptr ? 1 : depth_parts(op, tall * wide, Rows);
  op.each_depth = divided_up(divided_up(depth, parts), kConvDepth) * kConvDepth;
  // Rounded up, parts may be fewer.
  const int64_t used = depth == 0 ? 1 : divided_up(depth, op.each_depth);
  op.shares = used > 1 ? static_cast<float*>(workspace) : nullptr;
  const dim3 grid(static_cast<unsigned>(tall), static_cast<unsigned>(wide), static_cast<unsigned>(used));
  RETOUCH_LAUNCH((edit_conv_kernel<T, Rows>), grid, dim3(kConvThreads), stream, op);
  if (used > 1) {
    const dim3 blocks(static_cast<unsigned>(divided_up(op.rows * op.columns, kShareThreads)));
    RETOUCH_LAUNCH(add_shares_kernel<T>, blocks, dim3(kShareThreads), stream, op, static_cast<int>(used));
  }
  return last_error();
}

/// out [rows, columns]; see above. ``workspace`` has RETOUCH_WORKSPACE bytes, or is null.
template <typename T>
int edit_conv(ConvOperands<T> op, void* workspace, Stream stream) {
  if (op.rows == 0 || op.columns == 0) return 0;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(op.table.rows) | reinterpret_cast<uintptr_t>(op.table.cached) |
                              reinterpret_cast<uintptr_t>(op.table.pad) | reinterpret_cast<uintptr_t>(op.weight);
  op.aligned = op.channels % kConvPart == 0 && addresses % sizeof(Vector16) == 0;
  if constexpr (sizeof(T) == 2) {
    if (op.rows >= kManyRows) return convolve<T, 128>(op, workspace, stream);
  }
  return convolve<T, 64>(op, workspace, stream);
}

}  // namespace retouch
