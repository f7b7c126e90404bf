// GatherRows: the rows a neighbourhood names, copied straight from where they are.
#include <algorithm>
#include <cstring>

#include "kernels/ops.h"
#include "kernels/row_table.h"

namespace retouch {
namespace {

constexpr size_t kBytesPerTask = 256 << 10;

class GatherRows : public Kernel {
 public:
  void compute(const Context& context) const override {
    const RowTable table("GatherRows", context);
    Shape shape{static_cast<int64_t>(table.targets()), static_cast<int64_t>(table.taps())};
    for (size_t axis = 0; axis < table.row().rank(); ++axis) shape.push(table.row()[axis]);
    const Tensor gathered = context.output(0, shape, table.type());
    const size_t rows = table.targets() * table.taps(), bytes = table.row_bytes();
    const size_t tasks = std::max<size_t>(1, rows * bytes / kBytesPerTask);
    context.parallel_for(tasks, [&](size_t task) {
      for (size_t i = rows * task / tasks; i < rows * (task + 1) / tasks; ++i)
        std::memcpy(gathered.as<char>() + i * bytes, table.pointers()[i], bytes);
    });
  }
};

}  // namespace

Op gather_rows() {
  return {"GatherRows", -1, takes_any, [](const Attributes&) { return std::make_unique<GatherRows>(); }};
}

}  // namespace retouch
