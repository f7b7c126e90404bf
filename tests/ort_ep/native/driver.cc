// Runs every kernel over many shapes, and from several threads at once, and compares with loops that are easy to read.
//
// Built with sanitizers (`make test-native`): what matters here is that nothing is read or written out of bounds and that
// threads do not meet; the Python tests compare results with more references.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "api.h"
#include "cases.h"
#include "fuzz.h"
#include "kept_weights.h"
#include "stacks.h"

namespace {

using namespace retouch::fake;
using retouch::WeightStorage;

void test_convolution(int64_t rows, int64_t channels, int64_t columns, int64_t taps, WeightStorage storage = WeightStorage::kFloat32) {
  const int64_t cached = 30, halo = 11;
  const Value active = normal({rows, channels}), base = normal({cached, channels}), around = line(halo, cached);
  const Value pad = normal({1, channels}), neighbours = table(rows, taps, rows + halo + 1), weight = normal({columns, taps * channels});
  const Value bias = normal({columns}), residual = normal({rows, columns}), factor = normal({columns}), shift = normal({columns});
  const Operands inputs = {&active, &base, &around, &pad, &neighbours, &weight, &bias, &residual, &factor, &shift};
  const WeightStorage rows_as = rounds_rows(storage, taps, channels) ? storage : WeightStorage::kFloat32;
  const auto kernel = make("EditConvAddedKeptAffineSilu", inputs, {5}, {}, storage);
  const std::vector<Value> got = call_at_once(*kernel, inputs, 2);
  std::vector<double> sums, results;
  const int64_t* named = reinterpret_cast<const int64_t*>(neighbours.bytes.get());
  const int64_t* halo_rows = reinterpret_cast<const int64_t*>(around.bytes.get());
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      double sum = bias.floats()[n] + residual.floats()[m * columns + n];
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t row = named[m * taps + t];
        const float* from = row < rows          ? active.floats() + row * channels
                            : row < rows + halo ? base.floats() + halo_rows[row - rows] * channels
                                                : pad.floats();
        for (int64_t c = 0; c < channels; ++c) sum += as_kept(rows_as, from[c]) * as_kept(storage, weight.floats()[n * taps * channels + t * channels + c]);
      }
      sums.push_back(sum);
      results.push_back(silu(sum * factor.floats()[n] + shift.floats()[n]));
    }
  expect("EditConv, kept", got[1], sums);
  expect("EditConv", got[0], results, 1e-3);
}

/// The same for several samples, each with its own bias, factor and shift; `depthwise` leaves every channel to itself.
void test_batch(int64_t rows, int64_t samples, int64_t channels, int64_t columns, int64_t taps, bool depthwise) {
  const int64_t cached = 30, halo = 11;
  if (depthwise) columns = channels;
  const Value active = normal({rows, samples, channels}), base = normal({cached, samples, channels}), around = line(halo, cached);
  const Value pad = normal({1, samples, channels}), neighbours = table(rows, taps, rows + halo + 1);
  const Value weight = depthwise ? normal({taps, 1, channels}) : normal({columns, taps * channels});
  const Value bias = normal({samples, columns}), residual = normal({rows, samples, columns}), factor = normal({samples, columns}), shift = normal({columns});
  const Value form = Value::indices({3}, {-1, samples, columns});
  Operands inputs = {&active, &base, &around, &pad, &neighbours, &weight, &bias};
  if (!depthwise) inputs.push_back(&form);
  inputs.insert(inputs.end(), {&residual, &factor, &shift});
  const auto kernel = make(depthwise ? "BatchDepthwiseEditConvAddedAffineSilu" : "BatchEditConvAddedAffineSilu", inputs, {5});
  const std::vector<Value> got = call_at_once(*kernel, inputs, 1);
  std::vector<double> results;
  const int64_t* named = reinterpret_cast<const int64_t*>(neighbours.bytes.get());
  const int64_t* halo_rows = reinterpret_cast<const int64_t*>(around.bytes.get());
  for (int64_t r = 0; r < rows * samples; ++r)
    for (int64_t n = 0; n < columns; ++n) {
      const int64_t m = r / samples, b = r % samples;
      double sum = bias.floats()[b * columns + n] + residual.floats()[r * columns + n];
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t row = named[m * taps + t];
        const float* from = row < rows          ? active.floats() + row * samples * channels
                            : row < rows + halo ? base.floats() + halo_rows[row - rows] * samples * channels
                                                : pad.floats();
        from += b * channels;
        if (depthwise) {
          sum += static_cast<double>(from[n]) * weight.floats()[t * channels + n];
        } else {
          for (int64_t c = 0; c < channels; ++c) sum += static_cast<double>(from[c]) * weight.floats()[n * taps * channels + t * channels + c];
        }
      }
      results.push_back(silu(sum * factor.floats()[b * columns + n] + shift.floats()[n]));
    }
  expect(depthwise ? "BatchDepthwiseEditConv" : "BatchEditConv", got[0], results, 1e-3);
}

void test_linear(int64_t rows, int64_t depth, int64_t columns, WeightStorage storage = WeightStorage::kFloat32) {
  const Value given = normal({rows, depth}), weight = normal({depth, columns}), gate = normal({columns}), residual = normal({rows, columns});
  const Operands inputs = {&given, &weight, nullptr, &gate, &residual};
  const std::vector<Value> got = call_at_once(*make("RowLinearGatedAdded", inputs, {1}, {{"transB", 0}}, storage), inputs, 1);
  const WeightStorage rows_as = rounds_rows(storage, 1, depth) ? storage : WeightStorage::kFloat32;
  std::vector<double> wanted;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum += as_kept(rows_as, given.floats()[m * depth + k]) * as_kept(storage, weight.floats()[k * columns + n]);
      wanted.push_back(sum * gate.floats()[n] + residual.floats()[m * columns + n]);
    }
  expect("RowLinear", got[0], wanted);
}

void test_tokens(int64_t texts, int64_t rows, int64_t depth, int64_t columns) {
  const Value given = normal({texts, rows, depth}), weight = normal({depth, columns});
  const Operands inputs = {&given, &weight};
  const std::vector<Value> got = call_at_once(*make("TokenLinear", inputs, {1}), inputs, 1);
  std::vector<double> wanted;
  for (int64_t m = 0; m < texts * rows; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum += static_cast<double>(given.floats()[m * depth + k]) * weight.floats()[k * columns + n];
      wanted.push_back(sum);
    }
  expect("TokenLinear", got[0], wanted);
}

/// `shared` heads of queries read the same keys.
void test_attention(int64_t queries, int64_t keys, int64_t heads, int64_t depth, bool stacked, int64_t shared = 1) {
  const int64_t fresh = std::min<int64_t>(keys, 7);
  const Value query = normal({queries, heads * shared * depth}), key = normal({fresh, heads * depth}), value = normal({fresh, heads * depth});
  const Value cached_key = normal({keys, heads, depth}), cached_value = normal({keys, heads, depth}), scale = Value::numbers({}, {0.5F});
  const Value index = different(fresh, keys), bias = normal({queries, keys + fresh});
  const Operands inputs = {&query, &key, &value, &cached_key, &cached_value, stacked ? &bias : &index, &scale};
  const auto kernel = make(stacked ? "StackedAttention" : "EditAttention", inputs, {});
  const std::vector<Value> got = call_at_once(*kernel, inputs, 1);
  const int64_t width = heads * depth, length = stacked ? keys + fresh : keys;
  std::vector<const float*> from_keys, from_values;
  for (int64_t n = 0; n < length; ++n) {
    from_keys.push_back(n < keys ? cached_key.floats() + n * width : key.floats() + (n - keys) * width);
    from_values.push_back(n < keys ? cached_value.floats() + n * width : value.floats() + (n - keys) * width);
  }
  for (int64_t i = 0; !stacked && i < fresh; ++i) {
    const size_t place = static_cast<size_t>(reinterpret_cast<const int64_t*>(index.bytes.get())[i]);
    from_keys[place] = key.floats() + i * width;
    from_values[place] = value.floats() + i * width;
  }
  std::vector<double> wanted(static_cast<size_t>(queries * shared * width));
  for (int64_t row = 0; row < queries * heads * shared; ++row) {
    const int64_t m = row / (heads * shared), h = row % (heads * shared) / shared;
    std::vector<double> weights;
    double total = 0;
    for (int64_t n = 0; n < length; ++n) {
      double score = 0;
      for (int64_t d = 0; d < depth; ++d) score += static_cast<double>(query.floats()[row * depth + d]) * from_keys[n][h * depth + d];
      weights.push_back(std::exp(0.5 * score + (stacked ? bias.floats()[m * length + n] : 0)));
      total += weights.back();
    }
    for (int64_t d = 0; d < depth; ++d)
      for (int64_t n = 0; n < length; ++n) wanted[row * depth + d] += weights[n] / total * from_values[n][h * depth + d];
  }
  expect("attention", got[0], wanted);
}

void test_norm(int64_t rows, int64_t channels, int64_t groups) {
  const int64_t positions = rows + 9, depth = channels / groups;
  const Value given = normal({rows, channels}), cached = normal({positions, channels});
  std::vector<int64_t> named;
  for (int64_t i = 0; i < rows; ++i) named.push_back(i + 3);
  const Value chosen = Value::indices({rows}, named), grouping = Value::indices({3}, {1, groups, depth});
  const float share = 1.0F / static_cast<float>(positions * depth);
  const Value shares = Value::numbers({}, {share}), epsilon = Value::numbers({}, {1e-5F});
  Value moments = normal({2, 1, groups});
  for (int64_t g = 0; g < groups; ++g) moments.floats()[groups + g] = 5 + std::abs(moments.floats()[groups + g]);
  const Operands inputs = {&given, &cached, &chosen, &moments, &grouping, &shares, &epsilon};
  const std::vector<Value> got = call_at_once(*make("EditGroupNormSilu", inputs, {}), inputs, 2);
  std::vector<double> wanted(static_cast<size_t>(rows * channels)), moved(static_cast<size_t>(2 * groups));
  for (int64_t g = 0; g < groups; ++g) {
    double first = 0, second = 0;
    const double mean = moments.floats()[g];
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t c = g * depth; c < (g + 1) * depth; ++c) {
        const double x = given.floats()[m * channels + c], y = cached.floats()[named[static_cast<size_t>(m)] * channels + c];
        first += (x - y) * share;
        second += (x - y) * (x + y - 2 * mean) * share;
      }
    moved[static_cast<size_t>(g)] = mean + first;
    const double variance = moved[static_cast<size_t>(groups + g)] = std::max(0.0, moments.floats()[groups + g] + second - first * first);
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t c = g * depth; c < (g + 1) * depth; ++c)
        wanted[static_cast<size_t>(m * channels + c)] = silu((given.floats()[m * channels + c] - mean - first) / std::sqrt(variance + 1e-5));
  }
  expect("EditGroupNorm, moments", got[1], moved);
  expect("EditGroupNorm", got[0], wanted, 1e-3);
}

void test_rows(int64_t rows, int64_t channels) {
  const int64_t cached = rows + 5;
  const Value base = normal({cached, channels}), fresh = normal({rows, channels}), index = different(rows, cached);
  const Operands merge = {&base, &index, &fresh};
  std::vector<double> wanted(base.floats(), base.floats() + base.count());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < channels; ++c)
      wanted[static_cast<size_t>(reinterpret_cast<const int64_t*>(index.bytes.get())[i] * channels + c)] = fresh.floats()[i * channels + c];
  expect("MaskedMerge", call_at_once(*make("MaskedMerge", merge, {}), merge, 1)[0], wanted);
  const Value residual = normal({rows, channels});
  const Operands tail = {&fresh, &residual};
  wanted.clear();
  for (size_t i = 0; i < fresh.count(); ++i) {
    const double x = static_cast<double>(fresh.floats()[i]) + residual.floats()[i];
    wanted.push_back(0.5 * x * (1 + std::erf(x / std::sqrt(2.0))));
  }
  expect("Rows", call_at_once(*make("RowsAddedGelu", tail, {}), tail, 1)[0], wanted);
}

/// Operands that do not fit are an error, whoever calls.
void test_errors() {
  const Value base = normal({9, 4}), index = Value::indices({2, 1}, {0, 9}), rows = normal({2, 4});
  const Operands inputs = {&base, &index, &rows};
  const auto kernel = make("MaskedMerge", inputs, {});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      try {
        call(*kernel, inputs, 1);
        std::abort();
      } catch (const retouch::Error&) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Value nothing = normal({0, 4});
  try {
    make("RowLinear", {&rows, &nothing, nullptr}, {1});
    std::abort();
  } catch (const retouch::Error&) {
  }
}

}  // namespace

int main() {
  for (size_t threads : {1, 3}) {
    retouch::fake::start(threads);
    for (int64_t rows : {0, 1, 6, 7, 40, 70}) {
      for (int64_t channels : {1, 3, 16, 33}) {
        test_convolution(rows, channels, 5, 9);
        test_convolution(rows, channels, 70, 4);
        test_batch(rows, 2, channels, 21, 4, false);
        test_batch(rows, 3, channels, 21, 4, true);
        test_linear(rows, channels, 17);
        test_linear(rows, 300, channels);
        test_tokens(2, rows, channels, 17);
        test_rows(rows, channels);
      }
      for (int64_t groups : {1, 3}) test_norm(rows, 33, groups);
      for (int64_t keys : {1, 5, 70})
        for (bool stacked : {false, true}) test_attention(rows, keys, 2, 5, stacked);
      test_attention(rows, 130, 1, 33, false);
      for (bool stacked : {false, true}) test_attention(rows, 140, 2, 16, stacked, 3);
    }
    // Many rows of few columns, which threads share.
    test_convolution(300, 33, 40, 9);
    // Enough rows and columns for matrix instructions, where the CPU has them.
    test_convolution(130, 33, 130, 4);
    test_batch(70, 2, 33, 130, 4, false);
    test_linear(133, 300, 129);
    for (WeightStorage storage : {WeightStorage::kFloat16, WeightStorage::kBfloat16}) {
      for (int64_t rows : {0, 1, 6, 7, 40, 130}) {
        for (int64_t channels : {33, 34, 300}) test_convolution(rows, channels, 130, 4, storage);
        for (int64_t columns : {1, 9, 129}) test_linear(rows, 301, columns, storage);
      }
    }
    test_kept_weights();
    test_errors();
    test_stacks();
    test_sessions();
    if (threads == 1) fuzz(8);
  }
  std::puts("all kernels agree with their references");
  return 0;
}
