// Vectors of kLanes numbers. Included once by the source of each instruction set, which says how many those are.
#include <stddef.h>
#include <stdint.h>

namespace retouch {
namespace {

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
typedef uint32_t Words __attribute__((vector_size(kLanes * sizeof(uint32_t))));

inline __attribute__((always_inline)) Vector load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

inline __attribute__((always_inline)) void store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof(value)); }

/// The first `count` numbers, and zeros.
inline __attribute__((always_inline)) Vector load_some(const float* from, size_t count) {
  float numbers[kLanes] = {};
  for (size_t i = 0; i < count && i < kLanes; ++i) numbers[i] = from[i];
  return load(numbers);
}

inline __attribute__((always_inline)) void store_some(float* to, Vector value, size_t count) {
  float numbers[kLanes];
  store(numbers, value);
  for (size_t i = 0; i < count && i < kLanes; ++i) to[i] = numbers[i];
}

/// Halves of words, filled up with zeros.
inline __attribute__((always_inline)) Words whole_words(const uint16_t* from) {
  typedef uint16_t Halves __attribute__((vector_size(kLanes * sizeof(uint16_t))));
  Halves halves;
  __builtin_memcpy(&halves, from, sizeof(halves));
  return __builtin_convertvector(halves, Words);
}

/// The numbers that these words are the digits of.
inline __attribute__((always_inline)) Vector vector_of_bits(Words bits) {
  Vector value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace
}  // namespace retouch
