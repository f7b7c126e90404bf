#include "cpu/instruction_set.h"

constexpr size_t kLanes = 8;
#include "cpu/vector.h"
// The tiles need the vectors.
#include "cpu/tile_impl.h"

namespace retouch {

const InstructionSet kAvx2 = {"avx2", kLanes, 2, RETOUCH_TILES};

}  // namespace retouch
