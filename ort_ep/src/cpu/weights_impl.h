// Kept weights as vectors. Included once by the source of each instruction set, behind its vectors and `float16_vector`.
#include "cpu/weight_storage.h"

namespace retouch {
namespace {

/// How numbers of a storage are read.
template <WeightStorage Storage>
struct Kept;

template <>
struct Kept<WeightStorage::kFloat32> {
  typedef float Number;
  static inline __attribute__((always_inline)) Vector read(const Number* from) { return load(from); }
};

template <>
struct Kept<WeightStorage::kFloat16> {
  typedef uint16_t Number;
  static inline __attribute__((always_inline)) Vector read(const Number* from) { return float16_vector(from); }
};

template <>
struct Kept<WeightStorage::kBfloat16> {
  typedef uint16_t Number;
  static inline __attribute__((always_inline)) Vector read(const Number* from) {
    return vector_of_bits(whole_words(from) << 16);
  }
};

/// Writes kept numbers as float32; whole vectors of them.
template <WeightStorage Storage>
void widen(const char* from, size_t count, float* to) {
  const auto* numbers = reinterpret_cast<const typename Kept<Storage>::Number*>(from);
  for (size_t i = 0; i < count; i += kLanes) store(to + i, Kept<Storage>::read(numbers + i));
}

}  // namespace
}  // namespace retouch

#define RETOUCH_WIDEN {widen<WeightStorage::kFloat32>, widen<WeightStorage::kFloat16>, widen<WeightStorage::kBfloat16>}
