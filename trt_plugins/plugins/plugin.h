// What the plugins have in common: one object with all capabilities, whose operator says the rest.
#pragma once

#include <NvInferRuntime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../kernels/launch.h"

namespace retouch::trt {

using nvinfer1::DataType;
using nvinfer1::Dims;
using nvinfer1::DimsExprs;
using nvinfer1::DynamicPluginTensorDesc;
using nvinfer1::IExprBuilder;
using nvinfer1::PluginField;
using nvinfer1::PluginFieldCollection;
using nvinfer1::PluginTensorDesc;

constexpr const char* kNamespace = "ai.retouch";
/// Which attributes and operands the plugins have; engines built for others do not fit.
constexpr int32_t kInterface = 3;
constexpr const char* kVersion = "3";
constexpr int32_t kFailed = -1;

/// The tensors of a call.
struct Call {
  const PluginTensorDesc* inputs;
  const PluginTensorDesc* outputs;
  const void* const* in;
  void* const* out;
  void* workspace;
  void* stream;
};

/// The attributes of a node, in the order in which its operator names them.
struct Settings {
  std::vector<int32_t> integers;
  std::vector<float> numbers;
};

/// What an operator computes and wants. One object of each kind serves all its plugins.
class Operator {
 public:
  virtual ~Operator() = default;
  virtual const char* name() const = 0;
  /// Names of the attributes that are integers, and of those that are floats. A node has all of them.
  virtual std::vector<const char*> integers() const { return {}; }
  virtual std::vector<const char*> numbers() const { return {}; }
  /// Whether the attributes have values that the operator knows.
  virtual bool knows(const Settings&) const { return true; }
  virtual int32_t inputs(const Settings&) const = 0;
  virtual int32_t outputs(const Settings&) const { return 1; }
  /// Whether an input may have a type, given the type of the first input.
  virtual bool takes(int32_t input, DataType type, DataType first) const = 0;
  /// The type of an output, given the type of the first input.
  virtual DataType gives(int32_t, DataType first) const { return first; }
  virtual void shapes(const DimsExprs* inputs, DimsExprs* outputs, const Settings&, IExprBuilder&) const = 0;
  /// The input whose memory the output takes over, or -1.
  virtual int32_t aliased() const { return -1; }
  virtual size_t workspace(const DynamicPluginTensorDesc*) const { return 0; }
  virtual int run(const Call& call, const Settings&) const = 0;
};

/// All operators.
const std::vector<const Operator*>& operators();

/// A node of a network, or of a context.
class Plugin final : public nvinfer1::IPluginV3,
                     public nvinfer1::IPluginV3OneCore,
                     public nvinfer1::IPluginV3OneBuildV2,
                     public nvinfer1::IPluginV3OneRuntime {
 public:
  Plugin(const Operator& op, Settings settings);
  Plugin(const Plugin& other) : Plugin(other.op_, other.settings_) {}

  nvinfer1::IPluginCapability* getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept override;
  nvinfer1::IPluginV3* clone() noexcept override;

  const char* getPluginName() const noexcept override { return op_.name(); }
  const char* getPluginVersion() const noexcept override { return kVersion; }
  const char* getPluginNamespace() const noexcept override { return kNamespace; }

  int32_t configurePlugin(const DynamicPluginTensorDesc* in, int32_t inputs, const DynamicPluginTensorDesc* out,
                          int32_t outputs) noexcept override;
  int32_t getOutputDataTypes(DataType* types, int32_t outputs, const DataType* input_types, int32_t inputs) const noexcept override;
  int32_t getOutputShapes(const DimsExprs* in, int32_t inputs, const DimsExprs* shape_inputs, int32_t shape_count, DimsExprs* out,
                          int32_t outputs, nvinfer1::IExprBuilder& builder) noexcept override;
  bool supportsFormatCombination(int32_t position, const DynamicPluginTensorDesc* tensors, int32_t inputs,
                                 int32_t outputs) noexcept override;
  int32_t getNbOutputs() const noexcept override { return op_.outputs(settings_); }
  size_t getWorkspaceSize(const DynamicPluginTensorDesc* in, int32_t inputs, const DynamicPluginTensorDesc* out,
                          int32_t outputs) const noexcept override;
  const char* getTimingCacheID() noexcept override { return timing_id_.c_str(); }
  int32_t getAliasedInput(int32_t output) noexcept override { return output == 0 ? op_.aliased() : -1; }

  int32_t onShapeChange(const PluginTensorDesc* in, int32_t inputs, const PluginTensorDesc* out, int32_t outputs) noexcept override;
  int32_t enqueue(const PluginTensorDesc* inputs, const PluginTensorDesc* outputs, const void* const* in, void* const* out,
                  void* workspace, cudaStream_t stream) noexcept override;
  nvinfer1::IPluginV3* attachToContext(nvinfer1::IPluginResourceContext* context) noexcept override;
  const PluginFieldCollection* getFieldsToSerialize() noexcept override { return &fields_; }

 private:
  bool fits(int32_t inputs, int32_t outputs) const { return inputs == op_.inputs(settings_) && outputs == op_.outputs(settings_); }

  const Operator& op_;
  Settings settings_;
  /// Plugins with equal ids share tactics that were timed.
  std::string timing_id_;
  std::vector<PluginField> field_list_;
  PluginFieldCollection fields_;
};

/// Makes the plugins of an operator.
class Creator final : public nvinfer1::IPluginCreatorV3One {
 public:
  explicit Creator(const Operator& op);
  Creator(const Creator&) = delete;
  nvinfer1::IPluginV3* createPlugin(const char* name, const PluginFieldCollection* fields, nvinfer1::TensorRTPhase phase) noexcept override;
  const PluginFieldCollection* getFieldNames() noexcept override { return &fields_; }
  const char* getPluginName() const noexcept override { return op_.name(); }
  const char* getPluginVersion() const noexcept override { return kVersion; }
  const char* getPluginNamespace() const noexcept override { return kNamespace; }

 private:
  const Operator& op_;
  std::vector<PluginField> field_list_;
  PluginFieldCollection fields_;
};

/// Tells TensorRT's logger, if it gave one.
void log_error(const std::string& message) noexcept;

inline bool is_number(DataType type) { return type == DataType::kFLOAT || type == DataType::kHALF || type == DataType::kBF16; }
inline int type_number(DataType type) {
  return type == DataType::kFLOAT ? RETOUCH_FLOAT32 : type == DataType::kHALF ? RETOUCH_FLOAT16 : RETOUCH_BFLOAT16;
}
inline int64_t number_bytes(DataType type) { return type == DataType::kFLOAT ? 4 : 2; }
/// The product of the dims from an axis on, to the last or to before another one.
inline int64_t volume(const Dims& dims, int32_t from, int32_t end) {
  int64_t product = 1;
  for (int32_t axis = from; axis < end; ++axis) product *= dims.d[axis];
  return product;
}
inline int64_t volume(const Dims& dims, int32_t from = 0) { return volume(dims, from, dims.nbDims); }

}  // namespace retouch::trt
