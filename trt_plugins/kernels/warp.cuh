// What the lanes of a warp do together: shuffles, and products on tensor cores.
#pragma once

#include "platform.cuh"

namespace retouch {

constexpr unsigned kWarpSize = 32;

#if defined(__CUDACC__)

__device__ __forceinline__ unsigned lane_number() { return threadIdx.x % kWarpSize; }
__device__ __forceinline__ float shuffle_xor(float value, unsigned mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ __forceinline__ float shuffle_from(float value, unsigned lane) { return __shfl_sync(0xffffffffu, value, lane); }

#else

inline unsigned lane_number() { return host::lane(); }

template <typename T>
T exchanged(T value, unsigned from) {
  memcpy(host::slot(host::lane()), &value, sizeof(T));
  host::meet(host::warp());
  T result;
  memcpy(&result, host::slot(from), sizeof(T));
  host::meet(host::warp());
  return result;
}
inline float shuffle_xor(float value, unsigned mask) { return exchanged(value, host::lane() ^ mask); }
inline float shuffle_from(float value, unsigned lane) { return exchanged(value, lane); }

#endif

/// A 16 x 16 block of the left factor, as the lanes hold it. With g = lane / 4, t = lane % 4, registers hold the pairs at
/// rows g, g + 8, g, g + 8 and columns 2t, 2t, 2t + 8, 2t + 8 (PTX ISA, mma.m16n8k16).
struct LeftTile {
  uint32_t pairs[4];
};
/// A 16 x 8 block of the right factor: pairs along k at 2t and 2t + 8, column g.
struct RightTile {
  uint32_t pairs[2];
};
/// A 16 x 8 block of the product: rows g, g, g + 8, g + 8; columns 2t, 2t + 1, 2t, 2t + 1.
struct ProductTile {
  float values[4];
};

#if defined(__CUDACC__)

/// Four 8 x 8 blocks of numbers of half size out of shared memory. Lane i names row i % 8 of block i / 8, sixteen aligned
/// bytes; register b gets from block b the pair at row lane / 4, columns 2 (lane % 4) and the next.
__device__ __forceinline__ void load_blocks(uint32_t (&blocks)[4], const void* row) {
  const uint32_t place = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
               : "r"(place)
               : "memory");
}

/// The same of turned blocks: the pair at column lane / 4, rows 2 (lane % 4) and the next.
__device__ __forceinline__ void load_turned_blocks(uint32_t (&blocks)[4], const void* row) {
  const uint32_t place = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
               : "r"(place)
               : "memory");
}

/// The product computed by the lanes themselves, for types that the chip's tensor cores do not know: slow, and kept out of
/// line, or compilers take minutes over its callers.
template <typename T>
__device__ __noinline__ void multiply_plainly(ProductTile& sum, const LeftTile& left, const RightTile& right) {
  const unsigned lane = lane_number(), g = lane / 4, t = lane % 4;
  for (unsigned k = 0; k < 16; ++k) {
    const unsigned owner = k % 8 / 2, upper = k / 8;
    float factors[2], others[2];
    for (unsigned half = 0; half < 2; ++half) {
      const uint32_t mine = __shfl_sync(0xffffffffu, left.pairs[half + 2 * upper], g * 4 + owner);
      const uint16_t bits = static_cast<uint16_t>(mine >> (16 * (k % 2)));
      T number;
      memcpy(&number, &bits, 2);
      factors[half] = to_float(number);
      const uint32_t theirs = __shfl_sync(0xffffffffu, right.pairs[upper], (2 * t + half) * 4 + owner);
      const uint16_t other_bits = static_cast<uint16_t>(theirs >> (16 * (k % 2)));
      memcpy(&number, &other_bits, 2);
      others[half] = to_float(number);
    }
    for (unsigned i = 0; i < 4; ++i) sum.values[i] += factors[i / 2] * others[i % 2];
  }
}

/// Adds the product of two blocks of half precision, summed in single precision.
template <typename T>
__device__ __forceinline__ void multiply(ProductTile& sum, const LeftTile& left, const RightTile& right);

template <>
__device__ __forceinline__ void multiply<Half>(ProductTile& sum, const LeftTile& left, const RightTile& right) {
  float* c = sum.values;
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(left.pairs[0]), "r"(left.pairs[1]), "r"(left.pairs[2]), "r"(left.pairs[3]), "r"(right.pairs[0]), "r"(right.pairs[1]));
#else
  for (int part = 0; part < 2; ++part) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(left.pairs[2 * part]), "r"(left.pairs[2 * part + 1]), "r"(right.pairs[part]));
  }
#endif
}

template <>
__device__ __forceinline__ void multiply<BFloat16>(ProductTile& sum, const LeftTile& left, const RightTile& right) {
#if __CUDA_ARCH__ >= 800
  float* c = sum.values;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(left.pairs[0]), "r"(left.pairs[1]), "r"(left.pairs[2]), "r"(left.pairs[3]), "r"(right.pairs[0]), "r"(right.pairs[1]));
#else
  multiply_plainly<BFloat16>(sum, left, right);
#endif
}

#else

/// What ldmatrix gives a lane, of blocks whose rows the lanes name; in turned ones, rows are columns.
inline void loaded_blocks(uint32_t (&blocks)[4], const void* row, bool turned) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) host::fail("rows of blocks lie at multiples of sixteen bytes");
  memcpy(host::slot(host::lane()), &row, sizeof(row));
  host::meet(host::warp());
  const unsigned g = host::lane() / 4, t = host::lane() % 4;
  for (unsigned block = 0; block < 4; ++block) {
    uint16_t pair[2];
    for (unsigned i = 0; i < 2; ++i) {
      const uint16_t* numbers;
      memcpy(&numbers, host::slot(8 * block + (turned ? 2 * t + i : g)), sizeof(numbers));
      pair[i] = numbers[turned ? g : 2 * t + i];
    }
    memcpy(&blocks[block], pair, 4);
  }
  host::meet(host::warp());
}
inline void load_blocks(uint32_t (&blocks)[4], const void* row) { loaded_blocks(blocks, row, false); }
inline void load_turned_blocks(uint32_t (&blocks)[4], const void* row) { loaded_blocks(blocks, row, true); }

/// The k-th of the numbers that registers hold in pairs.
template <typename T>
float half_of(uint32_t pair, unsigned upper) {
  const uint16_t bits = static_cast<uint16_t>(pair >> (16 * upper));
  T number;
  memcpy(&number, &bits, 2);
  return to_float(number);
}

template <typename T>
void multiply(ProductTile& sum, const LeftTile& left, const RightTile& right) {
  struct Both {
    LeftTile left;
    RightTile right;
  } mine = {left, right};
  memcpy(host::slot(host::lane()), &mine, sizeof(mine));
  host::meet(host::warp());
  const unsigned g = host::lane() / 4, t = host::lane() % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = g + 8 * (i / 2), column = 2 * t + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      Both a, b;
      memcpy(&a, host::slot(row % 8 * 4 + k % 8 / 2), sizeof(a));
      memcpy(&b, host::slot(column * 4 + k % 8 / 2), sizeof(b));
      sum.values[i] += half_of<T>(a.left.pairs[row / 8 + 2 * (k / 8)], k % 2) * half_of<T>(b.right.pairs[k / 8], k % 2);
    }
  }
  host::meet(host::warp());
}

#endif

}  // namespace retouch
