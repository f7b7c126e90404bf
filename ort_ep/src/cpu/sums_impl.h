// The sums of a tile. Included once by the source of each instruction set, behind its vectors.
#include "cpu/tile.h"

namespace retouch {
namespace {

/// How many of a panel's columns lie in vector `v`.
inline __attribute__((always_inline)) size_t columns_of(const Tile& tile, size_t v) {
  return tile.columns > v * kLanes ? tile.columns - v * kLanes : 0;
}

/// What the sums of some rows begin with: the bias, nothing, or what was summed up before.
template <size_t Rows, size_t Vectors>
inline __attribute__((always_inline)) void begin_sums(const Tile& tile, Vector (&sum)[Rows][Vectors]) {
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
}

template <size_t Rows, size_t Vectors>
inline __attribute__((always_inline)) void keep_sums(const Tile& tile, const Vector (&sum)[Rows][Vectors]) {
  const bool whole = tile.columns >= Vectors * kLanes;
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
