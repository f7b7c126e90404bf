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
    const size_t all_rows = rows * tile.heads;
    const size_t sizes[] = {all_rows * tile.depth, tile.depth * kKeyBlock, kKeyBlock * copied, kMaxTileRows * kKeyBlock, all_rows * columns, all_rows * lanes, all_rows};
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
    std::fill_n(most, all_rows, -std::numeric_limits<float>::infinity());
  }
};

class Attention {
 public:
  explicit Attention(const AttentionTile& tile)
      : tile_(tile),
        set_(instruction_set()),
        rows_(tile.end - tile.begin),
        columns_(divided_up(tile.value_depth, set_.lanes) * set_.lanes),
        parts_(tile, columns_, set_.lanes) {}

  void run() {
    for (size_t head = 0; head < tile_.heads; ++head) scale_queries(head);
    for (size_t begin = 0; begin < tile_.length; begin += kKeyBlock) {
      const size_t count = std::min(kKeyBlock, tile_.length - begin);
      if (tile_.whole_rows) {
        touch(tile_.keys + begin, count, tile_.key_offset, tile_.depth);
        touch(tile_.values + begin, count, tile_.value_offset, tile_.value_depth);
      }
      for (size_t head = 0; head < tile_.heads; ++head) add_block(begin, count, head);
    }
    for (size_t head = 0; head < tile_.heads; ++head) write(head);
  }

 private:
  /// Reads a block's rows one after the other, which the hardware foresees: it reads about twice as fast then as head by head.
  void touch(const char* const* rows, size_t count, size_t offset, size_t depth) const {
    for (size_t i = 0; i < count; ++i) {
      const char* row = rows[i] + offset * sizeof(float);
      for (size_t byte = 0; byte < tile_.heads * depth * sizeof(float); byte += kCacheLine) static_cast<void>(*static_cast<const volatile char*>(row + byte));
    }
  }

  const float* query(size_t head, size_t row) const {
    return tile_.queries + row / tile_.shared * tile_.query_stride + (head * tile_.shared + row % tile_.shared) * tile_.depth;
  }
  float* out(size_t head, size_t row) const {
    return tile_.out + row / tile_.shared * tile_.out_stride + (head * tile_.shared + row % tile_.shared) * tile_.value_depth;
  }

  void scale_queries(size_t head) const {
    float* to = parts_.queries + head * rows_ * tile_.depth;
    for (size_t row = 0; row < rows_; ++row)
      for (size_t d = 0; d < tile_.depth; ++d) to[row * tile_.depth + d] = query(head, tile_.begin + row)[d] * tile_.scale;
  }

  /// What a block of keys adds to the results of a head.
  void add_block(size_t begin, size_t count, size_t head) {
    const size_t groups = divided_up(rows_, kMaxTileRows);
    if (rows_ >= kLeastTurned) turn_keys(begin, count, head);
    take_values(begin, count, head);
    for (size_t group = 0; group < groups; ++group) {
      const size_t first = rows_ * group / groups, rows = rows_ * (group + 1) / groups - first;
      if (rows_ < kLeastTurned) {
        multiply_keys(begin, count, head, first, rows);
      } else {
        multiply_turned(count, head, first, rows);
      }
      fetch(tile_.values, tile_.value_offset, tile_.value_depth, begin, head * groups + group, tile_.heads * groups);
      add(begin, count, head * rows_ + first, first, rows);
    }
  }

  KeyRows keys(size_t first, size_t count, size_t head) const {
    return {tile_.keys + first, tile_.key_offset + head * tile_.depth, std::min(set_.lanes, count), tile_.depth};
  }

  /// Whole panels; what lies behind the last key becomes zero.
  void turn_keys(size_t begin, size_t count, size_t head) const {
    const size_t width = set_.panel(), steps = divided_up(count, width) * width / set_.lanes;
    for (size_t step = 0; step < steps; ++step) {
      const size_t key = step * set_.lanes;
      fetch(tile_.keys, tile_.key_offset, tile_.depth, begin, head * steps + step, tile_.heads * steps);
      set_.attention.turn(keys(begin + key, count - std::min(key, count), head), {parts_.keys + key / width * width * tile_.depth + key % width, width});
    }
  }

  /// Values are read where they are, or copied if they are no whole vectors.
  void take_values(size_t begin, size_t count, size_t head) {
    value_rows_ = tile_.values + begin;
    value_offset_ = tile_.value_offset + head * tile_.value_depth;
    if (columns_ == tile_.value_depth) return;
    for (size_t i = 0; i < count; ++i) {
      float* to = parts_.values + i * columns_;
      std::memcpy(to, tile_.values[begin + i] + value_offset_ * sizeof(float), tile_.value_depth * sizeof(float));
      copied_[i] = reinterpret_cast<const char*>(to);
    }
    value_rows_ = copied_;
    value_offset_ = 0;
  }

  /// Fetches a share of the block behind the one that begins there: parts of rows lie apart, which the hardware does not foresee.
  void fetch(const char* const* rows, size_t offset, size_t depth, size_t begin, size_t which, size_t shares) const {
    if (tile_.whole_rows) return;
    const size_t next = std::min(begin + kKeyBlock, tile_.length), count = std::min(kKeyBlock, tile_.length - next);
    for (size_t i = count * which / shares; i < count * (which + 1) / shares; ++i) {
      const char* row = rows[next + i] + offset * sizeof(float);
      for (size_t byte = 0; byte < tile_.heads * depth * sizeof(float); byte += kCacheLine) __builtin_prefetch(row + byte, 0, 2);
    }
  }

  /// What a block of keys adds to the results of some rows, whose scores there are.
  void add(size_t begin, size_t count, size_t place, size_t first, size_t rows) const {
    for (size_t i = 0; i < rows; ++i) {
      const size_t row = place + i;
      const float* bias = tile_.bias == nullptr ? nullptr : tile_.bias + (tile_.begin + first + i) / tile_.shared * tile_.bias_stride + begin;
      set_.attention.weigh({parts_.scores + i * kKeyBlock, count, bias, parts_.most + row, parts_.totals + row * set_.lanes, parts_.sums + row * columns_, columns_});
    }
    for (size_t column = 0; column < columns_; column += set_.panel()) {
      const size_t vectors = std::min(set_.panel(), columns_ - column) / set_.lanes;
      set_.attention.add_values[rows - 1][vectors - 1](
          {value_rows_, value_offset_ + column, count, parts_.scores, kKeyBlock, parts_.sums + place * columns_ + column, columns_});
    }
  }

  const float* scaled(size_t head, size_t row) const { return parts_.queries + (head * rows_ + row) * tile_.depth; }

  void multiply_keys(size_t begin, size_t count, size_t head, size_t first, size_t rows) const {
    const size_t steps = divided_up(count, set_.lanes);
    for (size_t step = 0; step < steps; ++step) {
      const size_t key = step * set_.lanes;
      fetch(tile_.keys, tile_.key_offset, tile_.depth, begin, head * steps + step, tile_.heads * steps);
      for (size_t row = 0; row < rows; ++row)
        set_.attention.multiply_keys(keys(begin + key, count - key, head), scaled(head, first + row), parts_.scores + row * kKeyBlock + key);
    }
  }

  void multiply_turned(size_t count, size_t head, size_t first, size_t rows) const {
    const char* sources[kMaxTileRows];
    for (size_t i = 0; i < rows; ++i) sources[i] = reinterpret_cast<const char*>(scaled(head, first + i));
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

  void write(size_t head) const {
    for (size_t row = 0; row < rows_; ++row) {
      const size_t place = head * rows_ + row;
      const float* totals = parts_.totals + place * set_.lanes;
      const float total = std::accumulate(totals, totals + set_.lanes, 0.0F);
      // A query that sees nothing has no result, as in a softmax of nothing but minus infinity.
      const float factor = parts_.most[place] == -std::numeric_limits<float>::infinity() ? std::numeric_limits<float>::quiet_NaN() : 1.0F / total;
      float* to = out(head, tile_.begin + row);
      for (size_t d = 0; d < tile_.value_depth; ++d) to[d] = parts_.sums[place * columns_ + d] * factor;
    }
  }

  const AttentionTile& tile_;
  const InstructionSet& set_;
  size_t rows_;
  /// Of values, rounded up to whole vectors.
  size_t columns_;
  Parts parts_;
  /// The block's values of a head.
  const char* const* value_rows_ = nullptr;
  size_t value_offset_ = 0;
  const char* copied_[kKeyBlock];
};

}  // namespace

void attend(const AttentionTile& tile) { Attention(tile).run(); }

}  // namespace retouch
