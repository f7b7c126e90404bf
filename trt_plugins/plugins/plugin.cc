#include "plugin.h"

#include <new>
#include <utility>

namespace retouch::trt {
namespace {

nvinfer1::ILoggerFinder* finder = nullptr;

/// The attributes as TensorRT lists them; without settings, their names alone.
std::vector<PluginField> listed(const Operator& op, const Settings* settings) {
  std::vector<PluginField> found;
  const std::vector<const char*> integers = op.integers(), numbers = op.numbers();
  for (size_t i = 0; i < integers.size(); ++i)
    found.emplace_back(integers[i], settings == nullptr ? nullptr : &settings->integers[i], nvinfer1::PluginFieldType::kINT32, 1);
  for (size_t i = 0; i < numbers.size(); ++i)
    found.emplace_back(numbers[i], settings == nullptr ? nullptr : &settings->numbers[i], nvinfer1::PluginFieldType::kFLOAT32, 1);
  return found;
}

std::string described(const Operator& op, const Settings& settings) {
  std::string text = op.name();
  for (int32_t value : settings.integers) text += "," + std::to_string(value);
  for (float value : settings.numbers) text += "," + std::to_string(value);
  return text;
}

const PluginField* named(const PluginFieldCollection* fields, const char* name) {
  for (int32_t i = 0; fields != nullptr && i < fields->nbFields; ++i) {
    const PluginField& field = fields->fields[i];
    if (std::string(field.name) == name && field.length == 1 && field.data != nullptr) return &field;
  }
  return nullptr;
}

bool read_integer(const PluginField* field, int32_t& value) {
  if (field == nullptr) return false;
  if (field->type == nvinfer1::PluginFieldType::kINT32) {
    value = *static_cast<const int32_t*>(field->data);
    return true;
  }
  if (field->type != nvinfer1::PluginFieldType::kINT64) return false;
  value = static_cast<int32_t>(*static_cast<const int64_t*>(field->data));
  return true;
}

bool read_number(const PluginField* field, float& value) {
  if (field == nullptr || field->type != nvinfer1::PluginFieldType::kFLOAT32) return false;
  value = *static_cast<const float*>(field->data);
  return true;
}

}  // namespace

void log_error(const std::string& message) noexcept {
  nvinfer1::ILogger* logger = finder == nullptr ? nullptr : finder->findLogger();
  if (logger != nullptr) logger->log(nvinfer1::ILogger::Severity::kERROR, ("retouch: " + message).c_str());
}

void set_logger_finder(nvinfer1::ILoggerFinder* found) { finder = found; }

Plugin::Plugin(const Operator& op, Settings settings)
    : op_(op),
      settings_(std::move(settings)),
      timing_id_(described(op, settings_)),
      field_list_(listed(op, &settings_)),
      fields_{static_cast<int32_t>(field_list_.size()), field_list_.data()} {}

nvinfer1::IPluginCapability* Plugin::getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept {
  switch (type) {
    case nvinfer1::PluginCapabilityType::kCORE: return static_cast<nvinfer1::IPluginV3OneCore*>(this);
    case nvinfer1::PluginCapabilityType::kBUILD: return static_cast<nvinfer1::IPluginV3OneBuildV2*>(this);
    case nvinfer1::PluginCapabilityType::kRUNTIME: return static_cast<nvinfer1::IPluginV3OneRuntime*>(this);
  }
  return nullptr;
}

nvinfer1::IPluginV3* Plugin::clone() noexcept { return new (std::nothrow) Plugin(*this); }

nvinfer1::IPluginV3* Plugin::attachToContext(nvinfer1::IPluginResourceContext*) noexcept { return clone(); }

int32_t Plugin::configurePlugin(const DynamicPluginTensorDesc*, int32_t inputs, const DynamicPluginTensorDesc*, int32_t outputs) noexcept {
  if (fits(inputs, outputs)) return 0;
  log_error(std::string(op_.name()) + ": expected " + std::to_string(op_.inputs(settings_)) + " inputs and " +
            std::to_string(op_.outputs(settings_)) + " outputs, got " + std::to_string(inputs) + " and " + std::to_string(outputs));
  return kFailed;
}

int32_t Plugin::getOutputDataTypes(DataType* types, int32_t outputs, const DataType* input_types, int32_t inputs) const noexcept {
  if (!fits(inputs, outputs)) return kFailed;
  for (int32_t i = 0; i < outputs; ++i) types[i] = op_.gives(i, input_types[0]);
  return 0;
}

int32_t Plugin::getOutputShapes(const DimsExprs* in, int32_t inputs, const DimsExprs*, int32_t, DimsExprs* out, int32_t outputs,
                                IExprBuilder& expressions) noexcept {
  if (!fits(inputs, outputs)) return kFailed;
  op_.shapes(in, out, settings_, expressions);
  return 0;
}

bool Plugin::supportsFormatCombination(int32_t position, const DynamicPluginTensorDesc* tensors, int32_t inputs, int32_t) noexcept {
  const PluginTensorDesc& tensor = tensors[position].desc;
  if (tensor.format != nvinfer1::TensorFormat::kLINEAR) return false;
  const DataType first = tensors[0].desc.type;
  return position < inputs ? op_.takes(position, tensor.type, first) : tensor.type == op_.gives(position - inputs, first);
}

size_t Plugin::getWorkspaceSize(const DynamicPluginTensorDesc* in, int32_t, const DynamicPluginTensorDesc*, int32_t) const noexcept {
  return op_.workspace(in);
}

int32_t Plugin::onShapeChange(const PluginTensorDesc*, int32_t inputs, const PluginTensorDesc*, int32_t outputs) noexcept {
  return fits(inputs, outputs) ? 0 : kFailed;
}

int32_t Plugin::enqueue(const PluginTensorDesc* inputs, const PluginTensorDesc* outputs, const void* const* in, void* const* out,
                        void* workspace, cudaStream_t stream) noexcept {
  const int failure = op_.run({inputs, outputs, in, out, workspace, stream}, settings_);
  if (failure != 0) log_error(std::string(op_.name()) + " failed with error " + std::to_string(failure));
  return failure;
}

Creator::Creator(const Operator& op)
    : op_(op), field_list_(listed(op, nullptr)), fields_{static_cast<int32_t>(field_list_.size()), field_list_.data()} {}

nvinfer1::IPluginV3* Creator::createPlugin(const char* name, const PluginFieldCollection* fields, nvinfer1::TensorRTPhase) noexcept {
  Settings settings;
  std::string missing;
  for (const char* wanted : op_.integers()) {
    settings.integers.push_back(0);
    if (!read_integer(named(fields, wanted), settings.integers.back())) missing += std::string(" ") + wanted;
  }
  for (const char* wanted : op_.numbers()) {
    settings.numbers.push_back(0.0f);
    if (!read_number(named(fields, wanted), settings.numbers.back())) missing += std::string(" ") + wanted;
  }
  const std::string node = std::string(op_.name()) + " " + (name == nullptr ? "" : name);
  if (!missing.empty()) {
    log_error(node + ": expected the attributes" + missing);
    return nullptr;
  }
  if (!op_.knows(settings)) {
    log_error(node + ": an attribute has a value that is not known: " + described(op_, settings));
    return nullptr;
  }
  return new (std::nothrow) Plugin(op_, std::move(settings));
}

}  // namespace retouch::trt
