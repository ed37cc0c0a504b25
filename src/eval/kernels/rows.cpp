#include "eval/kernels/rows.h"

#include "eval/strided.h"

#include <algorithm>
#include <numeric>

namespace chute::eval {

bool wrap_dims(std::vector<i64> &dims, int rank) {
  if (dims.empty()) {
    dims.resize(static_cast<size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
    return true;
  }
  for (i64 &d : dims) {
    d = wrap_dim(d, rank);
    if (d < 0)
      return false;
  }
  std::sort(dims.begin(), dims.end());
  if (std::adjacent_find(dims.begin(), dims.end()) != dims.end())
    return false;
  if (rank == 0)
    dims.clear();
  return true;
}

Rows rows_along(const Tensor &t, std::vector<i64> dims) {
  std::sort(dims.begin(), dims.end());
  Rows r;
  r.shape = t.shape();
  r.length = 1;
  std::vector<bool> in_row(static_cast<size_t>(t.rank()));
  for (i64 d : dims)
    in_row[static_cast<size_t>(d)] = true;
  for (int d = 0; d < t.rank(); ++d)
    if (!in_row[static_cast<size_t>(d)]) {
      r.order.push_back(d);
      r.outer.push_back(t.dim(d));
    }
  for (i64 d : dims) {
    r.order.push_back(d);
    r.length *= t.dim(static_cast<int>(d));
  }
  r.count = num_elements(r.outer);
  r.data = permute(t, r.order).reshaped({r.count, r.length});
  return r;
}

Tensor from_rows(const Rows &rows, const Tensor &data, i64 extent) {
  Shape moved = rows.outer;
  for (size_t i = rows.outer.size(); i < rows.order.size(); ++i)
    moved.push_back(rows.shape[static_cast<size_t>(rows.order[i])]);
  if (extent >= 0) {
    if (rows.order.size() == rows.outer.size()) // rank 0: the row is the one element
      return data.reshaped(rows.shape);
    moved.back() = extent;
  }
  std::vector<i64> inverse(rows.order.size());
  for (size_t i = 0; i < rows.order.size(); ++i)
    inverse[static_cast<size_t>(rows.order[i])] = static_cast<i64>(i);
  return permute(data.reshaped(std::move(moved)), inverse);
}

Shape reduced_shape(const Shape &shape, const std::vector<i64> &dims, bool keepdim) {
  Shape out;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (std::find(dims.begin(), dims.end(), static_cast<i64>(d)) == dims.end())
      out.push_back(shape[d]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

double sum_of(const double *v, i64 n) {
  // Eight independent chains let the compiler use vectors without changing the order of additions.
  double lane[8] = {};
  i64 i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; ++l)
      lane[l] += v[i + l];
  double tail = 0;
  for (; i < n; ++i)
    tail += v[i];
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7])) +
         tail;
}

} // namespace chute::eval
