// What is done to rows of a product while they are at hand, built once per instruction set.
#pragma once

#include <stddef.h>

namespace retouch {

/// x, x / (1 + e^-x), or x times the normal distribution function of x, exact or by its usual approximation with tanh.
enum class Activation { kNone, kSilu, kGelu, kTanhGelu };

/// s = x * gate + residual, then y = activation(s * factor + shift); what is null is left out.
struct Tail {
  /// Per column.
  const float* gate = nullptr;
  /// Like the rows.
  const float* residual = nullptr;
  /// Per column, both or neither.
  const float* factor = nullptr;
  const float* shift = nullptr;
  Activation activation = Activation::kNone;

  bool is_empty() const noexcept { return gate == nullptr && residual == nullptr && factor == nullptr && activation == Activation::kNone; }
};

/// A rectangle of rows and columns; it begins at the pointers of the tail and at these.
struct TailTile {
  Tail tail;
  const float* from;
  /// Where s goes; may be `from` or null.
  float* sum;
  /// Where y goes; may be `from`.
  float* out;
  /// Between rows of residual, from, sum and out alike.
  size_t stride;
  size_t rows;
  size_t columns;
};

/// A rectangle within a tile.
TailTile part_of(const TailTile& tile, size_t first_row, size_t rows, size_t first_column, size_t columns);

using TailFunction = void (*)(const TailTile&);

}  // namespace retouch
