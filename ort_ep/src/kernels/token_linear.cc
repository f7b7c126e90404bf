// TokenLinear: a matrix product of tokens, along any axes, with constant weights.
#include <memory>
#include <vector>

#include "api.h"
#include "cpu/row_product.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

constexpr const char* kName = "TokenLinear";
constexpr size_t kWeight = 1;

class TokenLinear : public Kernel {
 public:
  explicit TokenLinear(WeightStorage weights) : weights_(weights) {}

  bool pack(size_t input, const Tensor& constant) override {
    if (input != kWeight) return false;
    product_ = std::make_unique<RowProduct>(packed(constant));
    return true;
  }

  void compute(const Context& context) const override {
    if (product_ != nullptr) return compute_with(context, *product_);
    compute_with(context, packed(context.input(kWeight)));
  }

 private:
  RowProduct packed(const Tensor& weight) const {
    require(weight.shape.rank() == 2, kName, "weight of two axes", weight);
    const size_t depth = static_cast<size_t>(weight.shape[0]), columns = static_cast<size_t>(weight.shape[1]);
    return {{weight.as<float>(), columns, 1}, depth, columns, weights_};
  }

  static void compute_with(const Context& context, const RowProduct& product) {
    const Tensor tokens = context.input(0);
    const size_t channels = product.depth(), rank = tokens.shape.rank();
    require(rank > 0 && tokens.shape[rank - 1] == static_cast<int64_t>(channels), kName, "tokens [.., " + std::to_string(channels) + "]", tokens);
    Shape shape = tokens.shape;
    shape.data()[rank - 1] = static_cast<int64_t>(product.columns());
    std::vector<const char*> pointers(static_cast<size_t>(shape.count(0, rank - 1)));
    for (size_t i = 0; i < pointers.size(); ++i) pointers[i] = tokens.as<char>() + i * channels * sizeof(float);
    TailTile target{};
    target.out = context.output(0, shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT).as<float>();
    target.stride = target.columns = product.columns();
    target.rows = pointers.size();
    product.run(context, {pointers.data(), 1, channels}, target);
  }

  WeightStorage weights_;
  std::unique_ptr<RowProduct> product_;
};

}  // namespace

Op token_linear() {
  return {kName, -1, [](const Node& node, const std::vector<ValueType>& types) { return node.is_constant(kWeight) && types[kWeight].is_matrix() && !types[0].dims.empty(); },
          [](const Attributes& attributes) { return std::make_unique<TokenLinear>(attributes.weights()); }};
}

}  // namespace retouch
