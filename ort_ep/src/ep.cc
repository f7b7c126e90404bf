#include "ep.h"

#include "api.h"
#include "factory.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

bool is_claimed(const Node& node, OrtEpGraphSupportInfo* support) {
  const Op* op = find_op(node.op_type());
  // Kernels write their first result; whoever wants another one only takes the function body.
  if (op == nullptr || !node.has_first_output()) return false;
  const std::vector<ValueType> types = node.input_types();
  if (!op->signature.takes(types) || !op->claims(node, types)) return false;
  const KernelDef* found = nullptr;
  check(runtime().ep->EpGraphSupportInfo_LookUpKernel(support, node.raw(), &found));
  return found != nullptr;
}

}  // namespace

Ep::Ep(Registry& registry, const Options& options, const OrtLogger* logger) : EpAbi{}, registry_(registry), trace_(options.trace), logger_(logger) {
  ort_version_supported = runtime().version;
  GetName = [](const OrtEp*) noexcept -> const char* { return kProviderName; };
  GetCapability = claim;
  if (runtime().version >= kRegistryVersion) GetKernelRegistry = kernels;
}

OrtStatus* ORT_API_CALL Ep::claim(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept {
  return guarded([&] {
    if (runtime().version < kRegistryVersion) return;
    size_t count = 0;
    check(runtime().api->Graph_GetNumNodes(graph, &count));
    std::vector<const OrtNode*> nodes(count);
    check(runtime().api->Graph_GetNodes(graph, nodes.data(), count));
    for (const OrtNode* node : nodes) {
      const Node seen(node);
      if (seen.domain() != kDomain) continue;
      const bool claimed = is_claimed(seen, support);
      static_cast<const Ep*>(static_cast<const EpAbi*>(self))->tell(seen, claimed);
      if (claimed) check(runtime().ep->EpGraphSupportInfo_AddSingleNode(support, node));
    }
  });
}

void Ep::tell(const Node& node, bool taken) const {
  if (!trace_ || logger_ == nullptr) return;
  const std::string text = "retouch: " + node.op_type() + " '" + node.name() + (taken ? "' has a kernel" : "' is left to its function body");
  check(runtime().api->Logger_LogMessage(logger_, ORT_LOGGING_LEVEL_INFO, text.c_str(), ORT_TSTR("ep.cc"), __LINE__, "claim"));
}

OrtStatus* ORT_API_CALL Ep::kernels(OrtEp* self, const KernelRegistry** registry) noexcept {
  return guarded([&] { *registry = static_cast<Ep*>(static_cast<EpAbi*>(self))->registry_.get(); });
}

}  // namespace retouch
