// The innermost loops of products, built once per instruction set.
//
// Sources below cpu/ that are compiled for an instruction set must not use inline functions of others, the standard
// library's included: the linker keeps one copy of each, and that copy could be one that this machine cannot run.
#pragma once

#include <stddef.h>

#include "cpu/ahead.h"
#include "cpu/tail.h"

namespace retouch {

/// A few rows of a product times one panel of weights, over one block of the depth.
struct Tile {
  /// The first row's operands, one per tap; the next row's begin `row_stride` further.
  const char* const* rows;
  size_t row_stride;
  size_t taps;
  /// The channels of each tap that the block covers.
  size_t first_channel;
  size_t channels;
  /// The block's part of the panel: for every tap and channel the weights of all the panel's columns.
  const char* weights;
  /// What is read after it, to be fetched meanwhile.
  Ahead ahead;
  /// The first block starts from the bias (or zero if null), the others from what is in `out`.
  PerColumn bias;
  bool first;
  /// The sample of the first row, of as many that take turns.
  size_t sample;
  size_t samples;
  float* out;
  size_t out_stride;
  /// Columns that the result has; the panel may be wider.
  size_t columns;
};

using TileFunction = void (*)(const Tile&);

/// Writes so many kept weights, whole vectors of them, as float32.
using WidenFunction = void (*)(const char* from, size_t count, float* to);

constexpr size_t kMaxTileRows = 6;
constexpr size_t kMaxTileVectors = 4;

}  // namespace retouch
