// EditConv: a convolution of the active rows, straight from where their neighbours are.
#include "api.h"
#include "cpu/row_product.h"
#include "kernels/column_operand.h"
#include "kernels/conv_weight.h"
#include "kernels/ops.h"
#include "kernels/row_table.h"

namespace retouch {
namespace {

constexpr const char* kName = "EditConv";
constexpr size_t kWeight = 5;
constexpr size_t kBias = 6;

/// The first operand of the tail. In a batch it comes behind the form of the result, which only the function body reads.
size_t tail_operand(bool batch) { return batch ? kBias + 2 : kBias + 1; }

class EditConv : public Kernel {
 public:
  EditConv(const TailForm& tail, bool batch, WeightStorage weights) : tail_(tail), batch_(batch), weights_(weights) {}

  bool pack(size_t input, const Tensor& constant) override {
    if (input != kWeight || !ConvWeight::is(constant)) return false;
    // The taps of a matrix are not known before the first call; panels are laid out by depth, whatever its division.
    product_ = std::make_unique<RowProduct>(packed(constant));
    return true;
  }

  void compute(const Context& context) const override {
    const RowTable table(kName, context, batch_);
    if (product_ != nullptr) return compute_with(context, table, *product_);
    const Tensor weight = context.input(kWeight);
    require(ConvWeight::is(weight), kName, ConvWeight::kForms, weight);
    compute_with(context, table, packed(weight));
  }

 private:
  RowProduct packed(const Tensor& constant) const {
    const ConvWeight weight(constant);
    return RowProduct(weight.from(0), weight.depth, weight.columns, weights_);
  }

  void compute_with(const Context& context, const RowTable& table, const RowProduct& product) const {
    const size_t channels = static_cast<size_t>(table.row().count()) / table.samples();
    if (table.taps() * channels != product.depth() || !product.fits(table.taps())) {
      throw Error(std::string(kName) + ": expected " + std::to_string(table.taps()) + " taps of " + std::to_string(channels) +
                  " channels to be as many as the weight has, got " + product.text());
    }
    Shape shape{static_cast<int64_t>(table.targets())};
    if (batch_) shape.push(static_cast<int64_t>(table.samples()));
    shape.push(static_cast<int64_t>(product.columns()));
    const Tensor bias = context.input(kBias);
    const PerColumn added = bias ? per_column(kName, "bias", bias, shape) : PerColumn{};
    const TailCall tail(kName, tail_, tail_operand(batch_), context, shape);
    const size_t count = table.targets() * table.samples();
    product.run(context, {table.pointers(), table.taps(), channels}, count, added, {tail.tail(), tail.sum(), tail.out()});
  }

  TailForm tail_;
  bool batch_;
  WeightStorage weights_;
  std::unique_ptr<RowProduct> product_;
};

bool claims(const Node& node, const TailForm& tail, bool batch) {
  constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kIndex = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  const std::vector<ValueType> types = node.input_types();
  if (types.size() <= kWeight || !types[0].is(kFloat) || !types[2].is(kIndex) || !types[4].is(kIndex)) return false;
  if (batch && !types[0].is_rows(batch)) return false;
  const ValueType& weight = types[kWeight];
  // A weight that is computed anew for every run would be packed anew, too.
  if (!weight.is(kFloat) || !ConvWeight::is(weight) || !node.is_constant(kWeight)) return false;
  std::vector<int64_t> row{weight.dims[0]};
  if (batch) row.insert(row.begin(), types[0].dims[1]);
  if (!tail.is_empty() && !tail.fits(types, tail_operand(batch), row)) return false;
  return types.size() <= kBias || types[kBias].is_optional_row(kFloat, row);
}

}  // namespace

Op edit_conv(const TailForm& tail, bool batch) {
  return {(batch ? kBatch : "") + (kName + tail.name()), -1, [=](const Node& node) { return claims(node, tail, batch); },
          [=](const Attributes& attributes) { return std::make_unique<EditConv>(tail, batch, attributes.weights()); }};
}

}  // namespace retouch
