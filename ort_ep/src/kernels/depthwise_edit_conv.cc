// DepthwiseEditConv: a convolution of the active rows that leaves every channel to itself.
#include <algorithm>

#include "api.h"
#include "cpu/instruction_set.h"
#include "kernels/column_operand.h"
#include "kernels/ops.h"
#include "kernels/row_table.h"

namespace retouch {
namespace {

constexpr const char* kName = "DepthwiseEditConv";
constexpr size_t kWeight = 5;
constexpr size_t kBias = 6;
constexpr size_t kNumbersPerTask = 16 << 10;

class DepthwiseEditConv : public Kernel {
 public:
  DepthwiseEditConv(const TailForm& tail, bool batch) : tail_(tail), batch_(batch) {}

  void compute(const Context& context) const override {
    const RowTable table(kName, context, batch_);
    const Tensor weight = context.input(kWeight), bias = context.input(kBias);
    const int64_t taps = static_cast<int64_t>(table.taps()), channels = table.row().count() / static_cast<int64_t>(table.samples());
    require(weight.shape.rank() >= 2 && weight.shape[0] == taps && weight.shape[weight.shape.rank() - 1] == channels && weight.shape.count() == taps * channels,
            kName, "weight [" + std::to_string(taps) + ", " + std::to_string(channels) + "]", weight);
    Shape shape = table.row();
    shape = batch_ ? Shape{static_cast<int64_t>(table.targets()), shape[0], channels} : Shape{static_cast<int64_t>(table.targets()), channels};
    const TailCall call(kName, tail_, kBias + 1, context, shape);
    run(context, table, weight.as<float>(), bias ? per_column(kName, "bias", bias, shape) : PerColumn{}, call.tile(shape));
  }

 private:
  static void run(const Context& context, const RowTable& table, const float* weights, const PerColumn& bias, const TailTile& target) {
    const size_t count = target.rows, channels = target.columns, samples = table.samples();
    float* sums = target.sum == nullptr ? target.out : target.sum;
    const bool plain = target.tail.is_empty() && target.sum == nullptr;
    const size_t tasks = std::min(std::max<size_t>(count, 1), std::max<size_t>(1, count * channels * table.taps() / kNumbersPerTask));
    context.parallel_for(tasks, [&](size_t task) {
      const size_t begin = count * task / tasks, end = count * (task + 1) / tasks;
      const char* const* rows = table.pointers() + begin * table.taps();
      instruction_set().weigh_taps(
          {rows, end - begin, table.taps(), channels, weights, bias, begin % samples, samples, sums + begin * channels});
      if (!plain) instruction_set().finish(part_of(target, begin, end - begin, 0, channels));
    });
  }

  TailForm tail_;
  bool batch_;
};

bool claims(const std::vector<ValueType>& types, const TailForm& tail, bool batch) {
  if (!types[0].is_rows(batch) || (!tail.is_empty() && !tail.fits(types, kBias + 1, types[0].row()))) return false;
  return types.size() <= kBias || types[kBias].is_optional_row(types[0].row());
}

}  // namespace

Op depthwise_edit_conv(const TailForm& tail, bool batch) {
  return {(batch ? kBatch : "") + (kName + tail.name()), -1, [=](const Node&, const std::vector<ValueType>& types) { return claims(types, tail, batch); },
          [=](const Attributes&) { return std::make_unique<DepthwiseEditConv>(tail, batch); }};
}

}  // namespace retouch
