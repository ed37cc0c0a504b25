#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

// Running extremes, by doubling: after round r every element holds the extreme of the 2^r elements
// that end with it.
namespace chute::aten {

namespace {

V running(Emit &e, V x, int dim, bool greatest) {
  const SymInt n = x->type().dim(dim);
  if (n.is_symbolic())
    return e.reject("a running extreme along a dimension that is not static");
  for (i64 step = 1; step < n.value(); step *= 2) {
    V late = e.slice(x, dim, step, n), early = e.slice(x, dim, 0, n.value() - step);
    V both = greatest ? e.maximum(late, early) : e.minimum(late, early);
    x = e.cat({e.slice(x, dim, 0, step), both}, dim);
  }
  return x;
}

/// The index is that of the latest element that equals the extreme (or is NaN, which stays).
Values cumulative_extreme(Emit &e, bool greatest) {
  V x = e.in();
  const int rank = x->type().rank();
  if (rank == 0)
    return {x, e.scalar(0.0, ElementType::I64)};
  const int dim = e.dim("dim", rank);
  const bool is_bool = x->type().element() == ElementType::Bool;
  V given = is_bool ? e.cast(x, ElementType::I32) : x;
  V values = running(e, given, dim, greatest);
  if (!values)
    return {};
  V index = nullptr;
  if (e.used(1)) {
    V reached = e.eq(given, values);
    if (ir::is_float(given->type().element()))
      reached = e.lor(reached, e.op(op::isnan_default, {given}));
    Shape line(size_t(rank), 1);
    line[size_t(dim)] = x->type().dim(dim);
    V order = e.view(e.arange(0, x->type().dim(dim)), line);
    index = running(e, e.where(reached, e.expand(order, e.shape_of(x)), e.scalar_like(0, order)),
                    dim, true);
  }
  return {e.cast(values, x->type().element()), index};
}

} // namespace

void add_scan_rules(pass::PatternSet &set) {
  set.add("cummax", {op::cummax}, rule<[](Emit &e) { return cumulative_extreme(e, true); }>);
  set.add("cummin", {op::cummin}, rule<[](Emit &e) { return cumulative_extreme(e, false); }>);
}

} // namespace chute::aten
