// The product of a block's tiles, as its warps hold it.
#pragma once

#include "conv_tiles.cuh"
#include "warp.cuh"

namespace retouch {

/// A quarter of a block's product per warp, half of the rows times 32 columns, on tensor cores.
template <typename T, int Rows>
struct ConvSum {
  static constexpr unsigned kRowTiles = Rows / 32;
  ProductTile tiles[kRowTiles][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (unsigned i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int k = 0; k < 4; ++k) tiles[i][j].values[k] = 0.0f;
  }

  __device__ __forceinline__ void add(const ConvTiles<T, Rows>& shared, bool by_depth, unsigned warp, unsigned lane) {
    using Tiles = ConvTiles<T, Rows>;
    const unsigned row0 = warp / 2 * (Rows / 2), column0 = warp % 2 * 32, inner = lane % 8, second = lane / 8 % 2 * 8, last = lane / 16 * 8;
#pragma unroll
    for (unsigned depth = 0; depth < kConvDepth; depth += 16) {
      LeftTile left[kRowTiles];
#pragma unroll
      for (unsigned i = 0; i < kRowTiles; ++i) load_blocks(left[i].pairs, &shared.left[row0 + 16 * i + second + inner][depth + last]);
#pragma unroll
      for (unsigned j = 0; j < 4; j += 2) {
        uint32_t right[4];
        if (by_depth)
          load_turned_blocks(right, &shared.right[(depth + second + inner) * Tiles::kTurnedPitch + column0 + 8 * j + last]);
        else
          load_blocks(right, &shared.right[(column0 + 8 * j + last + inner) * Tiles::kPitch + depth + second]);
#pragma unroll
        for (unsigned i = 0; i < kRowTiles; ++i) {
          multiply<T>(tiles[i][j], left[i], {{right[0], right[1]}});
          multiply<T>(tiles[i][j + 1], left[i], {{right[2], right[3]}});
        }
      }
    }
  }

  /// Calls ``store(row, column, value)`` with every number of the product that the lane holds.
  template <typename Store>
  __device__ __forceinline__ void each(unsigned warp, unsigned lane, Store store) const {
    const unsigned g = lane / 4, t = lane % 4;
#pragma unroll
    for (unsigned i = 0; i < kRowTiles; ++i)
#pragma unroll
      for (unsigned j = 0; j < 4; ++j)
#pragma unroll
        for (unsigned k = 0; k < 4; ++k)
          store(warp / 2 * (Rows / 2) + 16 * i + g + k / 2 * 8, warp % 2 * 32 + 8 * j + 2 * t + k % 2, tiles[i][j].values[k]);
  }
};

/// The same in single precision, 8 x 4 numbers per lane, on the ordinary units.
template <int Rows>
struct ConvSum<float, Rows> {
  static_assert(Rows == 64, "a warp's lanes hold 32 x 32 numbers");
  float sums[8][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] = 0.0f;
  }

  __device__ __forceinline__ void add(const ConvTiles<float, Rows>& shared, bool, unsigned warp, unsigned lane) {
    const unsigned row0 = warp / 2 * 32 + lane / 8, column0 = warp % 2 * 32 + lane % 8;
#pragma unroll 4
    for (unsigned depth = 0; depth < kConvDepth; ++depth) {
      float left[8], right[4];
#pragma unroll
      for (unsigned i = 0; i < 8; ++i) left[i] = shared.left[row0 + 4 * i][depth];
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) right[j] = shared.right[(column0 + 8 * j) * ConvTiles<float, Rows>::kPitch + depth];
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

}  // namespace retouch
