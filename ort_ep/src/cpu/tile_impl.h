// The tiles. Included once by the source of each instruction set, behind its vectors.
#include "cpu/tile.h"

namespace retouch {
namespace {

/// How many of a panel's columns lie in vector `v`.
inline __attribute__((always_inline)) size_t columns_of(const Tile& tile, size_t v) {
  return tile.columns > v * kLanes ? tile.columns - v * kLanes : 0;
}

template <size_t Rows, size_t Vectors>
void compute(const Tile& tile) {
  Vector sum[Rows][Vectors];
  const bool whole = tile.columns >= Vectors * kLanes;
  size_t sample = tile.sample;
  for (size_t r = 0; r < Rows; ++r) {
    const float* from = tile.first ? tile.bias.of(sample) : tile.out + r * tile.out_stride;
    if (++sample == tile.samples) sample = 0;
    for (size_t v = 0; v < Vectors; ++v) {
      if (from == nullptr) {
        sum[r][v] = Vector{};
      } else {
        sum[r][v] = whole ? load(from + v * kLanes) : load_some(from + v * kLanes, columns_of(tile, v));
      }
    }
  }
  const float* weights = tile.weights;
  const float* next = tile.next;
  for (size_t tap = 0; tap < tile.taps; ++tap) {
    const float* row[Rows];
    for (size_t r = 0; r < Rows; ++r)
      row[r] = reinterpret_cast<const float*>(tile.rows[r * tile.row_stride + tap]) + tile.first_channel;
    for (size_t k = 0; k < tile.channels; ++k) {
      Vector weight[Vectors];
      for (size_t v = 0; v < Vectors; ++v) weight[v] = load(weights + v * kLanes);
      for (size_t r = 0; r < Rows; ++r)
        for (size_t v = 0; v < Vectors; ++v) sum[r][v] += row[r][k] * weight[v];
      weights += Vectors * kLanes;
      if (next != nullptr) {
        for (size_t line = 0; line < tile.next_lines; ++line) __builtin_prefetch(next + line * 16, 0, 2);
        next += tile.next_lines * 16;
      }
    }
  }
  for (size_t r = 0; r < Rows; ++r)
    for (size_t v = 0; v < Vectors; ++v) {
      float* to = tile.out + r * tile.out_stride + v * kLanes;
      if (whole) {
        store(to, sum[r][v]);
      } else {
        store_some(to, sum[r][v], columns_of(tile, v));
      }
    }
}

}  // namespace
}  // namespace retouch

#define RETOUCH_TILE_ROW(rows) {compute<rows, 1>, compute<rows, 2>, compute<rows, 3>, compute<rows, 4>}
#define RETOUCH_TILES \
  { RETOUCH_TILE_ROW(1), RETOUCH_TILE_ROW(2), RETOUCH_TILE_ROW(3), RETOUCH_TILE_ROW(4), RETOUCH_TILE_ROW(5), RETOUCH_TILE_ROW(6) }
