#include "cpu/dispatch.h"

#include <cstdlib>
#include <string>

#include "api.h"

namespace retouch {
namespace {

const Tiles* best() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return &kAvx512Tiles;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kAvx2Tiles;
#endif
  return &kPortableTiles;
}

/// The instruction set asked for, if the machine has it: each one has all that the ones before it have.
const Tiles* chosen() {
  const Tiles* most = best();
  const char* name = std::getenv("RETOUCH_ORT_EP_CPU");
  if (name == nullptr || *name == '\0') return most;
#if defined(__x86_64__)
  const Tiles* all[] = {&kPortableTiles, &kAvx2Tiles, &kAvx512Tiles};
#else
  const Tiles* all[] = {&kPortableTiles};
#endif
  for (const Tiles* one : all) {
    if (std::string(name) == one->name) return one;
    if (one == most) break;
  }
  throw Error(std::string("retouch: expected RETOUCH_ORT_EP_CPU to name an instruction set of this machine, up to ") + most->name +
              ", got " + name);
}

}  // namespace

const Tiles& tiles() {
  static const Tiles* const used = chosen();
  return *used;
}

}  // namespace retouch
