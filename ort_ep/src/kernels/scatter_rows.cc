// ScatterRows: recomputed rows put into a cached tensor along axes anywhere in it, in place where the runtime allows it.
#include <algorithm>
#include <cstring>

#include "api.h"
#include "kernels/ops.h"
#include "kernels/row_places.h"

namespace retouch {
namespace {

constexpr const char* kName = "ScatterRows";
constexpr size_t kBytesPerTask = 512 << 10;

/// Copies pieces of so many bytes each to their places.
template <size_t kBytes>
void put(const char* from, char* to, const size_t* places, size_t count, size_t) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to + places[i] * kBytes, from + i * kBytes, kBytes);
}

void put_any(const char* from, char* to, const size_t* places, size_t count, size_t bytes) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to + places[i] * bytes, from + i * bytes, bytes);
}

/// Rows behind whose axis nothing stands are single elements, which a call for each would copy slowly.
auto put_function(size_t bytes) {
  switch (bytes) {
    case 1:
      return put<1>;
    case 2:
      return put<2>;
    case 4:
      return put<4>;
    case 8:
      return put<8>;
    default:
      return put_any;
  }
}

class ScatterRows : public Kernel {
 public:
  explicit ScatterRows(const Attributes& attributes) : axis_(attributes.integer("axis", 0)), end_(attributes.integer("end", 1)) {}

  void compute(const Context& context) const override {
    const Tensor cached = context.input(0), index = context.input(1), rows = context.input(2);
    const int64_t rank = static_cast<int64_t>(cached.shape.rank());
    require(axis_ >= 0 && axis_ < end_ && end_ <= rank, kName, "cached with axes " + std::to_string(axis_) + " to before " + std::to_string(end_), cached);
    require(index.shape.rank() == 1, kName, "index [M]", index);
    const size_t first = static_cast<size_t>(axis_), behind = static_cast<size_t>(end_), count = static_cast<size_t>(index.shape[0]);
    Shape wanted;
    for (size_t axis = 0; axis < first; ++axis) wanted.push(cached.shape[axis]);
    wanted.push(index.shape[0]);
    for (size_t axis = behind; axis < cached.shape.rank(); ++axis) wanted.push(cached.shape[axis]);
    require(rows.shape == wanted, kName, "rows " + wanted.text(), rows);
    const int64_t size = cached.shape.count(first, behind);
    const std::vector<size_t> places = rows_at(kName, index.as<int64_t>(), count, size);
    require_distinct(kName, places.data(), count, static_cast<size_t>(size));
    const size_t lead = static_cast<size_t>(cached.shape.count(0, first)), bytes = static_cast<size_t>(cached.shape.count(behind)) * element_size(cached.type);
    const size_t whole = static_cast<size_t>(size) * bytes;
    const Tensor merged = context.output(0, cached.shape, cached.type);
    if (merged.data != cached.data) copy_bytes(context, cached.as<char>(), merged.as<char>(), lead * whole);
    const size_t tasks = std::min(std::max<size_t>(lead, 1), std::max<size_t>(1, lead * count * bytes / kBytesPerTask));
    context.parallel_for(tasks, [&](size_t task) {
      for (size_t i = lead * task / tasks; i < lead * (task + 1) / tasks; ++i)
        put_function(bytes)(rows.as<char>() + i * count * bytes, merged.as<char>() + i * whole, places.data(), count, bytes);
    });
  }

 private:
  int64_t axis_, end_;
};

}  // namespace

Op scatter_rows() {
  return {kName, 0, takes_any, [](const Attributes& attributes) { return std::make_unique<ScatterRows>(attributes); }};
}

}  // namespace retouch
