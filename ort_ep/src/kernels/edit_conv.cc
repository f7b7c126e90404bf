// EditConv: a convolution of the active rows, straight from where their neighbours are. GroupedEditConv: one whose groups of
// channels are apart.
#include <vector>

#include "api.h"
#include "cpu/row_product.h"
#include "kernels/column_operand.h"
#include "kernels/conv_weight.h"
#include "kernels/ops.h"
#include "kernels/product_operands.h"
#include "kernels/row_table.h"

namespace retouch {
namespace {

constexpr const char* kPlain = "EditConv";
constexpr const char* kGrouped = "GroupedEditConv";
constexpr size_t kWeight = 5;

/// Group by group.
using Products = std::vector<RowProduct>;

class EditConv : public Kernel {
 public:
  EditConv(const char* name, const TailForm& tail, bool batch, int64_t groups, WeightStorage weights)
      : name_(name), tail_(tail), operands_{kWeight, batch}, groups_(groups), weights_(weights) {}

  bool pack(size_t input, const Tensor& constant) override {
    if (input != kWeight) return false;
    // The taps of a matrix are not known before the first call; panels are laid out by depth, whatever its division.
    products_ = packed(constant);
    return true;
  }

  void compute(const Context& context) const override {
    const RowTable table(name_, context, operands_.batch);
    if (!products_.empty()) return compute_with(context, table, products_);
    compute_with(context, table, packed(context.input(kWeight)));
  }

 private:
  Products packed(const Tensor& constant) const {
    require(groups_ > 0 && ConvWeight::is(constant) && constant.shape[0] % groups_ == 0, name_,
            std::string(ConvWeight::kForms) + ", C of " + std::to_string(groups_) + " groups", constant);
    const ConvWeight weight(constant);
    const size_t width = weight.columns / static_cast<size_t>(groups_);
    Products products;
    for (size_t first = 0; first < weight.columns; first += width) products.emplace_back(weight.from(first), weight.depth, width, weights_);
    return products;
  }

  void compute_with(const Context& context, const RowTable& table, const Products& products) const {
    const size_t groups = products.size(), channels = static_cast<size_t>(table.row().count()) / table.samples(), depth = products[0].depth();
    if (channels % groups != 0 || table.taps() * channels != depth * groups || !products[0].fits(table.taps())) {
      throw Error(std::string(name_) + ": expected " + std::to_string(table.taps()) + " taps of " + std::to_string(channels) +
                  " channels to be as many as the weight has, got " + size_of(products));
    }
    Shape shape{static_cast<int64_t>(table.targets())};
    if (operands_.batch) shape.push(static_cast<int64_t>(table.samples()));
    shape.push(static_cast<int64_t>(groups * products[0].columns()));
    const Tensor bias = context.input(operands_.bias());
    const TailCall call(name_, tail_, operands_.tail(), context, shape);
    TailTile target = call.tile(shape);
    if (bias) target.tail.bias = per_column(name_, "bias", bias, shape);
    multiply(context, table, products, channels / groups, target);
  }

  static std::string size_of(const Products& products) {
    const std::string groups = products.size() > 1 ? " in " + std::to_string(products.size()) + " groups" : "";
    const size_t taps = products[0].taps(), depth = products[0].depth() * products.size();
    return (taps > 1 ? std::to_string(taps) + " taps of " + std::to_string(depth / taps) : std::to_string(depth)) + groups;
  }

  /// Every group writes its own columns.
  static void multiply(const Context& context, const RowTable& table, const Products& products, size_t channels, const TailTile& target) {
    const size_t width = products[0].columns();
    if (products.size() == 1) return products[0].run(context, {table.pointers(), table.taps(), channels}, target);
    std::vector<const char*> pointers(table.pointers(), table.pointers() + target.rows * table.taps());
    for (size_t group = 0; group < products.size(); ++group) {
      products[group].run(context, {pointers.data(), table.taps(), channels}, part_of(target, 0, target.rows, group * width, width));
      for (const char*& pointer : pointers) pointer += channels * sizeof(float);
    }
  }

  const char* name_;
  TailForm tail_;
  ProductOperands operands_;
  int64_t groups_;
  WeightStorage weights_;
  Products products_;
};

bool claims(const Node& node, const std::vector<ValueType>& types, const TailForm& tail, bool batch, bool grouped) {
  if (!ConvWeight::is(types[kWeight])) return false;
  const int64_t groups = grouped ? node.integer("groups", 1) : 1, columns = types[kWeight].dims[0];
  return groups > 0 && columns % groups == 0 && (!grouped || types[0].is_rows(batch)) && ProductOperands{kWeight, batch}.fit(node, types, tail, columns);
}

Op convolution(const TailForm& tail, bool batch, bool grouped) {
  const char* name = grouped ? kGrouped : kPlain;
  return {(batch ? kBatch : "") + (name + tail.name()), -1,
          [=](const Node& node, const std::vector<ValueType>& types) { return claims(node, types, tail, batch, grouped); },
          [=](const Attributes& attributes) {
            return std::make_unique<EditConv>(name, tail, batch, grouped ? attributes.integer("groups", 1) : 1, attributes.weights());
          }};
}

}  // namespace

Op edit_conv(const TailForm& tail, bool batch) { return convolution(tail, batch, false); }

Op grouped_edit_conv(const TailForm& tail, bool batch) { return convolution(tail, batch, true); }

}  // namespace retouch
