// Products of scattered rows with weights that are packed once.
#pragma once

#include <cstddef>
#include <memory>

#include "context.h"
#include "cpu/instruction_set.h"
#include "cpu/scratch.h"
#include "cpu/weight_storage.h"

namespace retouch {

/// The operands of a product: for every row of the result `taps` pointers to `channels` numbers each.
struct Rows {
  const char* const* pointers;
  size_t taps;
  size_t channels;
};

/// Weights [depth, columns] in panels of columns, and products with rows that lie anywhere.
///
/// The depth is divided into taps. A row of the result is bias + sum over taps of (the tap's numbers) times (the tap's
/// weights): a convolution whose neighbours were not copied together, or with one tap a matrix product.
class RowProduct {
 public:
  /// Where the weight of (depth, column) lies. With several taps, the depth is [taps, channels] and the source has them
  /// as [channels, taps].
  struct Source {
    const float* data;
    size_t depth_stride;
    size_t column_stride;
    size_t taps = 1;
  };

  /// Throws if there is no depth: a sum of nothing is no product.
  RowProduct(const Source& source, size_t depth, size_t columns, WeightStorage storage);

  size_t columns() const noexcept { return columns_; }
  size_t depth() const noexcept { return depth_; }

  /// Whether the depth is that many taps, as far as its source told.
  bool fits(size_t taps) const noexcept { return taps_ == 1 || taps_ == taps; }

  /// One if its source did not tell.
  size_t taps() const noexcept { return taps_; }

  /// Computes the rows of a target as wide as the weights; where it reads from does not matter. The tail's bias may be left
  /// out; samples take turns as the tail says.
  void run(const Context& context, const Rows& rows, const TailTile& target) const;

 private:
  void pack(const Source& source, size_t panel);
  bool multiplies_pairs(const Rows& rows) const;
  void run_panel(const Rows& rows, const PerColumn& bias, const TailTile& target, size_t panel) const;
  void run_matrix(const Context& context, const Rows& rows, const TailTile& target) const;
  void multiply_panels(const Rows& rows, const TailTile& target, size_t first_panel, size_t last_panel) const;
  Ahead ahead_at(size_t column, size_t depth) const;

  /// Where weights of a panel lie, `count` rows of them from a depth on; what lies behind such a block; and the weights as
  /// float32, in the scratch if they are kept as something else.
  Ahead kept(size_t panel, size_t depth, size_t count) const;
  Ahead next_after(const Ahead& block) const;
  const float* float32_weights(size_t panel, size_t depth, size_t count, Scratch<float>& scratch) const;
  size_t width_of(size_t panel) const;

  const InstructionSet& set_;
  const MatrixFunctions* matrix_;
  WeightStorage storage_;
  /// If weights are kept as pairs of bfloat16 numbers.
  const PairFunctions* pairs_;
  size_t depth_;
  size_t taps_;
  /// Rounded up to whole pairs.
  size_t packed_depth_;
  size_t columns_;
  size_t panels_;
  std::shared_ptr<char> packed_;
};

}  // namespace retouch
