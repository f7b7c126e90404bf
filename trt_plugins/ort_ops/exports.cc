// The entry point by which ONNX Runtime takes the operators: SessionOptions.register_custom_ops_library.
#include <deque>

#include "operator.h"

// The execution provider that the kernels belong to: CUDA's, or the CPU's where they were compiled for the host.
#ifndef RETOUCH_ORT_PROVIDER
#define RETOUCH_ORT_PROVIDER "CUDAExecutionProvider"
#endif

namespace retouch::ort {
namespace {

/// A node of a session.
class Kernel {
 public:
  Kernel(const Operator& op, int type, const OrtKernelInfo* info) : op_(op), type_(type) {
    const Ort::ConstKernelInfo attributes(info);
    for (const char* name : op.integers()) settings_.integers.push_back(attributes.GetAttribute<int64_t>(name));
    for (const char* name : op.numbers()) settings_.numbers.push_back(attributes.GetAttribute<float>(name));
  }

  OrtStatusPtr ComputeV2(OrtKernelContext* context) noexcept {
    try {
      Call call(context, type_);
      const int failure = op_.run(call, settings_);
      if (failure == 0) return nullptr;
      const std::string text = std::string(op_.name()) + " failed with error " + std::to_string(failure) + ".";
      return Ort::GetApi().CreateStatus(ORT_FAIL, text.c_str());
    } catch (const std::exception& error) {
      return Ort::GetApi().CreateStatus(ORT_FAIL, error.what());
    }
  }

 private:
  const Operator& op_;
  int type_;
  Settings settings_;
};

/// An operator for one element type; ONNX Runtime puts those of one name together.
class CustomOp : public Ort::CustomOpBase<CustomOp, Kernel, true> {
 public:
  CustomOp(const Operator& op, int type, ONNXTensorElementDataType number)
      : op_(op), type_(type), number_(number), inputs_(op.inputs()), outputs_(op.outputs()) {}

  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo* info, void** kernel) const noexcept {
    try {
      *kernel = new Kernel(op_, type_, info);
      return nullptr;
    } catch (const std::exception& error) {
      return Ort::GetApi().CreateStatus(ORT_INVALID_GRAPH, error.what());
    }
  }
  const char* GetName() const { return op_.name(); }
  const char* GetExecutionProviderType() const { return RETOUCH_ORT_PROVIDER; }
  size_t GetInputTypeCount() const { return inputs_.size(); }
  size_t GetOutputTypeCount() const { return outputs_.size(); }
  ONNXTensorElementDataType GetInputType(size_t index) const { return element(inputs_[index].kind); }
  ONNXTensorElementDataType GetOutputType(size_t index) const { return element(outputs_[index].kind); }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(size_t index) const { return presence(inputs_[index]); }
  OrtCustomOpInputOutputCharacteristic GetOutputCharacteristic(size_t index) const { return presence(outputs_[index]); }

 private:
  ONNXTensorElementDataType element(Kind kind) const {
    if (kind == Kind::kIndex) return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    return kind == Kind::kFloat ? ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT : number_;
  }
  static OrtCustomOpInputOutputCharacteristic presence(Operand operand) {
    return operand.optional ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
  }

  const Operator& op_;
  int type_;
  ONNXTensorElementDataType number_;
  std::vector<Operand> inputs_, outputs_;
};

/// All operators for all types; ONNX Runtime keeps their addresses.
std::deque<CustomOp>& custom_ops() {
  static std::deque<CustomOp> all;
  if (!all.empty()) return all;
  for (const Operator* op : operators()) {
    all.emplace_back(*op, RETOUCH_FLOAT32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
    all.emplace_back(*op, RETOUCH_FLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16);
    all.emplace_back(*op, RETOUCH_BFLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16);
  }
  return all;
}

}  // namespace
}  // namespace retouch::ort

/// Which attributes and operands the operators have.
extern "C" RETOUCH_API int32_t retouch_ort_describe() noexcept { return retouch::ort::kInterface; }

extern "C" RETOUCH_API OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) noexcept {
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  if (api == nullptr) {
    const std::string text = "Retouch's operators were compiled for an ONNX Runtime of API " + std::to_string(ORT_API_VERSION) +
                             " or later, got " + base->GetVersionString() + ".";
    return base->GetApi(1)->CreateStatus(ORT_FAIL, text.c_str());
  }
  Ort::InitApi(api);
  try {
    static Ort::CustomOpDomain domain = [] {
      Ort::CustomOpDomain made(retouch::ort::kDomain);
      for (retouch::ort::CustomOp& op : retouch::ort::custom_ops()) made.Add(&op);
      return made;
    }();
    Ort::UnownedSessionOptions(options).Add(domain);
    return nullptr;
  } catch (const std::exception& error) {
    return api->CreateStatus(ORT_FAIL, error.what());
  }
}
