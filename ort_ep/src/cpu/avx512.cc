#include "cpu/instruction_set.h"

constexpr size_t kLanes = 16;
#include "cpu/vector.h"
// The tiles need the vectors.
#include "cpu/tile_impl.h"

namespace retouch {

const InstructionSet kAvx512 = {"avx512", kLanes, 4, RETOUCH_TILES};

}  // namespace retouch
