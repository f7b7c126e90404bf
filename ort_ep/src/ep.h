// The execution provider of one session.
#pragma once

#include "kernel_registry.h"

namespace retouch {

/// Claims the nodes that the registry has kernels for.
class Ep : public EpAbi {
 public:
  explicit Ep(Registry& registry);

 private:
  static OrtStatus* ORT_API_CALL claim(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept;
  static OrtStatus* ORT_API_CALL kernels(OrtEp* self, const KernelRegistry** registry) noexcept;

  Registry& registry_;
};

}  // namespace retouch
