#include "custom_ops.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "api.h"
#include "kernels/ops.h"
#include "options.h"

namespace retouch {
namespace {

/// Elements that rows may be made of where an operator takes any.
constexpr ONNXTensorElementDataType kElements[] = {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,   ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
};

/// An operator, for rows of one type of elements, in the shape in which the runtime takes it.
class CustomOp : public OrtCustomOp {
 public:
  CustomOp(const Op& op, ONNXTensorElementDataType element) : OrtCustomOp{}, op_(op), element_(element) {
    version = std::min<uint32_t>(runtime().version, ORT_API_VERSION);
    GetName = [](const OrtCustomOp* self) noexcept { return of(self).op_.name.c_str(); };
    GetExecutionProviderType = [](const OrtCustomOp*) noexcept -> const char* { return nullptr; };
    GetInputTypeCount = [](const OrtCustomOp* self) noexcept { return of(self).op_.signature.inputs.size(); };
    GetInputType = [](const OrtCustomOp* self, size_t index) noexcept { return of(self).type_of(of(self).op_.signature.inputs[index].kind); };
    GetInputCharacteristic = [](const OrtCustomOp* self, size_t index) noexcept {
      return of(self).op_.signature.inputs[index].optional ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
    };
    GetInputMemoryType = [](const OrtCustomOp*, size_t) noexcept { return OrtMemTypeDefault; };
    GetOutputTypeCount = [](const OrtCustomOp* self) noexcept { return of(self).op_.signature.results; };
    GetOutputType = [](const OrtCustomOp* self, size_t) noexcept { return of(self).type_of(of(self).op_.signature.inputs[0].kind); };
    GetOutputCharacteristic = [](const OrtCustomOp*, size_t) noexcept { return INPUT_OUTPUT_REQUIRED; };
    GetStartVersion = [](const OrtCustomOp*) noexcept { return 1; };
    GetEndVersion = GetStartVersion;
    CreateKernelV2 = make;
    KernelComputeV2 = compute;
    KernelDestroy = [](void* kernel) noexcept { delete static_cast<Kernel*>(kernel); };
    if (op.in_place != 0) return;
    InferOutputShapeFn = infer_as_first;
    GetMayInplace = first_may_be_written;
    ReleaseMayInplace = [](int* input, int* output) noexcept {
      delete[] input;
      delete[] output;
    };
  }

 private:
  static const CustomOp& of(const OrtCustomOp* self) noexcept { return *static_cast<const CustomOp*>(self); }

  ONNXTensorElementDataType type_of(Kind kind) const noexcept {
    return kind == Kind::kAny ? element_ : kind == Kind::kFloat ? ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  }

  static OrtStatus* ORT_API_CALL make(const OrtCustomOp* self, const OrtApi* api, const OrtKernelInfo* info, void** made) noexcept {
    return guarded([&] {
      std::unique_ptr<Kernel> kernel = of(self).op_.make(Attributes(info, WeightStorage::kFloat32));
      size_t count = 0;
      check(api->KernelInfo_GetInputCount(info, &count));
      for (size_t input = 0; input < count; ++input) {
        int constant = 0;
        const OrtValue* value = nullptr;
        check(api->KernelInfoGetConstantInput_tensor(info, input, &constant, &value));
        if (constant != 0 && value != nullptr) kernel->pack(input, tensor_of(value));
      }
      *made = kernel.release();
    });
  }

  static OrtStatus* ORT_API_CALL compute(void* kernel, OrtKernelContext* context) noexcept {
    return guarded([&] { static_cast<const Kernel*>(kernel)->compute(Context(context, all_threads())); });
  }

  /// Only a result that is known to be as large as an operand may lie in the operand's memory.
  static OrtStatus* ORT_API_CALL infer_as_first(const OrtCustomOp*, OrtShapeInferContext* context) noexcept {
    return guarded([&] {
      OrtTensorTypeAndShapeInfo* info = nullptr;
      check(runtime().api->ShapeInferContext_GetInputTypeShape(context, 0, &info));
      check(runtime().api->ShapeInferContext_SetOutputTypeShape(context, 0, info));
    });
  }

  static size_t ORT_API_CALL first_may_be_written(int** input, int** output) noexcept {
    *input = new int[1]{0};
    *output = new int[1]{0};
    return 1;
  }

  const Op& op_;
  ONNXTensorElementDataType element_;
};

bool is_of_any(const Op& op) { return op.signature.inputs[0].kind == Kind::kAny; }

OrtCustomOpDomain* made_domain() {
  // Sessions that are closed late may still use them, so neither the operators nor the domain are ever freed.
  static std::vector<std::unique_ptr<CustomOp>>& all = *new std::vector<std::unique_ptr<CustomOp>>;
  OrtCustomOpDomain* domain = nullptr;
  check(runtime().api->CreateCustomOpDomain(kDomain, &domain));
  for (const Op& op : ops())
    for (ONNXTensorElementDataType element : kElements) {
      if (!is_of_any(op) && element != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) continue;
      all.push_back(std::make_unique<CustomOp>(op, element));
      check(runtime().api->CustomOpDomain_Add(domain, all.back().get()));
    }
  return domain;
}

}  // namespace

void add_custom_ops(OrtSessionOptions* options) {
  static OrtCustomOpDomain* const domain = made_domain();
  check(runtime().api->AddCustomOpDomain(options, domain));
}

}  // namespace retouch
