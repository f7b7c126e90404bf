#include <stddef.h>

constexpr size_t kLanes = 4;
#include "cpu/tile_impl.h"

namespace retouch {

const Tiles kPortableTiles = {"portable", kLanes, 2, RETOUCH_TILES};

}  // namespace retouch
