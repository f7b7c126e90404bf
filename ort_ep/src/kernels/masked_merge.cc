// MaskedMerge: recomputed rows put into a cached tensor, in place where the runtime allows it.
#include <algorithm>
#include <cstring>

#include "api.h"
#include "kernels/ops.h"
#include "kernels/row_places.h"

namespace retouch {
namespace {

constexpr const char* kName = "MaskedMerge";
constexpr size_t kBytesPerTask = 512 << 10;

/// The row that an index names, counted over the leading axes of the cached tensor; negative ones count from the end.
size_t position(const int64_t* index, size_t axes, const Shape& cached) {
  int64_t flat = 0;
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t size = cached[axis], given = index[axis];
    if (given < -size || given >= size) {
      throw Error(std::string(kName) + ": expected every index on axis " + std::to_string(axis) + " to be from -" +
                  std::to_string(size) + " to before " + std::to_string(size) + ", got " + std::to_string(given));
    }
    flat = flat * size + (given < 0 ? given + size : given);
  }
  return static_cast<size_t>(flat);
}

class MaskedMerge : public Kernel {
 public:
  void compute(const Context& context) const override {
    const Tensor cached = context.input(0), index = context.input(1), rows = context.input(2);
    require(index.shape.rank() == 2 && index.shape[1] >= 1 && index.shape[1] <= static_cast<int64_t>(cached.shape.rank()), kName,
            "index [M, K] with K at most the rank of cached", index);
    const size_t count = static_cast<size_t>(index.shape[0]), axes = static_cast<size_t>(index.shape[1]);
    Shape wanted{index.shape[0]};
    for (size_t axis = axes; axis < cached.shape.rank(); ++axis) wanted.push(cached.shape[axis]);
    require(rows.shape == wanted, kName, "rows " + wanted.text(), rows);
    const size_t bytes = static_cast<size_t>(cached.shape.count(axes)) * element_size(cached.type);
    const size_t size = static_cast<size_t>(cached.shape.count(0, axes));
    std::vector<size_t> positions(count);
    for (size_t i = 0; i < count; ++i) positions[i] = position(index.as<int64_t>() + i * axes, axes, cached.shape);
    require_distinct(kName, positions.data(), count, size);
    const Tensor merged = context.output(0, cached.shape, cached.type);
    if (merged.data != cached.data) copy_bytes(context, cached.as<char>(), merged.as<char>(), size * bytes);
    const size_t tasks = std::min(std::max<size_t>(count, 1), std::max<size_t>(1, count * bytes / kBytesPerTask));
    context.parallel_for(tasks, [&](size_t task) {
      for (size_t i = count * task / tasks; i < count * (task + 1) / tasks; ++i)
        std::memcpy(merged.as<char>() + positions[i] * bytes, rows.as<char>() + i * bytes, bytes);
    });
  }
};

}  // namespace

Op masked_merge() {
  return {kName, 0, takes_any, [](const Attributes&) { return std::make_unique<MaskedMerge>(); }};
}

}  // namespace retouch
