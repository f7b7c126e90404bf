#include <stddef.h>

constexpr size_t kLanes = 16;
#include "cpu/tile_impl.h"

namespace retouch {

const Tiles kAvx512Tiles = {"avx512", kLanes, 4, RETOUCH_TILES};

}  // namespace retouch
