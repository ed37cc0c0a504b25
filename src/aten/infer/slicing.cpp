#include "aten/infer/args.h"

#include <algorithm>
#include <array>

/// Parts of a tensor: slices, selections, splits, diagonals, windows.
namespace chute::aten::rule {

using ir::SymInt;
using ir::Type;

namespace {

constexpr i64 kMaxPieces = 1 << 20;

/// A dimension to cut; rank 0 has none.
size_t cut_dim(InferArgs &a, std::string_view name = "dim") {
  a.check(a.tensor(0).rank() > 0, kDimError, "needs a tensor with dimensions");
  return a.dim(name, a.tensor(0).rank());
}

void add_piece(InferArgs &a, size_t dim, SymInt length) {
  Dims shape = dims_of(a.tensor(0));
  shape[dim] = length;
  a.add_moved(a.tensor(0), shape);
}

/// Pieces of `length`, the last one shorter. The number of pieces must be a literal.
Status split_every(InferArgs &a, size_t dim, SymInt length) {
  const SymInt size = a.tensor(0).dim(static_cast<int>(dim));
  if (size.is_static() && length.is_static()) {
    const i64 n = size.value(), step = length.value();
    if (!a.check(step > 0 || (step == 0 && n == 0), kAttrError, "the split size is not positive") ||
        !a.check(step == 0 || n / step < kMaxPieces, kAttrError, "too many pieces"))
      return a.failed();
    if (n == 0)
      add_piece(a, dim, 0);
    // Counted in what is left: a position plus the step could pass the largest integer.
    for (i64 left = n; left > 0; left -= std::min(step, left))
      add_piece(a, dim, std::min(step, left));
    return a.done();
  }
  const auto pieces = a.sym().exact_div(size, length);
  if (!a.check(pieces && pieces->is_static() && pieces->value() < kMaxPieces, kShapeError, [&] {
        return "a dimension of size " + a.sym().print(size) + " gives an unknown number of pieces";
      }))
    return a.failed();
  for (i64 i = 0; i < pieces->value(); ++i)
    add_piece(a, dim, length);
  return a.done();
}

Status sections(InferArgs &a, size_t dim, i64 count) {
  const SymInt size = a.tensor(0).dim(static_cast<int>(dim));
  if (!a.check(count > 0 && count < kMaxPieces, kAttrError, "the number of sections is wrong"))
    return a.failed();
  if (const auto q = a.sym().exact_div(size, count)) {
    for (i64 i = 0; i < count; ++i)
      add_piece(a, dim, *q);
    return a.done();
  }
  // The first size % count pieces take one element more.
  if (!a.check(size.is_static(), kShapeError, [&] {
        return "a dimension of size " + a.sym().print(size) + " does not split evenly";
      }))
    return a.failed();
  for (i64 i = 0; i < count; ++i)
    add_piece(a, dim, size.value() / count + (i < size.value() % count ? 1 : 0));
  return a.done();
}

Status even_split(InferArgs &a, size_t dim) {
  const i64 count = a.literal("sections", 1);
  if (!a.check(static_cast<int>(dim) < a.tensor(0).rank(), kDimError, "too few dimensions") ||
      a.bad())
    return a.failed();
  return sections(a, dim, count);
}

SymInt diagonal_length(InferArgs &a, SymInt rows, SymInt columns, i64 offset) {
  if (offset >= 0)
    columns = a.sym().sub(columns, offset);
  else
    rows = a.sym().add(rows, offset);
  return sym_max(a.sym(), sym_min(a.sym(), rows, columns), 0);
}

} // namespace

Status slice(InferArgs &a) {
  const size_t d = cut_dim(a);
  if (a.bad())
    return a.failed();
  const auto bound = [&](std::string_view name) -> std::optional<SymInt> {
    const ir::Attr b = a.op().attr(name);
    return b.kind() == ir::AttrKind::Int ? std::optional(b.as_int()) : std::nullopt;
  };
  const SymInt step = a.integer("step", 1);
  if (!a.check(step.is_symbolic() || step.value() > 0, kAttrError, "the step must be positive"))
    return a.failed();
  const SymInt size = a.tensor(0).dim(static_cast<int>(d));
  add_piece(a, d, resolve_slice(a.sym(), size, bound("start"), bound("end"), step).length);
  return a.done();
}

Status narrow(InferArgs &a) {
  const size_t d = cut_dim(a);
  if (a.bad())
    return a.failed();
  add_piece(a, d, a.integer("length"));
  return a.done();
}

Status select(InferArgs &a) {
  const size_t d = cut_dim(a);
  if (a.bad())
    return a.failed();
  const SymInt size = a.tensor(0).dim(static_cast<int>(d)), index = a.integer("index");
  if (!a.check(size.is_symbolic() || index.is_symbolic() ||
                   (index.value() >= -size.value() && index.value() < size.value()),
               kAttrError, [&] { return "index " + a.sym().print(index) + " is outside"; }))
    return a.failed();
  Dims shape = dims_of(a.tensor(0));
  shape.erase(shape.begin() + static_cast<i64>(d));
  return a.done_moved(a.tensor(0), shape);
}

Status split(InferArgs &a) {
  const size_t d = cut_dim(a);
  return a.bad() ? a.failed() : split_every(a, d, a.integer("split_size"));
}

Status split_sizes(InferArgs &a) {
  const size_t d = cut_dim(a);
  if (a.bad())
    return a.failed();
  const DimSpan sizes =
      a.ints(a.op().def().attr_index("split_sizes") >= 0 ? "split_sizes" : "split_size");
  SymInt total = 0;
  for (SymInt s : sizes)
    total = a.sym().add(total, s);
  const SymInt size = a.tensor(0).dim(static_cast<int>(d));
  if (!a.check(total == size || total.is_symbolic() || size.is_symbolic(), kShapeError,
               [&] { return "the sizes do not add up to " + a.sym().print(size); }))
    return a.failed();
  for (SymInt s : sizes)
    add_piece(a, d, s);
  return a.done();
}

Status chunk(InferArgs &a) {
  const size_t d = cut_dim(a);
  const i64 chunks = a.literal("chunks", 1);
  if (!a.check(chunks > 0 && chunks < kMaxPieces, kAttrError, "the number of chunks is wrong") ||
      a.bad())
    return a.failed();
  const SymInt size = a.tensor(0).dim(static_cast<int>(d));
  if (size == SymInt(0)) {
    for (i64 i = 0; i < chunks; ++i)
      add_piece(a, d, 0);
    return a.done();
  }
  if (size.is_symbolic())
    return sections(a, d, chunks);
  return split_every(a, d, a.sym().ceildiv(size, chunks));
}

Status unbind(InferArgs &a) {
  const size_t d = cut_dim(a);
  if (a.bad())
    return a.failed();
  const SymInt size = a.tensor(0).dim(static_cast<int>(d));
  if (!a.check(size.is_static() && size.value() < kMaxPieces, kShapeError, [&] {
        return "a dimension of size " + a.sym().print(size) + " gives an unknown number of tensors";
      }))
    return a.failed();
  Dims shape = dims_of(a.tensor(0));
  shape.erase(shape.begin() + static_cast<i64>(d));
  for (i64 i = 0; i < size.value(); ++i)
    a.add_moved(a.tensor(0), shape);
  return a.done();
}

Status tensor_split(InferArgs &a) {
  const size_t d = cut_dim(a);
  return a.bad() ? a.failed() : even_split(a, d);
}

Status tensor_split_indices(InferArgs &a) {
  const size_t d = cut_dim(a);
  if (a.bad())
    return a.failed();
  const SymInt size = a.tensor(0).dim(static_cast<int>(d));
  SymInt start = 0;
  for (SymInt end : a.ints("indices")) {
    add_piece(a, d, resolve_slice(a.sym(), size, start, end, 1).length);
    start = end;
  }
  add_piece(a, d, resolve_slice(a.sym(), size, start, std::nullopt, 1).length);
  return a.done();
}

Status hsplit(InferArgs &a) { return even_split(a, a.tensor(0).rank() == 1 ? 0 : 1); }

Status vsplit(InferArgs &a) { return even_split(a, 0); }

Status dsplit(InferArgs &a) { return even_split(a, 2); }

Status diagonal(InferArgs &a) {
  const Type x = a.tensor(0);
  const size_t i = a.dim("dim1", x.rank(), 0), j = a.dim("dim2", x.rank(), 1);
  const i64 offset = a.literal("offset");
  if (!a.check(i != j && x.rank() >= 2, kDimError, "needs two different dimensions") || a.bad())
    return a.failed();
  Dims shape = dims_of(x);
  const SymInt length = diagonal_length(a, shape[i], shape[j], offset);
  shape.erase(shape.begin() + static_cast<i64>(std::max(i, j)));
  shape.erase(shape.begin() + static_cast<i64>(std::min(i, j)));
  shape.push_back(length);
  return a.done_moved(x, shape);
}

Status diag(InferArgs &a) {
  const Type x = a.tensor(0);
  const i64 offset = a.literal("diagonal");
  if (!a.check(x.rank() == 1 || x.rank() == 2, kShapeError, "takes a vector or a matrix"))
    return a.failed();
  if (x.rank() == 2)
    return a.done_moved(x, Dims(1, diagonal_length(a, x.dim(0), x.dim(1), offset)));
  return a.done_moved(x, Dims(2, a.sym().add(x.dim(0), offset < 0 ? -offset : offset)));
}

Status diag_embed(InferArgs &a) {
  const Type x = a.tensor(0);
  const int rank = x.rank() + 1;
  const size_t i = a.dim("dim1", rank, -2), j = a.dim("dim2", rank, -1);
  const i64 offset = a.literal("offset");
  if (!a.check(x.rank() > 0 && i != j, kDimError, "needs two different dimensions") || a.bad())
    return a.failed();
  const SymInt side = a.sym().add(x.shape().back(), offset < 0 ? -offset : offset);
  Dims shape;
  for (size_t k = 0, next = 0; k < static_cast<size_t>(rank); ++k)
    shape.push_back(k == i || k == j ? side : x.shape()[next++]);
  return a.done_moved(x, shape);
}

Status unfold(InferArgs &a) {
  const Type x = a.tensor(0);
  const size_t d = a.dim("dimension", x.rank());
  const i64 size = a.literal("size"), step = a.literal("step", 1);
  if (!a.check(step > 0 && size >= 0, kAttrError, "size and step must be positive") || a.bad())
    return a.failed();
  Dims shape = dims_of(x);
  if (!shape.empty())
    shape[d] = window_output(a.sym(), shape[d], 0, 0, 1, size, step);
  shape.push_back(size);
  return a.done_moved(x, shape);
}

} // namespace chute::aten::rule
