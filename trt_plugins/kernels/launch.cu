// The kernels as plain C functions, to be called from Python, plugins and other languages.
//
// nvcc makes a library for GPUs of this file, a C++ compiler one that runs the same kernels on the host.
#include "launch.h"

#include <cmath>
#include <type_traits>

#include "edit_attention.cuh"
#include "edit_conv.cuh"
#include "edit_group_norm.cuh"
#include "gather_rows.cuh"
#include "scatter_rows.cuh"

namespace {

using retouch::RowTable;
using retouch::Stream;

RowTable table_of(const void* rows, int64_t active, const void* cached, int64_t cached_rows, const int64_t* halo, int64_t halo_count,
                  const void* pad) {
  return {static_cast<const char*>(rows), active,     static_cast<const char*>(cached), cached_rows, halo,
          halo_count,                     static_cast<const char*>(pad)};
}

template <typename T>
const T* typed(const void* pointer) {
  return static_cast<const T*>(pointer);
}

/// Calls ``run`` with a null pointer of the element type.
template <typename Run>
int with_type(int type, Run run) {
  switch (type) {
    case RETOUCH_FLOAT32: return run(static_cast<float*>(nullptr));
    case RETOUCH_FLOAT16: return run(static_cast<retouch::Half*>(nullptr));
    case RETOUCH_BFLOAT16: return run(static_cast<retouch::BFloat16*>(nullptr));
    default: return RETOUCH_NOT_SUPPORTED;
  }
}

}  // namespace

extern "C" {

int retouch_gather_rows(void* out, const void* rows, int64_t active, const void* cached, int64_t cached_rows, const int64_t* halo,
                        int64_t halo_count, const void* pad, const int64_t* neighbours, int64_t entries, int64_t row_bytes, void* stream) {
  return retouch::gather_rows(out, table_of(rows, active, cached, cached_rows, halo, halo_count, pad), neighbours, entries, row_bytes,
                              static_cast<Stream>(stream));
}

int retouch_masked_merge(void* out, const void* cached, const int64_t* sizes, int axes, const int64_t* index, const void* rows,
                         int64_t entries, int64_t row_bytes, void* stream) {
  if (axes < 1 || axes > retouch::kMostLeadingAxes) return RETOUCH_NOT_SUPPORTED;
  retouch::LeadingAxes leading = {{1, 1, 1, 1}, axes};
  for (int axis = 0; axis < axes; ++axis) leading.sizes[axis] = sizes[axis];
  return retouch::masked_merge(out, cached, leading, index, rows, entries, row_bytes, static_cast<Stream>(stream));
}

int retouch_scatter_rows(void* out, const void* cached, int64_t lead, int64_t size, const int64_t* index, const void* rows,
                         int64_t entries, int64_t row_bytes, void* stream) {
  return retouch::scatter_rows(out, cached, lead, size, index, rows, entries, row_bytes, static_cast<Stream>(stream));
}

int retouch_edit_conv(int type, void* out, const void* rows, int64_t active, const void* cached, int64_t cached_rows, const int64_t* halo,
                      int64_t halo_count, const void* pad, const int64_t* neighbours, const void* weight, const void* bias,
                      const RetouchTail* tail, int64_t targets, int64_t taps, int64_t channels, int64_t columns, void* workspace,
                      void* stream) {
  const RowTable table = table_of(rows, active, cached, cached_rows, halo, halo_count, pad);
  return with_type(type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    return retouch::edit_conv<T>({static_cast<T*>(out), table, neighbours, typed<T>(weight), false, typed<T>(bias),
                                  retouch::typed_tail<T>(tail), targets, taps, channels, columns, false, nullptr, 0},
                                 workspace, static_cast<Stream>(stream));
  });
}

int retouch_row_linear(int type, void* out, const void* in, const void* weight, int transposed, const void* bias, const RetouchTail* tail,
                       int64_t rows, int64_t channels, int64_t columns, void* workspace, void* stream) {
  const RowTable table = table_of(in, rows, in, 0, nullptr, 0, in);
  return with_type(type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    return retouch::edit_conv<T>({static_cast<T*>(out), table, nullptr, typed<T>(weight), transposed == 0, typed<T>(bias),
                                  retouch::typed_tail<T>(tail), rows, 1, channels, columns, false, nullptr, 0},
                                 workspace, static_cast<Stream>(stream));
  });
}

int retouch_fill_slots(int32_t* slot, const int64_t* rows, int64_t count, int64_t keys, void* stream) {
  return retouch::fill_slots(slot, rows, count, keys, static_cast<Stream>(stream));
}

int retouch_edit_attention(int type, void* out, const void* query, const void* key, const void* value, const void* new_key,
                           const void* new_value, const int32_t* slot, int64_t heads, int64_t queries, int64_t keys, int64_t width,
                           int64_t value_width, float scale, void* workspace, void* stream) {
  return with_type(type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    return retouch::edit_attention<T>({static_cast<T*>(out), typed<T>(query), typed<T>(key), typed<T>(value), typed<T>(new_key),
                                       typed<T>(new_value), slot, heads, queries, keys, width, value_width, scale, false, nullptr, 0},
                                      workspace, static_cast<Stream>(stream));
  });
}

int retouch_group_moments(int type, float* out, const void* in, const void* cached, int64_t cached_rows, const int64_t* index,
                          const float* moments, int64_t rows, int64_t channels, int64_t groups, float share, void* stream) {
  if (groups < 1 || channels % groups != 0) return RETOUCH_NOT_SUPPORTED;
  return with_type(type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    return retouch::group_moments<T>({out, typed<T>(in), typed<T>(cached), cached_rows, index, moments, rows, channels, groups, share},
                                     static_cast<Stream>(stream));
  });
}

int retouch_edit_group_norm(int type, void* out, const void* in, const float* moments, const void* factor, const void* shift,
                            int activation, int64_t rows, int64_t channels, int64_t groups, float epsilon, void* stream) {
  if (groups < 1 || channels % groups != 0) return RETOUCH_NOT_SUPPORTED;
  return with_type(type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    return retouch::edit_group_norm<T>({static_cast<T*>(out), typed<T>(in), moments, typed<T>(factor), typed<T>(shift), activation,
                                        rows, channels, groups, epsilon},
                                       static_cast<Stream>(stream));
  });
}

}  // extern "C"
