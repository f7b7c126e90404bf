#include "kernels/product_operands.h"

namespace retouch {

bool ProductOperands::fit(const Node& node, const std::vector<ValueType>& types, const TailForm& form, int64_t columns) const {
  // A weight that is computed anew for every run would be packed anew, too.
  if (!node.is_constant(weight) || (batch && !types[0].is_rows(batch))) return false;
  std::vector<int64_t> row{columns};
  if (batch) row.insert(row.begin(), types[0].dims[1]);
  if (!form.is_empty() && !form.fits(types, tail(), row)) return false;
  return types.size() <= bias() || types[bias()].is_optional_row(row);
}

}  // namespace retouch
