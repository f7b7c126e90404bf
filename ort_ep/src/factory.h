// The factory through which the runtime finds the devices and makes the execution provider.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "kernel_registry.h"

namespace retouch {

/// The name by which sessions ask for the execution provider.
constexpr const char* kProviderName = "RetouchExecutionProvider";

/// Makes execution providers; one per registration of the library.
class Factory : public EpFactoryAbi {
 public:
  Factory();

  /// The registry of kernels with those options.
  Registry& registry(const Options& options);

 private:
  static OrtStatus* ORT_API_CALL devices(OrtEpFactory*, const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** found,
                                         size_t room, size_t* found_count) noexcept;
  static OrtStatus* ORT_API_CALL create(OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                                        const OrtSessionOptions*, const OrtLogger*, OrtEp** made) noexcept;
  static void ORT_API_CALL release(OrtEpFactory*, OrtEp* ep) noexcept;

  std::mutex mutex_;
  std::map<std::tuple<bool, size_t, WeightStorage>, std::unique_ptr<Registry>> registries_;
};

}  // namespace retouch
