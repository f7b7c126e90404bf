#include "kept_weights.h"

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

#include "api.h"
#include "fake_runtime.h"

namespace retouch::fake {
namespace {

/// Every kind of number that a storage has, products with one being the weights themselves.
void test_numbers(WeightStorage storage) {
  constexpr int64_t kCount = 4096;
  const Value one = Value::numbers({1, 1}, {1.0F});
  Value weight = Value::of(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {1, kCount});
  std::mt19937 random(1);
  std::normal_distribution<float> distribution;
  for (int64_t i = 0; i < kCount; ++i) weight.floats()[i] = std::ldexp(distribution(random), static_cast<int>(i % 40) - 30);
  weight.floats()[0] = 65504.0F;
  weight.floats()[1] = -0x1p-24F;
  const std::vector<const Value*> inputs = {&one, &weight};
  const Value got = std::move(call(*make("RowLinear", inputs, {1}, {{"transB", 0}}, storage), inputs, 1)[0]);
  for (int64_t i = 0; i < kCount; ++i) {
    if (got.floats()[i] == as_kept(storage, weight.floats()[i])) continue;
    std::fprintf(stderr, "kept weights differ: %a became %a\n", weight.floats()[i], got.floats()[i]);
    std::exit(1);
  }
}

/// Weights that are too large for their storage are an error.
void test_large_weights() {
  for (const float large : {65520.0F, -1e9F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const Value one = Value::numbers({1, 1}, {1.0F}), weight = Value::numbers({1, 1}, {large});
    try {
      make("RowLinear", {&one, &weight}, {1}, {{"transB", 0}}, WeightStorage::kFloat16);
      std::abort();
    } catch (const retouch::Error&) {
    }
  }
}

}  // namespace

void test_kept_weights() {
  for (WeightStorage storage : {WeightStorage::kFloat32, WeightStorage::kFloat16, WeightStorage::kBfloat16}) test_numbers(storage);
  test_large_weights();
}

}  // namespace retouch::fake
