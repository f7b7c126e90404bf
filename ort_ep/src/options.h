// What a session asks of the execution provider.
#pragma once

#include <cstddef>
#include <tuple>

#include "abi.h"
#include "cpu/weight_storage.h"

namespace retouch {

/// As many as the machine runs at once: no interface tells how many a session has.
size_t all_threads() noexcept;

/// Options, as session configuration entries `ep.retouchexecutionprovider.<name>`.
struct Options {
  /// Whether results may lie in the memory of operands that nobody reads any more.
  bool in_place = true;
  /// The most threads of the session that one kernel uses.
  size_t threads = 1;
  /// How kernels keep packed weights.
  WeightStorage weights = WeightStorage::kFloat32;
  /// Whether to log which nodes are taken and which are not, at the runtime's severity "info".
  bool trace = false;

  /// Reads them from those of a session. Throws if one is no number, out of range, or no storage.
  static Options of(const OrtSessionOptions* session);

  /// Those that kernels depend on.
  std::tuple<bool, size_t, WeightStorage> of_kernels() const noexcept { return {in_place, threads, weights}; }
};

}  // namespace retouch
