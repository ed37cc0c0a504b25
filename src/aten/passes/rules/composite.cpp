#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <cmath>
#include <limits>
#include <numbers>

// Distances, norms and powers of matrices, quantiles, rounding to decimals, membership.
namespace chute::aten {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

V vector_norm(Emit &e, V x, double order, const Axes &dims, bool keep) {
  Shape list(dims.begin(), dims.end());
  return e.op(op::linalg_vector_norm, {x},
              {{"ord", Attr::of_float(order)},
               {"dim", e.ctx().ints_attr(list)},
               {"keepdim", Attr::of_bool(keep)}});
}

/// Scales, rounds and scales back; a negative count rounds to tens, hundreds, ...
V round_decimals(Emit &e) {
  V x = e.in();
  const i64 decimals = e.integer("decimals");
  if (!ir::is_float(x->type().element()))
    return decimals >= 0 ? x : e.reject("integers rounded to tens");
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  if (decimals == 0)
    return e.op(op::round, {x});
  return decimals > 0 ? e.div(e.op(op::round, {e.mul(x, scale)}), scale)
                      : e.mul(e.op(op::round, {e.div(x, scale)}), scale);
}

V dist(Emit &e) {
  V d = e.to_float(e.sub(e.in(0), e.in(1)));
  return vector_norm(e, d, e.number("p"), e.all_dims(d->type().rank()), false);
}

V membership(Emit &e) {
  V x = e.in(0), found = nullptr;
  if (e.root().opcode() == op::isin_Tensor_Scalar) {
    const double value = e.number("test_element");
    found = e.eq(value == std::floor(value) ? x : e.to_float(x), value);
  } else {
    V set = e.in(1);
    const ElementType t = common_element(x, set);
    V row = e.cast(e.view(set, {e.mul_sizes(e.shape_of(set))}), t);
    const int last = x->type().rank();
    found = e.any(e.eq(e.unsqueeze(e.cast(x, t), last), row), {last}, false);
  }
  return e.flag("invert") ? e.lnot(found) : found;
}

V matrix_norm(Emit &e) {
  V x = e.cast(e.in(), e.type().element());
  const int rank = x->type().rank();
  const auto dims = e.ints("dim");
  if (dims.size() != 2 || ir::is_complex(x->type().element()))
    return e.reject("a matrix norm over other than two real dimensions");
  const int rows = e.wrap(dims[0], rank), columns = e.wrap(dims[1], rank);
  const bool keep = e.flag("keepdim");
  double order = 2;
  if (e.root().opcode() == op::linalg_matrix_norm_str_ord) {
    if (e.attr("ord").as_string() != "fro")
      return e.reject("a norm that needs singular values");
    return vector_norm(e, x, 2, {std::min(rows, columns), std::max(rows, columns)}, keep);
  }
  order = e.number("ord");
  if (std::abs(order) != 1 && std::abs(order) != kInf)
    return e.reject("a norm that needs singular values");
  const int summed = std::abs(order) == 1 ? rows : columns;
  const int other = std::abs(order) == 1 ? columns : rows;
  V sums = e.sum(e.abs(x), {summed}, true);
  V out = order > 0 ? e.amax(sums, {other}, true) : e.amin(sums, {other}, true);
  return keep ? out : e.view(out, e.shape());
}

V matrix_power(Emit &e) {
  V x = e.in();
  i64 n = e.integer("n");
  const int rank = x->type().rank();
  if (n < 0)
    return e.reject("the power of an inverse");
  if (n == 0) {
    const SymInt size = x->type().dim(rank - 1);
    V line = e.arange(0, size);
    V one = e.cast(e.eq(e.unsqueeze(line, 1), line), x->type().element());
    return e.expand(one, e.shape_of(x));
  }
  V out = nullptr;
  for (V square = x; n; n /= 2) {
    if (n % 2)
      out = out ? e.matmul(out, square) : square;
    if (n > 1)
      square = e.matmul(square, square);
  }
  return out;
}

V multi_dot(Emit &e) {
  V out = nullptr;
  for (V m : e.list(0))
    out = out ? e.matmul(out, m) : m;
  return out;
}

V vector_dot(Emit &e) {
  V product = e.mul(e.in(0), e.in(1));
  return e.sum(product, {e.dim("dim", product->type().rank())}, false);
}

/// Between the two elements of the sorted row around q (n - 1); NaN where the row has one.
V quantile(Emit &e) {
  V x = e.in();
  const int rank = x->type().rank();
  const bool all = !e.given("dim");
  if (all)
    x = e.view(x, {e.mul_sizes(e.shape_of(x))});
  const int dim = all ? 0 : e.dim("dim", rank);
  const SymInt n = x->type().dim(dim);
  if (n.is_symbolic() || n == SymInt(0))
    return e.reject("a quantile along a dimension that is not static");
  const std::string_view how = e.attr("interpolation").as_string();
  const double at = e.number("q") * static_cast<double>(n.value() - 1);
  const auto low = static_cast<i64>(std::floor(at)), high = static_cast<i64>(std::ceil(at));
  ir::Op *sorted = e.multi(op::sort, {x}, {{"dim", Attr::of_int(dim)}});
  if (!sorted)
    return nullptr;
  const auto element = [&](i64 i) { return e.slice(sorted->result(0), dim, i, i + 1); };
  V out = nullptr;
  if (how == "lower")
    out = element(low);
  else if (how == "higher")
    out = element(high);
  else if (how == "nearest")
    out = element(static_cast<i64>(std::nearbyint(at)));
  else
    out = e.add(element(low), e.mul(e.sub(element(high), element(low)),
                                    how == "midpoint" ? 0.5 : at - static_cast<double>(low)));
  V bad = e.any(e.op(op::isnan_default, {x}), {dim}, true);
  out = e.where(bad, e.scalar_like(std::numeric_limits<double>::quiet_NaN(), out), out);
  return e.view(out, e.shape());
}

/// Rows along `dim` whose norm exceeds `maxnorm` are scaled down to it.
V renorm(Emit &e) {
  V x = e.in();
  const int rank = x->type().rank(), dim = e.dim("dim", rank);
  Axes others = e.all_dims(rank);
  others.erase(others.begin() + dim);
  V norm = vector_norm(e, x, e.number("p"), others, true);
  const double limit = e.number("maxnorm");
  V factor = e.mul(e.reciprocal(e.add(norm, 1e-7)), limit);
  return e.mul(x, e.where(e.gt(norm, limit), factor, e.scalar_like(1, factor)));
}

V entropy(Emit &e) {
  V x = e.to_float(e.in());
  V inside = e.neg(e.mul(x, e.log(x)));
  V edge = e.where(e.eq(x, 0.0), e.scalar_like(0, x), e.scalar_like(-kInf, x));
  V out = e.where(e.gt(x, 0.0), inside, edge);
  return e.where(e.op(op::isnan_default, {x}), x, out);
}

V conv_tbc(Emit &e) {
  V x = e.permute(e.in(0), {1, 2, 0}), w = e.permute(e.in(1), {2, 1, 0});
  const auto one = [&](i64 v) { return e.ctx().ints_attr(Shape{v}); };
  V y = e.op(op::convolution, {x, w, e.in(2)},
             {{"stride", one(1)},
              {"padding", one(e.integer("pad"))},
              {"dilation", one(1)},
              {"transposed", Attr::of_bool(false)},
              {"output_padding", one(0)},
              {"groups", Attr::of_int(1)}});
  return e.permute(y, {2, 0, 1});
}

} // namespace

void add_composite_rules(pass::PatternSet &set) {
  set.add("round-decimals", {op::round_decimals, op::special_round}, rule<round_decimals>);
  set.add("dist", {op::dist}, rule<dist>);
  set.add("isin", {op::isin_Tensor_Tensor, op::isin_Tensor_Scalar}, rule<membership>);
  set.add("matrix-norm", {op::linalg_matrix_norm, op::linalg_matrix_norm_str_ord},
          rule<matrix_norm>);
  set.add("matrix-power", {op::linalg_matrix_power, op::matrix_power}, rule<matrix_power>);
  set.add("multi-dot", {op::linalg_multi_dot}, rule<multi_dot>);
  set.add("vecdot", {op::linalg_vecdot}, rule<vector_dot>);
  set.add("quantile", {op::quantile_scalar}, rule<quantile>);
  set.add("renorm", {op::renorm}, rule<renorm>);
  set.add("entr", {op::special_entr}, rule<entropy>);
  set.add("ndtr", {op::special_ndtr}, rule<[](Emit &e) {
            V x = e.mul(e.to_float(e.in()), -std::numbers::sqrt2 / 2);
            return e.mul(e.op(op::erfc, {x}), 0.5);
          }>);
  set.add("log-sigmoid-forward", {op::log_sigmoid_forward}, rule<[](Emit &e) -> Values {
            V y = e.op(op::log_sigmoid, {e.in()});
            if (!e.used(1))
              return {y, nullptr};
            if (e.shape(1) != e.shape()) // of another device, which saves nothing
              return {y, e.full(e.shape(1), 0.0, e.type(1).element())};
            return {y, e.exp(e.neg(e.abs(e.up(e.in()))))};
          }>);
  set.add("conv-tbc", {op::conv_tbc}, rule<conv_tbc>);
}

} // namespace chute::aten
