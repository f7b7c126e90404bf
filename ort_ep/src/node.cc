#include "node.h"

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

std::vector<ValueType> Node::input_types() const {
  const OrtApi* api = runtime().api;
  size_t count = 0;
  check(api->Node_GetNumInputs(node_, &count));
  std::vector<const OrtValueInfo*> values(count);
  check(api->Node_GetInputs(node_, values.data(), count));
  std::vector<ValueType> types;
  for (const OrtValueInfo* value : values) types.push_back(type_of(value));
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
