#include "cpu/row_product.h"

#include <algorithm>
#include <new>

#include "cpu/instruction_set.h"
#include "cpu/weight_memory.h"

namespace retouch {
namespace {

/// Depth of a block of weights that several tiles use one after the other: it stays in the second-level cache.
constexpr size_t kBlockDepth = 256;
/// Bytes of rows that one task reads again and again, for every panel.
constexpr size_t kTaskBytes = 1 << 20;
constexpr size_t kLeastTaskRows = 96;

/// Numbers in a cache line, and how far ahead of their use weights are fetched where nothing else fetches them.
constexpr size_t kLine = 16;
constexpr size_t kAhead = 1024;

/// Fewer rows do not pay for taking weights apart.
constexpr size_t kLeastMatrixRows = 128;
/// Taking rows apart costs the same for any number of columns, and narrow products do not earn it back.
constexpr size_t kLeastMatrixColumns = 128;
/// Depth of the pieces that are taken apart for matrix instructions; a task's rows, and panels.
constexpr size_t kPieceDepth = 128;
constexpr size_t kMatrixRows = 512;
constexpr size_t kMatrixPanels = 4;

size_t divided_up(size_t a, size_t b) { return (a + b - 1) / b; }

Ahead share_of(const Ahead& all, size_t share, size_t shares) {
  const size_t begin = all.lines * share / shares, end = all.lines * (share + 1) / shares;
  return {all.from + begin * kLine * sizeof(float), end - begin};
}

/// Memory of a thread for numbers that were taken apart, aligned to cache lines.
template <typename Number>
class Scratch {
 public:
  Number* get(size_t count) {
    if (count > size_) {
      memory_.reset(static_cast<Number*>(::operator new(count * sizeof(Number), std::align_val_t{64})));
      size_ = count;
    }
    return memory_.get();
  }

 private:
  struct Release {
    void operator()(Number* memory) const { ::operator delete(memory, std::align_val_t{64}); }
  };
  std::unique_ptr<Number, Release> memory_;
  size_t size_ = 0;
};

/// A part of the depth: several whole taps, or some channels of one tap.
struct Block {
  size_t tap, taps, first_channel, channels;
};

/// The block that begins at a depth.
Block block_at(size_t depth, const Rows& rows, size_t wanted) {
  const size_t taps = rows.taps, channels = rows.channels;
  const size_t tap = depth / channels, first = depth % channels;
  if (channels <= wanted) return {tap, std::min(taps - tap, std::max<size_t>(1, wanted / channels)), 0, channels};
  const size_t parts = divided_up(channels, wanted), part = divided_up(channels, parts);
  return {tap, 1, first, std::min(part, channels - first)};
}

}  // namespace

RowProduct::RowProduct(const Source& source, size_t depth, size_t columns)
    : set_(instruction_set()), matrix_(matrix_functions()), depth_(depth), columns_(columns), panels_(divided_up(columns, set_.panel())), packed_(weight_memory(divided_up(columns, set_.lanes) * set_.lanes * depth)) {
  const size_t lanes = set_.lanes;
  float* to = packed_.get();
  for (size_t begin = 0; begin < columns; begin += set_.panel()) {
    const size_t valid = std::min(set_.panel(), columns - begin), width = divided_up(valid, lanes) * lanes;
    for (size_t k = 0; k < depth; ++k, to += width) {
      const float* from = source.data + k * source.depth_stride + begin * source.column_stride;
      for (size_t n = 0; n < valid; ++n) to[n] = from[n * source.column_stride];
      std::fill(to + valid, to + width, 0.0F);
    }
  }
}

void RowProduct::run(const Context& context, const Rows& rows, size_t count, const PerColumn& bias, const Target& target) const {
  if (count == 0 || columns_ == 0) return;
  const size_t most = std::max(kLeastTaskRows, kTaskBytes / std::max<size_t>(1, rows.channels * sizeof(float)));
  const size_t chunks = divided_up(count, most);
  // Sums are gathered where what stands before the tail is wanted, if it is.
  const float* from = target.sum == nullptr ? target.out : target.sum;
  const TailTile all{target.tail, from, columns_, target.sum, target.out, columns_, count, columns_, 0};
  if (matrix_ != nullptr && count >= kLeastMatrixRows && columns_ >= kLeastMatrixColumns) {
    TailTile biased = all;
    biased.tail.bias = bias;
    return run_matrix(context, rows, biased);
  }
  context.parallel_for(chunks * panels_, [&](size_t task) {
    const size_t chunk = task / panels_, begin = count * chunk / chunks, end = count * (chunk + 1) / chunks;
    const size_t panel = task % panels_, first = panel * set_.panel();
    const TailTile part = part_of(all, begin, end - begin, first, std::min(set_.panel(), columns_ - first));
    run_panel({rows.pointers + begin * rows.taps, rows.taps, rows.channels}, bias, part, panel);
  });
}

void RowProduct::run_panel(const Rows& rows, const PerColumn& bias, const TailTile& target, size_t panel) const {
  const size_t count = target.rows, first = panel * set_.panel(), valid = target.columns;
  float* sums = target.sum == nullptr ? target.out : target.sum;
  const bool plain = target.tail.is_empty() && target.sum == nullptr;
  const size_t vectors = divided_up(valid, set_.lanes), width = vectors * set_.lanes, groups = divided_up(count, kMaxTileRows);
  const float* weights = packed_.get() + first * depth_;
  const float* end = packed_.get() + (panels_ - 1) * set_.panel() * depth_;
  Tile tile{};
  tile.row_stride = rows.taps;
  tile.bias = bias;
  if (bias) tile.bias.first += first;
  tile.samples = target.tail.samples;
  tile.out_stride = columns_;
  tile.columns = valid;
  for (size_t begin = 0; begin < depth_;) {
    // A single group reads the weights once, so nothing is gained by cutting the depth.
    const Block block = block_at(begin, rows, groups == 1 ? depth_ : kBlockDepth);
    const size_t size = block.taps * block.channels;
    tile.taps = block.taps;
    tile.first_channel = block.first_channel;
    tile.channels = block.channels;
    tile.weights = weights + begin * width;
    tile.first = begin == 0;
    // What is read next is fetched meanwhile, a part by every group: the next block, which may be the next panel's.
    const float* next = tile.weights + size * width;
    const size_t lines = width / kLine, own = divided_up(lines, groups);
    const bool more = groups > 1 && next + size * width <= end;
    for (size_t group = 0; group < groups; ++group) {
      const size_t from = count * group / groups, to = count * (group + 1) / groups;
      tile.rows = rows.pointers + from * rows.taps + block.tap;
      tile.out = sums + from * columns_;
      tile.sample = (target.sample + from) % tile.samples;
      tile.next = more && group * own < lines ? next + group * own * size * kLine : nullptr;
      tile.next_lines = own;
      // The first block was not fetched by one before it, and with a single group there is none to fetch ahead for.
      if (group == 0 && (begin == 0 || groups == 1)) {
        tile.next = tile.weights + kAhead;
        tile.next_lines = lines;
      }
      set_.tiles[to - from - 1][vectors - 1](tile);
      // The rows are complete and still at hand.
      if (begin + size == depth_ && !plain) set_.finish(part_of(target, from, to - from, 0, valid));
    }
    begin += size;
  }
}

void RowProduct::run_matrix(const Context& context, const Rows& rows, const TailTile& target) const {
  const size_t chunks = divided_up(target.rows, kMatrixRows), groups = divided_up(panels_, kMatrixPanels);
  context.parallel_for(chunks * groups, [&](size_t task) {
    const size_t chunk = task / groups, group = task % groups;
    const size_t begin = chunk * kMatrixRows, end = std::min(target.rows, begin + kMatrixRows);
    const TailTile part = part_of(target, begin, end - begin, 0, columns_);
    multiply_panels({rows.pointers + begin * rows.taps, rows.taps, rows.channels}, part, panels_ * group / groups, panels_ * (group + 1) / groups);
  });
}

void RowProduct::multiply_panels(const Rows& rows, const TailTile& target, size_t first_panel, size_t last_panel) const {
  static thread_local Scratch<uint16_t> row_scratch, weight_scratch;
  static thread_local Scratch<float> sum_scratch;
  constexpr size_t kMost = kPieceDepth / kStepDepth * kParts * kTileNumbers, kWidth = kTilePair * kTileSide;
  const size_t row_tiles = divided_up(target.rows, kTileSide), first_column = first_panel * set_.panel();
  const size_t columns = std::min(columns_, last_panel * set_.panel()) - first_column;
  const size_t row_step = divided_up(columns, kTileSide) * kTileSide * kTileSide;
  uint16_t* split_rows = row_scratch.get(row_tiles * kMost);
  uint16_t* split_weights = weight_scratch.get(kTilePair * kMost);
  float* sums = sum_scratch.get(row_tiles * row_step);
  for (size_t begin = 0; begin < depth_; begin += kPieceDepth) {
    const size_t size = std::min(kPieceDepth, depth_ - begin), steps = divided_up(size, kStepDepth);
    matrix_->split_rows({rows.pointers, target.rows, rows.taps, rows.channels, begin, steps, split_rows});
    for (size_t column = 0; column < columns; column += kWidth) {
      const size_t panel = (first_column + column) / set_.panel(), inner = (first_column + column) % set_.panel();
      const size_t tiles = divided_up(std::min(kWidth, columns - column), kTileSide);
      const bool turns = column + kWidth >= columns;
      const size_t next_column = turns ? first_column : first_column + column + kWidth;
      const Ahead next = ahead_at(next_column, turns ? begin + kPieceDepth : begin);
      matrix_->split_weights({weights_of(panel, begin) + inner, width_of(panel), size, tiles, steps, split_weights, share_of(next, 0, 2)});
      float* first = sums + column * kTileSide;
      matrix_->multiply({split_rows, split_weights, target.rows, tiles, steps, begin == 0, first, row_step, share_of(next, 1, 2)});
    }
  }
  for (size_t row = 0; row < target.rows; row += kTileSide, sums += row_step)
    for (size_t column = 0; column < columns; column += kTileSide) {
      TailTile part = part_of(target, row, std::min(kTileSide, target.rows - row), first_column + column, std::min(kTileSide, columns - column));
      part.from = sums + column * kTileSide;
      part.from_stride = kTileSide;
      set_.finish(part);
    }
}

Ahead RowProduct::ahead_at(size_t column, size_t depth) const {
  if (depth >= depth_) return {nullptr, 0};
  // Where a panel is wider than what is taken apart at once, its parts are fetched as shares of the panel.
  const size_t panel = column / set_.panel(), inner = column % set_.panel(), width = width_of(panel);
  const size_t lines = std::min(kPieceDepth, depth_ - depth) * width / kLine, shares = divided_up(width, kTilePair * kTileSide);
  return share_of({reinterpret_cast<const char*>(weights_of(panel, depth)), lines}, inner / (kTilePair * kTileSide), shares);
}

const float* RowProduct::weights_of(size_t panel, size_t depth) const {
  return packed_.get() + panel * set_.panel() * depth_ + depth * width_of(panel);
}

size_t RowProduct::width_of(size_t panel) const {
  return divided_up(std::min(set_.panel(), columns_ - panel * set_.panel()), set_.lanes) * set_.lanes;
}

}  // namespace retouch
