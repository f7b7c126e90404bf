#include "fake_runtime.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "api.h"
#include "kernels/ops.h"

struct OrtStatus {
  OrtErrorCode code;
  std::string message;
};

namespace retouch::fake {
namespace {

size_t g_threads = 1;
OrtApi g_api{};
EpApi g_ep{};

/// What a kernel's context and a kernel's attributes are here.
struct Call {
  std::vector<const Value*> inputs;
  std::vector<Value> results;
};
using Attributes = std::map<std::string, int64_t>;

const Value* tensor(const void* pointer) { return static_cast<const Value*>(pointer); }

OrtStatus* input(const OrtKernelContext* context, size_t index, const OrtValue** value) noexcept {
  *value = reinterpret_cast<const OrtValue*>(reinterpret_cast<const Call*>(context)->inputs[index]);
  return nullptr;
}

OrtStatus* output(OrtKernelContext* context, size_t index, const int64_t* dims, size_t rank, OrtValue** value) noexcept {
  Call* call = reinterpret_cast<Call*>(context);
  call->results[index] = Value::of(call->inputs[0]->type, {dims, dims + rank});
  *value = reinterpret_cast<OrtValue*>(&call->results[index]);
  return nullptr;
}

OrtStatus* parallel_for(const OrtKernelContext*, void (*body)(void*, size_t), size_t total, size_t, void* user) noexcept {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < total; i = next++) body(user, i);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < g_threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return nullptr;
}

void fill_api() {
  g_api.GetEpApi = []() noexcept { return static_cast<const OrtEpApi*>(&g_ep); };
  g_api.CreateStatus = [](OrtErrorCode code, const char* message) noexcept { return new OrtStatus{code, message}; };
  g_api.GetErrorCode = [](const OrtStatus* status) noexcept { return status->code; };
  g_api.GetErrorMessage = [](const OrtStatus* status) noexcept { return status->message.c_str(); };
  g_api.ReleaseStatus = [](OrtStatus* status) noexcept { delete status; };
  g_api.GetTensorTypeAndShape = [](const OrtValue* value, OrtTensorTypeAndShapeInfo** info) noexcept -> OrtStatus* {
    *info = reinterpret_cast<OrtTensorTypeAndShapeInfo*>(const_cast<OrtValue*>(value));
    return nullptr;
  };
  g_api.ReleaseTensorTypeAndShapeInfo = [](OrtTensorTypeAndShapeInfo*) noexcept {};
  g_api.GetTensorElementType = [](const OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType* type) noexcept -> OrtStatus* {
    *type = tensor(info)->type;
    return nullptr;
  };
  g_api.GetDimensionsCount = [](const OrtTensorTypeAndShapeInfo* info, size_t* count) noexcept -> OrtStatus* {
    *count = tensor(info)->dims.size();
    return nullptr;
  };
  g_api.GetDimensions = [](const OrtTensorTypeAndShapeInfo* info, int64_t* dims, size_t count) noexcept -> OrtStatus* {
    if (count != 0) std::memcpy(dims, tensor(info)->dims.data(), count * sizeof(int64_t));
    return nullptr;
  };
  g_api.GetTensorMutableData = [](OrtValue* value, void** data) noexcept -> OrtStatus* {
    *data = tensor(value)->bytes.get();
    return nullptr;
  };
  g_api.KernelContext_GetInputCount = [](const OrtKernelContext* context, size_t* count) noexcept -> OrtStatus* {
    *count = reinterpret_cast<const Call*>(context)->inputs.size();
    return nullptr;
  };
  g_api.KernelContext_GetInput = input;
  g_api.KernelContext_GetOutput = output;
  g_api.KernelContext_ParallelFor = parallel_for;
  g_api.KernelInfoGetAttribute_int64 = [](const OrtKernelInfo* info, const char* name, int64_t* value) noexcept -> OrtStatus* {
    const Attributes& attributes = *reinterpret_cast<const Attributes*>(info);
    const auto found = attributes.find(name);
    if (found == attributes.end()) return new OrtStatus{ORT_FAIL, "no such attribute"};
    *value = found->second;
    return nullptr;
  };
}

}  // namespace

size_t Value::count() const {
  size_t product = 1;
  for (int64_t dim : dims) product *= static_cast<size_t>(dim);
  return product;
}

Value Value::of(ONNXTensorElementDataType type, std::vector<int64_t> dims) {
  Value value{type, std::move(dims), nullptr};
  value.bytes.reset(new char[value.count() * element_size(type)]);
  return value;
}

Value Value::numbers(std::vector<int64_t> dims, const std::vector<float>& content) {
  Value value = of(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, std::move(dims));
  if (!content.empty()) std::memcpy(value.bytes.get(), content.data(), content.size() * sizeof(float));
  return value;
}

Value Value::indices(std::vector<int64_t> dims, const std::vector<int64_t>& content) {
  Value value = of(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, std::move(dims));
  if (!content.empty()) std::memcpy(value.bytes.get(), content.data(), content.size() * sizeof(int64_t));
  return value;
}

void start(size_t threads) {
  g_threads = threads;
  fill_api();
  static OrtApiBase base{};
  base.GetApi = [](uint32_t) noexcept { return static_cast<const OrtApi*>(&g_api); };
  base.GetVersionString = []() noexcept { return "1.24.0"; };
  negotiate(&base, kRegistryVersion);
}

std::unique_ptr<Kernel> make(const std::string& op, const std::vector<const Value*>& inputs, const std::vector<size_t>& constants,
                             const std::map<std::string, int64_t>& attributes, WeightStorage weights) {
  std::unique_ptr<Kernel> kernel = find_op(op)->make(retouch::Attributes(reinterpret_cast<const OrtKernelInfo*>(&attributes), weights));
  for (size_t index : constants) kernel->pack(index, tensor_of(reinterpret_cast<const OrtValue*>(inputs[index])));
  return kernel;
}

std::vector<Value> call(const Kernel& kernel, const std::vector<const Value*>& inputs, size_t results) {
  Call one{inputs, std::vector<Value>(results)};
  kernel.compute(Context(reinterpret_cast<OrtKernelContext*>(&one), g_threads));
  return std::move(one.results);
}

}  // namespace retouch::fake
