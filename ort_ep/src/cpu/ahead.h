// Memory that is fetched into the cache while something else is computed.
#pragma once

#include <stddef.h>

namespace retouch {

/// Bytes of a cache line.
constexpr size_t kCacheLine = 64;

/// Memory to be fetched, by lines of a cache; may be empty.
struct Ahead {
  const char* from = nullptr;
  size_t lines = 0;

  // Used by sources of every instruction set, so no copy of these may be left to the linker (see tile.h).

  /// One of so many shares of about the same size.
  __attribute__((always_inline)) Ahead share(size_t which, size_t shares) const noexcept {
    const size_t begin = lines * which / shares, end = lines * (which + 1) / shares;
    return {from + begin * kCacheLine, end - begin};
  }
};

/// Fetches it bit by bit, in so many steps.
class Fetching {
 public:
  __attribute__((always_inline)) Fetching(const Ahead& ahead, size_t steps) noexcept
      : next_(ahead.from), end_(ahead.from + ahead.lines * kCacheLine), lines_((ahead.lines + steps - 1) / steps) {}

  __attribute__((always_inline)) void step() noexcept {
    for (size_t line = 0; line < lines_ && next_ < end_; ++line, next_ += kCacheLine) __builtin_prefetch(next_, 0, 2);
  }

 private:
  const char* next_;
  const char* end_;
  size_t lines_;
};

}  // namespace retouch
