#include "cpu/weight_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <mutex>
#include <new>

namespace retouch {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kAlignment = 64;

size_t rounded_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

/// A run of huge pages.
class Pages {
 public:
  explicit Pages(size_t bytes) : size_(rounded_up(bytes, kHugePage)), mapped_(size_ + kHugePage) {
    // One page more than needed, so that there is a beginning on a huge page's boundary.
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    start_ = reinterpret_cast<char*>(rounded_up(reinterpret_cast<uintptr_t>(base_), kHugePage));
#if defined(MADV_HUGEPAGE)
    madvise(start_, size_, MADV_HUGEPAGE);  // a hint: without it the weights are where they would be anyway
#endif
  }
  ~Pages() { munmap(base_, mapped_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// The next bytes, or null if there are not as many left.
  char* take(size_t bytes) noexcept {
    if (bytes > size_ - used_) return nullptr;
    char* taken = start_ + used_;
    used_ += bytes;
    return taken;
  }

 private:
  size_t size_;
  size_t mapped_;
  size_t used_ = 0;
  void* base_;
  char* start_;
};

}  // namespace

std::shared_ptr<char> weight_memory(size_t bytes) {
  static std::mutex mutex;
  static std::weak_ptr<Pages> open;
  bytes = rounded_up(bytes, kAlignment);
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Pages> pages = open.lock();
  char* taken = pages == nullptr ? nullptr : pages->take(bytes);
  if (taken == nullptr) {
    pages = std::make_shared<Pages>(bytes);
    taken = pages->take(bytes);
    open = pages;
  }
  return std::shared_ptr<char>(pages, taken);
}

}  // namespace retouch
