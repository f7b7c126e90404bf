// Rows...: a tail by itself, of rows that no product of ours made.
#include <algorithm>

#include "cpu/instruction_set.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

constexpr const char* kName = "Rows";
constexpr size_t kNumbersPerTask = 16 << 10;

class RowTail : public Kernel {
 public:
  explicit RowTail(const TailForm& form) : form_(form) {}

  void compute(const Context& context) const override {
    const Tensor rows = context.input(0);
    require(rows.shape.rank() == 2 || (rows.shape.rank() == 3 && rows.shape[1] >= 1), kName, "rows [M, C] or [M, B, C]", rows);
    const TailCall call(kName, form_, 1, context, rows.shape);
    TailTile all = call.tile(rows.shape);
    all.from = rows.as<float>();
    const size_t count = all.rows, columns = all.columns;
    const size_t tasks = std::min(std::max<size_t>(count, 1), std::max<size_t>(1, count * columns / kNumbersPerTask));
    context.parallel_for(tasks, [&](size_t task) {
      const size_t begin = count * task / tasks, end = count * (task + 1) / tasks;
      instruction_set().finish(part_of(all, begin, end - begin, 0, columns));
    });
  }

 private:
  TailForm form_;
};

bool claims(const std::vector<ValueType>& types, const TailForm& form, bool batch) {
  return types[0].is_rows(batch) && form.fits(types, 1, types[0].row());
}

}  // namespace

Op rows(const TailForm& tail, bool batch) {
  return {(batch ? kBatch : "") + (kName + tail.name()), 0, [=](const Node&, const std::vector<ValueType>& types) { return claims(types, tail, batch); },
          [tail](const Attributes&) { return std::make_unique<RowTail>(tail); }};
}

}  // namespace retouch
