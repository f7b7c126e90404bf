#include "cpu/instruction_set.h"

#include <cstdlib>
#include <string>

#if defined(RETOUCH_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "api.h"

namespace retouch {
namespace {

constexpr const char* kPairName = "avx512_bf16";
constexpr const char* kMatrixName = "amx";

const InstructionSet* best() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return &kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) return &kAvx2;
#endif
  return &kPortable;
}

const MatrixFunctions* best_matrix_functions() {
#if defined(RETOUCH_AMX)
  if (best() != &kAvx512 || !__builtin_cpu_supports("avx512bw")) return nullptr;
  constexpr unsigned kTiles = 1U << 24, kTilesOfBfloat16 = 1U << 22;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTiles) == 0 || (d & kTilesOfBfloat16) == 0) return nullptr;
  // The system lets a process use tiles only once it has asked (Linux 5.16, Documentation/arch/x86/xstate.rst).
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0 ? &kAmx : nullptr;
#else
  return nullptr;
#endif
}

const PairFunctions* best_pair_functions() {
#if defined(RETOUCH_AVX512_BF16)
  if (best() == &kAvx512 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16")) return &kPairs;
#endif
  return nullptr;
}

/// The instruction set that RETOUCH_ORT_EP_CPU names; empty if it names none.
std::string named() {
  const char* name = std::getenv("RETOUCH_ORT_EP_CPU");
  return name == nullptr ? "" : name;
}

/// The instruction set asked for, if the machine has it: each one has all that the ones before it have.
const InstructionSet* chosen() {
  const InstructionSet* most = best();
  const std::string name = named();
  if (name.empty()) return most;
#if defined(__x86_64__)
  const InstructionSet* all[] = {&kPortable, &kAvx2, &kAvx512};
#else
  const InstructionSet* all[] = {&kPortable};
#endif
  for (const InstructionSet* one : all) {
    if (name == one->name) return one;
    if (one == most) break;
  }
  const bool pairs = best_pair_functions() != nullptr, matrices = best_matrix_functions() != nullptr;
  if ((pairs && name == kPairName) || (matrices && name == kMatrixName)) return most;
  throw Error("retouch: expected RETOUCH_ORT_EP_CPU to name an instruction set of this machine, up to " +
              std::string(matrices ? kMatrixName : pairs ? kPairName : most->name) + ", got " + name);
}

}  // namespace

const InstructionSet& instruction_set() {
  static const InstructionSet* const used = chosen();
  return *used;
}

const MatrixFunctions* matrix_functions() {
  static const MatrixFunctions* const used = named().empty() || named() == kMatrixName ? best_matrix_functions() : nullptr;
  return used;
}

const PairFunctions* pair_functions() {
  const auto reaches = [](const std::string& name) { return name.empty() || name == kPairName || name == kMatrixName; };
  static const PairFunctions* const used = reaches(named()) ? best_pair_functions() : nullptr;
  return used;
}

}  // namespace retouch
