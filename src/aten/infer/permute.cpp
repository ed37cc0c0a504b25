#include "aten/infer/args.h"

#include <algorithm>
#include <numeric>

/// The same dimensions in another order.
namespace chute::aten::rule {

using ir::SymInt;
using ir::Type;

namespace {

Status swapped(InferArgs &a, size_t i, size_t j) {
  if (a.bad())
    return a.failed();
  Dims shape = dims_of(a.tensor(0));
  if (!shape.empty())
    std::swap(shape[i], shape[j]);
  return a.done_moved(a.tensor(0), shape);
}

Status move(InferArgs &a, DimSpan from, DimSpan to) {
  const Type x = a.tensor(0);
  const auto rank = static_cast<size_t>(x.rank());
  if (!a.check(from.size() == to.size(), kAttrError, "source and destination differ in length"))
    return a.failed();
  if (rank == 0)
    return a.done(x);
  boost::container::small_vector<i64, 8> order(rank, -1);
  boost::container::small_vector<bool, 8> taken(rank, false);
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t s = a.wrap(from[i], x.rank()), d = a.wrap(to[i], x.rank());
    if (!a.check(!taken[s] && order[d] < 0, kDimError, "a dimension is named twice"))
      return a.failed();
    taken[s] = true;
    order[d] = static_cast<i64>(s);
  }
  if (a.bad())
    return a.failed();
  size_t next = 0;
  Dims shape;
  for (size_t i = 0; i < rank; ++i) {
    if (order[i] < 0) {
      while (taken[next])
        ++next;
      order[i] = static_cast<i64>(next++);
    }
    shape.push_back(x.shape()[static_cast<size_t>(order[i])]);
  }
  return a.done_moved(x, shape);
}

} // namespace

Status permute(InferArgs &a) {
  const Type x = a.tensor(0);
  const DimSpan dims = a.ints("dims");
  if (!a.check(dims.size() == x.shape().size(), kShapeError, "must name every dimension once"))
    return a.failed();
  boost::container::small_vector<bool, 8> seen(dims.size(), false);
  Dims shape;
  for (SymInt dim : dims) {
    const size_t d = a.wrap(dim, x.rank());
    if (!a.check(!seen[d], kDimError, "must name every dimension once") || a.bad())
      return a.failed();
    seen[d] = true;
    shape.push_back(x.shape()[d]);
  }
  return a.done_moved(x, shape);
}

Status transpose(InferArgs &a) {
  const int rank = a.tensor(0).rank();
  return swapped(a, a.dim("dim0", rank), a.dim("dim1", rank));
}

Status swapaxes(InferArgs &a) {
  const int rank = a.tensor(0).rank();
  return swapped(a, a.dim("axis0", rank), a.dim("axis1", rank));
}

Status t(InferArgs &a) {
  const Type x = a.tensor(0);
  a.check(x.rank() <= 2, kShapeError, "takes at most two dimensions");
  return x.rank() < 2 ? a.done(x) : swapped(a, 0, 1);
}

Status matrix_transpose(InferArgs &a) {
  const int rank = a.tensor(0).rank();
  if (rank == 0)
    return a.done(a.tensor(0));
  a.check(rank >= 2, kShapeError, "needs two dimensions");
  return swapped(a, static_cast<size_t>(std::max(rank - 2, 0)),
                 static_cast<size_t>(std::max(rank - 1, 0)));
}

Status reverse_dims(InferArgs &a) {
  Dims shape = dims_of(a.tensor(0));
  std::reverse(shape.begin(), shape.end());
  return a.done_moved(a.tensor(0), shape);
}

Status movedim(InferArgs &a) {
  if (a.op().attr("source").kind() == ir::AttrKind::Ints)
    return move(a, a.ints("source"), a.ints("destination"));
  const SymInt from = a.integer("source"), to = a.integer("destination");
  return move(a, DimSpan(&from, 1), DimSpan(&to, 1));
}

Status rot90(InferArgs &a) {
  const Type x = a.tensor(0);
  const DimSpan dims = a.ints("dims");
  if (!a.check(dims.size() == 2, kAttrError, "needs two dims"))
    return a.failed();
  const size_t i = a.wrap(dims[0], x.rank()), j = a.wrap(dims[1], x.rank());
  return a.literal("k", 1) % 2 ? swapped(a, i, j) : a.done(x);
}

} // namespace chute::aten::rule
