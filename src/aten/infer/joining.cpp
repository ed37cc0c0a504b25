#include "aten/infer/args.h"

#include <algorithm>
#include <array>

/// Several tensors into one, padding, and repetition.
namespace chute::aten::rule {

using ir::ElementType;
using ir::SymInt;
using ir::Type;

namespace {

ElementType common_element(InferArgs &a, const InferArgs::TypeList &types) {
  const auto e = result_type(std::span<const Type>(types.data(), types.size()));
  a.check(e.has_value(), kDtypeError, "PyTorch does not promote these element types");
  return e.value_or(ElementType::F32);
}

/// PyTorch lets a 1-D tensor without elements take part in any concatenation.
bool is_legacy_empty(const Dims &d) { return d.size() == 1 && d[0] == SymInt(0); }

using ShapeList = boost::container::small_vector<Dims, 4>;

ShapeList shapes_of(const InferArgs::TypeList &types) {
  ShapeList shapes;
  for (Type t : types)
    shapes.push_back(dims_of(t));
  return shapes;
}

/// Joins shapes at `dim` (may be negative).
Status join(InferArgs &a, ElementType e, const ShapeList &shapes, SymInt dim) {
  if (!a.check(!shapes.empty(), kOperandError, "needs a tensor"))
    return a.failed();
  const Dims *first = nullptr;
  for (const Dims &s : shapes)
    if (!first && !is_legacy_empty(s))
      first = &s;
  if (!first)
    first = &shapes[0];
  const size_t d = a.wrap(dim, static_cast<int>(first->size()));
  if (!a.check(!first->empty(), kShapeError, "rank-0 tensors can not be joined") || a.bad())
    return a.failed();
  Dims out = *first;
  out[d] = 0;
  for (const Dims &s : shapes) {
    if (is_legacy_empty(s) && first->size() != 1)
      continue;
    bool fits = s.size() == out.size();
    for (size_t i = 0; fits && i < s.size(); ++i)
      fits = i == d || s[i] == out[i];
    if (!a.check(fits, kShapeError, [&] {
          return "shapes " + a.print(span_of(*first)) + " and " + a.print(span_of(s)) +
                 " differ outside dimension " + std::to_string(d);
        }))
      return a.failed();
    out[d] = a.sym().add(out[d], s[d]);
  }
  return a.done(e, out);
}

void at_least(Dims &s, size_t rank) {
  if (s.empty())
    s.push_back(1);
  if (rank >= 2 && s.size() == 1)
    s.insert(s.begin(), SymInt(1));
  if (rank >= 3 && s.size() == 2)
    s.push_back(1);
}

/// Adds pairs (before, after) from the last dimension backwards.
Status padded(InferArgs &a, DimSpan pad) {
  const Type x = a.tensor(0);
  Dims shape = dims_of(x);
  if (!a.check(pad.size() % 2 == 0 && pad.size() / 2 <= shape.size(), kAttrError,
               "padding must be pairs, one per padded dimension"))
    return a.failed();
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    SymInt &d = shape[shape.size() - 1 - i];
    d = a.sym().add(a.sym().add(d, pad[2 * i]), pad[2 * i + 1]);
    a.check(d.is_symbolic() || d.value() >= 0, kShapeError, "padding makes a size negative");
  }
  return a.done_moved(x, shape);
}

} // namespace

Status cat(InferArgs &a) {
  const auto types = a.list(0);
  return join(a, common_element(a, types), shapes_of(types), a.integer("dim"));
}

Status stack(InferArgs &a) {
  const auto types = a.list(0);
  if (!a.check(!types.empty(), kOperandError, "needs a tensor"))
    return a.failed();
  Dims shape = dims_of(types[0]);
  for (Type t : types)
    a.check(std::ranges::equal(t.shape(), types[0].shape()), kShapeError,
            "the tensors differ in shape");
  const size_t d = a.dim("dim", types[0].rank() + 1);
  if (a.bad())
    return a.failed();
  shape.insert(shape.begin() + static_cast<i64>(d), SymInt(static_cast<i64>(types.size())));
  return a.done(common_element(a, types), shape);
}

Status hstack(InferArgs &a) {
  const auto types = a.list(0);
  ShapeList shapes = shapes_of(types);
  for (Dims &s : shapes)
    at_least(s, 1);
  const i64 dim = !shapes.empty() && shapes[0].size() > 1 ? 1 : 0;
  return join(a, common_element(a, types), shapes, dim);
}

Status vstack(InferArgs &a) {
  const auto types = a.list(0);
  ShapeList shapes = shapes_of(types);
  for (Dims &s : shapes)
    at_least(s, 2);
  return join(a, common_element(a, types), shapes, 0);
}

Status dstack(InferArgs &a) {
  const auto types = a.list(0);
  ShapeList shapes = shapes_of(types);
  for (Dims &s : shapes)
    at_least(s, 3);
  return join(a, common_element(a, types), shapes, 2);
}

Status column_stack(InferArgs &a) {
  const auto types = a.list(0);
  ShapeList shapes = shapes_of(types);
  for (Dims &s : shapes)
    while (s.size() < 2)
      s.push_back(1);
  return join(a, common_element(a, types), shapes, 1);
}

Status block_diag(InferArgs &a) {
  const auto types = a.list(0);
  SymInt rows = 0, columns = 0;
  for (Type t : types) {
    if (!a.check(t.rank() <= 2, kShapeError, "takes tensors of at most two dimensions"))
      return a.failed();
    rows = a.sym().add(rows, t.rank() == 2 ? t.dim(0) : SymInt(1));
    columns = a.sym().add(columns, t.rank() ? t.shape().back() : SymInt(1));
  }
  return a.done(common_element(a, types), std::array{rows, columns});
}

Status cartesian_prod(InferArgs &a) {
  const auto types = a.list(0);
  SymInt rows = 1;
  for (Type t : types) {
    if (!a.check(t.rank() == 1, kShapeError, "takes vectors"))
      return a.failed();
    rows = a.sym().mul(rows, t.dim(0));
  }
  const ElementType e = common_element(a, types);
  if (types.size() == 1)
    return a.done(e, std::array{rows});
  return a.done(e, std::array{rows, SymInt(static_cast<i64>(types.size()))});
}

Status combinations(InferArgs &a) {
  const Type x = a.tensor(0);
  const i64 r = a.literal("r", 2);
  if (!a.check(x.rank() == 1 && x.dim(0).is_static() && x.dim(0).value() < 1 << 30 && r >= 0 &&
                   r < 64,
               kShapeError, "takes a vector of known length") ||
      a.bad())
    return a.failed();
  if (r == 0)
    return a.done(x.element(), std::array{SymInt(0)});
  // C(n, r), or C(n + r - 1, r) with replacement; exact at every step of the product.
  const i64 n = x.dim(0).value() + (a.flag("with_replacement") ? r - 1 : 0);
  i64 count = n >= r ? 1 : 0;
  for (i64 k = 1; count && k <= r; ++k) {
    if (!a.check(!__builtin_mul_overflow(count, n - r + k, &count), kShapeError, "too many rows"))
      return a.failed();
    count /= k;
  }
  return a.done(x.element(), std::array{SymInt(count), SymInt(r)});
}

Status broadcast_tensors(InferArgs &a) {
  const auto types = a.list(0);
  const Dims shape = a.broadcast_all(std::span<const Type>(types.data(), types.size()));
  if (a.bad())
    return a.failed();
  for (Type t : types)
    a.add_moved(t, shape);
  return a.done();
}

Status meshgrid(InferArgs &a) {
  const auto types = a.list(0);
  Dims shape;
  for (Type t : types) {
    if (!a.check(t.rank() <= 1, kShapeError, "takes vectors"))
      return a.failed();
    shape.push_back(numel(a.ctx(), t.shape()));
  }
  if (a.text("indexing") == "xy" && shape.size() >= 2)
    std::swap(shape[0], shape[1]);
  for (Type t : types)
    a.add_moved(t, shape);
  return a.done();
}

Status pad(InferArgs &a) { return padded(a, a.ints("pad")); }

Status padding(InferArgs &a) { return padded(a, a.ints("padding")); }

Status repeat(InferArgs &a) {
  const Type x = a.tensor(0);
  // repeat needs a factor for each dimension; tile takes fewer.
  const bool tile = a.op().def().attr_index("dims") >= 0;
  const DimSpan given = a.ints(tile ? "dims" : "repeats");
  if (!a.check(tile || given.size() >= x.shape().size(), kAttrError,
               "needs a factor for each dimension"))
    return a.failed();
  Dims shape = dims_of(x);
  while (shape.size() < given.size())
    shape.insert(shape.begin(), SymInt(1));
  for (size_t i = 0; i < given.size(); ++i) {
    SymInt &d = shape[shape.size() - given.size() + i];
    d = a.sym().mul(d, given[i]);
  }
  return a.done_moved(x, shape);
}

Status repeat_interleave(InferArgs &a) {
  const Type x = a.tensor(0);
  const SymInt repeats = a.integer("repeats");
  if (!a.has_attr("dim") || x.rank() == 0)
    return a.done_moved(x, Dims(1, a.sym().mul(numel(a.ctx(), x.shape()), repeats)));
  const size_t d = a.dim("dim", x.rank());
  if (a.bad())
    return a.failed();
  Dims shape = dims_of(x);
  shape[d] = a.sym().mul(shape[d], repeats);
  return a.done_moved(x, shape);
}

Status repeat_interleave_tensor(InferArgs &a) {
  if (!a.has_attr("output_size"))
    return a.data_dependent("the sum of the repeats");
  return a.done(a.tensor(0).element(), std::array{a.integer("output_size")});
}

} // namespace chute::aten::rule
