// What kernels need of CUDA, or of the host shim that stands in for it: types, qualifiers, launches.
//
// A kernel includes this and nothing of CUDA, so that the same source is compiled by nvcc for GPUs and by a C++ compiler
// for host/grid.h, which runs the launch grid serially. Tests compare the latter with references in numpy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#else
#include "host/grid.h"
#endif

namespace retouch {

#if defined(__CUDACC__)
using Half = __half;
using BFloat16 = __nv_bfloat16;
using Stream = cudaStream_t;

#define RETOUCH_LAUNCH(kernel, grid, block, stream, ...) kernel<<<grid, block, 0, stream>>>(__VA_ARGS__)

inline int copy_device(void* target, const void* source, size_t bytes, Stream stream) {
  return static_cast<int>(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream));
}
inline int last_error() { return static_cast<int>(cudaGetLastError()); }

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(Half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(BFloat16 value) { return __bfloat162float(value); }
template <typename T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float<float>(float value) { return value; }
template <>
__device__ __forceinline__ Half from_float<Half>(float value) { return __float2half_rn(value); }
template <>
__device__ __forceinline__ BFloat16 from_float<BFloat16>(float value) { return __float2bfloat16_rn(value); }
#endif

/// Sixteen bytes, which one instruction moves.
struct alignas(16) Vector16 {
  uint32_t words[4];
};
struct alignas(8) Vector8 {
  uint32_t words[2];
};

/// Two numbers of half the size of a register as one register, the first in its lower half.
template <typename T>
__device__ __forceinline__ uint32_t packed(T low, T high) {
  static_assert(sizeof(T) == 2, "two of these fill a register");
  uint16_t bits[2];
  memcpy(&bits[0], &low, 2);
  memcpy(&bits[1], &high, 2);
  return static_cast<uint32_t>(bits[0]) | static_cast<uint32_t>(bits[1]) << 16;
}

/// Two numbers that lie one after the other at an even place of shared memory, as one register.
template <typename T>
__device__ __forceinline__ uint32_t pair_at(const T* place) {
  static_assert(sizeof(T) == 2, "two of these fill a register");
  return *reinterpret_cast<const uint32_t*>(place);
}

__host__ __device__ constexpr int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

}  // namespace retouch
