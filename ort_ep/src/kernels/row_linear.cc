// RowLinear: a matrix product of few rows with constant weights.
#include "api.h"
#include "cpu/row_product.h"
#include "kernels/column_operand.h"
#include "kernels/ops.h"
#include "kernels/product_operands.h"

namespace retouch {
namespace {

constexpr const char* kName = "RowLinear";
constexpr size_t kWeight = 1;

class RowLinear : public Kernel {
 public:
  RowLinear(const TailForm& tail, bool batch, const Attributes& attributes)
      : tail_(tail), operands_{kWeight, batch}, transposed_(attributes.integer("transB", 0) != 0), weights_(attributes.weights()) {}

  bool pack(size_t input, const Tensor& constant) override {
    if (input != kWeight) return false;
    product_ = std::make_unique<RowProduct>(packed(constant));
    return true;
  }

  void compute(const Context& context) const override {
    const Tensor rows = context.input(0), bias = context.input(operands_.bias());
    if (product_ == nullptr) return compute_with(context, packed(context.input(kWeight)), rows, bias);
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
    const size_t channels = product.depth(), rank = operands_.batch ? 3 : 2;
    require(rows.shape.rank() == rank && rows.shape[rank - 1] == static_cast<int64_t>(channels) && rows.shape.count(1, rank) > 0, kName,
            (operands_.batch ? "rows [M, B, " : "rows [M, ") + std::to_string(channels) + "]", rows);
    Shape shape = rows.shape;
    shape.data()[rank - 1] = static_cast<int64_t>(product.columns());
    const size_t count = static_cast<size_t>(shape[0]) * samples_of(shape);
    std::vector<const char*> pointers(count);
    for (size_t i = 0; i < count; ++i) pointers[i] = rows.as<char>() + i * channels * sizeof(float);
    const TailCall call(kName, tail_, operands_.tail(), context, shape);
    TailTile target = call.tile(shape);
    if (bias) target.tail.bias = per_column(kName, "bias", bias, shape);
    product.run(context, {pointers.data(), 1, channels}, target);
  }

  TailForm tail_;
  ProductOperands operands_;
  bool transposed_;
  WeightStorage weights_;
  std::unique_ptr<RowProduct> product_;
};

bool claims(const Node& node, const std::vector<ValueType>& types, const TailForm& tail, bool batch) {
  if (!types[kWeight].is_matrix()) return false;
  const int64_t columns = types[kWeight].dims[node.integer("transB", 0) != 0 ? 0 : 1];
  return ProductOperands{kWeight, batch}.fit(node, types, tail, columns);
}

}  // namespace

Op row_linear(const TailForm& tail, bool batch) {
  return {(batch ? kBatch : "") + (kName + tail.name()), -1, [=](const Node& node, const std::vector<ValueType>& types) { return claims(node, types, tail, batch); },
          [=](const Attributes& attributes) { return std::make_unique<RowLinear>(tail, batch, attributes); }};
}

}  // namespace retouch
