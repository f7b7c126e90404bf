// EditGroupNorm: a group norm whose moments follow what the active rows changed.
#include <algorithm>
#include <cmath>
#include <vector>

#include "api.h"
#include "cpu/instruction_set.h"
#include "kernels/column_operand.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

constexpr const char* kName = "EditGroupNorm";
constexpr size_t kOperands = 7;
/// Channels of all rows that one task sums; numbers that one task maps.
constexpr size_t kChannelsPerTask = 64;
constexpr size_t kNumbersPerTask = 16 << 10;

/// What the runtime hands over, checked.
struct Operands {
  Tensor rows, cached, index, moments;
  size_t groups = 0, channels = 0, count = 0;
  float share = 0, epsilon = 0;

  explicit Operands(const Context& context)
      : rows(context.input(0)), cached(context.input(1)), index(context.input(2)), moments(context.input(3)) {
    const Tensor grouping = context.input(4), given_share = context.input(5), given_epsilon = context.input(6);
    require(rows.shape.rank() == 2 || rows.shape.rank() == 3, kName, "rows [M, C] or [M, B, C]", rows);
    // The groups of several samples are so many more groups, of as many more channels.
    const int64_t samples = static_cast<int64_t>(samples_of(rows.shape)), width = rows.shape.count(1);
    Shape wanted = rows.shape;
    wanted.data()[0] = cached.shape.rank() == 0 ? 0 : cached.shape[0];
    require(cached.shape == wanted, kName, "cached with rows as those of " + rows.shape.text(), cached);
    require(index.shape == Shape{rows.shape[0]}, kName, "index [" + std::to_string(rows.shape[0]) + "]", index);
    require(moments.shape.rank() == 3 && moments.shape[0] == 2 && moments.shape[1] == samples, kName, "moments [2, " + std::to_string(samples) + ", G]", moments);
    require(grouping.shape == Shape{3}, kName, "grouping of three numbers", grouping);
    require(given_share.shape.count() == 1, kName, "a share of one number", given_share);
    require(given_epsilon.shape.count() == 1, kName, "an epsilon of one number", given_epsilon);
    const int64_t* sizes = grouping.as<int64_t>();
    const int64_t all = moments.shape.count(1);
    if (sizes[0] != samples || sizes[1] != moments.shape[2] || all <= 0 || sizes[2] <= 0 || width % all != 0 || width / all != sizes[2]) {
      throw Error(std::string(kName) + ": expected a grouping [" + std::to_string(samples) + ", " + std::to_string(moments.shape[2]) +
                  ", channels of a group] of " + std::to_string(width / std::max<int64_t>(samples, 1)) + " channels, got [" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " +
                  std::to_string(sizes[2]) + "]");
    }
    groups = static_cast<size_t>(all);
    channels = static_cast<size_t>(width);
    count = static_cast<size_t>(rows.shape[0]);
    share = given_share.as<float>()[0];
    epsilon = given_epsilon.as<float>()[0];
  }

  /// The cached rows that the rows stand for.
  std::vector<const char*> old() const {
    const int64_t size = cached.shape[0];
    std::vector<const char*> found(count);
    for (size_t i = 0; i < count; ++i) {
      const int64_t given = index.as<int64_t>()[i];
      if (given < -size || given >= size) {
        throw Error(std::string(kName) + ": expected every index to be from -" + std::to_string(size) + " to before " +
                    std::to_string(size) + ", got " + std::to_string(given));
      }
      found[i] = cached.as<char>() + static_cast<size_t>(given < 0 ? given + size : given) * channels * sizeof(float);
    }
    return found;
  }
};

class EditGroupNorm : public Kernel {
 public:
  explicit EditGroupNorm(const TailForm& tail) : tail_(tail) {}

  void compute(const Context& context) const override {
    const Operands given(context);
    std::vector<float> factor(given.channels), shift(given.channels);
    move(context, given, factor, shift);
    const TailCall call(kName, tail_, kOperands, context, given.rows.shape);
    Tail tail = call.tail();
    if (tail.factor) {
      const size_t own = given.channels / tail.samples;
      for (size_t c = 0; c < given.channels; ++c) {
        const float* more = tail.factor.of(c / own);
        shift[c] = shift[c] * more[c % own] + tail.shift.of(c / own)[c % own];
        factor[c] *= more[c % own];
      }
    }
    tail.factor = {factor.data(), 0};
    tail.shift = {shift.data(), 0};
    tail.samples = 1;
    const TailTile all{tail, given.rows.as<float>(), given.channels, nullptr, call.out(), given.channels, given.count, given.channels, 0};
    const size_t tasks = std::min(std::max<size_t>(given.count, 1), std::max<size_t>(1, given.count * given.channels / kNumbersPerTask));
    context.parallel_for(tasks, [&](size_t task) {
      const size_t begin = given.count * task / tasks, end = given.count * (task + 1) / tasks;
      instruction_set().finish(part_of(all, begin, end - begin, 0, given.channels));
    });
  }

 private:
  /// Writes the new moments, and what they multiply and shift every channel by.
  static void move(const Context& context, const Operands& given, std::vector<float>& factor, std::vector<float>& shift) {
    const size_t depth = given.channels / given.groups;
    const float* mean = given.moments.as<float>();
    const float* variance = mean + given.groups;
    std::vector<float> centre(given.channels), moved(given.channels), widened(given.channels);
    for (size_t c = 0; c < given.channels; ++c) centre[c] = 2 * mean[c / depth];
    const std::vector<const char*> old = given.old();
    context.parallel_for((given.channels + kChannelsPerTask - 1) / kChannelsPerTask, [&](size_t task) {
      const size_t first = task * kChannelsPerTask, width = std::min(kChannelsPerTask, given.channels - first);
      instruction_set().move_moments(
          {given.rows.as<float>(), old.data(), first, width, given.count, given.channels, centre.data(), moved.data(), widened.data()});
    });
    float* result = context.output(1, given.moments.shape, given.moments.type).as<float>();
    for (size_t g = 0; g < given.groups; ++g) {
      double first = 0, second = 0;
      for (size_t c = g * depth; c < (g + 1) * depth; ++c) {
        first += moved[c];
        second += widened[c];
      }
      first *= given.share;
      const float new_mean = static_cast<float>(mean[g] + first);
      const float new_variance = static_cast<float>(std::max(variance[g] + second * given.share - first * first, 0.0));
      const float scale = 1.0F / std::sqrt(new_variance + given.epsilon);
      std::fill_n(factor.begin() + static_cast<std::ptrdiff_t>(g * depth), depth, scale);
      std::fill_n(shift.begin() + static_cast<std::ptrdiff_t>(g * depth), depth, -new_mean * scale);
      if (result == nullptr) continue;
      result[g] = new_mean;
      result[given.groups + g] = new_variance;
    }
  }

  TailForm tail_;
};

bool claims(const Node& node, const TailForm& tail, bool batch) {
  constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kIndex = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  const std::vector<ValueType> types = node.input_types();
  if (types.size() < kOperands || !types[2].is(kIndex) || !types[4].is(kIndex)) return false;
  for (size_t i : {0, 1, 3, 5, 6}) {
    if (!types[i].is(kFloat)) return false;
  }
  return types[0].is_rows(batch) && tail.fits(types, kOperands, types[0].row());
}

}  // namespace

Op edit_group_norm(const TailForm& tail, bool batch) {
  return {(batch ? kBatch : "") + (kName + tail.name()), 0, [=](const Node& node) { return claims(node, tail, batch); },
          [tail](const Attributes&) { return std::make_unique<EditGroupNorm>(tail); }};
}

}  // namespace retouch
