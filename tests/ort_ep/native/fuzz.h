// Operands that do not fit each other.
#pragma once

namespace retouch::fake {

/// Calls every kernel with operands that fit but for one, so many times each: an error or a result, and nothing else.
void fuzz(int rounds);

}  // namespace retouch::fake
