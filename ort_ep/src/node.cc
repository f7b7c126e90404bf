#include "node.h"

#include <algorithm>
#include <memory>

#include "api.h"

namespace retouch {
namespace {

ValueType type_of(const OrtValueInfo* value) {
  ValueType type;
  if (value == nullptr) return type;
  const OrtApi* api = runtime().api;
  const OrtTypeInfo* info = nullptr;
  check(api->GetValueInfoTypeInfo(value, &info));
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if (info != nullptr) check(api->CastTypeInfoToTensorInfo(info, &tensor));
  if (tensor == nullptr) return type;
  check(api->GetTensorElementType(tensor, &type.element));
  size_t rank = 0;
  check(api->GetDimensionsCount(tensor, &rank));
  type.dims.resize(rank);
  check(api->GetDimensions(tensor, type.dims.data(), rank));
  return type;
}

}  // namespace

bool ValueType::is_optional_row(ONNXTensorElementDataType type, int64_t columns) const {
  if (is(ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)) return true;
  const auto ones = dims.empty() ? 0 : std::count(dims.begin(), dims.end() - 1, 1);
  return is(type) && !dims.empty() && dims.back() == columns && static_cast<size_t>(ones) + 1 == dims.size();
}

std::string Node::domain() const {
  const char* text = nullptr;
  check(runtime().api->Node_GetDomain(node_, &text));
  return text;
}

std::string Node::op_type() const {
  const char* text = nullptr;
  check(runtime().api->Node_GetOperatorType(node_, &text));
  return text;
}

std::vector<const OrtValueInfo*> Node::inputs() const {
  size_t count = 0;
  check(runtime().api->Node_GetNumInputs(node_, &count));
  std::vector<const OrtValueInfo*> values(count);
  check(runtime().api->Node_GetInputs(node_, values.data(), count));
  return values;
}

bool Node::is_constant(size_t input) const {
  bool constant = false;
  check(runtime().api->ValueInfo_IsConstantInitializer(inputs().at(input), &constant));
  return constant;
}

int64_t Node::integer(const char* name, int64_t otherwise) const {
  const OrtApi* api = runtime().api;
  const OrtOpAttr* attribute = nullptr;
  OrtStatus* status = api->Node_GetAttributeByName(node_, name, &attribute);
  if (status != nullptr) {
    api->ReleaseStatus(status);
    return otherwise;
  }
  int64_t value = otherwise;
  size_t size = 0;
  if (attribute != nullptr) check(api->ReadOpAttr(attribute, ORT_OP_ATTR_INT, &value, sizeof(value), &size));
  return value;
}

std::vector<ValueType> Node::input_types() const {
  std::vector<ValueType> types;
  for (const OrtValueInfo* value : inputs()) types.push_back(type_of(value));
  return types;
}

int64_t Attributes::integer(const char* name, int64_t otherwise) const {
  int64_t value = otherwise;
  OrtStatus* status = runtime().api->KernelInfoGetAttribute_int64(info_, name, &value);
  if (status == nullptr) return value;
  runtime().api->ReleaseStatus(status);
  return otherwise;
}

}  // namespace retouch
