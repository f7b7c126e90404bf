// Indices of rows, checked before anything is written.
#pragma once

#include <vector>

#include "context.h"

namespace retouch {

/// The rows that `count` indices name, of `size`; negative ones count from the end. Throws if one is out of range.
std::vector<size_t> rows_at(const char* op, const int64_t* index, size_t count, int64_t size);

/// Throws if two of `count` rows, of `size`, are the same: which of them remains would depend on the order.
void require_distinct(const char* op, const size_t* rows, size_t count, size_t size);

/// Copies memory on the session's threads.
void copy_bytes(const Context& context, const char* from, char* to, size_t bytes);

}  // namespace retouch
