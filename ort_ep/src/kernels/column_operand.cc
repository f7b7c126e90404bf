#include "kernels/column_operand.h"

namespace retouch {

size_t samples_of(const Shape& rows) { return rows.rank() == 3 ? static_cast<size_t>(rows[1]) : 1; }

PerColumn per_column(const char* op, const char* name, const Tensor& given, const Shape& rows) {
  const size_t rank = given.shape.rank();
  const int64_t samples = static_cast<int64_t>(samples_of(rows)), columns = rows[rows.rank() - 1];
  const bool alike = rank >= 1 && given.shape.count() == columns && given.shape[rank - 1] == columns;
  const bool own = rank >= 2 && given.shape.count() == samples * columns && given.shape[rank - 1] == columns && given.shape[rank - 2] == samples;
  const std::string text = std::to_string(columns) + "]";
  require(alike || own, op, std::string(name) + " [" + text + (samples > 1 ? " or [" + std::to_string(samples) + ", " + text : ""), given);
  return {given.as<float>(), alike ? 0 : static_cast<size_t>(columns)};
}

}  // namespace retouch
