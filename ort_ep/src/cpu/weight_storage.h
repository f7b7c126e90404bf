// How packed weights are kept in memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>

namespace retouch {

/// The numbers that packed weights are kept as. Products are summed up in float32 whatever they are.
enum class WeightStorage { kFloat32, kFloat16, kBfloat16 };

constexpr size_t kWeightStorages = 3;

/// Bytes of one number.
size_t bytes_of(WeightStorage storage) noexcept;

/// The storage of that name: float32, float16 or bfloat16. Throws if there is none.
WeightStorage weight_storage(const std::string& name);

/// Writes numbers as they are kept, rounded to the nearest, `stride` apart where they come from. Throws if one is beyond
/// what the storage can hold.
void keep_weights(WeightStorage storage, const float* from, size_t stride, size_t count, char* to);

}  // namespace retouch
