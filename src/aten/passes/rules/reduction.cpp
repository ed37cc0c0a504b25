#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

// Reductions: explicit sorted dimensions, conversions before the sum, statistics from means and
// sums.
namespace chute::aten {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool has_attr(Emit &e, std::string_view name) { return e.root().def().attr_index(name) >= 0; }

bool keeps(Emit &e) { return has_attr(e, "keepdim") && e.flag("keepdim"); }

Axes axes(Emit &e) {
  const int rank = e.in()->type().rank();
  return has_attr(e, "dim") ? e.dims("dim", rank) : e.all_dims(rank);
}

/// Whether a reduction of the core is already in its canonical form over `dims`.
bool canonical(Emit &e, const Axes &dims) {
  const Attr a = e.attr("dim");
  if (a.kind() != ir::AttrKind::Ints || dims.empty() || a.as_ints().size() != dims.size())
    return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (a.as_ints()[i] != SymInt(dims[i]))
      return false;
  return true;
}

V sum(Emit &e) {
  const ElementType t = e.type().element();
  const Axes dims = axes(e);
  if (e.root().opcode() == op::sum_dim_IntList && canonical(e, dims) &&
      e.in()->type().element() == t && e.given("dtype") == ir::is_integer(t))
    return nullptr;
  return e.sum(e.cast(e.in(), t), dims, keeps(e));
}

V mean(Emit &e) {
  const ElementType t = e.type().element();
  const Axes dims = axes(e);
  if (e.root().opcode() == op::mean_dim && canonical(e, dims) && e.in()->type().element() == t &&
      !e.given("dtype"))
    return nullptr;
  return e.mean(e.cast(e.in(), t), dims, keeps(e));
}

V prod(Emit &e) {
  const ElementType t = e.type().element();
  V x = e.cast(e.in(), t);
  const int rank = x->type().rank();
  i64 dim = 0;
  bool keep = false;
  if (e.root().opcode() == op::prod) {
    x = e.view(x, {e.mul_sizes(e.shape_of(x))});
  } else {
    dim = e.dim("dim", rank);
    keep = e.flag("keepdim");
    if (x == e.in() && e.given("dtype") == ir::is_integer(t) && rank)
      return nullptr;
    if (rank == 0)
      return x;
  }
  return e.op(op::prod_dim_int, {x},
              {{"dim", Attr::of_int(dim)},
               {"keepdim", Attr::of_bool(keep)},
               {"dtype", ir::is_integer(t) ? Attr::of_element(t) : Attr::none()}});
}

V cumulative(Emit &e) {
  const ElementType t = e.type().element();
  V x = e.cast(e.in(), t);
  if (x->type().rank() == 0)
    return x;
  if (x == e.in() && e.given("dtype") == ir::is_integer(t))
    return nullptr;
  return e.op(e.root().opcode(), {x},
              {{"dim", Attr::of_int(e.dim("dim", x->type().rank()))},
               {"dtype", ir::is_integer(t) ? Attr::of_element(t) : Attr::none()}});
}

V extreme(Emit &e, bool max) {
  const Axes dims = axes(e);
  if (has_attr(e, "dim") && canonical(e, dims))
    return nullptr;
  V x = e.in();
  if (x->type().element() == ElementType::Bool && !dims.empty())
    return max ? e.any(x, dims, keeps(e)) : e.all(x, dims, keeps(e));
  return max ? e.amax(x, dims, keeps(e)) : e.amin(x, dims, keeps(e));
}

V any_all(Emit &e, bool any) {
  // Unlike elsewhere, no dimensions are not all of them (PyTorch: allow_empty_dims).
  if (has_attr(e, "dim") && e.attr("dim").kind() == ir::AttrKind::Ints &&
      e.attr("dim").as_ints().empty())
    return e.to_bool(e.in());
  const Axes dims = axes(e);
  const ir::OpCode core = any ? op::any_dims : op::all_dims;
  if (e.root().opcode() == core && canonical(e, dims) &&
      e.in()->type().element() == ElementType::Bool)
    return nullptr;
  V x = e.to_bool(e.in());
  return any ? e.any(x, dims, keeps(e)) : e.all(x, dims, keeps(e));
}

V arg(Emit &e, ir::OpCode code, V x, std::optional<int> dim, bool keep) {
  if (x->type().rank() == 0)
    return e.full({}, 0, ElementType::I64);
  if (x->type().element() == ElementType::Bool)
    x = e.cast(x, ElementType::U8);
  const int rank = x->type().rank();
  if (!dim && rank > 1)
    x = e.view(x, {e.mul_sizes(e.shape_of(x))});
  V i = e.op(code, {x},
             {{"dim", Attr::of_int(dim.value_or(0))}, {"keepdim", Attr::of_bool(keep && dim)}});
  return dim || !keep ? i : e.view(i, Shape(size_t(rank), 1));
}

V argmax(Emit &e) {
  const bool simple =
      e.given("dim") && e.in()->type().rank() > 0 && e.in()->type().element() != ElementType::Bool;
  if (simple)
    return nullptr;
  return arg(e, e.root().opcode(), e.in(),
             e.given("dim") ? std::optional(e.dim("dim", e.in()->type().rank())) : std::nullopt,
             e.flag("keepdim"));
}

Values extreme_dim(Emit &e, bool max) {
  V x = e.in();
  const int dim = e.dim("dim", x->type().rank());
  const Axes dims = x->type().rank() ? Axes{dim} : Axes{};
  V value = nullptr, index = nullptr;
  if (e.used(0)) {
    if (x->type().element() == ElementType::Bool && !dims.empty())
      value = max ? e.any(x, dims, e.flag("keepdim")) : e.all(x, dims, e.flag("keepdim"));
    else
      value = max ? e.amax(x, dims, e.flag("keepdim")) : e.amin(x, dims, e.flag("keepdim"));
  }
  if (e.used(1))
    index = arg(e, max ? op::argmax : op::argmin, x, dim, e.flag("keepdim"));
  return {value, index};
}

/// Variance and mean over `dims`; the body runs in f32 for half types.
struct Moments {
  V variance;
  V mean;
};
Moments moments(Emit &e, bool keep) {
  V x = e.up(e.in());
  const Axes dims = axes(e);
  double correction = 1;
  if (has_attr(e, "correction"))
    correction = e.given("correction") ? e.number("correction") : 1;
  else if (has_attr(e, "unbiased"))
    correction = e.flag("unbiased") ? 1 : 0;
  SymInt count = 1;
  for (int d : dims)
    count = e.sym().mul(count, x->type().dim(d));
  V center = e.mean(x, dims, true);
  V off = e.sub(x, center);
  V squares = e.mul(off, off);
  V variance;
  if (correction == 0 || count == SymInt(0)) { // of nothing: NaN, whatever the correction
    variance = e.mean(squares, dims, keep);
  } else if (count.is_static()) {
    // Less than one degree of freedom divides by zero, as in PyTorch (inf or NaN).
    variance = e.div(e.sum(squares, dims, keep), std::max(0.0, double(count.value()) - correction));
  } else {
    if (correction != std::floor(correction)) {
      e.reject("a correction that is not whole over a symbolic number of elements");
      return {squares, center};
    }
    const SymInt freedom = e.sym().max(e.sym().sub(count, static_cast<i64>(correction)), 0);
    variance =
        e.div(e.sum(squares, dims, keep), e.scalar(Attr::of_int(freedom), x->type().element()));
  }
  V mean = center;
  if (!keep) {
    Shape s;
    for (int d = 0; d < x->type().rank(); ++d)
      if (std::find(dims.begin(), dims.end(), d) == dims.end())
        s.push_back(x->type().dim(d));
    mean = e.view(center, s);
  }
  return {variance, mean};
}

/// The p-norm over `dims`.
V norm(Emit &e, V x, double p, const Axes &dims, bool keep) {
  x = e.up(x);
  if (p == 0)
    return e.sum(e.cast(e.ne(x, 0.0), x->type().element()), dims, keep);
  if (p == 2)
    return e.sqrt(e.sum(e.mul(x, x), dims, keep));
  V a = e.abs(x);
  if (p == 1)
    return e.sum(a, dims, keep);
  if (p == kInf)
    return e.amax(a, dims, keep);
  if (p == -kInf)
    return e.amin(a, dims, keep);
  return e.pow(e.sum(e.pow(a, p), dims, keep), 1 / p);
}

V norm_rule(Emit &e) {
  const std::string_view order = has_attr(e, "ord") ? "ord" : "p";
  const double p = e.given(order) ? e.number(order) : 2;
  V x = e.in();
  if (ir::is_complex(x->type().element()))
    return e.reject("a complex norm");
  x = e.cast(x, e.type().element());
  if (e.root().opcode() == op::linalg_norm && e.given("ord") &&
      (e.given("dim") ? axes(e).size() : size_t(x->type().rank())) > 1) {
    const Axes dims = axes(e);
    return e.op(op::linalg_matrix_norm, {x},
                {{"ord", e.attr("ord")},
                 {"dim", e.ctx().ints_attr(e.given("dim") ? e.sizes("dim")
                                                          : Shape(dims.begin(), dims.end()))},
                 {"keepdim", e.attr("keepdim")}});
  }
  return norm(e, x, p, axes(e), keeps(e));
}

V logsumexp(Emit &e) {
  V x = e.up(e.to_float(e.in()));
  const Axes dims = axes(e);
  if (dims.empty())
    return x;
  if (std::ranges::any_of(dims, [&](int d) { return x->type().dim(d) == SymInt(0); }))
    return e.full(e.shape(), -kInf, x->type().element()); // the logarithm of an empty sum
  V top = e.amax(x, dims, true);
  // An infinite maximum must not meet itself in a subtraction.
  V safe = e.where(e.eq(e.abs(top), kInf), e.scalar_like(0, top), top);
  V sum = e.log(e.sum(e.exp(e.sub(x, safe)), dims, true));
  return e.view(e.add(sum, safe), e.shape());
}

V nan_free(Emit &e, V x) { return e.where(e.op(op::isnan_default, {x}), e.scalar_like(0, x), x); }

V nansum(Emit &e) {
  V x = e.in();
  if (ir::is_float(x->type().element()))
    x = nan_free(e, x);
  return e.sum(e.cast(x, e.type().element()), axes(e), keeps(e));
}

V nanmean(Emit &e) {
  V x = e.cast(e.in(), e.type().element());
  const Axes dims = axes(e);
  V there = e.cast(e.lnot(e.op(op::isnan_default, {x})), x->type().element());
  return e.div(e.sum(nan_free(e, x), dims, keeps(e)), e.sum(there, dims, keeps(e)));
}

/// The core's sort is stable: that satisfies both of PyTorch's.
ir::Op *sort(Emit &e, V x, i64 dim, bool descending) {
  return e.multi(op::sort, {x},
                 {{"dim", Attr::of_int(dim)}, {"descending", Attr::of_bool(descending)}});
}

/// The lower middle of all elements; NaN where one of them is.
V median(Emit &e) {
  V x = e.in();
  if (x->type().rank() == 0)
    return x;
  const SymInt n = e.mul_sizes(e.shape_of(x));
  ir::Op *s = sort(e, e.view(x, {n}), 0, false);
  if (!s)
    return nullptr;
  V middle = e.select(s->result(0), 0, e.sym().floordiv(e.sym().sub(n, 1), 2));
  if (!ir::is_float(x->type().element()))
    return middle;
  V has_nan = e.any(e.op(op::isnan_default, {x}), e.all_dims(x->type().rank()), false);
  return e.where(has_nan, e.scalar_like(kNan, middle), middle);
}

/// The lower of two middles. A row with a NaN has its first NaN as median; where a target's sort
/// puts it does not matter.
Values median_dim(Emit &e) {
  V x = e.in();
  const int rank = x->type().rank();
  if (rank == 0)
    return {x, e.full({}, 0, ElementType::I64)};
  const int dim = e.dim("dim", rank);
  ir::Op *s = sort(e, x, dim, false);
  if (!s)
    return {};
  const SymInt middle = e.sym().floordiv(e.sym().sub(x->type().dim(dim), 1), 2);
  V nans = ir::is_float(x->type().element()) ? e.op(op::isnan_default, {x}) : nullptr;
  V has_nan = nans ? e.any(nans, {dim}, true) : nullptr;
  Values out;
  for (u32 i = 0; i < 2; ++i) {
    if (!e.used(i)) {
      out.push_back(nullptr);
      continue;
    }
    V one = e.slice(s->result(i), dim, middle, e.sym().add(middle, 1));
    if (nans && i == 0)
      one = e.where(has_nan, e.scalar_like(kNan, one), one);
    if (nans && i == 1)
      one = e.where(has_nan,
                    e.op(op::argmax, {e.cast(nans, ElementType::I32)},
                         {{"dim", Attr::of_int(dim)}, {"keepdim", Attr::of_bool(true)}}),
                    one);
    out.push_back(e.flag("keepdim") ? one : e.squeeze(one, dim));
  }
  return out;
}

V trapezoid(Emit &e) {
  V y = e.in();
  const int dim = e.dim("dim", y->type().rank());
  const SymInt n = y->type().dim(dim);
  V pairs = e.add(e.slice(y, dim, 1, n), e.slice(y, dim, 0, e.sym().sub(n, 1)));
  return e.mul(e.sum(e.to_float(pairs), {dim}, false), e.number("dx") / 2);
}

V logcumsumexp(Emit &e) {
  V x = e.up(e.in());
  if (x->type().rank() == 0)
    return x;
  const int dim = e.dim("dim", x->type().rank());
  if (x->type().dim(dim) == SymInt(0))
    return x;
  V top = e.amax(x, {dim}, true);
  V safe = e.where(e.eq(e.abs(top), kInf), e.scalar_like(0, top), top);
  V sum = e.op(op::cumsum, {e.exp(e.sub(x, safe))}, {{"dim", Attr::of_int(dim)}});
  return e.add(e.log(sum), safe);
}

/// How many boundaries lie below each value (or not above it, with `right`).
V bucketize(Emit &e, V values, V boundaries, bool right) {
  // [.., n, 1] against [.., 1, m]; one row of boundaries serves values of any shape.
  V v = e.unsqueeze(values, values->type().rank());
  const int rank = boundaries->type().rank();
  V b = rank > 1 ? e.unsqueeze(boundaries, rank - 1) : boundaries;
  V below = right ? e.le(b, v) : e.lt(b, v);
  V count = e.sum(e.cast(below, ElementType::I64), {below->type().rank() - 1}, false);
  return e.cast(count, e.type().element());
}

V searchsorted(Emit &e) {
  if (e.in(2))
    return e.reject("searchsorted with a sorter");
  const bool right = e.given("side") ? e.attr("side").as_string() == "right" : e.flag("right");
  return bucketize(e, e.in(1), e.in(0), right);
}

/// The k-th smallest along a dimension (k from 0) with its index.
Values kth(Emit &e, SymInt k, int dim, bool keep) {
  V x = e.in();
  if (x->type().rank() == 0)
    return {x, e.full({}, 0, ElementType::I64)};
  ir::Op *s = sort(e, x, dim, false);
  if (!s)
    return {};
  Values out;
  for (u32 i = 0; i < 2; ++i) {
    V one = e.slice(s->result(i), dim, k, e.sym().add(k, 1));
    out.push_back(!e.used(i) ? nullptr : keep ? one : e.squeeze(one, dim));
  }
  return out;
}

} // namespace

void add_reduction_rules(pass::PatternSet &set) {
  set.add("sum", {op::sum, op::sum_dim_IntList}, rule<sum>);
  set.add("mean", {op::mean, op::mean_dim}, rule<mean>);
  set.add("prod", {op::prod, op::prod_dim_int}, rule<prod>);
  set.add("cumulative", {op::cumsum, op::cumprod}, rule<cumulative>);
  set.add("amax", {op::amax, op::max}, rule<[](Emit &e) { return extreme(e, true); }>);
  set.add("amin", {op::amin, op::min}, rule<[](Emit &e) { return extreme(e, false); }>);
  set.add("any", {op::any, op::any_dim, op::any_dims},
          rule<[](Emit &e) { return any_all(e, true); }>);
  set.add("all", {op::all, op::all_dim, op::all_dims},
          rule<[](Emit &e) { return any_all(e, false); }>);
  set.add("argmax", {op::argmax, op::argmin}, rule<argmax>);
  set.add("max-dim", {op::max_dim}, rule<[](Emit &e) { return extreme_dim(e, true); }>);
  set.add("min-dim", {op::min_dim}, rule<[](Emit &e) { return extreme_dim(e, false); }>);
  set.add("aminmax", {op::aminmax}, rule<[](Emit &e) {
            const Axes dims = axes(e);
            return Values{e.amin(e.in(), dims, keeps(e)), e.amax(e.in(), dims, keeps(e))};
          }>);
  set.add("var", {op::var, op::var_dim, op::var_correction},
          rule<[](Emit &e) { return moments(e, keeps(e)).variance; }>);
  set.add("std", {op::std, op::std_dim, op::std_correction},
          rule<[](Emit &e) { return e.sqrt(moments(e, keeps(e)).variance); }>);
  set.add("var-mean", {op::var_mean, op::var_mean_dim, op::var_mean_correction}, rule<[](Emit &e) {
            const Moments m = moments(e, keeps(e));
            return Values{m.variance, m.mean};
          }>);
  set.add("std-mean", {op::std_mean, op::std_mean_dim, op::std_mean_correction}, rule<[](Emit &e) {
            const Moments m = moments(e, keeps(e));
            return Values{e.sqrt(m.variance), m.mean};
          }>);
  set.add("norm",
          {op::norm_Scalar, op::norm_ScalarOpt_dim, op::norm_ScalarOpt_dim_dtype,
           op::linalg_vector_norm, op::linalg_norm},
          rule<norm_rule>);
  set.add("logsumexp", {op::logsumexp}, rule<logsumexp>);
  set.add("nansum", {op::nansum}, rule<nansum>);
  set.add("nanmean", {op::nanmean}, rule<nanmean>);
  set.add("count-nonzero", {op::count_nonzero, op::count_nonzero_dim_IntList}, rule<[](Emit &e) {
            return e.sum(e.cast(e.to_bool(e.in()), ElementType::I64), axes(e), false);
          }>);
  set.add("sort-stable", {op::sort_stable}, rule<[](Emit &e) -> Values {
            ir::Op *s = sort(e, e.in(), e.dim("dim", e.in()->type().rank()), e.flag("descending"));
            return s ? Values{s->result(0), s->result(1)} : Values{};
          }>);
  set.add("argsort", {op::argsort, op::argsort_stable}, rule<[](Emit &e) -> V {
            ir::Op *s = sort(e, e.in(), e.dim("dim", e.in()->type().rank()), e.flag("descending"));
            return s ? s->result(1) : nullptr;
          }>);
  set.add("msort", {op::msort}, rule<[](Emit &e) -> V {
            ir::Op *s = sort(e, e.in(), 0, false);
            return s ? s->result(0) : nullptr;
          }>);
  set.add("median-dim", {op::median_dim}, rule<median_dim>);
  set.add("kthvalue", {op::kthvalue}, rule<[](Emit &e) {
            return kth(e, e.integer("k") - 1, e.dim("dim", e.in()->type().rank()),
                       e.flag("keepdim"));
          }>);
  set.add("median", {op::median}, rule<median>);
  set.add("trapezoid", {op::trapezoid_dx}, rule<trapezoid>);
  set.add("logcumsumexp", {op::logcumsumexp}, rule<logcumsumexp>);
  set.add("bucketize", {op::bucketize_Tensor},
          rule<[](Emit &e) { return bucketize(e, e.in(0), e.in(1), e.flag("right")); }>);
  set.add("searchsorted", {op::searchsorted_Tensor}, rule<searchsorted>);
  set.add("trace", {op::trace}, rule<[](Emit &e) {
            V x = e.in();
            const SymInt rows = x->type().dim(0), columns = x->type().dim(1);
            V on = e.eq(e.unsqueeze(e.arange(0, rows), 1), e.unsqueeze(e.arange(0, columns), 0));
            V line = e.where(on, x, e.scalar_like(0, x));
            return e.sum(e.cast(line, e.type().element()), {0, 1}, false);
          }>);
}

} // namespace chute::aten
