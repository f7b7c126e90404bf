// All operators of the domain that have a kernel.
#pragma once

#include <string>
#include <vector>

#include "kernel.h"

namespace retouch {

/// The domain of the operators.
constexpr const char* kDomain = "ai.retouch";

extern const Op kEditConv;
extern const Op kGatherRows;
extern const Op kMaskedMerge;
extern const Op kRowLinear;

/// The operators, in no particular order.
const std::vector<const Op*>& ops();

/// The operator of that name, or null.
const Op* find_op(const std::string& name);

}  // namespace retouch
