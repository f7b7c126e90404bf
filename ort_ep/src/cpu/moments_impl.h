// The moments. Included once by the source of each instruction set, behind its vectors.
#include "cpu/moments.h"
#include "cpu/tail_impl.h"

namespace retouch {
namespace {

void move_moments(const MomentTile& tile) {
  for (size_t begin = 0; begin < tile.channels; begin += kLanes) {
    const size_t width = tile.channels - begin, place = tile.first_channel + begin;
    const Vector centre = load_up_to(tile.centre + place, width);
    Vector moved = Vector{}, widened = Vector{};
    for (size_t row = 0; row < tile.count; ++row) {
      const Vector x = load_up_to(tile.rows + row * tile.stride + place, width);
      const Vector y = load_up_to(reinterpret_cast<const float*>(tile.old[row]) + place, width);
      moved += x - y;
      widened += (x - y) * (x + y - centre);
    }
    store_up_to(tile.moved + place, moved, width);
    store_up_to(tile.widened + place, widened, width);
  }
}

}  // namespace
}  // namespace retouch
