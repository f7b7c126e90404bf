// Which instruction set the machine has.
#pragma once

#include "cpu/tile.h"

namespace retouch {

/// The tiles of the best instruction set of this machine, or of the one that RETOUCH_ORT_EP_CPU names.
const Tiles& tiles();

}  // namespace retouch
