#include "plugin.h"

#include <new>

namespace retouch::trt {
namespace {

nvinfer1::ILoggerFinder* finder = nullptr;

PluginFieldCollection collection(PluginField& field, const char* name, const float* value) {
  if (name == nullptr) return {0, nullptr};
  field = PluginField(name, value, nvinfer1::PluginFieldType::kFLOAT32, 1);
  return {1, &field};
}

}  // namespace

void log_error(const std::string& message) noexcept {
  nvinfer1::ILogger* logger = finder == nullptr ? nullptr : finder->findLogger();
  if (logger != nullptr) logger->log(nvinfer1::ILogger::Severity::kERROR, ("retouch: " + message).c_str());
}

void set_logger_finder(nvinfer1::ILoggerFinder* found) { finder = found; }

Plugin::Plugin(const Operator& op, float attribute)
    : op_(op),
      attribute_(attribute),
      timing_id_(op.attribute() == nullptr ? "plain" : op.attribute() + ("=" + std::to_string(attribute))),
      fields_(collection(field_, op.attribute(), &attribute_)) {}

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
  if (inputs == op_.inputs() && outputs == 1) return 0;
  log_error(std::string(op_.name()) + ": expected " + std::to_string(op_.inputs()) + " inputs and one output, got " +
            std::to_string(inputs) + " and " + std::to_string(outputs));
  return kFailed;
}

int32_t Plugin::getOutputDataTypes(DataType* types, int32_t outputs, const DataType* input_types, int32_t inputs) const noexcept {
  if (inputs != op_.inputs() || outputs != 1) return kFailed;
  types[0] = input_types[0];
  return 0;
}

int32_t Plugin::getOutputShapes(const DimsExprs* in, int32_t inputs, const DimsExprs*, int32_t, DimsExprs* out, int32_t outputs,
                                nvinfer1::IExprBuilder&) noexcept {
  if (inputs != op_.inputs() || outputs != 1) return kFailed;
  op_.shape(in, out[0]);
  return 0;
}

bool Plugin::supportsFormatCombination(int32_t position, const DynamicPluginTensorDesc* tensors, int32_t inputs, int32_t) noexcept {
  const PluginTensorDesc& tensor = tensors[position].desc;
  if (tensor.format != nvinfer1::TensorFormat::kLINEAR) return false;
  const DataType first = tensors[0].desc.type;
  return position < inputs ? op_.takes(position, tensor.type, first) : tensor.type == first;
}

size_t Plugin::getWorkspaceSize(const DynamicPluginTensorDesc* in, int32_t, const DynamicPluginTensorDesc*, int32_t) const noexcept {
  return op_.workspace(in);
}

int32_t Plugin::onShapeChange(const PluginTensorDesc*, int32_t inputs, const PluginTensorDesc*, int32_t outputs) noexcept {
  return inputs == op_.inputs() && outputs == 1 ? 0 : kFailed;
}

int32_t Plugin::enqueue(const PluginTensorDesc* inputs, const PluginTensorDesc* outputs, const void* const* in, void* const* out,
                        void* workspace, cudaStream_t stream) noexcept {
  const int failure = op_.run({inputs, outputs, in, out, workspace, stream}, attribute_);
  if (failure != 0) log_error(std::string(op_.name()) + " failed with error " + std::to_string(failure));
  return failure;
}

Creator::Creator(const Operator& op) : op_(op), fields_(collection(field_, op.attribute(), nullptr)) {}

nvinfer1::IPluginV3* Creator::createPlugin(const char* name, const PluginFieldCollection* fields, nvinfer1::TensorRTPhase) noexcept {
  if (op_.attribute() == nullptr) return new (std::nothrow) Plugin(op_, 0.0f);
  for (int32_t i = 0; fields != nullptr && i < fields->nbFields; ++i) {
    const PluginField& field = fields->fields[i];
    if (std::string(field.name) != op_.attribute()) continue;
    if (field.type == nvinfer1::PluginFieldType::kFLOAT32 && field.length == 1 && field.data != nullptr)
      return new (std::nothrow) Plugin(op_, *static_cast<const float*>(field.data));
  }
  log_error(std::string(op_.name()) + " " + (name == nullptr ? "" : name) + ": expected the attribute " + op_.attribute() + ", a float");
  return nullptr;
}

}  // namespace retouch::trt
