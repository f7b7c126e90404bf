// Where the rows lie that a neighbourhood names: among the active rows, in the cached tensor, or in the pad row.
#pragma once

#include "platform.cuh"

namespace retouch {

/// The table that ai.retouch operators look rows up in: [rows; cached[halo]; pad], never brought together in memory.
struct RowTable {
  const char* rows;
  int64_t active;
  const char* cached;
  int64_t cached_rows;
  const int64_t* halo;
  int64_t halo_count;
  const char* pad;

  /// The row with a number; one outside of the table, or of the cached tensor, is the pad row: a kernel cannot refuse it.
  __device__ __forceinline__ const char* at(int64_t number, int64_t row_bytes) const {
    if (number >= 0 && number < active) return rows + number * row_bytes;
    number -= active;
    if (number < 0 || number >= halo_count) return pad;
    const int64_t place = halo[number];
    return place >= 0 && place < cached_rows ? cached + place * row_bytes : pad;
  }
};

}  // namespace retouch
