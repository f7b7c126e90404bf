#include "kernel_registry.h"

#include <memory>

#include "api.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

/// A kernel in the shape in which the runtime calls it.
class RegisteredKernel : public KernelImplAbi {
 public:
  RegisteredKernel(std::unique_ptr<Kernel> kernel, size_t threads) : KernelImplAbi{}, kernel_(std::move(kernel)), threads_(threads) {
    ort_version_supported = runtime().version;
    Compute = compute;
    Release = [](KernelImplAbi* self) noexcept { delete static_cast<RegisteredKernel*>(self); };
    PrePackWeight = pack;
  }

 private:
  static OrtStatus* ORT_API_CALL compute(KernelImplAbi* self, OrtKernelContext* context) noexcept {
    const RegisteredKernel* own = static_cast<RegisteredKernel*>(self);
    return guarded([&] { own->kernel_->compute(Context(context, own->threads_)); });
  }

  static OrtStatus* ORT_API_CALL pack(KernelImplAbi* self, const OrtValue* tensor, int input, OrtAllocator*, PackCache*,
                                      bool* packed) noexcept {
    return guarded([&] {
      *packed = static_cast<RegisteredKernel*>(self)->kernel_->pack(static_cast<size_t>(input), tensor_of(tensor));
    });
  }

  std::unique_ptr<Kernel> kernel_;
  size_t threads_;
};

OrtStatus* ORT_API_CALL create(void* state, const OrtKernelInfo* info, KernelImplAbi** made) noexcept {
  return guarded([&] {
    const Made& of = *static_cast<const Made*>(state);
    *made = new RegisteredKernel(of.op->make(Attributes(info, of.options.weights)), of.options.threads);
  });
}

void add(KernelRegistry* registry, const char* provider, Made& state) {
  const Op& op = *state.op;
  const EpApi* ep = runtime().ep;
  KernelDefBuilder* raw = nullptr;
  check(ep->CreateKernelDefBuilder(&raw));
  std::unique_ptr<KernelDefBuilder, void (*)(KernelDefBuilder*)> builder(raw, ep->ReleaseKernelDefBuilder);
  check(ep->KernelDefBuilder_SetOperatorType(raw, op.name.c_str()));
  check(ep->KernelDefBuilder_SetDomain(raw, kDomain));
  check(ep->KernelDefBuilder_SetSinceVersion(raw, 1, 1));
  check(ep->KernelDefBuilder_SetExecutionProvider(raw, provider));
  const int result = 0;
  if (op.in_place >= 0 && state.options.in_place) check(ep->KernelDefBuilder_AddInputOutputMutableAliases(raw, &op.in_place, &result, 1));
  KernelDef* made = nullptr;
  check(ep->KernelDefBuilder_Build(raw, &made));
  std::unique_ptr<KernelDef, void (*)(KernelDef*)> def(made, ep->ReleaseKernelDef);
  check(ep->KernelRegistry_AddKernel(registry, made, create, &state));
}

}  // namespace

Registry::~Registry() {
  if (registry_ != nullptr) runtime().ep->ReleaseKernelRegistry(registry_);
}

const KernelRegistry* Registry::get() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (registry_ == nullptr) {
    KernelRegistry* made = nullptr;
    check(runtime().ep->CreateKernelRegistry(&made));
    std::unique_ptr<KernelRegistry, void (*)(KernelRegistry*)> owned(made, runtime().ep->ReleaseKernelRegistry);
    made_.clear();
    for (const Op& op : ops()) made_.push_back({&op, options_});
    for (Made& state : made_) add(made, provider_, state);
    registry_ = owned.release();
  }
  return registry_;
}

}  // namespace retouch
