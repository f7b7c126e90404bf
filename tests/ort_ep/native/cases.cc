#include "cases.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

namespace retouch::fake {
namespace {

std::mt19937 g_random(1);

}  // namespace

int64_t below(int64_t limit) { return std::uniform_int_distribution<int64_t>(0, limit - 1)(g_random); }

Value normal(std::vector<int64_t> dims) {
  Value value = Value::of(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, std::move(dims));
  std::normal_distribution<float> distribution;
  for (size_t i = 0; i < value.count(); ++i) value.floats()[i] = distribution(g_random);
  return value;
}

Value table(int64_t count, int64_t width, int64_t limit) {
  std::vector<int64_t> content;
  for (int64_t i = 0; i < count * width; ++i) content.push_back(below(limit));
  return Value::indices({count, width}, content);
}

Value line(int64_t count, int64_t limit) {
  Value value = table(count, 1, limit);
  value.dims = {count};
  return value;
}

Value different(int64_t count, int64_t limit) {
  std::vector<int64_t> all(static_cast<size_t>(limit));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), g_random);
  all.resize(static_cast<size_t>(count));
  return Value::indices({count, 1}, all);
}

void expect(const char* what, const Value& got, const std::vector<double>& wanted, double tolerance) {
  bool fits = got.count() == wanted.size();
  for (size_t i = 0; fits && i < wanted.size(); ++i) fits = std::abs(got.floats()[i] - wanted[i]) <= tolerance * (1 + std::abs(wanted[i]));
  if (fits) return;
  std::fprintf(stderr, "%s: results differ\n", what);
  std::exit(1);
}

std::vector<Value> call_at_once(const Kernel& kernel, const Operands& inputs, size_t results) {
  std::vector<std::vector<Value>> got(3);
  std::vector<std::thread> threads;
  for (std::vector<Value>& one : got) threads.emplace_back([&] { one = call(kernel, inputs, results); });
  for (std::thread& thread : threads) thread.join();
  for (size_t r = 0; r < results; ++r) {
    const size_t bytes = got[0][r].count() * sizeof(float);
    if (bytes != 0 && std::memcmp(got[0][r].bytes.get(), got[1][r].bytes.get(), bytes) != 0) {
      std::fprintf(stderr, "threads do not agree\n");
      std::exit(1);
    }
  }
  return std::move(got[0]);
}

}  // namespace retouch::fake
