#include <stddef.h>

constexpr size_t kLanes = 8;
#include "cpu/tile_impl.h"

namespace retouch {

const Tiles kAvx2Tiles = {"avx2", kLanes, 2, RETOUCH_TILES};

}  // namespace retouch
