#include "factory.h"

#include "api.h"
#include "ep.h"

namespace retouch {

Factory::Factory() : EpFactoryAbi{} {
  ort_version_supported = runtime().version;
  GetName = [](const OrtEpFactory*) noexcept -> const char* { return kProviderName; };
  GetVendor = [](const OrtEpFactory*) noexcept -> const char* { return "Retouch"; };
  GetVendorId = [](const OrtEpFactory*) noexcept -> uint32_t { return 0; };
  GetVersion = [](const OrtEpFactory*) noexcept -> const char* { return "0.1.0"; };
  GetSupportedDevices = devices;
  CreateEp = create;
  ReleaseEp = release;
  // Everything lies in the runtime's own host memory.
  CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*, OrtAllocator** made) noexcept -> OrtStatus* {
    *made = nullptr;
    return nullptr;
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
  CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** made) noexcept -> OrtStatus* {
    *made = nullptr;
    return nullptr;
  };
  IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
}

OrtStatus* ORT_API_CALL Factory::devices(OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                                         OrtEpDevice** found, size_t room, size_t* found_count) noexcept {
  return guarded([&] {
    *found_count = 0;
    for (size_t i = 0; i < count && *found_count < room; ++i) {
      if (runtime().api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
      check(runtime().ep->CreateEpDevice(self, devices[i], nullptr, nullptr, &found[*found_count]));
      ++*found_count;
    }
  });
}

OrtStatus* ORT_API_CALL Factory::create(OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                                        const OrtSessionOptions* session, const OrtLogger* logger, OrtEp** made) noexcept {
  return guarded([&] {
    const Options options = Options::of(session);
    *made = new Ep(static_cast<Factory*>(self)->registry(options), options, logger);
  });
}

Registry& Factory::registry(const Options& options) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Registry>& found = registries_[options.of_kernels()];
  if (found == nullptr) found = std::make_unique<Registry>(kProviderName, options);
  return *found;
}

void ORT_API_CALL Factory::release(OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Ep*>(static_cast<EpAbi*>(ep)); }

}  // namespace retouch
