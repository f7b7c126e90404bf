#include "cpu/instruction_set.h"

constexpr size_t kLanes = 4;
#include "cpu/vector.h"
// These need the vectors.
#include "cpu/attention_impl.h"
#include "cpu/depthwise_impl.h"
#include "cpu/moments_impl.h"
#include "cpu/tail_impl.h"
#include "cpu/tile_impl.h"

namespace retouch {

const InstructionSet kPortable = {"portable", kLanes, 2, RETOUCH_TILES, finish, weigh_taps, move_moments, spread, 2, {attend<1>, attend<2>}};

}  // namespace retouch
