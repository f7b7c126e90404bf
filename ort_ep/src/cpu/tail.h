// What is done to rows of a product while they are at hand, built once per instruction set.
#pragma once

#include <stddef.h>

namespace retouch {

/// x, x / (1 + e^-x), or x times the normal distribution function of x, exact or by its usual approximation with tanh.
enum class Activation { kNone, kSilu, kGelu, kTanhGelu };

/// One number for every column: the same ones for all samples, or those of the next sample `step` further.
struct PerColumn {
  const float* first = nullptr;
  size_t step = 0;

  // Used by sources of every instruction set, so no copy of these may be left to the linker (see tile.h).
  __attribute__((always_inline)) explicit operator bool() const noexcept { return first != nullptr; }
  __attribute__((always_inline)) const float* of(size_t sample) const noexcept { return first + sample * step; }
};

/// s = (x + bias) * gate + residual, then y = activation(s * factor + shift); what is null is left out.
struct Tail {
  PerColumn bias;
  PerColumn gate;
  /// Like the rows.
  const float* residual = nullptr;
  /// Both or neither.
  PerColumn factor;
  PerColumn shift;
  Activation activation = Activation::kNone;
  /// Rows of so many samples take turns.
  size_t samples = 1;

  bool is_empty() const noexcept { return !bias && !gate && residual == nullptr && !factor && activation == Activation::kNone; }
};

/// A rectangle of rows and columns; it begins at the pointers of the tail and at these.
struct TailTile {
  Tail tail;
  const float* from;
  /// Between rows of it.
  size_t from_stride;
  /// Where s goes; may be `from` or null.
  float* sum;
  /// Where y goes; may be `from`.
  float* out;
  /// Between rows of residual, sum and out alike.
  size_t stride;
  size_t rows;
  size_t columns;
  /// The sample of the first row.
  size_t sample;
};

/// A rectangle within a tile.
TailTile part_of(const TailTile& tile, size_t first_row, size_t rows, size_t first_column, size_t columns);

using TailFunction = void (*)(const TailTile&);

}  // namespace retouch
