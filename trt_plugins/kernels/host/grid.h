// Stands in for CUDA on the host: runs a launch grid block by block, the threads of a block as fibers on one CPU thread.
//
// __syncthreads, shuffles and products of a warp are meeting points: a fiber that arrives lets the others run until all
// have arrived. What a kernel gets wrong about them (a missing barrier, a divergent shuffle) shows as wrong results or,
// if some threads never arrive, as an abort. For tests of kernels only; one launch at a time.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
// Blocks run one after another, so that one copy serves them all.
#define __shared__ static

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace retouch {

using Half = _Float16;
using Stream = void*;

/// The upper half of a float, rounded to nearest even.
struct BFloat16 {
  uint16_t bits;
};

inline float to_float(float value) { return value; }
inline float to_float(Half value) { return static_cast<float>(value); }
inline float to_float(BFloat16 value) {
  const uint32_t wide = static_cast<uint32_t>(value.bits) << 16;
  float result;
  memcpy(&result, &wide, 4);
  return result;
}
template <typename T>
T from_float(float value);
template <>
inline float from_float<float>(float value) { return value; }
template <>
inline Half from_float<Half>(float value) { return static_cast<Half>(value); }
template <>
inline BFloat16 from_float<BFloat16>(float value) {
  uint32_t wide;
  memcpy(&wide, &value, 4);
  if (value != value) return {static_cast<uint16_t>(wide >> 16 | 0x40)};
  return {static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16)};
}

namespace host {

[[noreturn]] inline void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  abort();
}

constexpr unsigned kWarp = 32;
constexpr size_t kStack = 64 * 1024;
constexpr size_t kExchange = 64;

/// Where some threads wait for each other.
struct Meeting {
  unsigned expected = 0, arrived = 0;
  uint64_t round = 0;
};

/// Sixteen bytes on their way; a null source is zeros.
struct Copy {
  void* target;
  const void* source;
};

struct Fiber {
  ucontext_t context;
  /// Groups of copies that were not waited for, the newest last, which is open.
  std::deque<std::vector<Copy>> copies{1};
  std::unique_ptr<char[]> stack{new char[kStack]};
  bool finished = false;
};

/// A block at work.
struct Block {
  dim3 grid, block, index;
  unsigned running = 0;
  std::vector<Fiber> fibers;
  std::vector<Meeting> warps;
  /// What the lanes of every warp hand to each other.
  std::vector<unsigned char> exchange;
  Meeting all;
  ucontext_t scheduler;
  std::function<void()> body;
};

inline Block& current() {
  static Block block;
  return block;
}

inline void pause() {
  Block& block = current();
  swapcontext(&block.fibers[block.running].context, &block.scheduler);
}

inline void meet(Meeting& meeting) {
  const uint64_t round = meeting.round;
  if (++meeting.arrived == meeting.expected) {
    meeting.arrived = 0;
    ++meeting.round;
  }
  while (meeting.round == round) pause();
}

/// A thread that returns is waited for no longer.
inline void leave(Meeting& meeting) {
  if (--meeting.expected > 0 && meeting.arrived == meeting.expected) {
    meeting.arrived = 0;
    ++meeting.round;
  }
}

inline unsigned thread_number() { return current().running; }
inline unsigned lane() { return thread_number() % kWarp; }
inline Meeting& warp() { return current().warps[thread_number() / kWarp]; }
inline unsigned char* slot(unsigned of_lane) {
  return current().exchange.data() + ((thread_number() / kWarp) * kWarp + of_lane) * kExchange;
}

inline void enter() {
  Block& block = current();
  block.body();
  block.fibers[block.running].finished = true;
  leave(block.all);
  leave(warp());
  pause();
}

inline void run_block(Block& block) {
  const unsigned threads = block.block.x * block.block.y * block.block.z;
  if (block.fibers.size() < threads) block.fibers.resize(threads);
  block.warps.assign((threads + kWarp - 1) / kWarp, {});
  block.exchange.assign(block.warps.size() * kWarp * kExchange, 0);
  block.all = {};
  block.all.expected = threads;
  for (unsigned i = 0; i < threads; ++i) {
    ++block.warps[i / kWarp].expected;
    Fiber& fiber = block.fibers[i];
    fiber.finished = false;
    fiber.copies.assign(1, {});
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
  }
  for (unsigned left = threads, idle = 0; left > 0;) {
    const uint64_t rounds_before = block.all.round;
    unsigned finished = 0;
    for (unsigned i = 0; i < threads; ++i) {
      if (block.fibers[i].finished) continue;
      block.running = i;
      swapcontext(&block.scheduler, &block.fibers[i].context);
      finished += block.fibers[i].finished ? 1 : 0;
    }
    left -= finished;
    // A warp's meetings may go on for many rounds while another warp waits; threads that wait for ever do not.
    idle = finished > 0 || block.all.round != rounds_before ? 0 : idle + 1;
    if (idle > 10'000'000) fail("threads of a block wait for others that never arrive");
  }
}

template <typename Body>
void launch(dim3 grid, dim3 threads, Body body) {
  Block& block = current();
  block.grid = grid;
  block.block = threads;
  block.body = body;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        block.index = dim3(x, y, z);
        run_block(block);
      }
}

/// Copies arrive as late as they may: what reads them before they were waited for reads what was there.
inline void start_copy(void* target, const void* source, bool inside) {
  current().fibers[current().running].copies.back().push_back({target, inside ? source : nullptr});
}
inline void close_copies() { current().fibers[current().running].copies.emplace_back(); }
inline void await_copies(size_t newest) {
  std::deque<std::vector<Copy>>& groups = current().fibers[current().running].copies;
  for (; groups.size() > newest + 1; groups.pop_front())
    for (const Copy& copy : groups.front()) {
      if (copy.source == nullptr)
        memset(copy.target, 0, 16);
      else
        memcpy(copy.target, copy.source, 16);
    }
}

inline dim3 thread_index() {
  const Block& block = current();
  const unsigned number = block.running, x = block.block.x, y = block.block.y;
  return dim3(number % x, number / x % y, number / x / y);
}

}  // namespace host

inline int copy_device(void* target, const void* source, size_t bytes, Stream) {
  memcpy(target, source, bytes);
  return 0;
}
inline int last_error() { return 0; }

}  // namespace retouch

#define threadIdx (::retouch::host::thread_index())
#define blockIdx (::retouch::host::current().index)
#define blockDim (::retouch::host::current().block)
#define gridDim (::retouch::host::current().grid)
#define __syncthreads() ::retouch::host::meet(::retouch::host::current().all)
#define RETOUCH_LAUNCH(kernel, grid, block, stream, ...) \
  (static_cast<void>(stream), ::retouch::host::launch(grid, block, [&] { kernel(__VA_ARGS__); }))
