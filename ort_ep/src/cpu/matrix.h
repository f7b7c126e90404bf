// Products by matrix instructions of bfloat16 numbers, as exact as those of float32 numbers.
//
// A float32 number is the sum of three bfloat16 numbers, its leading eight binary digits, the next eight and the last
// eight. Of the nine products of two such sums the six largest are added up, in float32; the other three are below what
// float32 resolves (Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
// Higher-Precision Computations", ARITH 2019).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cpu/ahead.h"

namespace retouch {

/// Rows and columns of a tile, and the depth of one step.
constexpr size_t kTileSide = 16;
constexpr size_t kStepDepth = 32;
constexpr size_t kParts = 3;
/// Tiles of columns that are multiplied at once.
constexpr size_t kTilePair = 2;
/// Numbers in a tile of one part.
constexpr size_t kTileNumbers = kTileSide * kStepDepth;

/// Scattered rows, a piece of their depth.
struct SplitRows {
  /// The first row's operands, one per tap; those of the next row follow.
  const char* const* rows;
  size_t count;
  size_t taps;
  size_t channels;
  /// The piece begins there; what is behind all taps counts as zeros.
  size_t begin;
  size_t steps;
  /// Per tile of rows and step: a tile of every part.
  uint16_t* out;
};

/// Some columns of a panel of weights, a piece of their depth.
struct SplitWeights {
  const float* weights;
  /// Between rows of the panel.
  size_t stride;
  /// Rows that there are; the others of the piece count as zeros.
  size_t depth;
  size_t column_tiles;
  size_t steps;
  /// Per tile of columns and step: a tile of every part, pairs of rows beside each other.
  uint16_t* out;
  Ahead ahead;
};

/// A product of rows and a pair of tiles of columns of weights, or one such tile, that were split.
struct MatrixTile {
  const uint16_t* rows;
  const uint16_t* weights;
  size_t count;
  size_t column_tiles;
  size_t steps;
  /// Whether the product is all there is, or is added to what is in `sums`.
  bool first;
  /// Tiles of sums, those of the same rows behind one another, those of the next rows `row_step` further.
  float* sums;
  size_t row_step;
  Ahead ahead;
};

/// What matrix instructions do.
struct MatrixFunctions {
  void (*split_rows)(const SplitRows&);
  void (*split_weights)(const SplitWeights&);
  void (*multiply)(const MatrixTile&);
};

}  // namespace retouch
