// EditGroupNorm: a group norm whose moments follow what the active rows changed. StackedGroupNorm: the rows of several edits,
// every edit with moments of its own.
#include <algorithm>
#include <cmath>
#include <vector>

#include "api.h"
#include "cpu/instruction_set.h"
#include "kernels/column_operand.h"
#include "kernels/ops.h"
#include "kernels/row_places.h"

namespace retouch {
namespace {

constexpr const char* kEdit = "EditGroupNorm";
constexpr const char* kStacked = "StackedGroupNorm";
constexpr size_t kOwner = 7;
constexpr size_t kEdits = 8;
/// Channels of all rows that one task sums; numbers that one task maps.
constexpr size_t kChannelsPerTask = 64;
constexpr size_t kNumbersPerTask = 16 << 10;

const char* name_of(bool stacked) { return stacked ? kStacked : kEdit; }

/// The first operand of the tail.
size_t tail_operand(bool stacked) { return stacked ? kEdits + 1 : kOwner; }

/// Rows that follow each other and belong to the same edit.
struct Run {
  size_t begin, end, edit;
};

/// What the runtime hands over, checked.
struct Operands {
  const char* name;
  Tensor rows, cached, index, moments;
  size_t groups = 0, channels = 0, count = 0, edits = 1;
  float share = 0, epsilon = 0;
  std::vector<Run> runs;

  Operands(const Context& context, bool stacked)
      : name(name_of(stacked)), rows(context.input(0)), cached(context.input(1)), index(context.input(2)), moments(context.input(3)) {
    const Tensor grouping = context.input(4), given_share = context.input(5), given_epsilon = context.input(6);
    require(rows.shape.rank() == 2 || rows.shape.rank() == 3, name, "rows [M, C] or [M, B, C]", rows);
    // The groups of several samples are so many more groups, of as many more channels.
    const int64_t samples = static_cast<int64_t>(samples_of(rows.shape)), width = rows.shape.count(1);
    Shape wanted = rows.shape;
    wanted.data()[0] = cached.shape.rank() == 0 ? 0 : cached.shape[0];
    require(cached.shape == wanted, name, "cached with rows as those of " + rows.shape.text(), cached);
    require(index.shape == Shape{rows.shape[0]}, name, "index [" + std::to_string(rows.shape[0]) + "]", index);
    require(moments.shape.rank() == 3 && moments.shape[0] == 2 && moments.shape[1] == samples, name, "moments [2, " + std::to_string(samples) + ", G]", moments);
    require(grouping.shape == Shape{3}, name, "grouping of three numbers", grouping);
    require(given_share.shape.count() == 1, name, "a share of one number", given_share);
    require(given_epsilon.shape.count() == 1, name, "an epsilon of one number", given_epsilon);
    const int64_t* sizes = grouping.as<int64_t>();
    const int64_t all = moments.shape.count(1);
    if (sizes[0] != samples || sizes[1] != moments.shape[2] || all <= 0 || sizes[2] <= 0 || width % all != 0 || width / all != sizes[2]) {
      throw Error(std::string(name) + ": expected a grouping [" + std::to_string(samples) + ", " + std::to_string(moments.shape[2]) +
                  ", channels of a group] of " + std::to_string(width / std::max<int64_t>(samples, 1)) + " channels, got [" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " +
                  std::to_string(sizes[2]) + "]");
    }
    groups = static_cast<size_t>(all);
    channels = static_cast<size_t>(width);
    count = static_cast<size_t>(rows.shape[0]);
    share = given_share.as<float>()[0];
    epsilon = given_epsilon.as<float>()[0];
    if (stacked) {
      read_owners(context.input(kOwner), context.input(kEdits));
    } else if (count > 0) {
      runs.push_back({0, count, 0});
    }
  }

  /// The cached rows that the rows stand for.
  std::vector<const char*> old() const {
    const std::vector<size_t> places = rows_at(name, index.as<int64_t>(), count, cached.shape[0]);
    for (const Run& run : runs) require_distinct(name, places.data() + run.begin, run.end - run.begin, static_cast<size_t>(cached.shape[0]));
    std::vector<const char*> found(count);
    for (size_t i = 0; i < count; ++i) found[i] = cached.as<char>() + places[i] * channels * sizeof(float);
    return found;
  }

 private:
  void read_owners(const Tensor& owner, const Tensor& counted) {
    require(owner.shape == Shape{rows.shape[0]}, name, "owner [" + std::to_string(rows.shape[0]) + "]", owner);
    require(counted.shape.rank() == 1, name, "edits [E]", counted);
    edits = static_cast<size_t>(counted.shape[0]);
    for (size_t i = 0; i < edits; ++i) {
      if (counted.as<int64_t>()[i] != static_cast<int64_t>(i)) throw Error(std::string(name) + ": expected edits to count from 0");
    }
    for (size_t i = 0; i < count; ++i) {
      const int64_t given = owner.as<int64_t>()[i];
      if (given < 0 || given >= counted.shape[0]) {
        throw Error(std::string(name) + ": expected every owner to be from 0 to before " + std::to_string(edits) + ", got " + std::to_string(given));
      }
      const size_t edit = static_cast<size_t>(given);
      if (runs.empty() || runs.back().edit != edit) runs.push_back({i, i, edit});
      ++runs.back().end;
    }
  }
};

/// What the channels of every edit are multiplied and shifted by.
struct Maps {
  std::vector<float> factor, shift;
  size_t channels;

  explicit Maps(const Operands& given) : factor(given.edits * given.channels), shift(factor.size()), channels(given.channels) {}

  /// Puts the affine map of a tail behind them.
  void follow_by(const Tail& tail) {
    const size_t own = channels / tail.samples;
    for (size_t i = 0; i < factor.size(); ++i) {
      const size_t c = i % channels;
      const float more = tail.factor.of(c / own)[c % own];
      shift[i] = shift[i] * more + tail.shift.of(c / own)[c % own];
      factor[i] *= more;
    }
  }
};

/// The sums over the rows of every run that move the moments, per run and channel.
struct Sums {
  std::vector<float> moved, widened;

  Sums(const Context& context, const Operands& given) : moved(given.runs.size() * given.channels), widened(moved.size()) {
    const size_t channels = given.channels, parts = (channels + kChannelsPerTask - 1) / kChannelsPerTask;
    std::vector<float> centre(channels);
    for (size_t c = 0; c < channels; ++c) centre[c] = 2 * given.moments.as<float>()[c / (channels / given.groups)];
    const std::vector<const char*> old = given.old();
    context.parallel_for(given.runs.size() * parts, [&](size_t task) {
      const Run& run = given.runs[task / parts];
      const size_t first = task % parts * kChannelsPerTask, place = task / parts * channels;
      instruction_set().move_moments({given.rows.as<float>() + run.begin * channels, old.data() + run.begin, first, std::min(kChannelsPerTask, channels - first),
                                      run.end - run.begin, channels, centre.data(), moved.data() + place, widened.data() + place});
    });
  }
};

class EditGroupNorm : public Kernel {
 public:
  EditGroupNorm(const TailForm& tail, bool stacked) : tail_(tail), stacked_(stacked) {}

  void compute(const Context& context) const override {
    const Operands given(context, stacked_);
    Maps maps(given);
    move(context, given, stacked_, maps);
    const TailCall call(given.name, tail_, tail_operand(stacked_), context, given.rows.shape);
    if (call.tail().factor) maps.follow_by(call.tail());
    map(context, given, maps, call);
  }

 private:
  /// Writes the new moments, unless they are those of several edits, and what they multiply and shift every channel by.
  static void move(const Context& context, const Operands& given, bool stacked, Maps& maps) {
    const size_t groups = given.groups, depth = given.channels / groups;
    const Sums sums(context, given);
    std::vector<double> first(given.edits * groups), second(first.size());
    for (size_t run = 0; run < given.runs.size(); ++run)
      for (size_t c = 0; c < given.channels; ++c) {
        first[given.runs[run].edit * groups + c / depth] += sums.moved[run * given.channels + c];
        second[given.runs[run].edit * groups + c / depth] += sums.widened[run * given.channels + c];
      }
    const float* mean = given.moments.as<float>();
    float* result = stacked ? nullptr : context.output(1, given.moments.shape, given.moments.type).as<float>();
    for (size_t i = 0; i < first.size(); ++i) {
      const size_t g = i % groups;
      const double moved = first[i] * given.share;
      const float new_mean = static_cast<float>(mean[g] + moved);
      const float new_variance = static_cast<float>(std::max(mean[groups + g] + second[i] * given.share - moved * moved, 0.0));
      const float scale = 1.0F / std::sqrt(new_variance + given.epsilon);
      std::fill_n(maps.factor.begin() + static_cast<std::ptrdiff_t>(i * depth), depth, scale);
      std::fill_n(maps.shift.begin() + static_cast<std::ptrdiff_t>(i * depth), depth, -new_mean * scale);
      if (result == nullptr) continue;
      result[g] = new_mean;
      result[groups + g] = new_variance;
    }
  }

  static void map(const Context& context, const Operands& given, const Maps& maps, const TailCall& call) {
    const size_t channels = given.channels, most = std::max<size_t>(1, kNumbersPerTask / channels);
    std::vector<Run> parts;
    for (const Run& run : given.runs)
      for (size_t begin = run.begin; begin < run.end; begin += most) parts.push_back({begin, std::min(begin + most, run.end), run.edit});
    Tail tail = call.tail();
    tail.samples = 1;
    context.parallel_for(parts.size(), [&](size_t task) {
      const Run& part = parts[task];
      TailTile tile{tail, given.rows.as<float>(), channels, nullptr, call.out(), channels, given.count, channels, 0};
      tile.tail.factor = {maps.factor.data() + part.edit * channels, 0};
      tile.tail.shift = {maps.shift.data() + part.edit * channels, 0};
      instruction_set().finish(part_of(tile, part.begin, part.end - part.begin, 0, channels));
    });
  }

  TailForm tail_;
  bool stacked_;
};

bool claims(const std::vector<ValueType>& types, const TailForm& tail, bool batch, bool stacked) {
  return types[0].is_rows(batch) && tail.fits(types, tail_operand(stacked), types[0].row());
}

}  // namespace

Op edit_group_norm(const TailForm& tail, bool batch, bool stacked) {
  return {(batch ? kBatch : "") + (name_of(stacked) + tail.name()), 0, [=](const Node&, const std::vector<ValueType>& types) { return claims(types, tail, batch, stacked); },
          [=](const Attributes&) { return std::make_unique<EditGroupNorm>(tail, stacked); }};
}

}  // namespace retouch
