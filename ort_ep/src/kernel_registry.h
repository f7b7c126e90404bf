// The kernels as the runtime knows them.
#pragma once

#include <mutex>
#include <vector>

#include "abi.h"
#include "kernel.h"
#include "options.h"

namespace retouch {

/// What a kernel is made of.
struct Made {
  const Op* op;
  Options options;
};

/// The runtime's registry of this library's kernels for some options, made when a session first asks for it.
class Registry {
 public:
  Registry(const char* provider, const Options& options) noexcept : provider_(provider), options_(options) {}
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  const KernelRegistry* get();

 private:
  const char* provider_;
  Options options_;
  /// The runtime holds pointers to these.
  std::vector<Made> made_;
  std::mutex mutex_;
  KernelRegistry* registry_ = nullptr;
};

}  // namespace retouch
