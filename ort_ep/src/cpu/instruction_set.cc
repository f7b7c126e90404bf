#include "cpu/instruction_set.h"

#include <cstdlib>
#include <string>

#include "api.h"

namespace retouch {
namespace {

const InstructionSet* best() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return &kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kAvx2;
#endif
  return &kPortable;
}

/// The instruction set asked for, if the machine has it: each one has all that the ones before it have.
const InstructionSet* chosen() {
  const InstructionSet* most = best();
  const char* name = std::getenv("RETOUCH_ORT_EP_CPU");
  if (name == nullptr || *name == '\0') return most;
#if defined(__x86_64__)
  const InstructionSet* all[] = {&kPortable, &kAvx2, &kAvx512};
#else
  const InstructionSet* all[] = {&kPortable};
#endif
  for (const InstructionSet* one : all) {
    if (std::string(name) == one->name) return one;
    if (one == most) break;
  }
  throw Error(std::string("retouch: expected RETOUCH_ORT_EP_CPU to name an instruction set of this machine, up to ") + most->name +
              ", got " + name);
}

}  // namespace

const InstructionSet& instruction_set() {
  static const InstructionSet* const used = chosen();
  return *used;
}

}  // namespace retouch
