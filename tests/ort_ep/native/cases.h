// Random operands, and calls whose results are compared with loops that are easy to read.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fake_runtime.h"

namespace retouch::fake {

using Operands = std::vector<const Value*>;

/// A random number from 0 to before a limit.
int64_t below(int64_t limit);

Value normal(std::vector<int64_t> dims);

/// Indices [count, width] in any order.
Value table(int64_t count, int64_t width, int64_t limit);

/// Indices [count] in any order.
Value line(int64_t count, int64_t limit);

/// Indices [count, 1] that are all different.
Value different(int64_t count, int64_t limit);

/// Ends the process unless the results are those that are wanted.
void expect(const char* what, const Value& got, const std::vector<double>& wanted, double tolerance = 2e-4);

/// The same call from several threads, which must all get the same bits.
std::vector<Value> call_at_once(const Kernel& kernel, const Operands& inputs, size_t results);

inline double silu(double x) { return x / (1 + std::exp(-x)); }

inline const int64_t* numbers_of(const Value& value) { return reinterpret_cast<const int64_t*>(value.bytes.get()); }

}  // namespace retouch::fake
