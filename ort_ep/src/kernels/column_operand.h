// Operands with one number per column of rows: biases, gates, factors and shifts.
#pragma once

#include "cpu/tail.h"
#include "tensor.h"

namespace retouch {

/// How many samples rows [M, C] or [M, B, C] belong to: one, or B.
size_t samples_of(const Shape& rows);

/// An operand [C], or [B, C] where rows are [M, B, C], perhaps behind axes of size one. Throws if it is another one.
PerColumn per_column(const char* op, const char* name, const Tensor& given, const Shape& rows);

}  // namespace retouch
