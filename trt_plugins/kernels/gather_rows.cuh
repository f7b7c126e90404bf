// GatherRows: the rows a neighbourhood names, copied one behind another.
//
// Floor: reads and writes each copied byte once, and reads 8 bytes of index per row: 2 * M * T * row + 8 * M * T bytes.
#pragma once

#include <initializer_list>

#include "row_table.cuh"

namespace retouch {

constexpr unsigned kCopyThreads = 256;
/// Independent loads that a thread has in flight.
constexpr unsigned kCopyDepth = 4;

/// Copies ``total`` units, rows of ``vectors`` each. A thread moves units that are ``kCopyThreads`` apart, so that a
/// warp reads and writes runs of memory.
template <typename Unit, typename Count>
__global__ void __launch_bounds__(kCopyThreads)
    gather_rows_kernel(Unit* out, RowTable table, const int64_t* neighbours, Count total, Count vectors) {
  const Count first = static_cast<Count>(blockIdx.x) * (kCopyThreads * kCopyDepth) + threadIdx.x;
  Unit units[kCopyDepth];
#pragma unroll
  for (unsigned i = 0; i < kCopyDepth; ++i) {
    const Count place = first + i * kCopyThreads;
    if (place >= total) continue;
    const Count entry = place / vectors;
    const char* row = table.at(neighbours[entry], static_cast<int64_t>(vectors) * static_cast<int64_t>(sizeof(Unit)));
    units[i] = reinterpret_cast<const Unit*>(row)[place - entry * vectors];
  }
#pragma unroll
  for (unsigned i = 0; i < kCopyDepth; ++i) {
    const Count place = first + i * kCopyThreads;
    if (place < total) out[place] = units[i];
  }
}

/// Up to so many units are counted in 32 bits, in which dividing costs a fraction.
constexpr int64_t kNarrowUnits = int64_t{1} << 31;

template <typename Unit>
int gather_units(void* out, const RowTable& table, const int64_t* neighbours, int64_t entries, int64_t row_bytes, Stream stream) {
  const int64_t vectors = row_bytes / static_cast<int64_t>(sizeof(Unit)), total = entries * vectors;
  const dim3 grid(static_cast<unsigned>(divided_up(total, kCopyThreads * kCopyDepth))), block(kCopyThreads);
  Unit* target = static_cast<Unit*>(out);
  if (total < kNarrowUnits) {
    RETOUCH_LAUNCH((gather_rows_kernel<Unit, uint32_t>), grid, block, stream, target, table, neighbours, static_cast<uint32_t>(total),
                   static_cast<uint32_t>(vectors));
  } else {
    RETOUCH_LAUNCH((gather_rows_kernel<Unit, uint64_t>), grid, block, stream, target, table, neighbours, static_cast<uint64_t>(total),
                   static_cast<uint64_t>(vectors));
  }
  return last_error();
}

/// The widest unit, in bytes, that rows of a size at some addresses can be moved in.
inline int64_t unit_bytes(int64_t row_bytes, std::initializer_list<const void*> addresses) {
  uintptr_t bits = static_cast<uintptr_t>(row_bytes);
  for (const void* address : addresses) bits |= reinterpret_cast<uintptr_t>(address);
  for (int64_t size = 16; size > 1; size /= 2) {
    if (bits % static_cast<uintptr_t>(size) == 0) return size;
  }
  return 1;
}

/// out [entries, row] of a table and ``neighbours`` [entries].
inline int gather_rows(void* out, const RowTable& table, const int64_t* neighbours, int64_t entries, int64_t row_bytes, Stream stream) {
  if (entries == 0 || row_bytes == 0) return 0;
  switch (unit_bytes(row_bytes, {out, table.rows, table.cached, table.pad})) {
    case 16: return gather_units<Vector16>(out, table, neighbours, entries, row_bytes, stream);
    case 8: return gather_units<Vector8>(out, table, neighbours, entries, row_bytes, stream);
    case 4: return gather_units<uint32_t>(out, table, neighbours, entries, row_bytes, stream);
    case 2: return gather_units<uint16_t>(out, table, neighbours, entries, row_bytes, stream);
    default: return gather_units<uint8_t>(out, table, neighbours, entries, row_bytes, stream);
  }
}

}  // namespace retouch
