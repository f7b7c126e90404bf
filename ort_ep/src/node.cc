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

std::vector<const OrtValueInfo*> inputs_of(const OrtNode* node) {
  size_t count = 0;
  check(runtime().api->Node_GetNumInputs(node, &count));
  std::vector<const OrtValueInfo*> values(count);
  check(runtime().api->Node_GetInputs(node, values.data(), count));
  return values;
}

/// Nodes between a stored weight and the form in which an operator takes it.
constexpr int kFoldedDepth = 4;

bool follows_from_constants(const OrtValueInfo* value, int depth) {
  if (value == nullptr) return true;
  bool constant = false;
  check(runtime().api->ValueInfo_IsConstantInitializer(value, &constant));
  if (constant || depth == 0) return constant;
  const OrtNode* producer = nullptr;
  size_t output = 0;
  check(runtime().api->ValueInfo_GetValueProducer(value, &producer, &output));
  if (producer == nullptr) return false;
  const std::vector<const OrtValueInfo*> operands = inputs_of(producer);
  return !operands.empty() &&
         std::all_of(operands.begin(), operands.end(), [&](const OrtValueInfo* operand) { return follows_from_constants(operand, depth - 1); });
}

}  // namespace

bool ValueType::is_matrix() const { return dims.size() == 2 && dims[0] > 0 && dims[1] > 0; }

bool ValueType::is_rows(bool batch) const {
  return dims.size() == (batch ? 3 : 2) && std::all_of(dims.begin() + 1, dims.end(), [](int64_t dim) { return dim > 0; });
}

bool ValueType::is_optional_row(const std::vector<int64_t>& row) const {
  if (is(ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)) return true;
  if (dims.empty() || dims.size() > row.size() + 1) return false;
  size_t known = 0;
  while (known < std::min(row.size(), dims.size()) && dims[dims.size() - 1 - known] == row[row.size() - 1 - known]) ++known;
  return known > 0 && std::all_of(dims.begin(), dims.end() - static_cast<std::ptrdiff_t>(known), [](int64_t dim) { return dim == 1; });
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

std::string Node::name() const {
  const char* text = nullptr;
  check(runtime().api->Node_GetName(node_, &text));
  return text;
}

bool Node::has_first_output() const {
  size_t count = 0;
  check(runtime().api->Node_GetNumOutputs(node_, &count));
  std::vector<const OrtValueInfo*> values(count);
  check(runtime().api->Node_GetOutputs(node_, values.data(), count));
  return !values.empty() && values[0] != nullptr;
}

bool Node::is_constant(size_t input) const {
  return follows_from_constants(inputs_of(node_).at(input), kFoldedDepth);
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
  for (const OrtValueInfo* value : inputs_of(node_)) types.push_back(type_of(value));
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
