// The tails. Included once by the source of each instruction set, behind its vectors.
#pragma once

#include "cpu/exponential.h"
#include "cpu/tail.h"

namespace retouch {
namespace {

/// x / (1 + e^-slope)
inline __attribute__((always_inline)) Vector logistic(Vector x, Vector slope) { return x / (exponential(-slope) + 1.0F); }

/// The error function within 2e-7 (Abramowitz and Stegun, 7.1.26).
inline __attribute__((always_inline)) Vector error_function(Vector x) {
  const Vector size = x < 0.0F ? -x : x;
  const Vector t = 1.0F / (size * 0.3275911F + 1.0F);
  Vector sum = t * 1.061405429F - 1.453152027F;
  sum = sum * t + 1.421413741F;
  sum = sum * t - 0.284496736F;
  sum = sum * t + 0.254829592F;
  const Vector result = 1.0F - sum * t * exponential(-size * size);
  return x < 0.0F ? -result : result;
}

inline __attribute__((always_inline)) Vector activated(Vector x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return logistic(x, x);
    case Activation::kGelu:
      return x * 0.5F * (error_function(x * 0.70710678F) + 1.0F);
    case Activation::kTanhGelu:
      // (1 + tanh(u)) / 2 is the logistic function of 2 u.
      return logistic(x, x * (x * x * 0.0713548163F + 1.59576912F));
    default:
      return x;
  }
}

inline __attribute__((always_inline)) Vector load_up_to(const float* from, size_t count) {
  return count >= kLanes ? load(from) : load_some(from, count);
}

inline __attribute__((always_inline)) void store_up_to(float* to, Vector value, size_t count) {
  if (count >= kLanes) {
    store(to, value);
  } else {
    store_some(to, value, count);
  }
}

void finish(const TailTile& tile) {
  const Tail& tail = tile.tail;
  size_t sample = tile.sample;
  for (size_t row = 0; row < tile.rows; ++row) {
    const size_t begin = row * tile.stride;
    const float* from = tile.from + row * tile.from_stride;
    const float *bias = tail.bias.of(sample), *gate = tail.gate.of(sample), *factor = tail.factor.of(sample), *shift = tail.shift.of(sample);
    for (size_t column = 0; column < tile.columns; column += kLanes) {
      const size_t count = tile.columns - column, place = begin + column;
      Vector value = load_up_to(from + column, count);
      if (tail.bias) value += load_up_to(bias + column, count);
      if (tail.gate) value *= load_up_to(gate + column, count);
      if (tail.residual != nullptr) value += load_up_to(tail.residual + place, count);
      if (tile.sum != nullptr) store_up_to(tile.sum + place, value, count);
      if (tail.factor) value = value * load_up_to(factor + column, count) + load_up_to(shift + column, count);
      store_up_to(tile.out + place, activated(value, tail.activation), count);
    }
    if (++sample == tail.samples) sample = 0;
  }
}

}  // namespace
}  // namespace retouch
