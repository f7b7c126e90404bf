// Attention of a few queries over rows of keys and values that lie anywhere, built once per instruction set.
#pragma once

#include <stddef.h>

namespace retouch {

/// Keys whose scores are held at once.
constexpr size_t kKeyBlock = 64;
constexpr size_t kMaxQueryVectors = 4;

/// Some queries of one head: softmax(scale * q k^T + bias) v.
struct AttentionTile {
  const float* queries;
  size_t query_stride;
  size_t count;
  size_t depth;
  size_t value_depth;
  /// The rows of keys and values, and where in them the head begins.
  const char* const* keys;
  const char* const* values;
  size_t key_offset;
  size_t value_offset;
  size_t length;
  float scale;
  /// Added to the scores, query by query, or null.
  const float* bias;
  size_t bias_stride;
  float* out;
  size_t out_stride;
  /// Room for `attention_scratch` numbers.
  float* scratch;
};

/// How many numbers a tile of that many queries, rounded up to vectors, needs beside its operands.
constexpr size_t attention_scratch(size_t width, size_t depth, size_t value_depth) { return width * (depth + value_depth + kKeyBlock + 2); }

using AttentionFunction = void (*)(const AttentionTile&);

}  // namespace retouch
