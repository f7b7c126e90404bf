// MaskedMerge: rows put at positions of a tensor's leading axes. ScatterRows: rows put at places along axes in its middle.
// Either in place or into a copy of the tensor.
//
// Floor in place: 2 * M * row + 8 * M * K bytes; into a copy 2 * N * row more.
#pragma once

#include <initializer_list>

#include "gather_rows.cuh"

namespace retouch {

constexpr int kMostLeadingAxes = 4;

/// A place along an axis, counted from the end if it is negative; -1 if it is outside.
__device__ __forceinline__ int64_t place_within(int64_t place, int64_t size) {
  const int64_t counted = place < 0 ? place + size : place;
  return counted >= 0 && counted < size ? counted : -1;
}

/// The leading axes of a tensor, whose rows an index names, a number for every axis.
struct LeadingAxes {
  int64_t sizes[kMostLeadingAxes];
  int count;

  /// The row of the tensor that an entry goes to, -1 if it is outside.
  __device__ __forceinline__ int64_t row_of(const int64_t* index, int64_t entry) const {
    const int64_t* position = index + entry * count;
    int64_t row = 0;
#pragma unroll
    for (int axis = 0; axis < kMostLeadingAxes; ++axis) {
      if (axis >= count) break;
      const int64_t place = place_within(position[axis], sizes[axis]);
      if (place < 0) return -1;
      row = row * sizes[axis] + place;
    }
    return row;
  }
};

/// An axis with others in front of it, whose rows an index names, the same ones for each of those.
struct MiddleAxis {
  int64_t size;
  int64_t count;  // of the index

  __device__ __forceinline__ int64_t row_of(const int64_t* index, int64_t entry) const {
    const int64_t lead = entry / count, place = place_within(index[entry - lead * count], size);
    return place < 0 ? -1 : lead * size + place;
  }
};

template <typename Unit, typename Count, typename Axes>
__global__ void __launch_bounds__(kCopyThreads)
    scatter_rows_kernel(Unit* out, Axes axes, const int64_t* index, const Unit* rows, Count total, Count vectors) {
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
    const int64_t row = axes.row_of(index, static_cast<int64_t>(entry));
    if (row >= 0) out[row * static_cast<int64_t>(vectors) + static_cast<int64_t>(place - entry * vectors)] = units[i];
  }
}

template <typename Unit, typename Axes>
int scatter_units(void* out, const Axes& axes, const int64_t* index, const void* rows, int64_t entries, int64_t row_bytes,
                  Stream stream) {
  const int64_t vectors = row_bytes / static_cast<int64_t>(sizeof(Unit)), total = entries * vectors;
  const dim3 grid(static_cast<unsigned>(divided_up(total, kCopyThreads * kCopyDepth))), block(kCopyThreads);
  Unit* target = static_cast<Unit*>(out);
  const Unit* source = static_cast<const Unit*>(rows);
  if (total < kNarrowUnits) {
    RETOUCH_LAUNCH((scatter_rows_kernel<Unit, uint32_t, Axes>), grid, block, stream, target, axes, index, source,
                   static_cast<uint32_t>(total), static_cast<uint32_t>(vectors));
  } else {
    RETOUCH_LAUNCH((scatter_rows_kernel<Unit, uint64_t, Axes>), grid, block, stream, target, axes, index, source,
                   static_cast<uint64_t>(total), static_cast<uint64_t>(vectors));
  }
  return last_error();
}

/// Puts ``rows`` [entries, row] at the unique rows of ``out`` that axes name by an index; no other byte changes.
template <typename Axes>
int put_rows(void* out, const Axes& axes, const int64_t* index, const void* rows, int64_t entries, int64_t row_bytes, Stream stream) {
  if (entries == 0 || row_bytes == 0) return 0;
  switch (unit_bytes(row_bytes, {out, rows})) {
    case 16: return scatter_units<Vector16>(out, axes, index, rows, entries, row_bytes, stream);
    case 8: return scatter_units<Vector8>(out, axes, index, rows, entries, row_bytes, stream);
    case 4: return scatter_units<uint32_t>(out, axes, index, rows, entries, row_bytes, stream);
    case 2: return scatter_units<uint16_t>(out, axes, index, rows, entries, row_bytes, stream);
    default: return scatter_units<uint8_t>(out, axes, index, rows, entries, row_bytes, stream);
  }
}

/// Copies a tensor, unless it is the same.
inline int copy_tensor(void* out, const void* cached, int64_t bytes, Stream stream) {
  return out == cached || bytes == 0 ? 0 : copy_device(out, cached, static_cast<size_t>(bytes), stream);
}

/// ``cached`` with ``rows`` at positions of its leading axes, into ``out``, which may be ``cached`` itself.
inline int masked_merge(void* out, const void* cached, const LeadingAxes& axes, const int64_t* index, const void* rows, int64_t entries,
                        int64_t row_bytes, Stream stream) {
  int64_t bytes = row_bytes;
  for (int axis = 0; axis < axes.count; ++axis) bytes *= axes.sizes[axis];
  const int failure = copy_tensor(out, cached, bytes, stream);
  return failure != 0 ? failure : put_rows(out, axes, index, rows, entries, row_bytes, stream);
}

/// ``cached`` [lead, size, row] with ``rows`` [lead, entries, row] at places along its middle axis, in the same way.
inline int scatter_rows(void* out, const void* cached, int64_t lead, int64_t size, const int64_t* index, const void* rows,
                        int64_t entries, int64_t row_bytes, Stream stream) {
  const int failure = copy_tensor(out, cached, lead * size * row_bytes, stream);
  return failure != 0 ? failure : put_rows(out, MiddleAxis{size, entries}, index, rows, lead * entries, row_bytes, stream);
}

}  // namespace retouch
