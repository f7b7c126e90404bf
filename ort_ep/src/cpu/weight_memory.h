// Memory for packed weights, on huge pages where the system has them.
#pragma once

#include <cstddef>
#include <memory>

namespace retouch {

/// Memory of that many bytes, aligned to cache lines; freed with its last owner.
///
/// Every run reads all weights once. On pages of 4 KiB the core then waits for page tables more than for the weights, so
/// small weights share huge pages.
std::shared_ptr<char> weight_memory(size_t bytes);

}  // namespace retouch
