// The kernels as the runtime knows them.
#pragma once

#include <mutex>
#include <vector>

#include "abi.h"
#include "kernel.h"

namespace retouch {

/// The runtime's registry of this library's kernels, made when a session first asks for it. Its kernels keep their weights
/// in one way.
class Registry {
 public:
  Registry(const char* provider, WeightStorage weights) noexcept : provider_(provider), weights_(weights) {}
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  const KernelRegistry* get();

 private:
  /// What the runtime hands back to make a kernel.
  struct Entry {
    const Op* op;
    WeightStorage weights;
  };

  static OrtStatus* ORT_API_CALL create(void* entry, const OrtKernelInfo* info, KernelImplAbi** made) noexcept;
  void add(KernelRegistry* registry, Entry& entry) const;

  const char* provider_;
  WeightStorage weights_;
  std::vector<Entry> entries_;
  std::mutex mutex_;
  KernelRegistry* registry_ = nullptr;
};

}  // namespace retouch
