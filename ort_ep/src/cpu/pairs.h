// Products of bfloat16 numbers by pairs: one instruction multiplies two of them by two others and adds both products to a
// float32 sum, twice as many as of float32 numbers. Rows are rounded to bfloat16 for it.
#pragma once

#include "cpu/tile.h"

namespace retouch {

/// The most depth that a tile of pairs covers.
constexpr size_t kPairDepth = 256;

/// What instructions for pairs do. Panels hold pairs of rows: of every column the numbers of both, one after the other.
struct PairFunctions {
  /// By rows and by vectors of columns, from one on; a tile's depth begins with a pair.
  TileFunction tiles[kMaxTileRows][kMaxTileVectors];
  /// Writes rows of a panel of that width as float32, from any depth on.
  void (*widen)(const char* panel, size_t depth, size_t count, size_t width, float* to);
};

/// Built where the compiler has these instructions; beside AVX-512.
extern const PairFunctions kPairs;

}  // namespace retouch
