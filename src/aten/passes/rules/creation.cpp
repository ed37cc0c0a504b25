#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <cmath>
#include <numbers>
#include <utility>

// Tensors made from nothing: full, arange, or a constant that is computed here.
namespace chute::aten {

namespace {

V filled(Emit &e, double value) { return e.full(e.shape(), value, e.type().element()); }

V filled_by(Emit &e, std::string_view name) {
  return e.full(e.shape(), e.attr(name), e.type().element());
}

bool canonical_full(Emit &e) {
  const Attr size = e.attr("size"), dtype = e.attr("dtype");
  // One element is a constant, unless its value is a size.
  const Attr value = e.attr("fill_value");
  const bool symbolic = value.kind() == ir::AttrKind::Int && value.as_int().is_symbolic();
  return (e.type().rank() > 0 || symbolic) && !dtype.is_none() &&
         dtype.as_element() == e.type().element() && size.kind() == ir::AttrKind::Ints &&
         size == e.ctx().ints_attr(e.shape());
}

V arange(Emit &e) {
  const bool start = e.root().def().attr_index("start") >= 0;
  const bool step = e.root().def().attr_index("step") >= 0;
  if (step && e.given("dtype"))
    return nullptr;
  return e.op(op::arange_start_step, {},
              {{"start", start ? e.attr("start") : Attr::of_int(0)},
               {"end", e.attr("end")},
               {"step", step ? e.attr("step") : Attr::of_int(1)},
               {"dtype", Attr::of_element(e.type().element())}});
}

/// The element positions (row, column) of the last two dimensions, as [R, 1] and [C].
std::pair<V, V> positions(Emit &e, ir::Type t) {
  const int rank = t.rank();
  return {e.unsqueeze(e.arange(0, t.dim(rank - 2)), 1), e.arange(0, t.dim(rank - 1))};
}

V triangle(Emit &e, bool upper) {
  V x = e.in();
  const auto [rows, columns] = positions(e, x->type());
  V diagonal = e.scalar(e.attr("diagonal"), ElementType::I64);
  V ahead = e.sub(columns, rows);
  V keep = upper ? e.ge(ahead, diagonal) : e.le(ahead, diagonal);
  return e.where(keep, x, e.scalar_like(0, x));
}

/// PyTorch computes the upper half from the end.
/// The ends of linspace and logspace, which PyTorch converts to the result's type first.
std::pair<double, double> ends(Emit &e) {
  const double start = e.number("start"), end = e.number("end");
  return ir::is_float(e.type().element()) ? std::pair(start, end)
                                          : std::pair(std::trunc(start), std::trunc(end));
}

V linspace(Emit &e) {
  const i64 steps = e.integer("steps");
  const auto [start, end] = ends(e);
  const double step = steps > 1 ? (end - start) / double(steps - 1) : 0;
  std::vector<double> values;
  for (i64 i = 0; i < steps; ++i)
    values.push_back(i < (steps + 1) / 2 ? start + step * double(i)
                                         : end - step * double(steps - 1 - i));
  return e.constant(e.type().element(), {steps}, values);
}

V logspace(Emit &e) {
  const i64 steps = e.integer("steps");
  const auto [start, end] = ends(e);
  const double base = e.number("base");
  std::vector<double> values;
  for (i64 i = 0; i < steps; ++i)
    values.push_back(
        std::pow(base, steps > 1 ? start + (end - start) * double(i) / double(steps - 1) : start));
  return e.constant(e.type().element(), {steps}, values);
}

V hann_window(Emit &e) {
  const i64 n = e.integer("window_length");
  std::vector<double> values;
  for (i64 i = 0; i < n; ++i)
    values.push_back(n == 1 ? 1
                            : 0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(i) / double(n)));
  return e.constant(e.type().element(), {n}, values);
}

V triangle_indices(Emit &e, bool upper) {
  const i64 rows = e.integer("row"), columns = e.integer("col"), offset = e.integer("offset");
  std::vector<double> r, c;
  for (i64 i = 0; i < rows; ++i)
    for (i64 j = 0; j < columns; ++j)
      if (upper ? j - i >= offset : j - i <= offset)
        r.push_back(double(i)), c.push_back(double(j));
  const i64 n = i64(r.size());
  r.insert(r.end(), c.begin(), c.end());
  return e.constant(e.type().element(), {2, n}, r);
}

V diag_embed(Emit &e) {
  // Element i of the last dimension goes to (i + max(-o, 0), i + max(o, 0)).
  V x = e.in();
  const int rank = e.type().rank();
  const i64 offset = e.integer("offset");
  const int d1 = e.dim("dim1", rank), d2 = e.dim("dim2", rank);
  const SymInt n = e.type().dim(d1);
  const i64 before = std::max<i64>(-offset, 0), after = std::max<i64>(offset, 0);
  V rows = e.unsqueeze(e.arange(0, n), 1), columns = e.arange(0, n);
  V on = e.eq(e.sub(columns, rows), double(offset));
  // Values by row: row r holds element r - before, padded to n rows.
  V line = e.pad(x, {before, after}, Attr::of_int(0));
  V y = e.where(on, e.unsqueeze(line, line->type().rank()), e.scalar_like(0, x));
  Axes order;
  int next = 0;
  for (int d = 0; d < rank; ++d)
    order.push_back(d == d1 ? rank - 2 : d == d2 ? rank - 1 : next++);
  return e.permute(y, order);
}

V diag(Emit &e) {
  V x = e.in();
  const i64 offset = e.integer("diagonal");
  if (x->type().rank() == 1)
    return e.op(
        op::diag_embed, {x},
        {{"offset", Attr::of_int(offset)}, {"dim1", Attr::of_int(0)}, {"dim2", Attr::of_int(1)}});
  return e.op(
      op::diagonal, {x},
      {{"offset", Attr::of_int(offset)}, {"dim1", Attr::of_int(0)}, {"dim2", Attr::of_int(1)}});
}

V block_diag(Emit &e) {
  const ElementType t = e.type().element();
  const SymInt width = e.type().dim(1);
  Values rows;
  i64 before = 0;
  for (V x : e.list(0)) {
    Shape s = e.shape_of(x);
    while (s.size() < 2)
      s.insert(s.begin(), 1);
    if (s[1].is_symbolic() || width.is_symbolic())
      return e.reject("blocks of a size that is not static");
    const i64 after = width.value() - before - s[1].value();
    rows.push_back(e.pad(e.cast(e.view(x, s), t), {before, after}, Attr::of_int(0)));
    before += s[1].value();
  }
  return e.cat(rows, 0);
}

/// All combinations of one element per operand, the last one moving fastest.
V cartesian_prod(Emit &e) {
  const Values in = e.list(0);
  if (in.size() == 1)
    return in[0];
  Shape grid;
  for (V x : in)
    grid.push_back(x->type().dim(0));
  Values columns;
  for (size_t i = 0; i < in.size(); ++i) {
    Shape s(in.size(), 1);
    s[i] = grid[i];
    columns.push_back(e.view(e.expand(e.view(in[i], s), grid), {e.mul_sizes(grid), 1}));
  }
  return e.cat(columns, 1);
}

V diff(Emit &e) {
  V x = e.in();
  const int dim = e.dim("dim", x->type().rank());
  Values parts;
  for (V part : {e.in(1), x, e.in(2)})
    if (part)
      parts.push_back(part);
  x = e.cat(parts, dim);
  for (i64 i = 0; i < e.integer("n"); ++i) {
    const SymInt n = x->type().dim(dim);
    V ahead = e.slice(x, dim, 1, n), behind = e.slice(x, dim, 0, e.sym().sub(n, 1));
    x = x->type().element() == ElementType::Bool ? e.op(op::logical_xor, {ahead, behind})
                                                 : e.sub(ahead, behind);
  }
  return x;
}

} // namespace

void add_creation_rules(pass::PatternSet &set) {
  set.add(
      "full", {op::full},
      rule<[](Emit &e) -> V { return canonical_full(e) ? nullptr : filled_by(e, "fill_value"); }>);
  set.add("full-like", {op::full_like, op::new_full},
          rule<[](Emit &e) { return filled_by(e, "fill_value"); }>);
  set.add("fill", {op::fill_Scalar}, rule<[](Emit &e) { return filled_by(e, "value"); }>);
  set.add("fill-tensor", {op::fill_Tensor},
          rule<[](Emit &e) { return e.expand(e.cast(e.in(1), e.type().element()), e.shape()); }>);
  set.add("scalar-tensor", {op::scalar_tensor}, rule<[](Emit &e) { return filled_by(e, "s"); }>);
  // What an empty tensor holds is not defined; zeros make it the same every time.
  set.add("zeros",
          {op::zeros, op::zeros_like, op::new_zeros, op::zero, op::empty_memory_format,
           op::empty_like, op::new_empty, op::empty_strided, op::new_empty_strided},
          rule<[](Emit &e) { return filled(e, 0); }>);
  set.add("ones", {op::ones, op::ones_like, op::new_ones},
          rule<[](Emit &e) { return filled(e, 1); }>);
  set.add("copy", {op::copy},
          rule<[](Emit &e) { return e.expand(e.cast(e.in(1), e.type().element()), e.shape()); }>);
  set.add("arange", {op::arange, op::arange_start, op::arange_start_step}, rule<arange>);
  set.add("eye", {op::eye, op::eye_m}, rule<[](Emit &e) {
            const auto [rows, columns] = positions(e, e.type());
            return e.cast(e.eq(rows, columns), e.type().element());
          }>);
  set.add("tril", {op::tril}, rule<[](Emit &e) { return triangle(e, false); }>);
  set.add("triu", {op::triu}, rule<[](Emit &e) { return triangle(e, true); }>);
  set.add("tril-indices", {op::tril_indices},
          rule<[](Emit &e) { return triangle_indices(e, false); }>);
  set.add("triu-indices", {op::triu_indices},
          rule<[](Emit &e) { return triangle_indices(e, true); }>);
  set.add("linspace", {op::linspace}, rule<linspace>);
  set.add("logspace", {op::logspace}, rule<logspace>);
  set.add("hann-window", {op::hann_window}, rule<hann_window>);
  set.add("diag-embed", {op::diag_embed}, rule<diag_embed>);
  set.add("diag", {op::diag}, rule<diag>);
  set.add("block-diag", {op::block_diag}, rule<block_diag>);
  set.add("cartesian-prod", {op::cartesian_prod}, rule<cartesian_prod>);
  set.add("diff", {op::diff}, rule<diff>);
}

} // namespace chute::aten
