// The tails that operators may have: what their names say is done to the rows of a result.
#pragma once

#include <string>
#include <vector>

#include "context.h"
#include "cpu/tail.h"
#include "node.h"

namespace retouch {

/// Which parts a tail has. `EditConvAddedAffineSilu` is EditConv with the tail `AddedAffineSilu`.
struct TailForm {
  bool gated = false;
  bool added = false;
  /// What stands before the affine map and the activation is a second result.
  bool kept = false;
  bool affine = false;
  Activation activation = Activation::kNone;

  std::string name() const;
  bool is_empty() const noexcept { return !gated && !added && !affine && activation == Activation::kNone; }

  /// Whether every number of the result depends on one number of the rows alone, and nothing is kept.
  bool only_maps() const noexcept { return !gated && !added && !kept; }

  /// Whether operands from `first` on are what a kernel takes, for rows [C] or, of several samples, [B, C].
  bool fits(const std::vector<ValueType>& types, size_t first, const std::vector<int64_t>& row) const;
};

/// What the names of operators begin with whose rows are those of several samples.
constexpr const char* kBatch = "Batch";

/// All of them, the empty one first.
const std::vector<TailForm>& tail_forms();

/// The tail of one call, and where its results go.
class TailCall {
 public:
  /// Reads the operands from `first` on, checks that they fit, and asks for the results [M, C] or [M, B, C].
  TailCall(const char* op, const TailForm& form, size_t first, const Context& context, const Shape& shape);

  const Tail& tail() const noexcept { return tail_; }

  /// The whole result, of that shape; it reads from where it writes to.
  TailTile tile(const Shape& shape) const noexcept;

  /// s and y; s is null if nobody wants it.
  float* sum() const noexcept { return sum_; }
  float* out() const noexcept { return out_; }

 private:
  Tail tail_;
  float* sum_ = nullptr;
  float* out_ = nullptr;
};

}  // namespace retouch
