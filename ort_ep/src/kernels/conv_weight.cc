#include "kernels/conv_weight.h"

#include <algorithm>

namespace retouch {
namespace {

bool is_form(const int64_t* begin, size_t rank) {
  return (rank == 2 || rank == 3) && std::all_of(begin, begin + rank, [](int64_t dim) { return dim > 0; });
}

}  // namespace

bool ConvWeight::is(const ValueType& weight) noexcept { return is_form(weight.dims.data(), weight.dims.size()); }

bool ConvWeight::is(const Tensor& weight) noexcept { return is_form(weight.shape.data(), weight.shape.rank()); }

ConvWeight::ConvWeight(const Tensor& weight) noexcept
    : data(weight.as<float>()),
      columns(static_cast<size_t>(weight.shape[0])),
      depth(static_cast<size_t>(weight.shape.count(1))),
      taps(weight.shape.rank() == 3 ? static_cast<size_t>(weight.shape[2]) : 1) {}

}  // namespace retouch
