#include "aten/infer/args.h"

#include <algorithm>

/// One element order, another shape; and expansion.
namespace chute::aten::rule {

using ir::SymInt;
using ir::Type;

namespace {

Status view_as(InferArgs &a, DimSpan sizes) {
  const Type x = a.tensor(0);
  const auto shape = resolve_view(a.ctx(), x.shape(), sizes);
  if (!a.check(shape.has_value(), kShapeError, [&] {
        return "shape " + a.print(x.shape()) + " can not be viewed as " + a.print(sizes);
      }))
    return a.failed();
  return a.done_moved(x, *shape);
}

Status expand_to(InferArgs &a, DimSpan sizes) {
  const Type x = a.tensor(0);
  if (!a.check(sizes.size() >= x.shape().size(), kShapeError, "expanding to a lower rank"))
    return a.failed();
  Dims shape(sizes.begin(), sizes.end());
  const size_t skip = sizes.size() - x.shape().size();
  for (size_t i = 0; i < shape.size(); ++i) {
    const SymInt d = i < skip ? SymInt(1) : x.shape()[i - skip];
    if (shape[i] == SymInt(-1) && a.check(i >= skip, kShapeError, "a new dimension has no size"))
      shape[i] = d;
    a.check(d == SymInt(1) || d == shape[i], kShapeError, [&] {
      return "shape " + a.print(x.shape()) + " does not expand to " + a.print(sizes);
    });
  }
  return a.done_moved(x, shape);
}

} // namespace

Status view(InferArgs &a) { return view_as(a, a.ints("size")); }

Status reshape(InferArgs &a) { return view_as(a, a.ints("shape")); }

Status view_as_other(InferArgs &a) { return view_as(a, a.tensor(1).shape()); }

Status expand(InferArgs &a) { return expand_to(a, a.ints("size")); }

Status expand_as(InferArgs &a) { return expand_to(a, a.tensor(1).shape()); }

Status strided(InferArgs &a) {
  const DimSpan size = a.ints("size");
  return a.done_moved(a.tensor(0), Dims(size.begin(), size.end()));
}

Status flatten(InferArgs &a) {
  const Type x = a.tensor(0);
  if (x.rank() == 0)
    return a.done_moved(x, Dims(1, SymInt(1)));
  const size_t first = a.dim("start_dim", x.rank(), 0), last = a.dim("end_dim", x.rank(), -1);
  if (!a.check(first <= last, kDimError, "start_dim is after end_dim") || a.bad())
    return a.failed();
  Dims shape(x.shape().begin(), x.shape().begin() + static_cast<i64>(first));
  shape.push_back(numel(a.ctx(), x.shape().subspan(first, last - first + 1)));
  shape.insert(shape.end(), x.shape().begin() + static_cast<i64>(last) + 1, x.shape().end());
  return a.done_moved(x, shape);
}

Status ravel(InferArgs &a) {
  return a.done_moved(a.tensor(0), Dims(1, numel(a.ctx(), a.tensor(0).shape())));
}

Status unflatten(InferArgs &a) {
  const Type x = a.tensor(0);
  const size_t d = a.dim("dim", x.rank());
  if (!a.check(x.rank() > 0, kDimError, "needs a dimension") || a.bad())
    return a.failed();
  const auto part = resolve_view(a.ctx(), x.shape().subspan(d, 1), a.ints("sizes"));
  if (!a.check(part.has_value(), kShapeError, [&] {
        return "dimension " + a.sym().print(x.shape()[d]) + " can not become " +
               a.print(a.ints("sizes"));
      }))
    return a.failed();
  Dims shape(x.shape().begin(), x.shape().begin() + static_cast<i64>(d));
  shape.insert(shape.end(), part->begin(), part->end());
  shape.insert(shape.end(), x.shape().begin() + static_cast<i64>(d) + 1, x.shape().end());
  return a.done_moved(x, shape);
}

Status squeeze(InferArgs &a) {
  const Type x = a.tensor(0);
  const auto chosen = a.dim_flags("dim", x.rank(), a.has_attr("dim"));
  if (a.bad())
    return a.failed();
  Dims shape;
  for (size_t i = 0; i < x.shape().size(); ++i)
    if (!chosen[i] || x.shape()[i] != SymInt(1))
      shape.push_back(x.shape()[i]);
  return a.done_moved(x, shape);
}

Status unsqueeze(InferArgs &a) {
  const Type x = a.tensor(0);
  const size_t d = a.dim("dim", x.rank() + 1);
  if (a.bad())
    return a.failed();
  Dims shape = dims_of(x);
  shape.insert(shape.begin() + static_cast<i64>(d), SymInt(1));
  return a.done_moved(x, shape);
}

Status atleast(InferArgs &a) {
  const Type x = a.tensor(0);
  const char digit = a.op().name()[std::string_view("aten.atleast_").size()];
  Dims shape = dims_of(x);
  if (shape.empty())
    shape.push_back(1);
  if (digit >= '2' && shape.size() == 1)
    shape.insert(shape.begin(), SymInt(1));
  if (digit == '3' && shape.size() == 2)
    shape.push_back(1);
  return a.done_moved(x, shape);
}

Status view_dtype(InferArgs &a) {
  const Type x = a.tensor(0);
  const ir::ElementType e = a.dtype(x.element());
  const int from = ir::element_bytes(x.element()), to = ir::element_bytes(e);
  Dims shape = dims_of(x);
  if (from == to)
    return a.done(e, shape);
  if (!a.check(!shape.empty() && from > 0 && to > 0, kShapeError, "needs a dimension to resize"))
    return a.failed();
  const auto last = a.sym().exact_div(a.sym().mul(shape.back(), from), to);
  a.check(last.has_value(), kShapeError, "the last dimension does not divide");
  shape.back() = last.value_or(0);
  return a.done(e, shape);
}

Status pixel_shuffle(InferArgs &a) {
  const Type x = a.tensor(0);
  const i64 r = a.literal("upscale_factor", 1);
  Dims shape = dims_of(x);
  if (!a.check(x.rank() >= 3 && r > 0, kShapeError, "needs channels, height and width") || a.bad())
    return a.failed();
  const size_t c = shape.size() - 3;
  const auto channels = a.sym().exact_div(shape[c], r * r);
  a.check(channels.has_value(), kShapeError, "channels do not divide by the factor squared");
  shape[c] = channels.value_or(1);
  shape[c + 1] = a.sym().mul(shape[c + 1], r);
  shape[c + 2] = a.sym().mul(shape[c + 2], r);
  return a.done_moved(x, shape);
}

Status pixel_unshuffle(InferArgs &a) {
  const Type x = a.tensor(0);
  const i64 r = a.literal("downscale_factor", 1);
  Dims shape = dims_of(x);
  if (!a.check(x.rank() >= 3 && r > 0, kShapeError, "needs channels, height and width") || a.bad())
    return a.failed();
  const size_t c = shape.size() - 3;
  shape[c] = a.sym().mul(shape[c], r * r);
  for (size_t i = c + 1; i < c + 3; ++i) {
    const auto q = a.sym().exact_div(shape[i], r);
    a.check(q.has_value(), kShapeError, "height or width does not divide by the factor");
    shape[i] = q.value_or(1);
  }
  return a.done_moved(x, shape);
}

} // namespace chute::aten::rule
