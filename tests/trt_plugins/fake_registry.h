// TensorRT's registry of plugins, played: the classes of every version from 10.8 on.
#pragma once

#include <NvInferRuntime.h>

#include <cstdint>
#include <string>
#include <vector>

// A registry has members that are deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace nvinfer1;

/// Notes what a library registers when it is loaded.
class Registry final : public IPluginRegistry {
 public:
  ~Registry() noexcept override = default;
  bool registerCreator(IPluginCreatorInterface& creator, const char* plugin_namespace) noexcept override {
    names.push_back(std::string(plugin_namespace) + "." + static_cast<IPluginCreatorV3One&>(creator).getPluginName());
    return true;
  }
  void setErrorRecorder(IErrorRecorder*) noexcept override {}
  IErrorRecorder* getErrorRecorder() const noexcept override { return nullptr; }
  bool isParentSearchEnabled() const override { return false; }
  void setParentSearchEnabled(bool) override {}
  PluginLibraryHandle loadLibrary(const char*) noexcept override { return nullptr; }
  void deregisterLibrary(PluginLibraryHandle) noexcept override {}
  IPluginCreatorInterface* const* getAllCreators(int32_t*) const noexcept override { return nullptr; }
  IPluginCreatorInterface* getCreator(const char*, const char*, const char*) noexcept override { return nullptr; }
  bool deregisterCreator(const IPluginCreatorInterface&) noexcept override { return false; }
  IPluginResource* acquirePluginResource(const char*, IPluginResource*) noexcept override { return nullptr; }
  int32_t releasePluginResource(const char*) noexcept override { return 0; }
#if NV_TENSORRT_MAJOR < 11
  bool registerCreator(IPluginCreator&, const char*) noexcept override { return false; }
  bool deregisterCreator(const IPluginCreator&) noexcept override { return false; }
  IPluginCreator* const* getPluginCreatorList(int32_t*) const noexcept override { return nullptr; }
  IPluginCreator* getPluginCreator(const char*, const char*, const char*) noexcept override { return nullptr; }
#endif
#if NV_TENSORRT_MAJOR > 10 || NV_TENSORRT_MINOR >= 10
  IPluginCreatorInterface* const* getAllCreatorsRecursive(int32_t*) noexcept override { return nullptr; }
#endif

  std::vector<std::string> names;
};
