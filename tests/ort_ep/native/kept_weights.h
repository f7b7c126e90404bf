// What becomes of weights that are kept as shorter numbers, by arithmetic instead of by their digits.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpu/instruction_set.h"
#include "cpu/weight_storage.h"

namespace retouch::fake {

/// A weight as it is kept: the nearest number that the storage has.
inline double as_kept(WeightStorage storage, double weight) {
  if (storage == WeightStorage::kFloat32 || weight == 0) return weight;
  const bool half = storage == WeightStorage::kFloat16;
  int exponent = 0;
  std::frexp(weight, &exponent);
  // Eleven binary digits, of which the last is worth 2^-24 at least; or eight.
  const int last = half ? std::max(exponent - 11, -24) : exponent - 8;
  return std::ldexp(std::nearbyint(std::ldexp(weight, -last)), last);
}

/// Whether rows of so many taps and channels are rounded as weights are: for instructions that take pairs of such numbers.
inline bool rounds_rows(WeightStorage storage, int64_t taps, int64_t channels) {
  return storage == WeightStorage::kBfloat16 && pair_functions() != nullptr && (taps == 1 || channels % 2 == 0);
}

/// Ends the process unless every kind of number that a storage has is kept as it should be, and too large ones are an error.
void test_kept_weights();

}  // namespace retouch::fake
