// What attention does beside its products. Included once by the source of each instruction set, behind its vectors.
#include "cpu/attention.h"
#include "cpu/tail_impl.h"

namespace retouch {
namespace {

#if defined(__clang__)
inline __attribute__((always_inline)) Vector chosen(Vector a, Vector b, Integers places) {
  Vector result;
  for (size_t i = 0; i < kLanes; ++i) result[i] = static_cast<size_t>(places[i]) < kLanes ? a[places[i]] : b[places[i] - static_cast<int32_t>(kLanes)];
  return result;
}
#else
/// The numbers of two vectors one after the other, at those places.
inline __attribute__((always_inline)) Vector chosen(Vector a, Vector b, Integers places) { return __builtin_shuffle(a, b, places); }
#endif

/// Exchanges blocks of so many numbers beside the diagonal, and in the next rounds smaller ones, until rows are columns.
template <size_t Half>
inline __attribute__((always_inline)) void transpose(Vector (&rows)[kLanes]) {
  Integers upper{}, lower{};
  for (size_t i = 0; i < kLanes; ++i) {
    upper[i] = static_cast<int32_t>(i & Half ? kLanes + i - Half : i);
    lower[i] = static_cast<int32_t>(i & Half ? kLanes + i : i + Half);
  }
  for (size_t i = 0; i < kLanes; ++i) {
    if (i & Half) continue;
    const Vector first = rows[i], second = rows[i + Half];
    rows[i] = chosen(first, second, upper);
    rows[i + Half] = chosen(first, second, lower);
  }
  if constexpr (Half > 1) transpose<Half / 2>(rows);
}

/// Channels from `first` on, at most as many as a vector has numbers; `Whole` if there are as many keys.
template <bool Whole>
inline __attribute__((always_inline)) void turn_block(const KeyRows& keys, const TurnedKeys& to, size_t first) {
  Vector rows[kLanes];
  const size_t channels = keys.depth - first;
#pragma GCC unroll 16
  for (size_t i = 0; i < kLanes; ++i) rows[i] = Whole || i < keys.count ? load_up_to(keys.row(i) + first, channels) : Vector{};
  transpose<kLanes / 2>(rows);
#pragma GCC unroll 16
  for (size_t i = 0; i < kLanes; ++i) {
    if (Whole || i < channels) store(to.first + (first + i) * to.width, rows[i]);
  }
}

void turn(const KeyRows& keys, const TurnedKeys& to) {
  size_t first = 0;
  for (; first + kLanes <= keys.depth; first += kLanes) {
    if (keys.count == kLanes) {
      turn_block<true>(keys, to, first);
    } else {
      turn_block<false>(keys, to, first);
    }
  }
  // The last channels again with those before them are read faster than by themselves.
  if (first < keys.depth) turn_block<false>(keys, to, keys.depth < kLanes ? 0 : keys.depth - kLanes);
}

/// Sums of the numbers of every vector, one after the other: halves are put together until every vector's are one number.
template <size_t Half, size_t Count>
inline __attribute__((always_inline)) Vector sums_of(Vector (&parts)[Count]) {
  if constexpr (Half == 0) {
    return parts[0];
  } else {
    Integers lower{}, upper{};
    for (size_t i = 0; i < kLanes; ++i) {
      lower[i] = static_cast<int32_t>(i & Half ? kLanes + i - Half : i);
      upper[i] = static_cast<int32_t>(i & Half ? kLanes + i : i + Half);
    }
    Vector halves[Half];
    for (size_t i = 0; i < Half; ++i) halves[i] = chosen(parts[i], parts[i + Half], lower) + chosen(parts[i], parts[i + Half], upper);
    return sums_of<Half / 2>(halves);
  }
}

void multiply_keys(const KeyRows& keys, const float* query, float* scores) {
  Vector parts[kLanes];
  for (size_t i = 0; i < kLanes; ++i) {
    parts[i] = Vector{};
    const float* row = keys.row(i < keys.count ? i : 0);
    for (size_t d = 0; d < keys.depth; d += kLanes) parts[i] += load_up_to(row + d, keys.depth - d) * load_up_to(query + d, keys.depth - d);
  }
  store(scores, sums_of<kLanes / 2>(parts));
}

template <size_t Rows, size_t Vectors>
void add_values(const ValueTile& tile) {
  Vector sum[Rows][Vectors];
  for (size_t r = 0; r < Rows; ++r)
    for (size_t v = 0; v < Vectors; ++v) sum[r][v] = load(tile.sums + r * tile.sum_stride + v * kLanes);
  for (size_t n = 0; n < tile.count; ++n) {
    const float* row = reinterpret_cast<const float*>(tile.rows[n]) + tile.offset;
    Vector value[Vectors];
    for (size_t v = 0; v < Vectors; ++v) value[v] = load(row + v * kLanes);
    for (size_t r = 0; r < Rows; ++r)
      for (size_t v = 0; v < Vectors; ++v) sum[r][v] += tile.shares[r * tile.share_stride + n] * value[v];
  }
  for (size_t r = 0; r < Rows; ++r)
    for (size_t v = 0; v < Vectors; ++v) store(tile.sums + r * tile.sum_stride + v * kLanes, sum[r][v]);
}

/// The largest number of a vector, everywhere in it.
template <size_t Distance = kLanes / 2>
inline __attribute__((always_inline)) Vector largest_of(Vector value) {
  Integers places{};
  for (size_t i = 0; i < kLanes; ++i) places[i] = static_cast<int32_t>((i + Distance) % kLanes);
  const Vector other = chosen(value, value, places);
  value = value > other ? value : other;
  if constexpr (Distance > 1) {
    return largest_of<Distance / 2>(value);
  } else {
    return value;
  }
}

/// e^x for x that is not positive; zero where the result is no normal number.
inline __attribute__((always_inline)) Vector share(Vector x) { return x < kLeastExponent ? Vector{} : exponential_within(x); }

/// Adds the bias, and hides what lies behind the last key.
void see(const Weighing& row) {
  Integers place{};
  for (size_t i = 0; i < kLanes; ++i) place[i] = static_cast<int32_t>(i);
  for (size_t key = 0; key < row.keys; key += kLanes) {
    const size_t left = row.keys - key;
    Vector score = load(row.scores + key);
    if (row.bias != nullptr) score += load_up_to(row.bias + key, left);
    if (left < kLanes) score = place < static_cast<int32_t>(left) ? score : filled(-__builtin_inff());
    store(row.scores + key, score);
  }
}

void weigh(const Weighing& row) {
  if (row.bias != nullptr || row.keys % kLanes != 0) see(row);
  const Vector nothing = filled(-__builtin_inff());
  Vector largest = filled(*row.most);
  for (size_t key = 0; key < row.keys; key += kLanes) {
    const Vector score = load(row.scores + key);
    largest = score > largest ? score : largest;
  }
  largest = largest_of(largest);
  // Where every key so far is masked there is nothing to measure by.
  const Vector measure = largest == nothing ? Vector{} : largest;
  Vector sum = load(row.total);
  // As a rule the largest score is found early, and then nothing changes.
  if (largest[0] != *row.most) {
    const Vector kept = share(filled(*row.most) - measure);
    sum *= kept;
    for (size_t column = 0; column < row.columns; column += kLanes) store(row.sums + column, load(row.sums + column) * kept);
    *row.most = largest[0];
  }
  for (size_t key = 0; key < row.keys; key += kLanes) {
    const Vector part = share(load(row.scores + key) - measure);
    store(row.scores + key, part);
    sum += part;
  }
  store(row.total, sum);
}

}  // namespace
}  // namespace retouch

#define RETOUCH_VALUE_ROW(rows) {add_values<rows, 1>, add_values<rows, 2>, add_values<rows, 3>, add_values<rows, 4>}
#define RETOUCH_ATTENTION \
  {turn, multiply_keys, weigh, {RETOUCH_VALUE_ROW(1), RETOUCH_VALUE_ROW(2), RETOUCH_VALUE_ROW(3), RETOUCH_VALUE_ROW(4), RETOUCH_VALUE_ROW(5), RETOUCH_VALUE_ROW(6)}}
