// Drives every plugin of the library through its life, as TensorRT does: made from fields, asked for types, shapes, formats
// and workspace, cloned, written down, made again from that, attached to a context, run. Kernels run on the host.
// Exits with 0, or prints what was expected and got.
#include <NvInferRuntime.h>
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fake_registry.h"
#include "plugin_cases.h"

using namespace nvinfer1;
using cases::Case;
using cases::Dim;
using cases::Tensor;

namespace {

Registry registry;
int32_t major_version = NV_TENSORRT_MAJOR;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  fprintf(stderr, "failed: %s\n", what.c_str());
  exit(1);
}

class Logger final : public ILogger, public ILoggerFinder {
 public:
  void log(Severity severity, const char* text) noexcept override {
    if (severity <= Severity::kERROR) errors.emplace_back(text);
  }
  ILogger* findLogger() override { return this; }
  std::vector<std::string> errors;
};

// Shapes follow from dims of the inputs and products of them, so that only their identity counts.
class Expression final : public IDimensionExpr {
 public:
  ~Expression() noexcept override = default;
};
class Builder final : public IExprBuilder, private nvinfer1::apiv::VExprBuilder {
 public:
  Builder() { mImpl = this; }
  ~Builder() noexcept override = default;
  bool is_product(const IDimensionExpr* made, const IDimensionExpr* first, const IDimensionExpr* second) const {
    return made == &product_ && first == first_ && second == second_;
  }

 private:
  const IDimensionExpr* constant(int64_t) override { return nullptr; }
  const IDimensionExpr* operation(DimensionOperation operation, const IDimensionExpr& first, const IDimensionExpr& second) override {
    expect(operation == DimensionOperation::kPROD, "only products of dims");
    first_ = &first;
    second_ = &second;
    return &product_;
  }
  const IDimensionExpr* declareSizeTensor(int32_t, const IDimensionExpr&, const IDimensionExpr&) override { return nullptr; }

  Expression product_;
  const IDimensionExpr* first_ = nullptr;
  const IDimensionExpr* second_ = nullptr;
};

PluginTensorDesc described(const Tensor& tensor) {
  PluginTensorDesc desc{};
  desc.dims.nbDims = static_cast<int32_t>(tensor.dims.size());
  for (size_t axis = 0; axis < tensor.dims.size(); ++axis) desc.dims.d[axis] = tensor.dims[axis];
  desc.type = tensor.type;
  desc.format = TensorFormat::kLINEAR;
  return desc;
}

DynamicPluginTensorDesc open(const PluginTensorDesc& desc) { return {desc, desc.dims, desc.dims, desc.dims}; }

template <typename Interface>
Interface& capability(IPluginV3& plugin, PluginCapabilityType type) {
  IPluginCapability* found = plugin.getCapabilityInterface(type);
  expect(found != nullptr, "every capability");
  return static_cast<Interface&>(*found);
}

void check_core(IPluginV3& plugin, const std::string& name) {
  auto& core = capability<IPluginV3OneCore>(plugin, PluginCapabilityType::kCORE);
  expect(core.getPluginName() == name, "the creator's name");
  expect(std::string(core.getPluginVersion()) == "3" && std::string(core.getPluginNamespace()) == "ai.retouch", "version and namespace");
}

bool is_dim(const IDimensionExpr* given, const DimsExprs& input, const Dim& wanted, const Builder& builder) {
  const IDimensionExpr* dim = input.d[wanted.axis];
  return wanted.times < 0 ? given == dim : builder.is_product(given, dim, input.d[wanted.times]);
}

void check_shapes(IPluginV3OneBuild& build, const Case& wanted) {
  std::vector<std::vector<std::unique_ptr<Expression>>> dims;
  std::vector<DimsExprs> inputs;
  for (const Tensor& tensor : wanted.inputs) {
    dims.emplace_back();
    DimsExprs exprs{};
    exprs.nbDims = static_cast<int32_t>(tensor.dims.size());
    for (int32_t axis = 0; axis < exprs.nbDims; ++axis) {
      dims.back().push_back(std::make_unique<Expression>());
      exprs.d[axis] = dims.back().back().get();
    }
    inputs.push_back(exprs);
  }
  Builder builder;
  const auto count = static_cast<int32_t>(inputs.size()), outputs = static_cast<int32_t>(wanted.shapes.size());
  std::vector<DimsExprs> given(outputs);
  expect(build.getOutputShapes(inputs.data(), count, nullptr, 0, given.data(), outputs, builder) == 0, "shapes");
  for (int32_t i = 0; i < outputs; ++i) {
    const auto& shape = wanted.shapes[i];
    expect(given[i].nbDims == static_cast<int32_t>(shape.size()), "the output's rank");
    for (size_t axis = 0; axis < shape.size(); ++axis)
      expect(is_dim(given[i].d[axis], inputs[shape[axis].input], shape[axis], builder), "the output's dim " + std::to_string(axis));
  }
  expect(build.getOutputShapes(inputs.data(), count - 1, nullptr, 0, given.data(), outputs, builder) != 0,
         "an input that lacks to be noticed");
}

void check_formats(IPluginV3OneBuild& build, const std::vector<DynamicPluginTensorDesc>& tensors, const Case& wanted) {
  const auto inputs = static_cast<int32_t>(wanted.inputs.size()), outputs = static_cast<int32_t>(wanted.shapes.size());
  for (int32_t place = 0; place < inputs + outputs; ++place) {
    expect(build.supportsFormatCombination(place, tensors.data(), inputs, outputs), "single precision at " + std::to_string(place));
    std::vector<DynamicPluginTensorDesc> other = tensors;
    other[place].desc.format = TensorFormat::kHWC8;
    expect(!build.supportsFormatCombination(place, other.data(), inputs, outputs), "another format to be refused");
    other = tensors;
    other[place].desc.type = DataType::kINT8;
    expect(!build.supportsFormatCombination(place, other.data(), inputs, outputs), "another type to be refused");
  }
  for (DataType type : {DataType::kHALF, DataType::kBF16}) {
    std::vector<DynamicPluginTensorDesc> narrow = tensors;
    narrow[0].desc.type = type;
    narrow[inputs].desc.type = type;
    expect(build.supportsFormatCombination(0, narrow.data(), inputs, outputs), "half precision");
    expect(build.supportsFormatCombination(inputs, narrow.data(), inputs, outputs), "an output of the first input's type");
    narrow[inputs].desc.type = DataType::kFLOAT;
    expect(!build.supportsFormatCombination(inputs, narrow.data(), inputs, outputs), "an output of another type to be refused");
  }
}

void check_build(IPluginV3& plugin, const Case& wanted) {
  auto& build = capability<IPluginV3OneBuildV2>(plugin, PluginCapabilityType::kBUILD);
  std::vector<DynamicPluginTensorDesc> tensors;
  std::vector<DataType> types;
  for (const Tensor& tensor : wanted.inputs) {
    tensors.push_back(open(described(tensor)));
    types.push_back(tensor.type);
  }
  const auto count = static_cast<int32_t>(types.size()), outputs = static_cast<int32_t>(wanted.shapes.size());
  for (int32_t i = 0; i < outputs; ++i) tensors.push_back(open(described(cases::floats({1}, {0}))));
  std::vector<DataType> given(outputs, DataType::kINT32);
  expect(build.getNbOutputs() == outputs && build.getOutputDataTypes(given.data(), outputs, types.data(), count) == 0, "the outputs");
  for (DataType type : given) expect(type == DataType::kFLOAT, "outputs of the first input's type");
  check_shapes(build, wanted);
  check_formats(build, tensors, wanted);
  expect(build.configurePlugin(tensors.data(), count, &tensors[count], outputs) == 0, "to be configured");
  expect(build.configurePlugin(tensors.data(), count - 1, &tensors[count], outputs) != 0, "an input that lacks to be noticed");
  expect(build.configurePlugin(tensors.data(), count, &tensors[count], outputs + 1) != 0, "an output too many to be noticed");
  expect(build.getWorkspaceSize(tensors.data(), count, &tensors[count], outputs) == wanted.workspace, "workspace");
  expect(build.getTimingCacheID() != nullptr, "an id, without which nothing is cached");
  expect(build.getAliasedInput(0) == wanted.aliased && build.getAliasedInput(1) == -1, "the aliased input");
}

void check_run(IPluginV3& plugin, const Case& wanted) {
  auto& runtime = capability<IPluginV3OneRuntime>(plugin, PluginCapabilityType::kRUNTIME);
  std::vector<PluginTensorDesc> inputs;
  std::vector<const void*> pointers;
  for (const Tensor& tensor : wanted.inputs) {
    inputs.push_back(described(tensor));
    pointers.push_back(tensor.data());
  }
  std::vector<std::vector<float>> results;
  for (const auto& expected : wanted.expected) results.emplace_back(expected.size(), -12345.0f);
  if (wanted.aliased >= 0) {
    results[0] = wanted.inputs[wanted.aliased].numbers;
    pointers[wanted.aliased] = results[0].data();
  }
  std::vector<PluginTensorDesc> outputs;
  std::vector<void*> out;
  for (auto& result : results) {
    outputs.push_back(described(cases::floats({static_cast<int64_t>(result.size())}, {})));
    out.push_back(result.data());
  }
  std::vector<char> workspace(wanted.workspace + 1);
  const auto count = static_cast<int32_t>(inputs.size()), given = static_cast<int32_t>(outputs.size());
  expect(runtime.onShapeChange(inputs.data(), count, outputs.data(), given) == 0, "the shapes to be taken");
  expect(runtime.enqueue(inputs.data(), outputs.data(), pointers.data(), out.data(), workspace.data(), nullptr) == 0, "to run");
  for (size_t k = 0; k < results.size(); ++k)
    for (size_t i = 0; i < results[k].size(); ++i)
      expect(std::fabs(results[k][i] - wanted.expected[k][i]) <= 1e-5f * (1 + std::fabs(wanted.expected[k][i])),
             "number " + std::to_string(i) + " to be " + std::to_string(wanted.expected[k][i]) + ", got " + std::to_string(results[k][i]));
}

void check_life(IPluginCreatorV3One& creator, const Case& wanted, Logger& logger) {
  const PluginFieldCollection* names = creator.getFieldNames();
  std::vector<PluginField> list;
  for (const auto& [name, value] : wanted.integers) list.emplace_back(name, &value, PluginFieldType::kINT32, 1);
  for (const auto& [name, value] : wanted.numbers) list.emplace_back(name, &value, PluginFieldType::kFLOAT32, 1);
  const auto count = static_cast<int32_t>(list.size());
  expect(names->nbFields == count, "the attributes");
  for (int32_t i = 0; i < count; ++i) expect(std::string(names->fields[i].name) == list[i].name, "the attribute's name");
  const PluginFieldCollection fields = {count, list.data()}, one_less = {count - 1, list.data()};
  if (count > 0) {
    expect(creator.createPlugin("node", &one_less, TensorRTPhase::kBUILD) == nullptr, "a missing attribute to be refused");
    expect(!logger.errors.empty() && logger.errors.back().find(list.back().name) != std::string::npos, "the attribute to be named");
  }
  for (const auto& [name, value] : wanted.integers) {
    if (std::string(name) == "axis" || std::string(name) == "end") continue;
    const int32_t wrong = -1;
    std::vector<PluginField> changed = list;
    for (PluginField& field : changed)
      if (std::string(field.name) == name) field.data = &wrong;
    const PluginFieldCollection unknown = {count, changed.data()};
    expect(creator.createPlugin("node", &unknown, TensorRTPhase::kBUILD) == nullptr, std::string("-1 as ") + name + " to be refused");
    expect(logger.errors.back().find("not known") != std::string::npos, "the value to be called unknown");
  }
  std::unique_ptr<IPluginV3> made(creator.createPlugin("node", &fields, TensorRTPhase::kBUILD));
  expect(made != nullptr, "a plugin");
  std::unique_ptr<IPluginV3> copy(made->clone());
  made.reset();
  check_core(*copy, creator.getPluginName());
  check_build(*copy, wanted);
  const auto* written = capability<IPluginV3OneRuntime>(*copy, PluginCapabilityType::kRUNTIME).getFieldsToSerialize();
  std::unique_ptr<IPluginV3> again(creator.createPlugin("node", written, TensorRTPhase::kRUNTIME));
  copy.reset();
  expect(again != nullptr, "a plugin of what was written down");
  auto& runtime = capability<IPluginV3OneRuntime>(*again, PluginCapabilityType::kRUNTIME);
  std::unique_ptr<IPluginV3> attached(runtime.attachToContext(nullptr));
  again.reset();
  check_run(*attached, wanted);
}

}  // namespace

extern "C" IPluginRegistry* getPluginRegistry() noexcept { return &registry; }
extern "C" int32_t getInferLibMajorVersion() noexcept { return major_version; }

// Arguments: the library, and what to add to the major version that this process claims to have of TensorRT.
int main(int, char** arguments) {
  const bool same = std::string(arguments[2]) == "0";
  major_version += atoi(arguments[2]);
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  expect(library != nullptr, "the library to load");
  const auto all = cases::all();
  std::map<std::string, int> operators;
  for (const auto& item : all) ++operators[item.first];
  expect(registry.names.size() == (same ? operators.size() : 0), "creators registered with a TensorRT of the same version alone");
  for (const std::string& name : registry.names) expect(name.rfind("ai.retouch.", 0) == 0, "the namespace");
  auto* creators = reinterpret_cast<IPluginCreatorInterface* const* (*)(int32_t&)>(dlsym(library, "getCreators"));
  auto* set_finder = reinterpret_cast<void (*)(ILoggerFinder*)>(dlsym(library, "setLoggerFinder"));
  expect(creators != nullptr && set_finder != nullptr, "getCreators and setLoggerFinder");
  auto* describe = reinterpret_cast<void (*)(int32_t*, int32_t*)>(dlsym(library, "retouch_trt_describe"));
  int32_t compiled = 0, interface = 0;
  expect(describe != nullptr, "the library to say what it was compiled for");
  describe(&compiled, &interface);
  expect(compiled == NV_TENSORRT_MAJOR && interface == 3, "what it was compiled for");
  Logger logger;
  set_finder(&logger);
  int32_t count = 0;
  IPluginCreatorInterface* const* found = creators(count);
  expect(count == static_cast<int32_t>(operators.size()), "a creator for every operator");
  for (int32_t i = 0; i < count; ++i) {
    auto& creator = static_cast<IPluginCreatorV3One&>(*found[i]);
    expect(std::string(creator.getInterfaceInfo().kind) == "PLUGIN CREATOR_V3ONE", "the only kind that serves all routes");
    expect(operators.count(creator.getPluginName()) == 1, std::string("no operator ") + creator.getPluginName());
    for (const auto& [name, wanted] : all)
      if (name == creator.getPluginName()) check_life(creator, wanted, logger);
    printf("%s\n", creator.getPluginName());
  }
  return 0;
}
