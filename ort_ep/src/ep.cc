#include "ep.h"

#include "api.h"
#include "factory.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

bool is_claimed(const Node& node) {
  if (node.domain() != kDomain) return false;
  const Op* op = find_op(node.op_type());
  return op != nullptr && op->claims(node);
}

}  // namespace

Ep::Ep(Registry& registry) : EpAbi{}, registry_(registry) {
  ort_version_supported = runtime().version;
  GetName = [](const OrtEp*) noexcept -> const char* { return kProviderName; };
  GetCapability = claim;
  if (runtime().version >= kRegistryVersion) GetKernelRegistry = kernels;
}

OrtStatus* ORT_API_CALL Ep::claim(OrtEp*, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept {
  return guarded([&] {
    if (runtime().version < kRegistryVersion) return;
    size_t count = 0;
    check(runtime().api->Graph_GetNumNodes(graph, &count));
    std::vector<const OrtNode*> nodes(count);
    check(runtime().api->Graph_GetNodes(graph, nodes.data(), count));
    for (const OrtNode* node : nodes) {
      if (!is_claimed(Node(node))) continue;
      const KernelDef* found = nullptr;
      check(runtime().ep->EpGraphSupportInfo_LookUpKernel(support, node, &found));
      if (found != nullptr) check(runtime().ep->EpGraphSupportInfo_AddSingleNode(support, node));
    }
  });
}

OrtStatus* ORT_API_CALL Ep::kernels(OrtEp* self, const KernelRegistry** registry) noexcept {
  return guarded([&] { *registry = static_cast<Ep*>(static_cast<EpAbi*>(self))->registry_.get(); });
}

}  // namespace retouch
