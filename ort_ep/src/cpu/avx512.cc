#include <immintrin.h>

#include "cpu/instruction_set.h"

constexpr size_t kLanes = 16;
#include "cpu/vector.h"

namespace retouch {
namespace {

/// Numbers of float16 as vectors. The form without a mask reads, to a compiler, what was never set.
inline __attribute__((always_inline)) Vector float16_vector(const uint16_t* from) {
  return _mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
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

const InstructionSet kAvx512 = {"avx512", kLanes, 4, RETOUCH_TILES, RETOUCH_WIDEN, finish, weigh_taps, move_moments, spread, RETOUCH_ATTENTION};

}  // namespace retouch
