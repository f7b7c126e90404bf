#include "cpu/weight_storage.h"

#include <cmath>
#include <cstring>
#include <sstream>

#include "api.h"

namespace retouch {
namespace {

constexpr float kLargestFloat16 = 65504.0F, kLargestBfloat16 = 3.3895313892515355e+38F;

uint32_t bits_of(float number) {
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

/// Drops the lowest digits, rounding to the nearest, to even ones where two are equally near.
uint32_t rounded(uint32_t bits, unsigned dropped) {
  const uint32_t odd = (bits >> dropped) & 1U;
  return (bits + (1U << (dropped - 1)) - 1 + odd) >> dropped;
}

uint16_t to_float16(float number) {
  // The exponents of numbers below the smallest normal one are all the same; adding a number whose last digit is worth
  // what theirs is rounds them.
  constexpr float kSmallestNormal = 6.103515625e-05F, kToSubnormal = 0.5F;
  const uint32_t sign = (bits_of(number) >> 16) & 0x8000U;
  const float size = std::fabs(number);
  if (size < kSmallestNormal) return static_cast<uint16_t>(sign | (bits_of(size + kToSubnormal) - bits_of(kToSubnormal)));
  constexpr uint32_t kExponents = (127U - 15U) << 23;
  return static_cast<uint16_t>(sign | rounded(bits_of(size) - kExponents, 13));
}

uint16_t to_bfloat16(float number) { return static_cast<uint16_t>(rounded(bits_of(number), 16)); }

/// Throws if a number is larger than the largest, infinite or not a number.
void check_size(float number, float largest, const char* name) {
  if (std::fabs(number) <= largest) return;
  std::ostringstream message;
  message << "retouch: expected weights from " << -largest << " to " << largest << " to keep them as " << name << ", got " << number
          << "; the option weights=float32 keeps them as they are";
  throw Error(message.str());
}

template <typename Number>
void write(const Number& number, size_t place, char* to) {
  std::memcpy(to + place * sizeof(Number), &number, sizeof(Number));
}

}  // namespace

size_t bytes_of(WeightStorage storage) noexcept { return storage == WeightStorage::kFloat32 ? sizeof(float) : sizeof(uint16_t); }

WeightStorage weight_storage(const std::string& name) {
  if (name == "float32") return WeightStorage::kFloat32;
  if (name == "float16") return WeightStorage::kFloat16;
  if (name == "bfloat16") return WeightStorage::kBfloat16;
  throw Error("retouch: expected the option weights to be float32, float16 or bfloat16, got " + name);
}

void keep_weights(WeightStorage storage, const float* from, size_t stride, size_t count, char* to) {
  for (size_t i = 0; i < count; ++i) {
    const float number = from[i * stride];
    if (storage == WeightStorage::kFloat32) {
      write(number, i, to);
    } else if (storage == WeightStorage::kFloat16) {
      check_size(number, kLargestFloat16, "float16");
      write(to_float16(number), i, to);
    } else {
      check_size(number, kLargestBfloat16, "bfloat16");
      write(to_bfloat16(number), i, to);
    }
  }
}

}  // namespace retouch
