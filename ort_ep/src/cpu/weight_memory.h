// Memory for packed weights, on huge pages where the system has them.
#pragma once

#include <cstddef>
#include <memory>

namespace retouch {

/// Memory for that many numbers, aligned to cache lines; freed with its last owner.
///
/// Every run reads all weights once. On pages of 4 KiB the core then waits for page tables more than for the weights, so
/// small weights share huge pages.
std::shared_ptr<float> weight_memory(size_t count);

}  // namespace retouch
