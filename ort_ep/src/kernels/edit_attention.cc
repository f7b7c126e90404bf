// EditAttention: active queries against cached keys and values, the recomputed ones in their places.
#include <memory>

#include "api.h"
#include "cpu/instruction_set.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

constexpr const char* kName = "EditAttention";

/// The rows of a cached tensor [N, heads, depth], those that were recomputed instead of the cached ones.
std::vector<const char*> overlaid(const Tensor& cached, const Tensor& rows, const Tensor& index) {
  const size_t bytes = static_cast<size_t>(cached.shape.count(1)) * sizeof(float);
  const int64_t size = cached.shape[0];
  std::vector<const char*> table(static_cast<size_t>(size));
  for (size_t i = 0; i < table.size(); ++i) table[i] = cached.as<char>() + i * bytes;
  for (int64_t i = 0; i < index.shape[0]; ++i) {
    const int64_t given = index.as<int64_t>()[i];
    if (given < -size || given >= size) {
      throw Error(std::string(kName) + ": expected every index to be from -" + std::to_string(size) + " to before " + std::to_string(size) +
                  ", got " + std::to_string(given));
    }
    table[static_cast<size_t>(given < 0 ? given + size : given)] = rows.as<char>() + static_cast<size_t>(i) * bytes;
  }
  return table;
}

void check_rows(const char* name, const Tensor& rows, const Tensor& cached, const Tensor& index, int64_t heads) {
  const Shape wanted{index.shape[0], heads, cached.shape[2]};
  require(rows.shape == wanted, kName, std::string(name) + " " + wanted.text(), rows);
}

class EditAttention : public Kernel {
 public:
  void compute(const Context& context) const override {
    const Tensor query = context.input(0), key = context.input(1), value = context.input(2);
    const Tensor cached_key = context.input(3), cached_value = context.input(4), index = context.input(5), scale = context.input(6);
    require(query.shape.rank() == 3, kName, "query [M, heads, depth]", query);
    require(cached_key.shape.rank() == 3 && cached_key.shape[2] == query.shape[2] && cached_key.shape[1] >= 1 &&
                query.shape[1] % cached_key.shape[1] == 0,
            kName, "cached key [N, heads or a divisor of them, depth] for query " + query.shape.text(), cached_key);
    require(cached_value.shape.rank() == 3 && cached_value.shape[0] == cached_key.shape[0] && cached_value.shape[1] == cached_key.shape[1],
            kName, "cached value [N, heads, depth] for key " + cached_key.shape.text(), cached_value);
    require(index.shape.rank() == 2 && index.shape[1] == 1, kName, "index [K, 1]", index);
    require(scale.shape.count() == 1, kName, "a scale of one number", scale);
    check_rows("key", key, cached_key, index, cached_key.shape[1]);
    check_rows("value", value, cached_value, index, cached_key.shape[1]);
    const std::vector<const char*> keys = overlaid(cached_key, key, index), values = overlaid(cached_value, value, index);
    const Tensor out = context.output(0, Shape{query.shape[0], query.shape[1], cached_value.shape[2]}, query.type);
    AttentionTile all{};
    all.queries = query.as<float>();
    all.query_stride = static_cast<size_t>(query.shape.count(1));
    all.count = static_cast<size_t>(query.shape[0]);
    all.depth = static_cast<size_t>(query.shape[2]);
    all.value_depth = static_cast<size_t>(cached_value.shape[2]);
    all.keys = keys.data();
    all.values = values.data();
    all.length = keys.size();
    all.scale = scale.as<float>()[0];
    all.out = out.as<float>();
    all.out_stride = static_cast<size_t>(out.shape.count(1));
    attend(context, all, static_cast<size_t>(query.shape[1]), static_cast<size_t>(cached_key.shape[1]));
  }

 private:
  /// Every head of a block of queries is a task.
  static void attend(const Context& context, const AttentionTile& all, size_t heads, size_t key_heads) {
    const InstructionSet& set = instruction_set();
    const size_t most = set.query_vectors * set.lanes, blocks = (all.count + most - 1) / most;
    context.parallel_for(blocks * heads, [&](size_t task) {
      const size_t block = task / heads, head = task % heads, own = head / (heads / key_heads);
      const size_t begin = all.count * block / blocks, end = all.count * (block + 1) / blocks;
      const size_t vectors = (end - begin + set.lanes - 1) / set.lanes;
      const std::unique_ptr<float[]> scratch(new float[attention_scratch(vectors * set.lanes, all.depth, all.value_depth)]);
      AttentionTile tile = all;
      tile.queries += begin * all.query_stride + head * all.depth;
      tile.count = end - begin;
      tile.key_offset = own * all.depth;
      tile.value_offset = own * all.value_depth;
      tile.out += begin * all.out_stride + head * all.value_depth;
      tile.scratch = scratch.get();
      set.attend[vectors - 1](tile);
    });
  }
};

bool claims(const Node& node) {
  constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  const std::vector<ValueType> types = node.input_types();
  if (types.size() != 7 || !types[5].is(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64)) return false;
  for (size_t i : {0, 1, 2, 3, 4}) {
    if (!types[i].is(kFloat) || types[i].dims.size() != 3) return false;
  }
  return types[6].is(kFloat);
}

}  // namespace

Op edit_attention() {
  return {kName, -1, claims, [](const Attributes&) { return std::make_unique<EditAttention>(); }};
}

}  // namespace retouch
