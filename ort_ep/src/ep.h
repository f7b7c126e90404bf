// The execution provider of one session.
#pragma once

#include "kernel_registry.h"
#include "node.h"

namespace retouch {

/// Claims the nodes that the registry has kernels for.
class Ep : public EpAbi {
 public:
  Ep(Registry& registry, const Options& options, const OrtLogger* logger);

 private:
  static OrtStatus* ORT_API_CALL claim(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept;
  /// Tells the runtime's log what becomes of a node of the domain.
  void tell(const Node& node, bool taken) const;

  static OrtStatus* ORT_API_CALL kernels(OrtEp* self, const KernelRegistry** registry) noexcept;

  Registry& registry_;
  bool trace_;
  const OrtLogger* logger_;
};

}  // namespace retouch
