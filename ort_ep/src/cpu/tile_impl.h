// The tiles. Included once by the source of each instruction set, behind its vectors.
#include "cpu/tile.h"
#include "cpu/weights_impl.h"

namespace retouch {
namespace {

/// How many of a panel's columns lie in vector `v`.
inline __attribute__((always_inline)) size_t columns_of(const Tile& tile, size_t v) {
  return tile.columns > v * kLanes ? tile.columns - v * kLanes : 0;
}

template <WeightStorage Storage, size_t Rows, size_t Vectors>
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
  const auto* weights = reinterpret_cast<const typename Kept<Storage>::Number*>(tile.weights);
  Fetching fetching(tile.ahead, tile.taps * tile.channels);
  for (size_t tap = 0; tap < tile.taps; ++tap) {
    const float* row[Rows];
    for (size_t r = 0; r < Rows; ++r)
      row[r] = reinterpret_cast<const float*>(tile.rows[r * tile.row_stride + tap]) + tile.first_channel;
    for (size_t k = 0; k < tile.channels; ++k) {
      Vector weight[Vectors];
      for (size_t v = 0; v < Vectors; ++v) weight[v] = Kept<Storage>::read(weights + v * kLanes);
      for (size_t r = 0; r < Rows; ++r)
        for (size_t v = 0; v < Vectors; ++v) sum[r][v] += row[r][k] * weight[v];
      weights += Vectors * kLanes;
      fetching.step();
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

#define RETOUCH_TILE_ROW(storage, rows) {compute<storage, rows, 1>, compute<storage, rows, 2>, compute<storage, rows, 3>, compute<storage, rows, 4>}
#define RETOUCH_TILES_OF(storage)                                                                              \
  {RETOUCH_TILE_ROW(storage, 1), RETOUCH_TILE_ROW(storage, 2), RETOUCH_TILE_ROW(storage, 3), RETOUCH_TILE_ROW(storage, 4), \
   RETOUCH_TILE_ROW(storage, 5), RETOUCH_TILE_ROW(storage, 6)}
#define RETOUCH_TILES \
  {RETOUCH_TILES_OF(WeightStorage::kFloat32), RETOUCH_TILES_OF(WeightStorage::kFloat16), RETOUCH_TILES_OF(WeightStorage::kBfloat16)}
