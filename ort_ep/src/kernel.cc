#include "kernel.h"

namespace retouch {
namespace {

bool is_kind(const ValueType& type, Kind kind, const ValueType& rows) {
  switch (kind) {
    case Kind::kFloat:
      return type.is(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
    case Kind::kIndex:
      return type.is(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
    default:
      return type.is(rows.element) && element_size(type.element) != 0;
  }
}

}  // namespace

bool Signature::takes(const std::vector<ValueType>& types) const {
  if (types.empty() || types.size() > inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool given = i < types.size() && !types[i].is(ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
    if (given ? !is_kind(types[i], inputs[i].kind, types[0]) : !inputs[i].optional) return false;
  }
  return true;
}

}  // namespace retouch
