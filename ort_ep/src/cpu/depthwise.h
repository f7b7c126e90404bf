// Convolutions that leave every channel to itself, built once per instruction set.
#pragma once

#include <stddef.h>

#include "cpu/tail.h"

namespace retouch {

/// Some rows of such a convolution.
struct DepthwiseTile {
  /// The first row's operands, one per tap; those of the next row follow.
  const char* const* rows;
  size_t count;
  size_t taps;
  size_t channels;
  /// [taps, channels]
  const float* weights;
  PerColumn bias;
  /// The sample of the first row, of as many that take turns.
  size_t sample;
  size_t samples;
  /// [count, channels]
  float* out;
};

using DepthwiseFunction = void (*)(const DepthwiseTile&);

}  // namespace retouch
