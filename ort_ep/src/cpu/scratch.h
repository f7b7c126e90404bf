// Memory that a thread uses again and again.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace retouch {

/// Memory for numbers, aligned to cache lines; it grows, and keeps nothing when it does.
template <typename Number>
class Scratch {
 public:
  Number* get(size_t count) {
    if (count > size_) {
      memory_.reset(static_cast<Number*>(::operator new(count * sizeof(Number), std::align_val_t{64})));
      size_ = count;
    }
    return memory_.get();
  }

 private:
  struct Release {
    void operator()(Number* memory) const { ::operator delete(memory, std::align_val_t{64}); }
  };
  std::unique_ptr<Number, Release> memory_;
  size_t size_ = 0;
};

}  // namespace retouch
