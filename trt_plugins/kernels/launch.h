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

/// The last part of a tail.
enum RetouchActivation { RETOUCH_NO_ACTIVATION = 0, RETOUCH_SILU = 1, RETOUCH_GELU = 2, RETOUCH_TANH_GELU = 3 };

/// What is done to the rows of a product: act((x * gate + residual) * factor + shift). Parts that are null are left out;
/// ``kept`` takes what there is before the affine map.
struct RetouchTail {
  const void* gate;
  const void* residual;
  void* kept;
  const void* factor;
  const void* shift;
  int activation;
};

#ifdef __cplusplus
extern "C" {
#else
typedef struct RetouchTail RetouchTail;
#endif

/// out [entries, row] of the table [rows; cached[halo]; pad]; an entry outside of it, or of `cached` [cached_rows, row], is the
/// pad row.
RETOUCH_API int retouch_gather_rows(void* out, const void* rows, int64_t active, const void* cached, int64_t cached_rows,
    const int64_t* halo, int64_t halo_count, const void* pad, const int64_t* neighbours, int64_t entries, int64_t row_bytes,
    void* stream);

/// `cached` with `rows` [entries, row] at the positions `index` [entries, axes] of its leading axes; `out` may be `cached`.
RETOUCH_API int retouch_masked_merge(void* out, const void* cached, const int64_t* sizes, int axes, const int64_t* index,
    const void* rows, int64_t entries, int64_t row_bytes, void* stream);

/// `cached` [lead, size, row] with `rows` [lead, entries, row] at the places `index` [entries] of its middle axis; `out` may be
/// `cached`.
RETOUCH_API int retouch_scatter_rows(void* out, const void* cached, int64_t lead, int64_t size, const int64_t* index,
    const void* rows, int64_t entries, int64_t row_bytes, void* stream);

/// Bytes of memory for what products and attention of few rows share out among more blocks.
#define RETOUCH_WORKSPACE (8 << 20)

/// out [targets, columns]: neighbours [targets, taps] of the table times weight [columns, taps * channels], plus bias or null,
/// then the tail or null. ``workspace`` has RETOUCH_WORKSPACE bytes, or is null, which is slow for few targets.
RETOUCH_API int retouch_edit_conv(int type, void* out, const void* rows, int64_t active, const void* cached, int64_t cached_rows,
    const int64_t* halo, int64_t halo_count, const void* pad, const int64_t* neighbours, const void* weight, const void* bias,
    const RetouchTail* tail, int64_t targets, int64_t taps, int64_t channels, int64_t columns, void* workspace,
    void* stream);

/// out [rows, columns]: in [rows, channels] times weight [channels, columns], or [columns, channels] if ``transposed``, plus
/// bias or null, then the tail or null; ``workspace`` as above.
RETOUCH_API int retouch_row_linear(int type, void* out, const void* in, const void* weight, int transposed, const void* bias,
    const RetouchTail* tail, int64_t rows, int64_t channels, int64_t columns, void* workspace, void* stream);

/// slot [keys]: the number of the row that replaces a key, or -1.
RETOUCH_API int retouch_fill_slots(int32_t* slot, const int64_t* rows, int64_t count, int64_t keys, void* stream);

/// out [queries, heads, value_width]: softmax(scale * Q K^T) V per head. Q is [queries, heads, width]; K [keys, heads, width]
/// and V have rows of new_key and new_value [any, heads, ...] where slot names one. ``workspace`` as above.
RETOUCH_API int retouch_edit_attention(int type, void* out, const void* query, const void* key, const void* value, const void* new_key,
    const void* new_value, const int32_t* slot, int64_t heads, int64_t queries, int64_t keys,
    int64_t width, int64_t value_width, float scale, void* workspace, void* stream);

/// out [2, groups]: moments [2, groups] of ``cached`` [cached_rows, channels] after its rows ``index`` [rows] became ``in``
/// [rows, channels].
/// ``share`` is one over the number of elements of a group.
RETOUCH_API int retouch_group_moments(int type, float* out, const void* in, const void* cached, int64_t cached_rows,
    const int64_t* index, const float* moments, int64_t rows, int64_t channels, int64_t groups, float share, void* stream);

/// Rows normalised by moments [2, groups], times factor or one, plus shift or zero, then the activation.
RETOUCH_API int retouch_edit_group_norm(int type, void* out, const void* in, const float* moments, const void* factor, const void* shift,
    int activation, int64_t rows, int64_t channels, int64_t groups, float epsilon, void* stream);

#ifdef __cplusplus
}
#endif
