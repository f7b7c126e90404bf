// Rows of several edits, rows in the middle of tensors, convolutions in groups, and several sessions at once.
#pragma once

namespace retouch::fake {

void test_stacks();

/// Kernels of several sessions, which come and go, over the same states.
void test_sessions();

}  // namespace retouch::fake
