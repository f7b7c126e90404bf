#include "fuzz.h"

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>

#include "api.h"
#include "cases.h"
#include "kernels/ops.h"

namespace retouch::fake {
namespace {

constexpr int64_t kRows = 5, kPositions = 12, kHalo = 3, kSamples = 2, kChannels = 6, kColumns = 8, kTaps = 4, kGroups = 2;

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// Operands that fit, in the order of the operator.
class Fitting {
 public:
  explicit Fitting(const std::string& name) : name_(name), batch_(name.rfind("Batch", 0) == 0) {
    if (contains(name, "Attention")) {
      attention();
    } else if (name == "MaskedMerge" || name == "ScatterRows") {
      values_.push_back(normal({kPositions, kChannels}));
      values_.push_back(chosen(name == "MaskedMerge"));
      values_.push_back(normal({kRows, kChannels}));
    } else if (name == "GroupMoments") {
      values_.push_back(normal({kSamples, kChannels, kPositions + below(20)}));
      values_.push_back(Value::indices({4}, {kSamples, kGroups, -1, 7}));
    } else if (name == "MomentAffine") {
      values_.push_back(normal({2, kSamples, kGroups}));
      values_.push_back(Value::indices({3}, {kSamples, kGroups, kChannels / kGroups}));
      values_.push_back(normal({}));
      values_.push_back(Value::indices({2}, {kSamples, kChannels}));
    } else if (contains(name, "GroupNorm")) {
      norm();
      tail(kChannels);
    } else if (name == "TokenLinear") {
      add({{kSamples, kRows, kChannels}, {kChannels, kColumns}});
    } else if (contains(name, "Linear")) {
      add({row({kRows}, kChannels), {kChannels, kColumns}, {kColumns}});
      if (batch_) values_.push_back(form());
      tail(kColumns);
    } else if (contains(name, "Conv") || name == "GatherRows") {
      convolution();
    } else {
      values_.push_back(normal(row({kRows}, kChannels)));
      tail(kChannels);
    }
  }

  std::vector<Value> take() { return std::move(values_); }

 private:
  std::vector<int64_t> row(std::vector<int64_t> lead, int64_t columns) const {
    if (batch_) lead.push_back(kSamples);
    lead.push_back(columns);
    return lead;
  }

  void add(std::initializer_list<std::vector<int64_t>> all) {
    for (const std::vector<int64_t>& dims : all) values_.push_back(normal(dims));
  }

  static Value chosen(bool column) {
    Value index = different(kRows, kPositions);
    if (!column) index.dims = {kRows};
    return index;
  }

  static Value form() { return Value::indices({3}, {-1, kSamples, kColumns}); }

  void attention() {
    for (int i = 0; i < 3; ++i) values_.push_back(normal({kRows, kChannels}));
    for (int i = 0; i < 2; ++i) values_.push_back(normal({kPositions, 2, kChannels / 2}));
    values_.push_back(name_ == "StackedAttention" ? normal({kRows, kPositions + kRows}) : chosen(true));
    values_.push_back(normal({}));
  }

  void norm() {
    add({row({kRows}, kChannels), row({kPositions}, kChannels)});
    values_.push_back(chosen(false));
    values_.push_back(normal({2, batch_ ? kSamples : 1, kGroups}));
    values_.push_back(Value::indices({3}, {batch_ ? kSamples : 1, kGroups, kChannels / kGroups}));
    for (int i = 0; i < 2; ++i) values_.push_back(normal({}));
    if (!contains(name_, "Stacked")) return;
    values_.push_back(Value::indices({kRows}, {0, 0, 1, 2, 2}));
    values_.push_back(Value::indices({3}, {0, 1, 2}));
  }

  void convolution() {
    add({row({kRows}, kChannels), row({kPositions}, kChannels)});
    values_.push_back(line(kHalo, kPositions));
    values_.push_back(normal(row({1}, kChannels)));
    values_.push_back(table(kRows, kTaps, kRows + kHalo + 1));
    if (name_ == "GatherRows") return;
    const bool depthwise = contains(name_, "Depthwise"), grouped = contains(name_, "Grouped");
    const int64_t columns = depthwise ? kChannels : kColumns;
    values_.push_back(depthwise ? normal({kTaps, kChannels}) : normal({kColumns, kTaps * kChannels / (grouped ? kGroups : 1)}));
    values_.push_back(normal({columns}));
    if (batch_ && !depthwise) values_.push_back(form());
    tail(columns);
  }

  void tail(int64_t columns) {
    if (contains(name_, "Gated")) values_.push_back(normal({columns}));
    if (contains(name_, "Added")) values_.push_back(normal(row({kRows}, columns)));
    if (contains(name_, "Affine")) add({{columns}, {columns}});
  }

  std::string name_;
  bool batch_;
  std::vector<Value> values_;
};

Value of_kind(Kind kind, std::vector<int64_t> dims) {
  if (kind != Kind::kIndex) return normal(std::move(dims));
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  Value value = line(count, kPositions);
  value.dims = std::move(dims);
  return value;
}

/// Another shape, another number where there are indices, or other axes in another order.
void spoil(Value& value, Kind kind) {
  constexpr int64_t kOdd[] = {-1, kPositions, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), 1000};
  std::vector<int64_t> dims = value.dims;
  const int64_t way = below(kind == Kind::kIndex ? 5 : 4);
  if (way == 4 && value.count() > 0) {
    reinterpret_cast<int64_t*>(value.bytes.get())[below(static_cast<int64_t>(value.count()))] = kOdd[below(5)];
    return;
  }
  if (way == 0) dims.push_back(below(3));
  if (way == 1 && !dims.empty()) dims.pop_back();
  if (way >= 2) {
    if (dims.empty()) dims.push_back(2);
    dims[static_cast<size_t>(below(static_cast<int64_t>(dims.size())))] = below(9);
  }
  value = of_kind(kind, dims);
}

std::map<std::string, int64_t> attributes(bool odd) {
  std::map<std::string, int64_t> all = {{"transB", 0}, {"groups", kGroups}, {"axis", 0}, {"end", 1}};
  if (odd) {
    for (auto& [name, value] : all) value = below(2) == 0 ? value : below(7) - 2;
  }
  return all;
}

}  // namespace

void fuzz(int rounds) {
  size_t refused = 0, computed = 0;
  for (const Op& op : ops())
    for (int round = 0; round < rounds; ++round) {
      std::vector<Value> values = Fitting(op.name).take();
      if (values.size() != op.signature.inputs.size()) {
        std::fprintf(stderr, "%s: %zu operands are expected\n", op.name.c_str(), op.signature.inputs.size());
        std::exit(1);
      }
      const size_t spoilt = static_cast<size_t>(below(static_cast<int64_t>(values.size())));
      if (round > 0) spoil(values[spoilt], op.signature.inputs[spoilt].kind);
      Operands inputs;
      for (const Value& value : values) inputs.push_back(&value);
      if (op.signature.inputs[spoilt].optional && below(2) == 0) inputs[spoilt] = nullptr;
      try {
        const bool packed = below(2) == 0 && values.size() > 5;
        const size_t weight = contains(op.name, "Linear") ? 1 : 5;
        call(*make(op.name, inputs, packed ? std::vector<size_t>{weight} : std::vector<size_t>{}, attributes(round > 1 && below(3) == 0)), inputs, op.signature.results);
        ++computed;
      } catch (const Error&) {
        ++refused;
        if (round == 0) {
          std::fprintf(stderr, "%s: operands that fit are refused\n", op.name.c_str());
          std::exit(1);
        }
      }
    }
  std::printf("fuzzed: %zu calls computed, %zu refused\n", computed, refused);
}

}  // namespace retouch::fake
