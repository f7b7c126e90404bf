// What the plugins are to do: their operands, attributes and results.
#pragma once

#include <NvInferRuntime.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cases {

using nvinfer1::DataType;

/// A dim of an input, or its product with another dim of that input.
struct Dim {
  int input;
  int axis;
  int times = -1;
};

struct Tensor {
  std::vector<int64_t> dims;
  DataType type;
  std::vector<float> numbers;
  std::vector<int64_t> integers;

  const void* data() const { return type == DataType::kINT64 ? static_cast<const void*>(integers.data()) : numbers.data(); }
};

inline Tensor floats(std::vector<int64_t> dims, std::vector<float> numbers) { return {dims, DataType::kFLOAT, numbers, {}}; }
inline Tensor integers(std::vector<int64_t> dims, std::vector<int64_t> numbers) { return {dims, DataType::kINT64, {}, numbers}; }

/// What a plugin is to do.
struct Case {
  std::vector<Tensor> inputs;
  /// Per output and dim, the input and the axis that it comes from.
  std::vector<std::vector<Dim>> shapes;
  std::vector<std::vector<float>> expected;
  size_t workspace = 0;
  int aliased = -1;
  std::vector<std::pair<const char*, int32_t>> integers = {};
  std::vector<std::pair<const char*, float>> numbers = {};
};

using Integers = std::vector<std::pair<const char*, int32_t>>;

/// The attributes of an operator's own, and those of a tail.
inline Integers with_tail(Integers own, int32_t gated, int32_t added, int32_t kept, int32_t affine, int32_t activation) {
  const Integers tail = {{"gated", gated}, {"added", added}, {"kept", kept}, {"affine", affine}, {"activation", activation}};
  own.insert(own.end(), tail.begin(), tail.end());
  return own;
}

/// What products and attention want besides.
constexpr size_t kShared = 8 << 20;

inline float silu(float x) { return x / (1 + std::exp(-x)); }

/// What plugins are to do, several cases for some.
inline std::vector<std::pair<std::string, Case>> all() {
  const std::vector<Tensor> table = {floats({2, 2}, {1, 2, 3, 4}), floats({3, 2}, {10, 20, 30, 40, 50, 60}), integers({1}, {2}),
                                     floats({1, 2}, {0, 0}), integers({2, 2}, {0, 2, 3, 1})};
  std::vector<Tensor> conv = table;
  conv.push_back(floats({1, 4}, {1, 10, 100, 1000}));
  std::vector<Tensor> biased = conv;
  biased.push_back(floats({1}, {0.5f}));
  std::vector<Tensor> tailed = biased;
  for (const Tensor& operand : {floats({1}, {1e-3f}), floats({2, 1}, {1, 2}), floats({1}, {0.01f}), floats({1}, {-0.25f})})
    tailed.push_back(operand);
  const float totals[] = {65021.5f * 1e-3f + 1, 4300.5f * 1e-3f + 2};
  const std::vector<Tensor> merge = {floats({3, 2}, {1, 2, 3, 4, 5, 6}), integers({1, 1}, {1}), floats({1, 2}, {7, 8})};
  // [1, 2] and [3, 4] times [[1, 2, 3], [4, 5, 6]].
  const std::vector<Tensor> linear = {floats({2, 2}, {1, 2, 3, 4}), floats({2, 3}, {1, 2, 3, 4, 5, 6})};
  const std::vector<Tensor> turned = {linear[0], floats({3, 2}, {1, 4, 2, 5, 3, 6}), floats({3}, {1, 0, -1}), floats({2, 3}, {0, 0, 0, 1, 1, 1})};
  // One group of two channels; of three cached rows with mean 2 and variance 1, the second becomes [5, 5].
  const std::vector<Tensor> norm = {floats({1, 2}, {5, 5}), floats({3, 2}, {1, 1, 2, 2, 3, 3}), integers({1}, {1}),
                                    floats({2, 1, 1}, {2, 1})};
  std::vector<Tensor> mapped = norm;
  mapped.push_back(floats({2}, {2, -1}));
  mapped.push_back(floats({2}, {1, 1}));
  const float mean = 3, variance = 1 + 9 * 2 / 6.0f - 1, normed = (5 - mean) / std::sqrt(variance + 1);
  const std::vector<std::vector<Dim>> of_conv = {{{4, 0}, {5, 0}}}, of_norm = {{{0, 0}, {0, 1}}, {{3, 0}, {3, 1}, {3, 2}}};
  // The middle one of two columns' three places, in both of two planes.
  const std::vector<Tensor> planes = {floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), integers({1}, {1}),
                                      floats({2, 1, 2}, {-1, -2, -3, -4})};
  Case inner = {planes, {{{0, 0}, {0, 1}, {0, 2}}}, {{1, 2, -1, -2, 5, 6, 7, 8, -3, -4, 11, 12}}};
  inner.aliased = 0;
  inner.integers = {{"axis", 1}, {"end", 2}};
  // One place of both axes together.
  Case outer = {{merge[0], integers({1}, {3}), floats({1}, {-1})}, {{{0, 0}, {0, 1}}}, {{1, 2, 3, -1, 5, 6}}};
  outer.aliased = 0;
  outer.integers = {{"axis", 0}, {"end", 2}};
  return {
      {"GatherRows", {table, {{{4, 0}, {4, 1}, {0, 1}}}, {{1, 2, 50, 60, 0, 0, 3, 4}}}},
      {"MaskedMerge", {merge, {{{0, 0}, {0, 1}}}, {{1, 2, 7, 8, 5, 6}}}},
      {"ScatterRows", inner},
      {"ScatterRows", outer},
      {"EditConv", {conv, of_conv, {{65021, 4300}}, kShared, -1, with_tail({{"biased", 0}}, 0, 0, 0, 0, 0)}},
      {"EditConv", {biased, of_conv, {{65021.5f, 4300.5f}}, kShared, -1, with_tail({{"biased", 1}}, 0, 0, 0, 0, 0)}},
      {"EditConv",
       {tailed, {of_conv[0], of_conv[0]}, {{silu(totals[0] * 0.01f - 0.25f), silu(totals[1] * 0.01f - 0.25f)}, {totals[0], totals[1]}}, kShared,
        -1, with_tail({{"biased", 1}}, 1, 1, 1, 1, 1)}},
      {"RowLinear",
       {linear, {{{0, 0}, {1, 1}}}, {{9, 12, 15, 19, 26, 33}}, kShared, -1, with_tail({{"transB", 0}, {"biased", 0}}, 0, 0, 0, 0, 0)}},
      {"RowLinear",
       {turned, {{{0, 0}, {1, 0}}}, {{10, 12, 14, 21, 27, 33}}, kShared, -1, with_tail({{"transB", 1}, {"biased", 1}}, 0, 1, 0, 0, 0)}},
      // Both keys are the same, so that the result is the mean of the values; the second one is laid over.
      {"EditAttention",
       {{floats({1, 2}, {1, 1}), floats({1, 2}, {1, 2}), floats({1, 3}, {4, 8, 1}), floats({2, 1, 2}, {1, 2, 3, 4}),
         floats({2, 1, 3}, {2, 4, 3, 6, 8, 9}), integers({1, 1}, {1})},
        {{{0, 0}, {4, 1, 2}}}, {{3, 6, 2}}, kShared + 8, -1, {}, {{"scale", 0.25f}}}},
      {"EditGroupNorm",
       {norm, of_norm, {{normed, normed}, {mean, variance}}, 0, -1, {{"groups", 1}, {"affine", 0}, {"activation", 0}},
        {{"share", 1 / 6.0f}, {"epsilon", 1.0f}}}},
      {"EditGroupNorm",
       {mapped, of_norm, {{silu(2 * normed + 1), silu(1 - normed)}, {mean, variance}}, 0, -1,
        {{"groups", 1}, {"affine", 1}, {"activation", 1}}, {{"share", 1 / 6.0f}, {"epsilon", 1.0f}}}},
  };
}

}  // namespace cases
