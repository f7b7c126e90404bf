// Moments, and how much rows that changed move those of their channels, built once per instruction set.
#pragma once

#include <stddef.h>

namespace retouch {

/// Some channels of some rows x and of what they were, y.
struct MomentTile {
  const float* rows;
  const char* const* old;
  size_t first_channel;
  size_t channels;
  size_t count;
  size_t stride;
  /// Twice the mean, per channel.
  const float* centre;
  /// Per channel: the sums of x - y, and of (x - y)(x + y - centre).
  float* moved;
  float* widened;
};

using MomentFunction = void (*)(const MomentTile&);

/// The mean of some numbers, and the sum of the squares of their distances from it.
struct Spread {
  double mean;
  double squares;
};

/// Of `count` numbers, at least one and few enough for sums in single precision.
using SpreadFunction = Spread (*)(const float* values, size_t count);

}  // namespace retouch
