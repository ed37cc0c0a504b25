// Reductions, scans, arg-reductions and sorts.
#include "circle/legalize/emit.h"
#include "ir/sym_table.h"

#include <numeric>

namespace chute::circle {

namespace {

namespace a = aten::op;

/// The `dim` attribute as a list of axes; empty or None means all.
Dims axes_of(Emit &e) {
  Dims axes = e.ints("dim");
  const i64 rank = e.arg(0)->type().rank();
  for (i64 &d : axes)
    d += d < 0 ? rank : 0;
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

Value *reduce(Emit &e, OpCode code, Value *x) {
  if (x->type().rank() == 0)
    return x;
  return e.reduce(code, x, axes_of(e), e.flag("keepdim"));
}

template <OpCode code>
Value *arithmetic(Emit &e) {
  return reduce(e, code, e.cast(e.arg(0), e.element()));
}

Value *amax(Emit &e) {
  return reduce(e, e.element() == ElementType::Bool ? op::REDUCE_ANY : op::REDUCE_MAX, e.arg(0));
}

Value *any(Emit &e) { return e.cast(reduce(e, op::REDUCE_ANY, e.as_bool(e.arg(0))), e.element()); }

/// "All" is "none is not": more runtimes have REDUCE_ANY than REDUCE_ALL.
Value *all_of(Emit &e, Value *x) {
  return e(op::LOGICAL_NOT, {reduce(e, op::REDUCE_ANY, e(op::LOGICAL_NOT, {x}))});
}
Value *all(Emit &e) { return e.cast(all_of(e, e.as_bool(e.arg(0))), e.element()); }

Value *amin(Emit &e) {
  return e.element() == ElementType::Bool ? all_of(e, e.arg(0))
                                          : reduce(e, op::REDUCE_MIN, e.arg(0));
}

template <OpCode code>
Value *arg_extreme(Emit &e) {
  Value *x = e.arg(0);
  if (x->type().element() == ElementType::Bool)
    x = e.cast(x, ElementType::I32);
  if (e.attr("dim").is_none()) {
    x = e.reshape(x, SymDims{e.context().sym().product(x->type().shape())});
  }
  const i64 rank = x->type().rank();
  if (rank == 0)
    return e.scalar(e.element(), 0);
  i64 dim = e.attr("dim").is_none() ? 0 : e.integer("dim");
  dim += dim < 0 ? rank : 0;
  Value *r = e(code, {x, e.i32(dim)}, {{"output_type", of(e.element())}});
  return e.reshape(r, e.type().shape());
}

Value *cumsum(Emit &e) {
  Value *x = e.cast(e.arg(0), e.element());
  if (x->type().rank() == 0)
    return x;
  return e(op::CUMSUM, {x, e.i32(e.integer("dim"))});
}

/// Hillis and Steele: log2(n) rounds of y = y * shift(y), where the shift brings in ones.
Value *cumprod(Emit &e) {
  Value *y = e.cast(e.arg(0), e.element());
  if (y->type().rank() == 0)
    return y;
  const i64 dim = e.integer("dim");
  const SymInt extent = y->type().dim(static_cast<int>(dim));
  if (!y->type().has_static_shape())
    return e.unsupported("a product scan over a shape known only at run time");
  for (i64 step = 1; step < extent.value(); step *= 2) {
    Dims pads(static_cast<size_t>(y->type().rank()) * 2, 0);
    pads[static_cast<size_t>(dim) * 2] = step;
    Value *shifted = e.pad(e.slice(y, dim, 0, extent.value() - step), pads, 1.0);
    y = e.mul(y, shifted);
  }
  return y;
}

/// TOPK_V2 takes the greatest of the last dimension; the others by negation and transposition. A
/// single one is a reduction, which more runtimes execute.
std::vector<Value *> top(Emit &e, i64 k, i64 dim, bool largest) {
  Value *x = e.arg(0);
  const i64 rank = x->type().rank();
  dim += dim < 0 ? rank : 0;
  if (rank == 0) {
    if (k == 1)
      return {x, e.constant_ints(e.type(1).element(), Dims{}, Dims{0})};
    e.unsupported("of a tensor without dimensions");
    return {};
  }
  const ElementType element = x->type().element();
  const bool widened = element == ElementType::Bool || element == ElementType::U8;
  if (widened && !(k == 1 && element == ElementType::U8))
    x = e.cast(x, ElementType::I32);
  if (k == 1) {
    Value *value = e.reduce(largest ? op::REDUCE_MAX : op::REDUCE_MIN, x, Dims{dim}, true);
    Value *index = e(largest ? op::ARG_MAX : op::ARG_MIN, {x, e.i32(dim)},
                     {{"output_type", of(e.type(1).element())}});
    return {e.cast(value, element), e.reshape(index, e.type(1).shape())};
  }
  Dims perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(dim)], perm.back());
  x = e.transpose(x, perm);
  if (!largest)
    x = e(op::NEG, {x});
  SymDims shape(x->type().shape().begin(), x->type().shape().end());
  shape.back() = k;
  const Type types[] = {e.context().tensor_type(x->type().element(), shape),
                        e.context().tensor_type(ElementType::I32, shape)};
  Value *operands[] = {x, e.i32(k)};
  ir::Op *both = e.typed(op::TOPK_V2, operands, {}, types);
  Value *values = both->result(0);
  if (!largest)
    values = e(op::NEG, {values});
  return {e.transpose(e.cast(values, element), perm),
          e.transpose(e.cast(both->result(1), e.type(1).element()), perm)};
}

std::vector<Value *> topk(Emit &e) {
  if (!e.is_static("k")) {
    e.unsupported("a k known only at run time");
    return {};
  }
  return top(e, e.integer("k"), e.integer("dim"), e.flag("largest"));
}

std::vector<Value *> sort(Emit &e) {
  const i64 rank = e.arg(0)->type().rank();
  i64 dim = e.integer("dim");
  dim += dim < 0 ? rank : 0;
  if (rank == 0)
    return top(e, 1, 0, true);
  if (e.arg(0)->type().dim(static_cast<int>(dim)).is_symbolic()) {
    e.unsupported("along a dimension known only at run time");
    return {};
  }
  return top(e, e.arg(0)->type().dim(static_cast<int>(dim)).value(), dim, e.flag("descending"));
}

} // namespace

void add_reduction_rules(pass::PatternSet &set) {
  set.add("sum", {a::sum_dim_IntList}, lower<arithmetic<op::SUM>>);
  set.add("mean", {a::mean_dim}, lower<arithmetic<op::MEAN>>);
  set.add("prod", {a::prod_dim_int}, lower<arithmetic<op::REDUCE_PROD>>);
  set.add("amax", {a::amax}, lower<amax>);
  set.add("amin", {a::amin}, lower<amin>);
  set.add("any", {a::any_dims}, lower<any>);
  set.add("all", {a::all_dims}, lower<all>);
  set.add("argmax", {a::argmax}, lower<arg_extreme<op::ARG_MAX>>);
  set.add("argmin", {a::argmin}, lower<arg_extreme<op::ARG_MIN>>);
  set.add("cumsum", {a::cumsum}, lower<cumsum>);
  set.add("cumprod", {a::cumprod}, lower<cumprod>);
  set.add("topk", {a::topk}, lower_many<topk>);
  set.add("sort", {a::sort, a::sort_stable}, lower_many<sort>);
}

} // namespace chute::circle
