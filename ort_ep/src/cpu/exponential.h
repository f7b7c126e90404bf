// The exponential function of vectors. Included by what needs it, behind the vectors.
#pragma once

#include <stdint.h>

namespace retouch {
namespace {

typedef int32_t Integers __attribute__((vector_size(kLanes * sizeof(int32_t))));

constexpr float kMostExponent = 88.0F, kLeastExponent = -87.0F;

inline __attribute__((always_inline)) Vector filled(float value) { return Vector{} + value; }

/// e^x within 2 units in the last place, for x from kLeastExponent to kMostExponent.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by a polynomial, 2^n by setting the exponent (S. Moshier, Cephes, expf).
inline __attribute__((always_inline)) Vector exponential_within(Vector x) {
  constexpr float kToInteger = 12582912.0F;
  // Adding 1.5 * 2^23 leaves the nearest integer in the lowest bits.
  const Vector shifted = x * 1.44269504F + kToInteger;
  const Vector n = shifted - kToInteger;
  const Vector r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  Vector sum = r * 1.9875691500e-4F + 1.3981999507e-3F;
  sum = sum * r + 8.3334519073e-3F;
  sum = sum * r + 4.1665795894e-2F;
  sum = sum * r + 1.6666665459e-1F;
  sum = sum * r + 5.0000001201e-1F;
  sum = sum * (r * r) + r + 1.0F;
  Integers bits;
  __builtin_memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits - 0x4B400000 + 127) << 23;
  Vector power;
  __builtin_memcpy(&power, &bits, sizeof(power));
  return sum * power;
}

/// e^x for x clamped to where that is a normal number.
inline __attribute__((always_inline)) Vector exponential(Vector x) {
  x = x > kMostExponent ? filled(kMostExponent) : x;
  return exponential_within(x < kLeastExponent ? filled(kLeastExponent) : x);
}

}  // namespace
}  // namespace retouch
