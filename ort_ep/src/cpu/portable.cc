#include "cpu/instruction_set.h"

constexpr size_t kLanes = 4;
#include "cpu/vector.h"

namespace retouch {
namespace {

/// Numbers of float16 as vectors: their digits stand in the same order in float32, of which the exponents begin lower.
inline __attribute__((always_inline)) Vector float16_vector(const uint16_t* from) {
  const Words bits = whole_words(from);
  const Vector size = vector_of_bits((bits & 0x7FFF) << 13) * 0x1p112F;
  Words words;
  __builtin_memcpy(&words, &size, sizeof(words));
  return vector_of_bits(words | (bits & 0x8000) << 16);
}

}  // namespace
}  // namespace retouch

// These need the vectors.
#include "cpu/attention_impl.h"
#include "cpu/depthwise_impl.h"
#include "cpu/moments_impl.h"
#include "cpu/tail_impl.h"
#include "cpu/tile_impl.h"

namespace retouch {

const InstructionSet kPortable = {"portable", kLanes, 2, RETOUCH_TILES, RETOUCH_WIDEN, finish, weigh_taps, move_moments, spread, RETOUCH_ATTENTION};

}  // namespace retouch
