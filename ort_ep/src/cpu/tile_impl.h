// The tiles. Included once by the source of each instruction set, behind its vectors.
#include "cpu/sums_impl.h"
#include "cpu/weights_impl.h"

namespace retouch {
namespace {

template <WeightStorage Storage, size_t Rows, size_t Vectors>
void compute(const Tile& tile) {
  Vector sum[Rows][Vectors];
  begin_sums(tile, sum);
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
  keep_sums(tile, sum);
}

}  // namespace
}  // namespace retouch

#define RETOUCH_TILE_ROW(storage, rows) {compute<storage, rows, 1>, compute<storage, rows, 2>, compute<storage, rows, 3>, compute<storage, rows, 4>}
#define RETOUCH_TILES_OF(storage)                                                                              \
  {RETOUCH_TILE_ROW(storage, 1), RETOUCH_TILE_ROW(storage, 2), RETOUCH_TILE_ROW(storage, 3), RETOUCH_TILE_ROW(storage, 4), \
   RETOUCH_TILE_ROW(storage, 5), RETOUCH_TILE_ROW(storage, 6)}
#define RETOUCH_TILES \
  {RETOUCH_TILES_OF(WeightStorage::kFloat32), RETOUCH_TILES_OF(WeightStorage::kFloat16), RETOUCH_TILES_OF(WeightStorage::kBfloat16)}
