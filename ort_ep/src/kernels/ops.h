// All operators of the domain that have a kernel.
#pragma once

#include <string>
#include <vector>

#include "kernel.h"
#include "kernels/tail_form.h"

namespace retouch {

/// The domain of the operators.
constexpr const char* kDomain = "ai.retouch";

/// These have tails, and forms whose rows [M, B, C] are those of a batch of samples.
Op depthwise_edit_conv(const TailForm& tail, bool batch);
Op edit_conv(const TailForm& tail, bool batch);
Op grouped_edit_conv(const TailForm& tail, bool batch);
Op row_linear(const TailForm& tail, bool batch);
Op edit_group_norm(const TailForm& tail, bool batch, bool stacked);
Op rows(const TailForm& tail, bool batch);

Op edit_attention();
Op gather_rows();
Op group_moments();
Op masked_merge();
Op moment_affine();
Op scatter_rows();
Op stacked_attention();
Op token_linear();

/// The operators, in no particular order.
const std::vector<Op>& ops();

/// The operator of that name, or null.
const Op* find_op(const std::string& name);

}  // namespace retouch
