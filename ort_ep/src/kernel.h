// What an operator is to the execution provider.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "context.h"
#include "node.h"

namespace retouch {

/// The computation of one node. Several threads may call `compute` of one kernel at once.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Computes one call's results. Throws `Error` for operands that do not fit.
  virtual void compute(const Context& context) const = 0;

  /// Takes a constant operand into a layout of its own; whether it did, after which the operand is not there any more.
  virtual bool pack(size_t input, const Tensor& constant);
};

inline bool Kernel::pack(size_t, const Tensor&) { return false; }

/// The elements of an operand: float32, int64, or those of the rows, which may be any.
enum class Kind { kFloat, kIndex, kAny };

/// The operands of an operator and the number of its results, which are like its first operand.
struct Signature {
  struct Operand {
    Kind kind;
    bool optional = false;
  };
  std::vector<Operand> inputs;
  size_t results = 1;

  /// Whether those operands have the elements that are expected, and none is missing.
  bool takes(const std::vector<ValueType>& types) const;
};

/// What operators claim whose signature says all.
inline bool takes_any(const Node&, const std::vector<ValueType>&) { return true; }

/// An operator of the domain.
struct Op {
  std::string name;
  /// The operand in whose memory result 0 may lie, or -1.
  int in_place;
  /// Whether there is a kernel for a node whose operands, given by their types, the signature takes; one that is not claimed
  /// runs as its function body.
  std::function<bool(const Node& node, const std::vector<ValueType>& types)> claims;
  std::function<std::unique_ptr<Kernel>(const Attributes& attributes)> make;
  /// Given where all operators are listed.
  Signature signature{};
};

}  // namespace retouch
