#include "kernels/row_places.h"

#include <algorithm>
#include <cstring>

#include "api.h"

namespace retouch {
namespace {

constexpr size_t kBytesPerTask = 512 << 10;

}  // namespace

std::vector<size_t> rows_at(const char* op, const int64_t* index, size_t count, int64_t size) {
  std::vector<size_t> rows(count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t given = index[i];
    if (given < -size || given >= size) {
      throw Error(std::string(op) + ": expected every index to be from -" + std::to_string(size) + " to before " + std::to_string(size) +
                  ", got " + std::to_string(given));
    }
    rows[i] = static_cast<size_t>(given < 0 ? given + size : given);
  }
  return rows;
}

void require_distinct(const char* op, const size_t* rows, size_t count, size_t size) {
  std::vector<bool> seen(size);
  for (size_t i = 0; i < count; ++i) {
    if (seen[rows[i]]) throw Error(std::string(op) + ": expected every row once, got row " + std::to_string(rows[i]) + " more than once");
    seen[rows[i]] = true;
  }
}

void copy_bytes(const Context& context, const char* from, char* to, size_t bytes) {
  const size_t tasks = std::max<size_t>(1, bytes / kBytesPerTask);
  context.parallel_for(tasks, [&](size_t task) {
    const size_t begin = bytes * task / tasks, end = bytes * (task + 1) / tasks;
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

}  // namespace retouch
