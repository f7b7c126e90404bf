#include <immintrin.h>

#include "cpu/instruction_set.h"

constexpr size_t kLanes = 8;
#include "cpu/vector.h"

namespace retouch {
namespace {

/// Numbers of float16 as vectors.
inline __attribute__((always_inline)) Vector float16_vector(const uint16_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
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

const InstructionSet kAvx2 = {"avx2", kLanes, 2, RETOUCH_TILES, RETOUCH_WIDEN, finish, weigh_taps, move_moments, spread, RETOUCH_ATTENTION};

}  // namespace retouch
