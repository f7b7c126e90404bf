// Attention of some queries over rows of keys and values that lie anywhere.
//
// Block by block, keys are turned into a panel of weights, whose product with the queries are scores, and the product of the
// scores' shares with the values is added to the results. The softmax is taken block by block as in flash attention
// (arXiv:2205.14135), so no scores go to memory.
#pragma once

#include <stddef.h>

#include "cpu/tile.h"

namespace retouch {

/// Some rows of some heads of keys: softmax(scale * q k^T + bias) v.
struct AttentionTile {
  /// Heads of keys that lie beside each other.
  size_t heads;
  /// Whether those are all that rows of keys and values hold.
  bool whole_rows;
  /// Row r is query r / shared of head r % shared, of as many heads as read the same keys; behind those the next ones' lie.
  const float* queries;
  size_t query_stride;
  size_t shared;
  size_t begin;
  size_t end;
  size_t depth;
  size_t value_depth;
  /// The rows of keys and values, and where in them the first head begins, in numbers.
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
};

/// Computes it with the loops of this machine.
void attend(const AttentionTile& tile);

/// At most as many keys as a vector has numbers.
struct KeyRows {
  const char* const* rows;
  /// Where in them the head begins, in numbers.
  size_t offset;
  size_t count;
  size_t depth;

  __attribute__((always_inline)) const float* row(size_t i) const noexcept { return reinterpret_cast<const float*>(rows[i]) + offset; }
};

/// Some columns of a panel of weights, one per key, and the panel's width.
struct TurnedKeys {
  float* first;
  size_t width;
};

/// The scores of one query with some keys, and what there is of its result so far.
struct Weighing {
  /// Become shares of the largest score so far; room for whole vectors.
  float* scores;
  size_t keys;
  const float* bias;
  /// The largest score, and the sum of all shares in as many parts as a vector has numbers.
  float* most;
  float* total;
  /// The sums of values, whole vectors of them, brought to the measure of the largest score.
  float* sums;
  size_t columns;
};

/// Shares of some queries times values, added to sums.
struct ValueTile {
  const char* const* rows;
  size_t offset;
  size_t count;
  const float* shares;
  size_t share_stride;
  float* sums;
  size_t sum_stride;
};

/// What attention does beside the products of queries with turned keys.
struct AttentionFunctions {
  /// Columns without a key become zero.
  void (*turn)(const KeyRows& keys, const TurnedKeys& to);
  /// The scores of one query with keys as they are: a vector of them, of which those without a key mean nothing.
  void (*multiply_keys)(const KeyRows& keys, const float* query, float* scores);
  void (*weigh)(const Weighing& row);
  /// By rows and by vectors of columns, from one on.
  void (*add_values[kMaxTileRows][kMaxTileVectors])(const ValueTile& tile);
};

}  // namespace retouch
