// The structures of ONNX Runtime's plug-in interface as of 1.24.
//
// ONNX Runtime appends members to its C structures and reads them only if `ort_version_supported` says that they are there.
// Headers of 1.23, which distributions ship, lack the kernel registry; its few members are declared here in their order.
#pragma once

#include <onnxruntime_c_api.h>

namespace retouch {

#if ORT_API_VERSION >= 24

using EpFactoryAbi = OrtEpFactory;
using EpAbi = OrtEp;
using EpApi = OrtEpApi;
using KernelImplAbi = OrtKernelImpl;
using KernelRegistry = OrtKernelRegistry;
using KernelDef = OrtKernelDef;
using KernelDefBuilder = OrtKernelDefBuilder;
using PackCache = OrtSharedPrePackedWeightCache;

#else

struct KernelRegistry;
struct KernelDef;
struct KernelDefBuilder;
struct PackCache;

struct KernelImplAbi {
  uint32_t ort_version_supported;
  uint32_t flags;
  OrtStatus*(ORT_API_CALL* Compute)(KernelImplAbi*, OrtKernelContext*) noexcept;
  void(ORT_API_CALL* Release)(KernelImplAbi*) noexcept;
  OrtStatus*(ORT_API_CALL* PrePackWeight)(KernelImplAbi*, const OrtValue*, int, OrtAllocator*, PackCache*, bool*) noexcept;
  void* SetSharedPrePackedWeight;
};

/// Members of 1.24 (environment options, incompatibilities of devices, resources of others, domains of operators), none of
/// which is needed; the runtime looks whether they are there.
struct EpFactoryAbi : OrtEpFactory {
  void* unused[8];
};

struct EpAbi : OrtEp {
  OrtStatus*(ORT_API_CALL* GetKernelRegistry)(OrtEp*, const KernelRegistry**) noexcept;
  void* IsConcurrentRunSupported;
};

using CreateKernel = OrtStatus*(ORT_API_CALL*)(void*, const OrtKernelInfo*, KernelImplAbi**);

struct EpApi : OrtEpApi {
  void* CreateHardwareDevice;
  void* ReleaseHardwareDevice;
  OrtStatus*(ORT_API_CALL* CreateKernelRegistry)(KernelRegistry**);
  void(ORT_API_CALL* ReleaseKernelRegistry)(KernelRegistry*);
  OrtStatus*(ORT_API_CALL* KernelRegistry_AddKernel)(KernelRegistry*, const KernelDef*, CreateKernel, void*);
  OrtStatus*(ORT_API_CALL* CreateKernelDefBuilder)(KernelDefBuilder**);
  void(ORT_API_CALL* ReleaseKernelDefBuilder)(KernelDefBuilder*);
  OrtStatus*(ORT_API_CALL* KernelDefBuilder_SetOperatorType)(KernelDefBuilder*, const char*);
  OrtStatus*(ORT_API_CALL* KernelDefBuilder_SetDomain)(KernelDefBuilder*, const char*);
  OrtStatus*(ORT_API_CALL* KernelDefBuilder_SetSinceVersion)(KernelDefBuilder*, int, int);
  OrtStatus*(ORT_API_CALL* KernelDefBuilder_SetExecutionProvider)(KernelDefBuilder*, const char*);
  void* KernelDefBuilder_SetInputMemType;
  void* KernelDefBuilder_SetOutputMemType;
  void* KernelDefBuilder_AddTypeConstraint;
  void* KernelDefBuilder_AddInputOutputAliases;
  OrtStatus*(ORT_API_CALL* KernelDefBuilder_AddInputOutputMutableAliases)(KernelDefBuilder*, const int*, const int*, size_t);
  OrtStatus*(ORT_API_CALL* KernelDefBuilder_Build)(KernelDefBuilder*, KernelDef**);
  void(ORT_API_CALL* ReleaseKernelDef)(KernelDef*);
  void* kernel_def_getters[6];
  void* GetTensorDataType;
  OrtStatus*(ORT_API_CALL* EpGraphSupportInfo_LookUpKernel)(OrtEpGraphSupportInfo*, const OrtNode*, const KernelDef**);
};

#endif

}  // namespace retouch
