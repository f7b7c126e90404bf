// What the runtime looks up in this library.
#include "api.h"
#include "custom_ops.h"
#include "factory.h"

#define RETOUCH_EXPORT extern "C" __attribute__((visibility("default")))

RETOUCH_EXPORT OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger*, OrtEpFactory** factories,
                                            size_t room, size_t* count) noexcept {
  using namespace retouch;
  // The oldest interface that has CreateStatus in its present place tells an old runtime what is wrong.
  if (!negotiate(base, kProviderVersion)) return base->GetApi(1)->CreateStatus(ORT_FAIL, "retouch: ONNX Runtime 1.23 or newer is needed");
  return guarded([&] {
    if (room < 1) throw Error("retouch: no room for an execution provider factory");
    factories[0] = new Factory();
    *count = 1;
  });
}

RETOUCH_EXPORT OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) noexcept {
  using namespace retouch;
  if (!negotiate(base, kCustomOpVersion)) return base->GetApi(1)->CreateStatus(ORT_FAIL, "retouch: ONNX Runtime 1.18 or newer is needed");
  return guarded([&] { add_custom_ops(options); });
}

RETOUCH_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) noexcept {
  delete static_cast<retouch::Factory*>(factory);
  return nullptr;
}
