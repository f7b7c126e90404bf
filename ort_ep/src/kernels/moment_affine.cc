// MomentAffine: what a group norm with known moments multiplies and shifts every channel by.
#include <algorithm>
#include <cmath>

#include "api.h"
#include "kernels/ops.h"

namespace retouch {
namespace {

constexpr const char* kName = "MomentAffine";

class MomentAffine : public Kernel {
 public:
  void compute(const Context& context) const override {
    const Tensor moments = context.input(0), grouping = context.input(1), epsilon = context.input(2), row = context.input(3);
    require(moments.shape.rank() == 3 && moments.shape[0] == 2, kName, "moments [2, B, G]", moments);
    require(grouping.shape == Shape{3}, kName, "grouping of three numbers", grouping);
    require(epsilon.shape.count() == 1, kName, "an epsilon of one number", epsilon);
    require(row.shape.rank() == 1 && row.shape[0] <= static_cast<int64_t>(Shape::kMaxRank), kName, "a row's shape", row);
    const int64_t* sizes = grouping.as<int64_t>();
    Shape shape;
    for (int64_t axis = 0; axis < row.shape[0]; ++axis) shape.push(row.as<int64_t>()[axis]);
    const int64_t groups = moments.shape.count(1);
    if (sizes[0] != moments.shape[1] || sizes[1] != moments.shape[2] || sizes[2] <= 0 || groups <= 0 || !shape.is_possible() || shape.count() % groups != 0 ||
        shape.count() / groups != sizes[2]) {
      throw Error(std::string(kName) + ": expected a grouping [B, G, channels of a group] of moments " + moments.shape.text() + " and a row " +
                  shape.text() + ", got [" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " + std::to_string(sizes[2]) + "]");
    }
    write(context, moments.as<float>(), static_cast<size_t>(groups), static_cast<size_t>(sizes[2]), epsilon.as<float>()[0], shape);
  }

 private:
  static void write(const Context& context, const float* mean, size_t groups, size_t depth, float epsilon, const Shape& shape) {
    float* scales = context.output(0, shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT).as<float>();
    float* shifts = context.output(1, shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT).as<float>();
    for (size_t group = 0; group < groups; ++group) {
      const float scale = 1.0F / std::sqrt(mean[groups + group] + epsilon);
      if (scales != nullptr) std::fill_n(scales + group * depth, depth, scale);
      if (shifts != nullptr) std::fill_n(shifts + group * depth, depth, -mean[group] * scale);
    }
  }
};

}  // namespace

Op moment_affine() {
  return {kName, -1, takes_any, [](const Attributes&) { return std::make_unique<MomentAffine>(); }};
}

}  // namespace retouch
