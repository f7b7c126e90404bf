#include "api.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace retouch {
namespace {

Runtime g_runtime;

/// The minor version of the runtime, which numbers its interface.
uint32_t offered(const OrtApiBase* base) noexcept {
  const char* dot = std::strchr(base->GetVersionString(), '.');
  return dot == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(dot + 1, nullptr, 10));
}

}  // namespace

const Runtime& runtime() noexcept { return g_runtime; }

bool negotiate(const OrtApiBase* base, uint32_t oldest) noexcept {
  // The structures here end with members of 1.24, so nothing newer is promised to the runtime.
  const uint32_t version = std::min<uint32_t>(offered(base), std::max<uint32_t>(ORT_API_VERSION, kRegistryVersion));
  const OrtApi* api = base->GetApi(version);
  if (api == nullptr || version < oldest) return false;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  // Sessions of other threads may read it already; a process has one runtime.
  if (g_runtime.api == nullptr) g_runtime = {api, version < kProviderVersion ? nullptr : static_cast<const EpApi*>(api->GetEpApi()), version};
  return true;
}

void check(OrtStatus* status) {
  if (status == nullptr) return;
  const OrtApi* api = g_runtime.api;
  Error error(api->GetErrorMessage(status), api->GetErrorCode(status));
  api->ReleaseStatus(status);
  throw error;
}

OrtStatus* failure(OrtErrorCode code, const char* message) noexcept { return g_runtime.api->CreateStatus(code, message); }

}  // namespace retouch
