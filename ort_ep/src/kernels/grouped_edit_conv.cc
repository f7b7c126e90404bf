// GroupedEditConv: a convolution of the active rows whose groups of channels are apart.
#include <algorithm>
#include <cstring>

#include "api.h"
#include "cpu/row_product.h"
#include "kernels/column_operand.h"
#include "kernels/conv_weight.h"
#include "kernels/ops.h"
#include "kernels/row_table.h"

namespace retouch {
namespace {

constexpr const char* kName = "GroupedEditConv";
constexpr size_t kWeight = 5;
constexpr size_t kBias = 6;
constexpr size_t kNumbersPerTask = 16 << 10;

/// The first operand of the tail. In a batch it comes behind the form of the result, which only the function body reads.
size_t tail_operand(bool batch) { return batch ? kBias + 2 : kBias + 1; }

using Products = std::vector<RowProduct>;

/// The rows of a call and what their groups are multiplied by.
struct Call {
  const Products& products;
  size_t depth, width, count, taps;
  std::vector<const char*> pointers;

  /// Group after group [count, width].
  std::unique_ptr<float[]> multiply(const Context& context, const PerColumn& bias, size_t samples) {
    std::unique_ptr<float[]> sums(new float[products.size() * count * width]);
    Tail tail;
    tail.samples = samples;
    for (size_t group = 0; group < products.size(); ++group) {
      const PerColumn own = bias ? PerColumn{bias.first + group * width, bias.step} : PerColumn{};
      products[group].run(context, {pointers.data(), taps, depth}, count, own, {tail, nullptr, sums.get() + group * count * width});
      for (const char*& pointer : pointers) pointer += depth * sizeof(float);
    }
    return sums;
  }
};

class GroupedEditConv : public Kernel {
 public:
  GroupedEditConv(const TailForm& tail, bool batch, const Attributes& attributes) : tail_(tail), batch_(batch), groups_(attributes.integer("groups", 1)), weights_(attributes.weights()) {}

  bool pack(size_t input, const Tensor& constant) override {
    if (input != kWeight) return false;
    products_ = packed(constant);
    return true;
  }

  void compute(const Context& context) const override {
    const RowTable table(kName, context, batch_);
    if (!products_.empty()) return compute_with(context, table, products_);
    compute_with(context, table, packed(context.input(kWeight)));
  }

 private:
  Products packed(const Tensor& constant) const {
    require(groups_ > 0 && ConvWeight::is(constant) && constant.shape[0] % groups_ == 0, kName,
            std::string(ConvWeight::kForms) + ", C of " + std::to_string(groups_) + " groups", constant);
    const ConvWeight weight(constant);
    const size_t width = weight.columns / static_cast<size_t>(groups_);
    Products products;
    for (size_t first = 0; first < weight.columns; first += width) products.emplace_back(weight.from(first), weight.depth, width, weights_);
    return products;
  }

  void compute_with(const Context& context, const RowTable& table, const Products& products) const {
    const size_t channels = static_cast<size_t>(table.row().count()) / table.samples(), depth = products[0].depth(), width = products[0].columns();
    if (table.taps() * channels != depth * products.size() || !products[0].fits(table.taps())) {
      throw Error(std::string(kName) + ": expected " + std::to_string(table.taps()) + " taps of " + std::to_string(channels) + " channels to be as many as " +
                  std::to_string(products.size()) + " groups of the weight have, got groups of " + products[0].text());
    }
    Shape shape{static_cast<int64_t>(table.targets())};
    if (batch_) shape.push(static_cast<int64_t>(table.samples()));
    shape.push(static_cast<int64_t>(products.size() * width));
    const Tensor bias = context.input(kBias);
    const PerColumn added = bias ? per_column(kName, "bias", bias, shape) : PerColumn{};
    const TailCall tail(kName, tail_, tail_operand(batch_), context, shape);
    const size_t count = table.targets() * table.samples();
    Call call{products, channels / products.size(), width, count, table.taps(), {table.pointers(), table.pointers() + count * table.taps()}};
    const std::unique_ptr<float[]> sums = call.multiply(context, added, table.samples());
    finish(context, call, sums.get(), tail);
  }

  /// Puts the groups side by side, and does what the tail says.
  void finish(const Context& context, const Call& call, const float* sums, const TailCall& tail) const {
    const size_t groups = call.products.size(), columns = groups * call.width, count = call.count;
    float* rows = tail.sum() == nullptr ? tail.out() : tail.sum();
    const bool plain = tail.tail().is_empty() && tail.sum() == nullptr;
    const TailTile all{tail.tail(), rows, columns, tail.sum(), tail.out(), columns, count, columns, 0};
    const size_t tasks = std::min(std::max<size_t>(count, 1), std::max<size_t>(1, count * columns / kNumbersPerTask));
    context.parallel_for(tasks, [&](size_t task) {
      const size_t begin = count * task / tasks, end = count * (task + 1) / tasks;
      for (size_t row = begin; row < end; ++row)
        for (size_t group = 0; group < groups; ++group)
          std::memcpy(rows + row * columns + group * call.width, sums + (group * count + row) * call.width, call.width * sizeof(float));
      if (!plain) instruction_set().finish(part_of(all, begin, end - begin, 0, columns));
    });
  }

  TailForm tail_;
  bool batch_;
  int64_t groups_;
  WeightStorage weights_;
  Products products_;
};

bool claims(const Node& node, const TailForm& tail, bool batch) {
  constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kIndex = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  const std::vector<ValueType> types = node.input_types();
  if (types.size() <= kWeight || !types[0].is(kFloat) || !types[2].is(kIndex) || !types[4].is(kIndex) || !types[0].is_rows(batch)) return false;
  const ValueType& weight = types[kWeight];
  const int64_t groups = node.integer("groups", 1);
  // A weight that is computed anew for every run would be packed anew, too.
  if (!weight.is(kFloat) || !ConvWeight::is(weight) || groups < 1 || weight.dims[0] % groups != 0 || !node.is_constant(kWeight)) return false;
  std::vector<int64_t> row{weight.dims[0]};
  if (batch) row.insert(row.begin(), types[0].dims[1]);
  if (!tail.is_empty() && !tail.fits(types, tail_operand(batch), row)) return false;
  return types.size() <= kBias || types[kBias].is_optional_row(kFloat, row);
}

}  // namespace

Op grouped_edit_conv(const TailForm& tail, bool batch) {
  return {(batch ? kBatch : "") + (kName + tail.name()), -1, [=](const Node& node) { return claims(node, tail, batch); },
          [=](const Attributes& attributes) { return std::make_unique<GroupedEditConv>(tail, batch, attributes); }};
}

}  // namespace retouch
