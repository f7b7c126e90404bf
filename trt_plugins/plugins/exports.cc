// The routes by which TensorRT finds the plugins: it calls getCreators of a library that it is given, and finds in its
// registry what a library registered when it was loaded.
#include <deque>

#include "plugin.h"

// Weak: a process without TensorRT loads the library as well, and registers nothing.
extern "C" __attribute__((weak)) nvinfer1::IPluginRegistry* getPluginRegistry() noexcept;
extern "C" __attribute__((weak)) int32_t getInferLibMajorVersion() noexcept;

namespace retouch::trt {

void set_logger_finder(nvinfer1::ILoggerFinder* found);

namespace {

/// One for every operator; TensorRT keeps their addresses.
std::deque<Creator>& creators() {
  static std::deque<Creator> all;
  if (all.empty()) {
    for (const Operator* op : operators()) all.emplace_back(*op);
  }
  return all;
}

std::vector<nvinfer1::IPluginCreatorInterface*>& interfaces() {
  static std::vector<nvinfer1::IPluginCreatorInterface*> all = [] {
    std::vector<nvinfer1::IPluginCreatorInterface*> found;
    for (Creator& creator : creators()) found.push_back(&creator);
    return found;
  }();
  return all;
}

struct Registration {
  Registration() {
    if (getPluginRegistry == nullptr || getInferLibMajorVersion == nullptr) return;
    // Another major version, or TensorRT-RTX, has a registry of another layout: a call would crash.
    if (getInferLibMajorVersion() != NV_TENSORRT_MAJOR) return;
    nvinfer1::IPluginRegistry* registry = getPluginRegistry();
    for (nvinfer1::IPluginCreatorInterface* creator : interfaces()) registry->registerCreator(*creator, kNamespace);
  }
} registration;

}  // namespace
}  // namespace retouch::trt

extern "C" RETOUCH_API nvinfer1::IPluginCreatorInterface* const* getCreators(int32_t& count) {
  std::vector<nvinfer1::IPluginCreatorInterface*>& all = retouch::trt::interfaces();
  count = static_cast<int32_t>(all.size());
  return all.data();
}

/// What the library was compiled for: TensorRT's major version, and the plugins' own interface. To be asked before TensorRT
/// loads it, which would crash over a library of another version.
extern "C" RETOUCH_API void retouch_trt_describe(int32_t* major, int32_t* interface) {
  *major = NV_TENSORRT_MAJOR;
  *interface = retouch::trt::kInterface;
}

extern "C" RETOUCH_API void setLoggerFinder(nvinfer1::ILoggerFinder* finder) { retouch::trt::set_logger_finder(finder); }
