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

inline double sum_of(Vector value) {
  double sum = 0;
  for (size_t i = 0; i < kLanes; ++i) sum += value[i];
  return sum;
}

Spread spread(const float* values, size_t count) {
  const size_t whole = count - count % kLanes, rest = count - whole;
  Vector sum = load_some(values + whole, rest);
  for (size_t i = 0; i < whole; i += kLanes) sum += load(values + i);
  const double mean = sum_of(sum) / static_cast<double>(count);
  const Vector centre = filled(static_cast<float>(mean));
  Vector squares = Vector{};
  for (size_t i = 0; i < whole; i += kLanes) {
    const Vector off = load(values + i) - centre;
    squares += off * off;
  }
  double total = sum_of(squares);
  for (size_t i = whole; i < count; ++i) {
    const double off = static_cast<double>(values[i]) - mean;
    total += off * off;
  }
  return {mean, total};
}

}  // namespace
}  // namespace retouch
