#include "cpu/attention.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>

#include "cpu/instruction_set.h"
#include "cpu/scratch.h"

namespace retouch {
namespace {

/// Keys whose scores are held at once; whole panels on every machine.
constexpr size_t kKeyBlock = 128;

/// Fewer rows do not pay for turning keys.
constexpr size_t kLeastTurned = 4;

size_t divided_up(size_t a, size_t b) { return (a + b - 1) / b; }

/// Memory of one call: parts of a thread's scratch.
struct Parts {
  float *queries, *keys, *values, *scores, *sums, *totals, *most;

  Parts(const AttentionTile& tile, size_t columns, size_t lanes) {
    static thread_local Scratch<float> scratch;
    const size_t rows = tile.end - tile.begin, copied = columns == tile.value_depth ? 0 : columns;
    const size_t sizes[] = {rows * tile.depth, tile.depth * kKeyBlock, kKeyBlock * copied, kMaxTileRows * kKeyBlock, rows * columns, rows * lanes, rows};
    float** const parts[] = {&queries, &keys, &values, &scores, &sums, &totals, &most};
    // Every part begins with a cache line.
    constexpr size_t kLine = kCacheLine / sizeof(float);
    size_t all = 0;
    for (size_t size : sizes) all += divided_up(size, kLine) * kLine;
    float* next = scratch.get(all);
    for (size_t i = 0; i < std::size(sizes); next += divided_up(sizes[i], kLine) * kLine, ++i) *parts[i] = next;
    std::fill_n(values, sizes[2], 0.0F);
    std::fill_n(sums, sizes[4], 0.0F);
    std::fill_n(totals, sizes[5], 0.0F);
    std::fill_n(most, rows, -std::numeric_limits<float>::infinity());
  }
};

class Attention {
 public:
  explicit Attention(const AttentionTile& tile)
      : tile_(tile), set_(instruction_set()), rows_(tile.end - tile.begin), columns_(divided_up(tile.value_depth, set_.lanes) * set_.lanes), parts_(tile, columns_, set_.lanes) {}

  void run() {
    scale_queries();
    const size_t groups = divided_up(rows_, kMaxTileRows);
    for (size_t begin = 0; begin < tile_.length; begin += kKeyBlock) {
      const size_t count = std::min(kKeyBlock, tile_.length - begin);
      if (rows_ >= kLeastTurned) turn_keys(begin, count);
      take_values(begin, count);
      for (size_t group = 0; group < groups; ++group) {
        fetch(begin + kKeyBlock + kKeyBlock * group / groups, begin + kKeyBlock + kKeyBlock * (group + 1) / groups);
        add(begin, count, rows_ * group / groups, rows_ * (group + 1) / groups);
      }
    }
    write();
  }

 private:
  const float* query(size_t row) const { return tile_.queries + row / tile_.shared * tile_.query_stride + row % tile_.shared * tile_.depth; }
  float* out(size_t row) const { return tile_.out + row / tile_.shared * tile_.out_stride + row % tile_.shared * tile_.value_depth; }

  KeyRows keys(size_t first, size_t count) const { return {tile_.keys + first, tile_.key_offset, std::min(set_.lanes, count), tile_.depth}; }

  void scale_queries() const {
    for (size_t row = 0; row < rows_; ++row)
      for (size_t d = 0; d < tile_.depth; ++d) parts_.queries[row * tile_.depth + d] = query(tile_.begin + row)[d] * tile_.scale;
  }

  /// Whole panels; what lies behind the last key becomes zero.
  void turn_keys(size_t begin, size_t count) const {
    const size_t width = set_.panel();
    for (size_t key = 0; key < divided_up(count, width) * width; key += set_.lanes)
      set_.attention.turn(keys(begin + key, count - std::min(key, count)), {parts_.keys + key / width * width * tile_.depth + key % width, width});
  }

  /// Values are read where they are, or copied if they are no whole vectors.
  void take_values(size_t begin, size_t count) {
    value_rows_ = tile_.values + begin;
    value_offset_ = tile_.value_offset;
    if (columns_ == tile_.value_depth) return;
    for (size_t i = 0; i < count; ++i) {
      float* to = parts_.values + i * columns_;
      std::memcpy(to, tile_.values[begin + i] + tile_.value_offset * sizeof(float), tile_.value_depth * sizeof(float));
      copied_[i] = reinterpret_cast<const char*>(to);
    }
    value_rows_ = copied_;
    value_offset_ = 0;
  }

  /// Rows lie apart, which the hardware does not foresee.
  void fetch(size_t begin, size_t end) const {
    for (size_t i = begin; i < std::min(end, tile_.length); ++i) {
      fetch_row(tile_.keys[i] + tile_.key_offset * sizeof(float), tile_.depth);
      fetch_row(tile_.values[i] + tile_.value_offset * sizeof(float), tile_.value_depth);
    }
  }

  static void fetch_row(const char* row, size_t numbers) {
    for (size_t byte = 0; byte < numbers * sizeof(float); byte += kCacheLine) __builtin_prefetch(row + byte, 0, 2);
  }

  /// What a block of keys adds to the results of some rows.
  void add(size_t begin, size_t count, size_t first, size_t last) const {
    const size_t rows = last - first;
    score(begin, count, first, rows);
    for (size_t i = 0; i < rows; ++i) {
      const size_t row = first + i;
      const float* bias = tile_.bias == nullptr ? nullptr : tile_.bias + (tile_.begin + row) / tile_.shared * tile_.bias_stride + begin;
      set_.attention.weigh({parts_.scores + i * kKeyBlock, count, bias, parts_.most + row, parts_.totals + row * set_.lanes, parts_.sums + row * columns_, columns_});
    }
    for (size_t column = 0; column < columns_; column += set_.panel()) {
      const size_t vectors = std::min(set_.panel(), columns_ - column) / set_.lanes;
      set_.attention.add_values[rows - 1][vectors - 1](
          {value_rows_, value_offset_ + column, count, parts_.scores, kKeyBlock, parts_.sums + first * columns_ + column, columns_});
    }
  }

  void score(size_t begin, size_t count, size_t first, size_t rows) const {
    if (rows_ < kLeastTurned) {
      for (size_t row = 0; row < rows; ++row)
        for (size_t key = 0; key < count; key += set_.lanes)
          set_.attention.multiply_keys(keys(begin + key, count - key), parts_.queries + (first + row) * tile_.depth, parts_.scores + row * kKeyBlock + key);
      return;
    }
    const char* sources[kMaxTileRows];
    for (size_t i = 0; i < rows; ++i) sources[i] = reinterpret_cast<const char*>(parts_.queries + (first + i) * tile_.depth);
    Tile tile{};
    tile.rows = sources;
    tile.row_stride = tile.taps = tile.samples = 1;
    tile.channels = tile_.depth;
    tile.first = true;
    tile.out_stride = kKeyBlock;
    tile.columns = set_.panel();
    for (size_t key = 0; key < count; key += set_.panel()) {
      tile.weights = reinterpret_cast<const char*>(parts_.keys + key * tile_.depth);
      tile.out = parts_.scores + key;
      set_.tiles[static_cast<size_t>(WeightStorage::kFloat32)][rows - 1][set_.vectors - 1](tile);
    }
  }

  void write() const {
    for (size_t row = 0; row < rows_; ++row) {
      const float* totals = parts_.totals + row * set_.lanes;
      const float total = std::accumulate(totals, totals + set_.lanes, 0.0F);
      // A query that sees nothing has no result, as in a softmax of nothing but minus infinity.
      const float factor = parts_.most[row] == -std::numeric_limits<float>::infinity() ? std::numeric_limits<float>::quiet_NaN() : 1.0F / total;
      float* to = out(tile_.begin + row);
      for (size_t d = 0; d < tile_.value_depth; ++d) to[d] = parts_.sums[row * columns_ + d] * factor;
    }
  }

  const AttentionTile& tile_;
  const InstructionSet& set_;
  size_t rows_;
  /// Of values, rounded up to whole vectors.
  size_t columns_;
  Parts parts_;
  /// The block's values.
  const char* const* value_rows_ = nullptr;
  size_t value_offset_ = 0;
  const char* copied_[kKeyBlock];
};

}  // namespace

void attend(const AttentionTile& tile) { Attention(tile).run(); }

}  // namespace retouch
