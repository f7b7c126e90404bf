#include "stacks.h"

#include <thread>

#include "cases.h"

namespace retouch::fake {
namespace {

void test_scatter(int64_t lead, int64_t size, int64_t rest, int64_t rows) {
  const Value base = normal({lead, size, rest}), fresh = normal({lead, rows, rest});
  Value index = different(rows, size);
  index.dims = {rows};
  const Operands inputs = {&base, &index, &fresh};
  std::vector<double> wanted(base.floats(), base.floats() + base.count());
  for (int64_t l = 0; l < lead; ++l)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t r = 0; r < rest; ++r) wanted[static_cast<size_t>((l * size + numbers_of(index)[i]) * rest + r)] = fresh.floats()[(l * rows + i) * rest + r];
  expect("ScatterRows", call_at_once(*make("ScatterRows", inputs, {}, {{"axis", 1}, {"end", 2}}), inputs, 1)[0], wanted);
}

void test_groups(int64_t rows, int64_t groups, int64_t depth, int64_t width, int64_t taps) {
  const int64_t channels = groups * depth, columns = groups * width;
  const Value active = normal({rows, channels}), base = normal({30, channels}), around = line(11, 30), pad = normal({1, channels});
  const Value neighbours = table(rows, taps, rows + 12), weight = normal({columns, taps * depth}), bias = normal({columns}), residual = normal({rows, columns});
  const Operands inputs = {&active, &base, &around, &pad, &neighbours, &weight, &bias, &residual};
  const std::vector<Value> got = call_at_once(*make("GroupedEditConvAddedSilu", inputs, {5}, {{"groups", groups}}), inputs, 1);
  std::vector<double> wanted;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      double sum = bias.floats()[n] + residual.floats()[m * columns + n];
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t row = numbers_of(neighbours)[m * taps + t];
        const float* from = row < rows        ? active.floats() + row * channels
                            : row < rows + 11 ? base.floats() + numbers_of(around)[row - rows] * channels
                                              : pad.floats();
        for (int64_t c = 0; c < depth; ++c) sum += static_cast<double>(from[n / width * depth + c]) * weight.floats()[n * taps * depth + t * depth + c];
      }
      wanted.push_back(silu(sum));
    }
  expect("GroupedEditConv", got[0], wanted, 1e-3);
}

/// Rows of edits that take turns; every edit as the norm of one edit computes it.
void test_norms(int64_t rows, int64_t channels, int64_t groups, int64_t edits) {
  const int64_t positions = rows + 9, depth = channels / groups;
  const Value given = normal({rows, channels}), cached = normal({positions, channels}), grouping = Value::indices({3}, {1, groups, depth});
  const Value share = Value::numbers({}, {1.0F / static_cast<float>(positions * depth)}), epsilon = Value::numbers({}, {1e-5F});
  Value moments = normal({2, 1, groups});
  for (int64_t g = 0; g < groups; ++g) moments.floats()[groups + g] = 5 + std::abs(moments.floats()[groups + g]);
  std::vector<int64_t> index, owner, counted;
  for (int64_t i = 0; i < rows; ++i) {
    index.push_back(i + 3);
    owner.push_back(i % edits);
  }
  for (int64_t e = 0; e < edits; ++e) counted.push_back(e);
  const Value indices = Value::indices({rows}, index), owners = Value::indices({rows}, owner), all = Value::indices({edits}, counted);
  const Operands inputs = {&given, &cached, &indices, &moments, &grouping, &share, &epsilon, &owners, &all};
  const std::vector<Value> got = call_at_once(*make("StackedGroupNormSilu", inputs, {}), inputs, 1);
  std::vector<double> wanted(static_cast<size_t>(rows * channels));
  for (int64_t e = 0; e < edits; ++e) {
    std::vector<int64_t> own;
    std::vector<float> values;
    for (int64_t i = e; i < rows; i += edits) {
      own.push_back(index[static_cast<size_t>(i)]);
      values.insert(values.end(), given.floats() + i * channels, given.floats() + (i + 1) * channels);
    }
    const int64_t count = static_cast<int64_t>(own.size());
    const Value part = Value::numbers({count, channels}, values), places = Value::indices({count}, own);
    const Operands alone = {&part, &cached, &places, &moments, &grouping, &share, &epsilon};
    const std::vector<Value> expected = call(*make("EditGroupNormSilu", alone, {}), alone, 2);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t c = 0; c < channels; ++c) wanted[static_cast<size_t>((e + i * edits) * channels + c)] = expected[0].floats()[i * channels + c];
  }
  expect("StackedGroupNorm", got[0], wanted, 1e-5);
}

}  // namespace

void test_stacks() {
  for (int64_t rows : {0, 1, 7, 40}) {
    for (int64_t rest : {1, 5}) test_scatter(3, 41, rest, rows);
    test_groups(rows, 2, 5, 3, 9);
    test_groups(rows, 3, 17, 33, 4);
    for (int64_t edits : {1, 3}) test_norms(rows, 66, 3, edits);
  }
}

void test_sessions() {
  const Value rows = normal({9, 24}), cached = normal({30, 24}), halo = line(11, 30), pad = normal({1, 24}), neighbours = table(9, 9, 21);
  const Value weight = normal({40, 216}), bias = normal({40});
  const Operands inputs = {&rows, &cached, &halo, &pad, &neighbours, &weight, &bias};
  const std::vector<Value> first = call(*make("EditConv", inputs, {5}), inputs, 1);
  const std::vector<double> wanted(first[0].floats(), first[0].floats() + first[0].count());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int session = 0; session < 5; ++session) expect("a session of its own", call(*make("EditConv", inputs, {5}), inputs, 1)[0], wanted, 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace retouch::fake
