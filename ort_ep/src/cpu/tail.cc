#include "cpu/tail.h"

namespace retouch {
namespace {

template <typename T>
T* moved(T* pointer, size_t by) {
  return pointer == nullptr ? nullptr : pointer + by;
}

}  // namespace

TailTile part_of(const TailTile& tile, size_t first_row, size_t rows, size_t first_column, size_t columns) {
  const size_t place = first_row * tile.stride + first_column;
  TailTile part = tile;
  part.tail.bias.first = moved(tile.tail.bias.first, first_column);
  part.tail.gate.first = moved(tile.tail.gate.first, first_column);
  part.tail.residual = moved(tile.tail.residual, place);
  part.tail.factor.first = moved(tile.tail.factor.first, first_column);
  part.tail.shift.first = moved(tile.tail.shift.first, first_column);
  part.from = moved(tile.from, first_row * tile.from_stride + first_column);
  part.sum = moved(tile.sum, place);
  part.out = moved(tile.out, place);
  part.rows = rows;
  part.columns = columns;
  part.sample = (tile.sample + first_row) % tile.tail.samples;
  return part;
}

}  // namespace retouch
