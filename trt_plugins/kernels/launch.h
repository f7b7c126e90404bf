// The kernels as plain C functions: for plugins, Python and other languages.
//
// Pointers are to memory of the device, or of the host where the kernels were compiled for it; `stream` is a cudaStream_t.
// All return zero, CUDA's error, or RETOUCH_NOT_SUPPORTED for what no kernel is made for.
#pragma once

#include <stdint.h>

#define RETOUCH_API __attribute__((visibility("default")))
#define RETOUCH_NOT_SUPPORTED (-1)

/// Element types.
enum RetouchType { RETOUCH_FLOAT32 = 0, RETOUCH_FLOAT16 = 1, RETOUCH_BFLOAT16 = 2 };

#ifdef __cplusplus
extern "C" {
#endif

/// out [entries, row] of the table [rows; cached[halo]; pad]; an entry outside of it is the pad row.
RETOUCH_API int retouch_gather_rows(void* out, const void* rows, int64_t active, const void* cached, const int64_t* halo,
    int64_t halo_count, const void* pad, const int64_t* neighbours, int64_t entries, int64_t row_bytes,
    void* stream);

/// `cached` with `rows` [entries, row] at the positions `index` [entries, axes] of its leading axes; `out` may be `cached`.
RETOUCH_API int retouch_masked_merge(void* out, const void* cached, const int64_t* sizes, int axes, const int64_t* index,
    const void* rows, int64_t entries, int64_t row_bytes, void* stream);

/// out [targets, columns]: neighbours [targets, taps] of the table times weight [columns, taps * channels], plus bias or null.
RETOUCH_API int retouch_edit_conv(int type, void* out, const void* rows, int64_t active, const void* cached, const int64_t* halo,
    int64_t halo_count, const void* pad, const int64_t* neighbours, const void* weight, const void* bias,
    int64_t targets, int64_t taps, int64_t channels, int64_t columns, void* stream);

/// slot [keys]: the number of the row that replaces a key, or -1.
RETOUCH_API int retouch_fill_slots(int32_t* slot, const int64_t* rows, int64_t count, int64_t keys, void* stream);

/// softmax(scale * Q K^T) V per head, K and V [heads, keys, width] with rows of [heads, overlay, width] where slot names one.
RETOUCH_API int retouch_edit_attention(int type, void* out, const void* query, const void* key, const void* value, const void* new_key,
    const void* new_value, const int32_t* slot, int64_t heads, int64_t queries, int64_t keys,
    int64_t overlay, int64_t width, float scale, void* stream);

/// Rows normalised by moments [2, groups], times gain or one, plus bias or zero.
RETOUCH_API int retouch_edit_group_norm(int type, void* out, const void* in, const float* moments, const void* gain, const void* bias,
    int64_t rows, int64_t channels, int64_t groups, float epsilon, void* stream);

#ifdef __cplusplus
}
#endif
