#include "kernels/row_table.h"

#include <algorithm>

#include "api.h"

namespace retouch {
namespace {

Shape row_of(const Shape& shape) {
  Shape row;
  for (size_t axis = 1; axis < shape.rank(); ++axis) row.push(shape[axis]);
  return row;
}

void check_index(const char* op, const char* name, int64_t index, int64_t limit) {
  if (index >= 0 && index < limit) return;
  throw Error(std::string(op) + ": expected every index of " + name + " to be from 0 to before " + std::to_string(limit) + ", got " +
              std::to_string(index));
}

/// The rows of the table.
std::vector<const char*> table_of(const char* op, const Tensor& rows, const Tensor& cached, const Tensor& halo, const Tensor& pad,
                                  size_t row_bytes) {
  std::vector<const char*> table;
  const int64_t active = rows.shape[0], inactive = halo.shape[0];
  table.reserve(static_cast<size_t>(active + inactive + 1));
  for (int64_t i = 0; i < active; ++i) table.push_back(rows.as<char>() + static_cast<size_t>(i) * row_bytes);
  for (int64_t i = 0; i < inactive; ++i) {
    const int64_t index = halo.as<int64_t>()[i];
    check_index(op, "halo", index, cached.shape[0]);
    table.push_back(cached.as<char>() + static_cast<size_t>(index) * row_bytes);
  }
  for (int64_t i = 0; i < pad.shape[0]; ++i) table.push_back(pad.as<char>() + static_cast<size_t>(i) * row_bytes);
  return table;
}

}  // namespace

RowTable::RowTable(const char* op, const Context& context, bool batch) {
  const Tensor rows = context.input(0), cached = context.input(1), halo = context.input(2), pad = context.input(3);
  const Tensor neighbours = context.input(4);
  require(batch ? rows.shape.rank() == 3 && rows.shape[1] >= 1 : rows.shape.rank() >= 1, op, batch ? "rows [A, B, C]" : "rows [A, ...]", rows);
  row_ = row_of(rows.shape);
  if (batch) samples_ = static_cast<size_t>(row_[0]);
  type_ = rows.type;
  row_bytes_ = static_cast<size_t>(row_.count()) * element_size(type_);
  const std::string row = " [N, ...] with rows " + row_.text();
  require(cached.shape.rank() >= 1 && row_of(cached.shape) == row_, op, "cached" + row, cached);
  require(pad.shape.rank() >= 1 && row_of(pad.shape) == row_, op, "pad" + row, pad);
  require(halo.shape.rank() == 1, op, "halo [H]", halo);
  require(neighbours.shape.rank() == 2, op, "neighbours [M, T]", neighbours);
  const std::vector<const char*> table = table_of(op, rows, cached, halo, pad, row_bytes_);
  targets_ = static_cast<size_t>(neighbours.shape[0]);
  taps_ = static_cast<size_t>(neighbours.shape[1]);
  const size_t count = targets_ * taps_;
  pointers_.resize(count * samples_);
  const uint64_t limit = table.size();
  const uint64_t* index = neighbours.as<uint64_t>();
  // Without a branch per entry; a negative one is a large one here.
  uint64_t largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, index[i]);
  if (largest >= limit) {
    for (size_t i = 0; i < count; ++i) check_index(op, "neighbours", neighbours.as<int64_t>()[i], static_cast<int64_t>(limit));
  }
  const char** to = pointers_.data();
  for (size_t target = 0; target < targets_; ++target, index += taps_)
    for (size_t sample = 0; sample < samples_; ++sample, to += taps_)
      for (size_t tap = 0; tap < taps_; ++tap) to[tap] = table[index[tap]] + sample * (row_bytes_ / samples_);
}

}  // namespace retouch
