// GroupMoments: mean and variance of every group of channels, in one pass over what the caches hold.
#include <algorithm>
#include <vector>

#include "api.h"
#include "cpu/instruction_set.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

constexpr const char* kName = "GroupMoments";
/// Numbers that are summed in single precision: few enough for that, and in the first cache when they are read again.
constexpr size_t kRun = 512;
/// Numbers that are worth a task of their own.
constexpr size_t kNumbersPerTask = 64 << 10;

/// Mean and variance by the updating formulae of Chan, Golub and LeVeque, 1979.
struct Moments {
  double mean = 0, squares = 0;
  size_t count = 0;

  void add(const Spread& run, size_t length) {
    const double before = static_cast<double>(count), more = static_cast<double>(length), after = before + more;
    const double off = run.mean - mean;
    mean += off * more / after;
    squares += run.squares + off * off * before * more / after;
    count += length;
  }
};

class GroupMoments : public Kernel {
 public:
  void compute(const Context& context) const override {
    const Tensor value = context.input(0), runs = context.input(1);
    require(runs.shape == Shape{4}, kName, "runs of four numbers", runs);
    const int64_t* sizes = runs.as<int64_t>();
    const Shape result{2, sizes[0], sizes[1]};
    const int64_t groups = result.is_possible() ? result.count(1) : 0;
    if (groups <= 0 || value.shape.count() <= 0 || value.shape.count() % groups != 0) {
      throw Error(std::string(kName) + ": expected runs [B, G, -1, L] that split the " + std::to_string(value.shape.count()) +
                  " numbers of value into B times G groups, got [" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " +
                  std::to_string(sizes[2]) + ", " + std::to_string(sizes[3]) + "]");
    }
    const size_t all = static_cast<size_t>(groups), size = static_cast<size_t>(value.shape.count() / groups);
    float* mean = context.output(0, result, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT).as<float>();
    const size_t tasks = std::min(all, std::max<size_t>(1, all * size / kNumbersPerTask));
    context.parallel_for(tasks, [&](size_t task) {
      for (size_t group = all * task / tasks; group < all * (task + 1) / tasks; ++group) {
        const Moments found = moments(value.as<float>() + group * size, size);
        mean[group] = static_cast<float>(found.mean);
        mean[all + group] = static_cast<float>(found.squares / static_cast<double>(size));
      }
    });
  }

 private:
  static Moments moments(const float* values, size_t size) {
    Moments found;
    for (size_t begin = 0; begin < size; begin += kRun) {
      const size_t length = std::min(kRun, size - begin);
      found.add(instruction_set().spread(values + begin, length), length);
    }
    return found;
  }
};

}  // namespace

Op group_moments() {
  return {kName, -1, takes_any, [](const Attributes&) { return std::make_unique<GroupMoments>(); }};
}

}  // namespace retouch
