// RowLinear: a matrix product of few rows with constant weights.
#include "api.h"
#include "cpu/row_product.h"
#include "kernels/column_operand.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

constexpr const char* kName = "RowLinear";
constexpr size_t kBias = 2;

/// The first operand of the tail. In a batch it comes behind the form of the result, which only the function body reads.
size_t tail_operand(bool batch) { return batch ? kBias + 2 : kBias + 1; }

class RowLinear : public Kernel {
 public:
  RowLinear(const TailForm& tail, bool batch, const Attributes& attributes)
      : tail_(tail), batch_(batch), transposed_(attributes.integer("transB", 0) != 0), weights_(attributes.weights()) {}

  bool pack(size_t input, const Tensor& constant) override {
    if (input != 1) return false;
    product_ = std::make_unique<RowProduct>(packed(constant));
    return true;
  }

  void compute(const Context& context) const override {
    const Tensor rows = context.input(0), bias = context.input(kBias);
    if (product_ == nullptr) return compute_with(context, packed(context.input(1)), rows, bias);
    compute_with(context, *product_, rows, bias);
  }

 private:
  RowProduct packed(const Tensor& weight) const {
    require(weight.shape.rank() == 2, kName, "weight of two axes", weight);
    const size_t first = static_cast<size_t>(weight.shape[0]), second = static_cast<size_t>(weight.shape[1]);
    const float* data = weight.as<float>();
    return transposed_ ? RowProduct({data, 1, second}, second, first, weights_) : RowProduct({data, second, 1}, first, second, weights_);
  }

  void compute_with(const Context& context, const RowProduct& product, const Tensor& rows, const Tensor& bias) const {
    const size_t channels = product.depth(), rank = batch_ ? 3 : 2;
    require(rows.shape.rank() == rank && rows.shape[rank - 1] == static_cast<int64_t>(channels) && rows.shape.count(1, rank) > 0, kName,
            (batch_ ? "rows [M, B, " : "rows [M, ") + std::to_string(channels) + "]", rows);
    Shape shape = rows.shape;
    shape.data()[rank - 1] = static_cast<int64_t>(product.columns());
    const PerColumn added = bias ? per_column(kName, "bias", bias, shape) : PerColumn{};
    const size_t count = static_cast<size_t>(shape[0]) * samples_of(shape);
    std::vector<const char*> pointers(count);
    for (size_t i = 0; i < count; ++i) pointers[i] = rows.as<char>() + i * channels * sizeof(float);
    const TailCall tail(kName, tail_, tail_operand(batch_), context, shape);
    product.run(context, {pointers.data(), 1, channels}, count, added, {tail.tail(), tail.sum(), tail.out()});
  }

  TailForm tail_;
  bool batch_;
  bool transposed_;
  WeightStorage weights_;
  std::unique_ptr<RowProduct> product_;
};

bool claims(const Node& node, const TailForm& tail, bool batch) {
  constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  const std::vector<ValueType> types = node.input_types();
  // A weight that is computed anew for every run would be packed anew, too.
  if (types.size() < 2 || !types[0].is(kFloat) || !types[1].is(kFloat) || !types[1].is_matrix() || !node.is_constant(1)) return false;
  if (batch && !types[0].is_rows(batch)) return false;
  std::vector<int64_t> row{types[1].dims[node.integer("transB", 0) != 0 ? 0 : 1]};
  if (batch) row.insert(row.begin(), types[0].dims[1]);
  if (!tail.is_empty() && !tail.fits(types, tail_operand(batch), row)) return false;
  return types.size() <= kBias || types[kBias].is_optional_row(kFloat, row);
}

}  // namespace

Op row_linear(const TailForm& tail, bool batch) {
  return {(batch ? kBatch : "") + (kName + tail.name()), -1, [=](const Node& node) { return claims(node, tail, batch); },
          [=](const Attributes& attributes) { return std::make_unique<RowLinear>(tail, batch, attributes); }};
}

}  // namespace retouch
