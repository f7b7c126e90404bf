// RowLinear: a matrix product of few rows with constant weights.
#include "api.h"
#include "cpu/row_product.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

constexpr const char* kName = "RowLinear";
constexpr size_t kBias = 2;

/// Whether a shape is [columns], or that behind axes of size one.
bool is_row(const Shape& shape, size_t columns) {
  return shape.rank() >= 1 && shape.count() == static_cast<int64_t>(columns) && shape[shape.rank() - 1] == shape.count();
}

class RowLinear : public Kernel {
 public:
  RowLinear(const TailForm& tail, const Attributes& attributes) : tail_(tail), transposed_(attributes.integer("transB", 0) != 0) {}

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
    return transposed_ ? RowProduct({data, 1, second}, second, first) : RowProduct({data, second, 1}, first, second);
  }

  void compute_with(const Context& context, const RowProduct& product, const Tensor& rows, const Tensor& bias) const {
    const size_t columns = product.columns(), channels = product.depth();
    require(rows.shape.rank() == 2 && rows.shape[1] == static_cast<int64_t>(channels), kName, "rows [M, " + std::to_string(channels) + "]", rows);
    require(!bias || is_row(bias.shape, columns), kName, "bias [" + std::to_string(columns) + "]", bias);
    const size_t count = static_cast<size_t>(rows.shape[0]);
    std::vector<const char*> pointers(count);
    for (size_t i = 0; i < count; ++i) pointers[i] = rows.as<char>() + i * channels * sizeof(float);
    const TailCall tail(kName, tail_, kBias + 1, context, Shape{rows.shape[0], static_cast<int64_t>(columns)});
    product.run(context, {pointers.data(), 1, channels}, count, bias ? bias.as<float>() : nullptr, {tail.tail(), tail.sum(), tail.out()});
  }

  TailForm tail_;
  bool transposed_;
  std::unique_ptr<RowProduct> product_;
};

bool claims(const Node& node, const TailForm& tail) {
  constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  const std::vector<ValueType> types = node.input_types();
  // A weight that is computed anew for every run would be packed anew, too.
  if (types.size() < 2 || !types[0].is(kFloat) || !types[1].is(kFloat) || types[1].dims.size() != 2 || !node.is_constant(1)) return false;
  const int64_t columns = types[1].dims[node.integer("transB", 0) != 0 ? 0 : 1];
  if (!tail.is_empty() && !tail.fits(types, kBias + 1, columns)) return false;
  return types.size() <= kBias || types[kBias].is_optional_row(kFloat, columns);
}

}  // namespace

Op row_linear(const TailForm& tail) {
  return {kName + tail.name(), -1, [tail](const Node& node) { return claims(node, tail); },
          [tail](const Attributes& attributes) { return std::make_unique<RowLinear>(tail, attributes); }};
}

}  // namespace retouch
