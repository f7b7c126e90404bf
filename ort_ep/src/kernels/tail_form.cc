#include "kernels/tail_form.h"

#include <algorithm>

#include "kernels/column_operand.h"

namespace retouch {
namespace {

constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return "Silu";
    case Activation::kGelu:
      return "Gelu";
    case Activation::kTanhGelu:
      return "TanhGelu";
    default:
      return "";
  }
}

std::vector<TailForm> made_forms() {
  std::vector<TailForm> forms;
  for (Activation activation : {Activation::kNone, Activation::kSilu, Activation::kGelu, Activation::kTanhGelu})
    for (bool affine : {false, true})
      for (bool kept : {false, true})
        for (bool added : {false, true})
          for (bool gated : {false, true}) {
            if (!kept || affine || activation != Activation::kNone) forms.push_back({gated, added, kept, affine, activation});
          }
  return forms;
}

}  // namespace

std::string TailForm::name() const {
  return std::string(gated ? "Gated" : "") + (added ? "Added" : "") + (kept ? "Kept" : "") + (affine ? "Affine" : "") + name_of(activation);
}

bool TailForm::fits(const std::vector<ValueType>& types, size_t first, const std::vector<int64_t>& row) const {
  const auto is_row = [&](size_t index) { return types[index].is_optional_row(row); };
  if (types.size() != first + gated + added + 2 * affine) return false;
  size_t index = first;
  if (gated && !is_row(index++)) return false;
  if (added) {
    const ValueType& residual = types[index++];
    if (residual.dims.size() != row.size() + 1 || !std::equal(row.begin(), row.end(), residual.dims.begin() + 1)) return false;
  }
  return !affine || (is_row(index) && is_row(index + 1));
}

const std::vector<TailForm>& tail_forms() {
  static const std::vector<TailForm> all = made_forms();
  return all;
}

TailCall::TailCall(const char* op, const TailForm& form, size_t first, const Context& context, const Shape& shape) {
  tail_.activation = form.activation;
  tail_.samples = samples_of(shape);
  if (form.gated) tail_.gate = per_column(op, "gate", context.input(first++), shape);
  if (form.added) {
    const Tensor residual = context.input(first++);
    require(residual.shape == shape, op, "residual " + shape.text(), residual);
    tail_.residual = residual.as<float>();
  }
  if (form.affine) {
    tail_.factor = per_column(op, "factor", context.input(first), shape);
    tail_.shift = per_column(op, "shift", context.input(first + 1), shape);
  }
  out_ = context.output(0, shape, kFloat).as<float>();
  if (form.kept) sum_ = context.output(1, shape, kFloat).as<float>();
}

TailTile TailCall::tile(const Shape& shape) const noexcept {
  const size_t columns = static_cast<size_t>(shape[shape.rank() - 1]), rows = static_cast<size_t>(shape[0]) * tail_.samples;
  return {tail_, sum_ == nullptr ? out_ : sum_, columns, sum_, out_, columns, rows, columns, 0};
}

}  // namespace retouch
