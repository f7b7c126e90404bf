// Copies from global to shared memory that go on while a block computes: cp.async, where the chip has it (sm_80 and later).
//
// A thread starts copies, closes a group of them, and later waits until all groups but the newest few have arrived; a barrier
// then shows them to the others.
#pragma once

#include "platform.cuh"

namespace retouch {

#if defined(__CUDACC__)

/// Starts to copy sixteen bytes to an address of shared memory, zeros if not ``inside``. Both addresses are aligned.
__device__ __forceinline__ void start_copy(void* shared, const void* global, bool inside) {
#if __CUDA_ARCH__ >= 800
  const uint32_t target = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(global), "r"(inside ? 16 : 0) : "memory");
#else
  *static_cast<Vector16*>(shared) = inside ? *static_cast<const Vector16*>(global) : Vector16{};
#endif
}

__device__ __forceinline__ void close_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until no more than ``Newest`` groups of the thread's copies are on their way.
template <int Newest>
__device__ __forceinline__ void await_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Newest) : "memory");
#endif
}

#else

inline void start_copy(void* shared, const void* global, bool inside) { host::start_copy(shared, global, inside); }
inline void close_copies() { host::close_copies(); }
template <int Newest>
void await_copies() {
  host::await_copies(Newest);
}

#endif

}  // namespace retouch
