#include "factory.h"

#include "api.h"
#include "ep.h"

namespace retouch {
namespace {

/// The runtime hands a provider's options over as entries of a session's configuration, of which names are in lower case.
constexpr const char* kWeights = "ep.retouchexecutionprovider.weights";

/// An entry of a session's configuration, or what it is if there is none.
std::string entry_of(const OrtSessionOptions* options, const char* name, const char* otherwise) {
  const OrtApi* api = runtime().api;
  int there = 0;
  check(api->HasSessionConfigEntry(options, name, &there));
  if (there == 0) return otherwise;
  size_t size = 0;
  check(api->GetSessionConfigEntry(options, name, nullptr, &size));
  std::string text(size, '\0');
  check(api->GetSessionConfigEntry(options, name, text.data(), &size));
  text.resize(size - 1);  // the runtime counts the end
  return text;
}

}  // namespace

Factory::Factory() : EpFactoryAbi{}, registries_{{{kProviderName, WeightStorage::kFloat32}, {kProviderName, WeightStorage::kFloat16}, {kProviderName, WeightStorage::kBfloat16}}} {
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
                                        const OrtSessionOptions* options, const OrtLogger*, OrtEp** made) noexcept {
  return guarded([&] {
    const WeightStorage weights = weight_storage(entry_of(options, kWeights, "float32"));
    *made = new Ep(static_cast<Factory*>(self)->registry(weights));
  });
}

void ORT_API_CALL Factory::release(OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Ep*>(static_cast<EpAbi*>(ep)); }

}  // namespace retouch
