// ScatterRows: rows put at positions of a tensor, in place. MaskedMerge: the same into a copy of the tensor.
//
// Floor in place: 2 * M * row + 8 * M * K bytes; into a copy 2 * N * row more.
#pragma once

#include <initializer_list>

#include "gather_rows.cuh"

namespace retouch {

constexpr int kMostLeadingAxes = 4;

/// The leading axes of a tensor, whose rows an index names.
struct LeadingAxes {
  int64_t sizes[kMostLeadingAxes];
  int count;

  /// The row at a position, -1 if it is outside.
  __device__ __forceinline__ int64_t row_at(const int64_t* position) const {
    int64_t row = 0;
#pragma unroll
    for (int axis = 0; axis < kMostLeadingAxes; ++axis) {
      if (axis >= count) break;
      const int64_t place = position[axis] < 0 ? position[axis] + sizes[axis] : position[axis];
      if (place < 0 || place >= sizes[axis]) return -1;
      row = row * sizes[axis] + place;
    }
    return row;
  }
};

template <typename Unit, typename Count>
__global__ void __launch_bounds__(kCopyThreads)
    scatter_rows_kernel(Unit* out, LeadingAxes axes, const int64_t* index, const Unit* rows, Count total, Count vectors) {
  const Count first = static_cast<Count>(blockIdx.x) * (kCopyThreads * kCopyDepth) + threadIdx.x;
  Unit units[kCopyDepth];
#pragma unroll
  for (unsigned i = 0; i < kCopyDepth; ++i) {
    const Count place = first + i * kCopyThreads;
    if (place < total) units[i] = rows[place];
  }
#pragma unroll
  for (unsigned i = 0; i < kCopyDepth; ++i) {
    const Count place = first + i * kCopyThreads;
    if (place >= total) continue;
    const Count entry = place / vectors;
    const int64_t row = axes.row_at(index + static_cast<int64_t>(entry) * axes.count);
    if (row >= 0) out[row * static_cast<int64_t>(vectors) + static_cast<int64_t>(place - entry * vectors)] = units[i];
  }
}

template <typename Unit>
int scatter_units(void* out, const LeadingAxes& axes, const int64_t* index, const void* rows, int64_t entries, int64_t row_bytes,
                  Stream stream) {
  const int64_t vectors = row_bytes / static_cast<int64_t>(sizeof(Unit)), total = entries * vectors;
  const dim3 grid(static_cast<unsigned>(divided_up(total, kCopyThreads * kCopyDepth))), block(kCopyThreads);
  Unit* target = static_cast<Unit*>(out);
  const Unit* source = static_cast<const Unit*>(rows);
  if (total < kNarrowUnits) {
    RETOUCH_LAUNCH((scatter_rows_kernel<Unit, uint32_t>), grid, block, stream, target, axes, index, source,
                   static_cast<uint32_t>(total), static_cast<uint32_t>(vectors));
  } else {
    RETOUCH_LAUNCH((scatter_rows_kernel<Unit, uint64_t>), grid, block, stream, target, axes, index, source,
                   static_cast<uint64_t>(total), static_cast<uint64_t>(vectors));
  }
  return last_error();
}

/// Puts ``rows`` [entries, row] at the unique positions ``index`` [entries, axes.count] of ``out``; no other byte changes.
inline int scatter_rows(void* out, const LeadingAxes& axes, const int64_t* index, const void* rows, int64_t entries, int64_t row_bytes,
                        Stream stream) {
  if (entries == 0 || row_bytes == 0) return 0;
  switch (unit_bytes(row_bytes, {out, rows})) {
    case 16: return scatter_units<Vector16>(out, axes, index, rows, entries, row_bytes, stream);
    case 8: return scatter_units<Vector8>(out, axes, index, rows, entries, row_bytes, stream);
    case 4: return scatter_units<uint32_t>(out, axes, index, rows, entries, row_bytes, stream);
    case 2: return scatter_units<uint16_t>(out, axes, index, rows, entries, row_bytes, stream);
    default: return scatter_units<uint8_t>(out, axes, index, rows, entries, row_bytes, stream);
  }
}

/// ``cached`` with ``rows`` at those positions, into ``out``, which may be ``cached`` itself.
inline int masked_merge(void* out, const void* cached, const LeadingAxes& axes, const int64_t* index, const void* rows, int64_t entries,
                        int64_t row_bytes, Stream stream) {
  if (out != cached) {
    int64_t bytes = row_bytes;
    for (int axis = 0; axis < axes.count; ++axis) bytes *= axes.sizes[axis];
    const int failure = bytes == 0 ? 0 : copy_device(out, cached, static_cast<size_t>(bytes), stream);
    if (failure != 0) return failure;
  }
  return scatter_rows(out, axes, index, rows, entries, row_bytes, stream);
}

}  // namespace retouch
