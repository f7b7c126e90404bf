// Products by matrix instructions: rows and weights are taken apart piece by piece.
#include <algorithm>

#include "cpu/row_product.h"
#include "cpu/scratch.h"

namespace retouch {
namespace {

/// Depth of the pieces that are taken apart; a task's rows, and panels.
constexpr size_t kPieceDepth = 128;
constexpr size_t kMatrixRows = 512;
constexpr size_t kMatrixPanels = 4;

size_t divided_up(size_t a, size_t b) { return (a + b - 1) / b; }

}  // namespace

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
  static thread_local Scratch<float> sum_scratch, wide_scratch;
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
    const float* weights = nullptr;
    for (size_t column = 0; column < columns; column += kWidth) {
      const size_t panel = (first_column + column) / set_.panel(), inner = (first_column + column) % set_.panel();
      const size_t tiles = divided_up(std::min(kWidth, columns - column), kTileSide);
      const bool turns = column + kWidth >= columns;
      const size_t next_column = turns ? first_column : first_column + column + kWidth;
      const Ahead next = ahead_at(next_column, turns ? begin + kPieceDepth : begin);
      if (inner == 0) weights = float32_weights(panel, begin, size, wide_scratch);
      matrix_->split_weights({weights + inner, width_of(panel), size, tiles, steps, split_weights, next.share(0, 2)});
      float* first = sums + column * kTileSide;
      matrix_->multiply({split_rows, split_weights, target.rows, tiles, steps, begin == 0, first, row_step, next.share(1, 2)});
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
  if (depth >= depth_) return {};
  // Where a panel is wider than what is taken apart at once, its parts are fetched as shares of the panel.
  const size_t panel = column / set_.panel(), inner = column % set_.panel(), shares = divided_up(width_of(panel), kTilePair * kTileSide);
  return kept(panel, depth, std::min(kPieceDepth, depth_ - depth)).share(inner / (kTilePair * kTileSide), shares);
}

}  // namespace retouch
