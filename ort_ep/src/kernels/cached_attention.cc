// EditAttention: active queries against cached keys and values, the recomputed ones in their places. StackedAttention: the
// recomputed ones of several edits behind the cached ones, and a bias that says which of them a query sees.
#include <algorithm>

#include "api.h"
#include "cpu/attention.h"
#include "kernels/ops.h"
#include "kernels/row_places.h"

namespace retouch {
namespace {

constexpr const char* kEdit = "EditAttention";
constexpr const char* kStacked = "StackedAttention";
constexpr size_t kFirstCached = 3;
/// The operand that says where the recomputed rows are, or who sees them.
constexpr size_t kPlaces = 5;
/// The most rows of a task, for all of which keys are turned once; fewer, but not less than those, where a thread would have
/// less tasks than that.
constexpr size_t kMostTaskRows = 256;
constexpr size_t kLeastTaskRows = 64;
constexpr size_t kTasksPerThread = 2;
/// Numbers of a task's results: so many stay at hand while its heads take turns.
constexpr size_t kSharedNumbers = 128 * 1024;

size_t divided_up(size_t a, size_t b) { return (a + b - 1) / b; }

using Table = std::vector<const char*>;

/// Appends the rows of a tensor [N, ..].
void append(Table& table, const Tensor& rows) {
  const size_t bytes = static_cast<size_t>(rows.shape.count(1)) * sizeof(float);
  for (size_t i = 0; i < static_cast<size_t>(rows.shape[0]); ++i) table.push_back(rows.as<char>() + i * bytes);
}

/// The cached rows, those that were recomputed instead of the cached ones.
Table overlaid(const Tensor& cached, const Tensor& rows, const Tensor& index) {
  Table table, fresh;
  append(table, cached);
  append(fresh, rows);
  const std::vector<size_t> places = rows_at(kEdit, index.as<int64_t>(), fresh.size(), cached.shape[0]);
  require_distinct(kEdit, places.data(), places.size(), table.size());
  for (size_t i = 0; i < fresh.size(); ++i) table[places[i]] = fresh[i];
  return table;
}

/// The cached rows, and the recomputed ones behind them.
Table joined(const Tensor& cached, const Tensor& rows) {
  Table table;
  append(table, cached);
  append(table, rows);
  return table;
}

void check_rows(const char* op, const char* name, const Tensor& rows, const Tensor& cached, int64_t count) {
  const Shape wanted{count, cached.shape.count(1)};
  require(rows.shape == wanted, op, std::string(name) + " " + wanted.text(), rows);
}

class CachedAttention : public Kernel {
 public:
  explicit CachedAttention(bool stacked) : stacked_(stacked), name_(stacked ? kStacked : kEdit) {}

  void compute(const Context& context) const override {
    const Tensor query = context.input(0), key = context.input(1), value = context.input(2);
    const Tensor cached_key = context.input(3), cached_value = context.input(4), places = context.input(kPlaces), scale = context.input(6);
    require(query.shape.rank() == 2, name_, "query [M, heads * depth]", query);
    require(cached_key.shape.rank() == 3 && cached_key.shape.count(1) > 0 && query.shape[1] % cached_key.shape.count(1) == 0, name_,
            "cached key [N, heads or a divisor of them, depth] for query " + query.shape.text(), cached_key);
    require(cached_value.shape.rank() == 3 && cached_value.shape[0] == cached_key.shape[0] && cached_value.shape[1] == cached_key.shape[1],
            name_, "cached value [N, heads, depth] for key " + cached_key.shape.text(), cached_value);
    require(places.shape.rank() == 2 && (stacked_ || places.shape[1] == 1), name_, stacked_ ? "bias [M, N + K]" : "index [K, 1]", places);
    require(scale.shape.count() == 1, name_, "a scale of one number", scale);
    const int64_t count = stacked_ ? places.shape[1] - cached_key.shape[0] : places.shape[0];
    check_rows(name_, "key", key, cached_key, count);
    check_rows(name_, "value", value, cached_value, count);
    require(!stacked_ || places.shape[0] == query.shape[0], name_, "bias with a row for every query of " + query.shape.text(), places);
    const Table keys = stacked_ ? joined(cached_key, key) : overlaid(cached_key, key, places);
    const Table values = stacked_ ? joined(cached_value, value) : overlaid(cached_value, value, places);
    const int64_t heads = query.shape[1] / cached_key.shape[2];
    const Tensor out = context.output(0, Shape{query.shape[0], heads * cached_value.shape[2]}, query.type);
    AttentionTile all{};
    all.queries = query.as<float>();
    all.query_stride = static_cast<size_t>(query.shape.count(1));
    all.depth = static_cast<size_t>(cached_key.shape[2]);
    all.value_depth = static_cast<size_t>(cached_value.shape[2]);
    all.keys = keys.data();
    all.values = values.data();
    all.length = keys.size();
    all.scale = scale.as<float>()[0];
    all.bias = stacked_ ? places.as<float>() : nullptr;
    all.bias_stride = keys.size();
    all.out = out.as<float>();
    all.out_stride = static_cast<size_t>(out.shape.count(1));
    const size_t key_heads = static_cast<size_t>(cached_key.shape[1]);
    all.shared = static_cast<size_t>(heads) / key_heads;
    run(context, all, static_cast<size_t>(query.shape[0]) * all.shared, key_heads);
  }

 private:
  /// Some of the rows that read one head of keys are a task, or those that read any: without other threads nothing is gained by
  /// more tasks, and whole rows of keys and values are read faster.
  static void run(const Context& context, const AttentionTile& all, size_t rows, size_t key_heads) {
    if (rows == 0 || key_heads == 0) return;
    const size_t threads = context.threads_for(rows * key_heads * all.length * (all.depth + all.value_depth));
    const size_t wanted = threads == 1 ? 1 : divided_up(threads * kTasksPerThread, key_heads);
    const size_t blocks = std::max(divided_up(rows, kMostTaskRows), std::min(divided_up(rows, kLeastTaskRows), wanted));
    const bool together = threads == 1 && divided_up(rows, blocks) * key_heads * all.value_depth <= kSharedNumbers;
    const size_t tasks = together ? 1 : key_heads;
    context.parallel_for(blocks * tasks, threads, [&](size_t task) {
      const size_t block = task / tasks, head = task % tasks;
      AttentionTile tile = all;
      tile.heads = key_heads / tasks;
      tile.whole_rows = tile.heads == key_heads;
      tile.begin = rows * block / blocks;
      tile.end = rows * (block + 1) / blocks;
      tile.queries += head * all.shared * all.depth;
      tile.key_offset = head * all.depth;
      tile.value_offset = head * all.value_depth;
      tile.out += head * all.shared * all.value_depth;
      attend(tile);
    });
  }

  bool stacked_;
  const char* name_;
};

bool claims(const std::vector<ValueType>& types) {
  for (size_t i = 0; i < kPlaces; ++i) {
    if (types[i].dims.size() != (i < kFirstCached ? 2 : 3)) return false;
  }
  return true;
}

Op attention(bool stacked) {
  return {stacked ? kStacked : kEdit, -1, [](const Node&, const std::vector<ValueType>& types) { return claims(types); },
          [stacked](const Attributes&) { return std::make_unique<CachedAttention>(stacked); }};
}

}  // namespace

Op edit_attention() { return attention(false); }

Op stacked_attention() { return attention(true); }

}  // namespace retouch
