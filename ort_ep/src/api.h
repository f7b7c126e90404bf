// The runtime that loaded this library, and errors on the way to and from it.
#pragma once

#include <stdexcept>
#include <string>

#include "abi.h"

namespace retouch {

/// The first versions that take what is offered to them: custom operators whose results may lie in an operand's memory,
/// execution providers, and those with a kernel registry.
constexpr uint32_t kCustomOpVersion = 18;
constexpr uint32_t kProviderVersion = 23;
constexpr uint32_t kRegistryVersion = 24;

/// The interfaces of the runtime.
struct Runtime {
  const OrtApi* api = nullptr;
  const EpApi* ep = nullptr;
  uint32_t version = 0;
};

/// The runtime, once `negotiate` has succeeded.
const Runtime& runtime() noexcept;

/// Takes the newest interface that the runtime offers; whether it is no older than that version.
bool negotiate(const OrtApiBase* base, uint32_t oldest) noexcept;

/// What goes wrong in a callback; becomes a status of the runtime.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, OrtErrorCode code = ORT_INVALID_ARGUMENT) : std::runtime_error(message), code_(code) {}
  OrtErrorCode code() const noexcept { return code_; }

 private:
  OrtErrorCode code_;
};

/// Throws what a failed call of the runtime says.
void check(OrtStatus* status);

/// A status of the runtime; null if the message cannot be stored.
OrtStatus* failure(OrtErrorCode code, const char* message) noexcept;

/// Runs the body of a callback and turns what it throws into a status.
template <typename Body>
OrtStatus* guarded(Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& error) {
    return failure(error.code(), error.what());
  } catch (const std::exception& error) {
    return failure(ORT_FAIL, error.what());
  } catch (...) {
    return failure(ORT_FAIL, "retouch: unknown error");
  }
}

}  // namespace retouch
