// The kernels as the runtime knows them.
#pragma once

#include <mutex>

#include "abi.h"

namespace retouch {

/// The runtime's registry of this library's kernels, made when a session first asks for it.
class Registry {
 public:
  explicit Registry(const char* provider) noexcept : provider_(provider) {}
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  const KernelRegistry* get();

 private:
  const char* provider_;
  std::mutex mutex_;
  KernelRegistry* registry_ = nullptr;
};

}  // namespace retouch
