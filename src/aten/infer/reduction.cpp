#include "aten/infer/args.h"

#include <array>

/// Reductions, scans, sorting and searching.
namespace chute::aten::rule {

using ir::ElementType;
using ir::SymInt;
using ir::Type;

namespace {

Dims reduced(InferArgs &a, const InferArgs::DimFlags &over) {
  Dims shape;
  const bool keep = a.flag("keepdim");
  const DimSpan from = a.tensor(0).shape();
  for (size_t i = 0; i < from.size(); ++i) {
    if (!over[i])
      shape.push_back(from[i]);
    else if (keep)
      shape.push_back(1);
  }
  return shape;
}

/// Over the dimensions in `dim`; all when there are none.
Dims reduced(InferArgs &a) { return reduced(a, a.dim_flags("dim", a.tensor(0).rank())); }

ElementType first_element(InferArgs &a) { return a.tensor(0).element(); }

Status values_and_indices(InferArgs &a, const Dims &shape) {
  if (a.bad())
    return a.failed();
  a.add(first_element(a), shape);
  return a.done(ElementType::I64, shape);
}

Status checked_dim(InferArgs &a, ElementType e) {
  a.dim("dim", a.tensor(0).rank(), -1);
  return a.done(e, a.tensor(0).shape());
}

} // namespace

Status sum(InferArgs &a) { return a.done(a.dtype(int_to_i64(first_element(a))), reduced(a)); }

/// The forms that skip NaN take an empty list of dimensions as none at all.
Status nan_sum(InferArgs &a) {
  return a.done(a.dtype(int_to_i64(first_element(a))),
                reduced(a, a.dim_flags("dim", a.tensor(0).rank(), true)));
}

Status nan_mean(InferArgs &a) {
  return a.done(a.dtype(first_element(a)),
                reduced(a, a.dim_flags("dim", a.tensor(0).rank(), true)));
}

Status mean(InferArgs &a) {
  const ElementType e = a.dtype(first_element(a));
  a.check(ir::is_float(e) || ir::is_complex(e), kDtypeError,
          "a mean needs a floating-point type; give dtype");
  return a.done(e, reduced(a));
}

Status reduce_same(InferArgs &a) { return a.done(first_element(a), reduced(a)); }

Status reduce_same_pair(InferArgs &a) {
  const Dims shape = reduced(a);
  if (a.bad())
    return a.failed();
  a.add(first_element(a), shape);
  return a.done(first_element(a), shape);
}

Status reduce_bool(InferArgs &a) {
  // U8 stands for bool in old programs and stays. An empty list reduces nothing.
  const ElementType e = first_element(a) == ElementType::U8 ? ElementType::U8 : ElementType::Bool;
  return a.done(e, reduced(a, a.dim_flags("dim", a.tensor(0).rank(), true)));
}

Status reduce_index(InferArgs &a) { return a.done(ElementType::I64, reduced(a)); }

Status reduce_with_indices(InferArgs &a) { return values_and_indices(a, reduced(a)); }

Status reduce_float(InferArgs &a) { return a.done(int_to_float(first_element(a)), reduced(a)); }

Status variance(InferArgs &a) { return a.done(real_element(first_element(a)), reduced(a)); }

Status variance_mean(InferArgs &a) {
  const Dims shape = reduced(a);
  if (a.bad())
    return a.failed();
  a.add(real_element(first_element(a)), shape);
  return a.done(first_element(a), shape);
}

Status vector_norm(InferArgs &a) {
  return a.done(real_element(a.dtype(first_element(a))), reduced(a));
}

Status trace(InferArgs &a) {
  a.check(a.tensor(0).rank() == 2, kShapeError, "takes a matrix");
  return a.done(int_to_i64(first_element(a)), DimSpan());
}

Status trapezoid(InferArgs &a) {
  const Type y = a.tensor(0);
  const size_t d = a.dim("dim", y.rank(), -1);
  if (!a.check(y.rank() > 0, kShapeError, "needs a dimension") || a.bad())
    return a.failed();
  Dims shape = dims_of(y);
  const bool empty = shape[d] == SymInt(0); // answered with zeros before anything is divided
  shape.erase(shape.begin() + static_cast<i64>(d));
  return a.done(empty ? y.element() : int_to_float(y.element()), shape);
}

// --- scans ---------------------------------------------------------------------------------------

Status cumulative(InferArgs &a) { return checked_dim(a, a.dtype(int_to_i64(first_element(a)))); }

Status cumulative_same(InferArgs &a) { return checked_dim(a, first_element(a)); }

Status cumulative_indices(InferArgs &a) {
  a.dim("dim", a.tensor(0).rank(), -1);
  return values_and_indices(a, dims_of(a.tensor(0)));
}

// --- sorting and searching -----------------------------------------------------------------------

Status argsort(InferArgs &a) { return checked_dim(a, ElementType::I64); }

Status topk(InferArgs &a) {
  const Type x = a.tensor(0);
  const size_t d = a.dim("dim", x.rank(), -1);
  const SymInt k = a.integer("k");
  if (a.bad())
    return a.failed();
  Dims shape = dims_of(x);
  if (!shape.empty()) {
    a.check(k.is_symbolic() || shape[d].is_symbolic() ||
                (k.value() >= 0 && k.value() <= shape[d].value()),
            kAttrError, "k is larger than the dimension");
    shape[d] = k;
  }
  return values_and_indices(a, shape);
}

Status kth_value(InferArgs &a) {
  const size_t d = a.dim("dim", a.tensor(0).rank(), -1);
  InferArgs::DimFlags over(a.tensor(0).shape().size(), false);
  if (d < over.size())
    over[d] = true;
  return values_and_indices(a, reduced(a, over));
}

Status bucketize(InferArgs &a) {
  // bucketize(self, boundaries), searchsorted(sorted_sequence, self): shaped like self.
  const u32 self = a.op().def().operands[0].name == "self" ? 0 : 1;
  return a.done(a.flag("out_int32") ? ElementType::I32 : ElementType::I64, a.tensor(self).shape());
}

Status histogram(InferArgs &a) {
  return a.done(first_element(a), std::array{a.integer("bins", 100)});
}

Status unknown_count(InferArgs &a) { return a.data_dependent("the number of results"); }

} // namespace chute::aten::rule
