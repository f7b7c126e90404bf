#include "api.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

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

bool negotiate(const OrtApiBase* base) noexcept {
  // The structures here end with members of 1.24, so nothing newer is promised to the runtime.
  const uint32_t version = std::min<uint32_t>(offered(base), std::max<uint32_t>(ORT_API_VERSION, kRegistryVersion));
  const OrtApi* api = base->GetApi(version);
  if (api == nullptr || version < 23) return false;
  g_runtime = {api, static_cast<const EpApi*>(api->GetEpApi()), version};
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
