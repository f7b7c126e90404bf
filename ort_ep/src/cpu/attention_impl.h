// Attention. Included once by the source of each instruction set, behind its vectors.
//
// Vectors run over queries: an element of a key or value is read where it lies and multiplies a whole vector, so nothing
// is packed or summed across, and the softmax is taken key by key as in flash attention (arXiv:2205.14135).
#include "cpu/attention.h"
#include "cpu/exponential.h"

namespace retouch {
namespace {

/// Whether two vectors differ anywhere.
inline __attribute__((always_inline)) bool differ(Vector a, Vector b) {
  const Integers unequal = a != b;
  int32_t any = 0;
  for (size_t i = 0; i < kLanes; ++i) any |= unequal[i];
  return any != 0;
}

/// e^x for x that is not positive; zero where the result is no normal number.
inline __attribute__((always_inline)) Vector share(Vector x) { return x < kLeastExponent ? Vector{} : exponential_within(x); }

inline __attribute__((always_inline)) void fetch_row(const float* row, size_t depth) {
  for (size_t d = 0; d < depth; d += 16) __builtin_prefetch(row + d, 0, 3);
}

template <size_t Vectors>
struct Attention {
  static constexpr size_t kWidth = Vectors * kLanes;
  /// Independent sums that hide the latency of the multiplications, as many as there are registers for.
  static constexpr size_t kKeys = Vectors == 1 ? 8 : 4;
  static constexpr size_t kChannels = kLanes == 16 ? (Vectors == 4 ? 4 : 8) : 4;
  /// Rows that are fetched ahead: they are strided, which the hardware does not foresee.
  static constexpr size_t kAhead = 16;

  const AttentionTile& tile;
  float* queries;
  float* scores;
  float* sums;
  Vector most[Vectors];
  Vector total[Vectors];

  inline const float* key(size_t i) const { return reinterpret_cast<const float*>(tile.keys[i]) + tile.key_offset; }
  inline const float* value(size_t i) const { return reinterpret_cast<const float*>(tile.values[i]) + tile.value_offset; }

  /// The queries, scaled, channel by channel.
  void turn_queries() {
    for (size_t d = 0; d < tile.depth; ++d)
      for (size_t q = 0; q < kWidth; ++q) queries[d * kWidth + q] = q < tile.count ? tile.queries[q * tile.query_stride + d] * tile.scale : 0.0F;
  }

  template <size_t Keys>
  void score(size_t first, float* to) {
    const float* row[Keys];
    Vector sum[Keys][Vectors];
    for (size_t i = 0; i < Keys; ++i) {
      row[i] = key(first + i);
      for (size_t v = 0; v < Vectors; ++v) sum[i][v] = Vector{};
    }
    for (size_t d = 0; d < tile.depth; ++d) {
      Vector query[Vectors];
      for (size_t v = 0; v < Vectors; ++v) query[v] = load(queries + d * kWidth + v * kLanes);
      for (size_t i = 0; i < Keys; ++i)
        for (size_t v = 0; v < Vectors; ++v) sum[i][v] += row[i][d] * query[v];
    }
    for (size_t i = 0; i < Keys; ++i)
      for (size_t v = 0; v < Vectors; ++v) store(to + i * kWidth + v * kLanes, sum[i][v]);
  }

  void score_block(size_t begin, size_t count) {
    size_t i = 0;
    for (; i + kKeys <= count; i += kKeys) {
      for (size_t ahead = begin + i + kAhead; ahead < begin + i + kAhead + kKeys && ahead < tile.length; ++ahead) fetch_row(key(ahead), tile.depth);
      score<kKeys>(begin + i, scores + i * kWidth);
    }
    for (; i < count; ++i) score<1>(begin + i, scores + i * kWidth);
    if (tile.bias == nullptr) return;
    for (size_t q = 0; q < tile.count; ++q) {
      const float* bias = tile.bias + q * tile.bias_stride + begin;
      for (size_t n = 0; n < count; ++n) scores[n * kWidth + q] += bias[n];
    }
  }

  /// Turns scores into shares of the largest score so far, and what was summed before into the same measure.
  void weigh_block(size_t count) {
    for (size_t v = 0; v < Vectors; ++v) {
      Vector largest = most[v];
      for (size_t n = 0; n < count; ++n) {
        const Vector one = load(scores + n * kWidth + v * kLanes);
        largest = one > largest ? one : largest;
      }
      // Where every key so far is masked there is nothing to measure by.
      const Vector measure = largest == filled(-__builtin_inff()) ? Vector{} : largest;
      const Vector kept = share(most[v] - measure);
      Vector sum = total[v] * kept;
      for (size_t n = 0; n < count; ++n) {
        float* place = scores + n * kWidth + v * kLanes;
        const Vector part = share(load(place) - measure);
        store(place, part);
        sum += part;
      }
      total[v] = sum;
      // As a rule the largest score is found early, and then nothing changes.
      if (!differ(most[v], largest)) continue;
      most[v] = largest;
      for (size_t d = 0; d < tile.value_depth; ++d) {
        float* place = sums + d * kWidth + v * kLanes;
        store(place, load(place) * kept);
      }
    }
  }

  template <size_t Channels>
  void sum_values(size_t begin, size_t count, size_t d) {
    Vector sum[Channels][Vectors];
    for (size_t c = 0; c < Channels; ++c)
      for (size_t v = 0; v < Vectors; ++v) sum[c][v] = load(sums + (d + c) * kWidth + v * kLanes);
    for (size_t n = 0; n < count; ++n) {
      const float* row = value(begin + n) + d;
      Vector part[Vectors];
      for (size_t v = 0; v < Vectors; ++v) part[v] = load(scores + n * kWidth + v * kLanes);
      for (size_t c = 0; c < Channels; ++c)
        for (size_t v = 0; v < Vectors; ++v) sum[c][v] += row[c] * part[v];
    }
    for (size_t c = 0; c < Channels; ++c)
      for (size_t v = 0; v < Vectors; ++v) store(sums + (d + c) * kWidth + v * kLanes, sum[c][v]);
  }

  void sum_block(size_t begin, size_t count) {
    for (size_t n = 0; n < count; ++n) fetch_row(value(begin + n), tile.value_depth);
    size_t d = 0;
    for (; d + kChannels <= tile.value_depth; d += kChannels) sum_values<kChannels>(begin, count, d);
    for (; d < tile.value_depth; ++d) sum_values<1>(begin, count, d);
  }

  void write() {
    for (size_t v = 0; v < Vectors; ++v) {
      // A query that sees nothing has no result, as in a softmax of nothing but minus infinity.
      const Vector factor = most[v] == filled(-__builtin_inff()) ? filled(__builtin_nanf("")) : 1.0F / total[v];
      for (size_t d = 0; d < tile.value_depth; ++d) {
        float* place = sums + d * kWidth + v * kLanes;
        store(place, load(place) * factor);
      }
    }
    for (size_t q = 0; q < tile.count; ++q)
      for (size_t d = 0; d < tile.value_depth; ++d) tile.out[q * tile.out_stride + d] = sums[d * kWidth + q];
  }

  void run() {
    turn_queries();
    for (size_t i = 0; i < tile.value_depth * kWidth; i += kLanes) store(sums + i, Vector{});
    for (size_t v = 0; v < Vectors; ++v) {
      most[v] = filled(-__builtin_inff());
      total[v] = Vector{};
    }
    for (size_t begin = 0; begin < tile.length; begin += kKeyBlock) {
      const size_t count = tile.length - begin < kKeyBlock ? tile.length - begin : kKeyBlock;
      score_block(begin, count);
      weigh_block(count);
      sum_block(begin, count);
    }
    write();
  }
};

template <size_t Vectors>
void attend(const AttentionTile& tile) {
  constexpr size_t kWidth = Vectors * kLanes;
  float* scores = tile.scratch + tile.depth * kWidth;
  Attention<Vectors>{tile, tile.scratch, scores, scores + kKeyBlock * kWidth, {}, {}}.run();
}

}  // namespace
}  // namespace retouch
