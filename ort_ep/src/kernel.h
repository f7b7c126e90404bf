// What an operator is to the execution provider.
#pragma once

#include <memory>

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

/// An operator of the domain.
struct Op {
  const char* name;
  /// The operand in whose memory result 0 may lie, or -1.
  int in_place;
  /// Whether there is a kernel for a node; one that is not claimed runs as its function body.
  bool (*claims)(const Node& node);
  std::unique_ptr<Kernel> (*make)(const Attributes& attributes);
};

}  // namespace retouch
