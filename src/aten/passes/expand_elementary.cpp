// expand-elementary: elementary functions that targets lack, from those that all of them have.
// Error bounds are absolute, in f32.
//
//   acos, acosh, asin, asinh, atan, atan2, atanh, cosh, erfinv, expm1, log10, log1p, log2, sinh,
//   tan
#include "aten/passes/emit.h"
#include "aten/passes/passes.h"
#include "pass/pass.h"

#include <limits>
#include <numbers>

namespace chute::aten {

namespace {

/// Horner's scheme; `c` from the highest power down.
V polynomial(Emit &e, V x, std::initializer_list<double> c) {
  V sum = nullptr;
  for (double k : c)
    sum = sum ? e.add(e.mul(sum, x), k) : e.scalar_like(k, x);
  return sum;
}

V input(Emit &e) { return e.cast(e.in(), e.type().element()); }

V negated_where_negative(Emit &e, V of, V x) { return e.where(e.lt(x, 0.0), e.neg(of), of); }

/// Abramowitz and Stegun 4.4.49 on [0, 1] (error 2e-8), then reflections by octant.
V atan2_of(Emit &e, V y, V x) {
  const double pi = std::numbers::pi;
  V ax = e.abs(x), ay = e.abs(y);
  V big = e.maximum(e.maximum(ax, ay), 1e-38);
  V t = e.div(e.minimum(ax, ay), big);
  V p = polynomial(e, e.mul(t, t),
                   {0.0028662257, -0.0161657367, 0.0429096138, -0.0752896400, 0.1065626393,
                    -0.1420889944, 0.1999355085, -0.3333314528, 1.0});
  p = e.mul(p, t);
  p = e.where(e.gt(ay, ax), e.rsub(pi / 2, p), p);
  p = e.where(e.lt(x, 0.0), e.rsub(pi, p), p);
  return negated_where_negative(e, p, y);
}

V one_minus_square_root(Emit &e, V x) { return e.sqrt(e.mul(e.rsub(1, x), e.add(x, 1.0))); }

V half_sum(Emit &e, bool minus) {
  V x = input(e);
  V up = e.exp(x), down = e.exp(e.neg(x));
  return e.mul(minus ? e.sub(up, down) : e.add(up, down), 0.5);
}

/// log(|x| + sqrt(x^2 + 1)) with the sign of x: no cancellation for negative x.
V asinh_of(Emit &e) {
  V x = input(e);
  V m = e.abs(x);
  V r = e.log(e.add(m, e.sqrt(e.add(e.mul(x, x), 1.0))));
  return negated_where_negative(e, r, x);
}

/// Giles, "Approximating the erfinv function": two polynomials in -log(1 - x^2).
V erfinv_of(Emit &e) {
  V x = input(e);
  V w = e.neg(e.log(e.mul(e.rsub(1, x), e.add(x, 1.0))));
  V middle = polynomial(e, e.sub(w, 2.5),
                        {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                         0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  V root = e.sqrt(e.maximum(w, 0.0));
  V tail = polynomial(e, e.sub(root, 3.0),
                      {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                       0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  V y = e.mul(e.where(e.lt(w, 5.0), middle, tail), x);
  // The polynomials say nothing at and beyond the ends.
  const double inf = std::numeric_limits<double>::infinity();
  V size = e.abs(x);
  y = e.where(e.eq(size, 1.0), e.mul(x, inf), y);
  return e.where(e.gt(size, 1.0), e.scalar_like(std::numeric_limits<double>::quiet_NaN(), y), y);
}

} // namespace

void expand_elementary_pass(pass::PassContext &ctx) {
  static const pass::PatternSet rules = [] {
    pass::PatternSet set;
    set.add("acos", {op::acos}, rule<[](Emit &e) {
              V x = input(e);
              return atan2_of(e, one_minus_square_root(e, x), x);
            }>);
    set.add("acosh", {op::acosh}, rule<[](Emit &e) {
              V x = input(e); // the product does not cancel next to 1
              return e.log(e.add(x, e.sqrt(e.mul(e.sub(x, 1.0), e.add(x, 1.0)))));
            }>);
    set.add("asin", {op::asin}, rule<[](Emit &e) {
              V x = input(e);
              return atan2_of(e, x, one_minus_square_root(e, x));
            }>);
    set.add("asinh", {op::asinh}, rule<asinh_of>);
    set.add("atan", {op::atan}, rule<[](Emit &e) {
              V x = input(e);
              return atan2_of(e, x, e.scalar_like(1, x));
            }>);
    set.add(
        "atan2", {op::atan2},
        rule<[](Emit &e) { return atan2_of(e, input(e), e.cast(e.in(1), e.type().element())); }>);
    set.add("atanh", {op::atanh}, rule<[](Emit &e) {
              V x = input(e);
              return e.mul(e.log(e.div(e.add(x, 1.0), e.rsub(1, x))), 0.5);
            }>);
    set.add("cosh", {op::cosh}, rule<[](Emit &e) { return half_sum(e, false); }>);
    set.add("erfinv", {op::erfinv}, rule<erfinv_of>);
    // tanh(x/2) (e^x + 1): exact where e^x - 1 cancels.
    set.add("expm1", {op::expm1}, rule<[](Emit &e) {
              V x = input(e);
              return e.mul(e.tanh(e.mul(x, 0.5)), e.add(e.exp(x), 1.0));
            }>);
    set.add("log10", {op::log10},
            rule<[](Emit &e) { return e.mul(e.log(input(e)), std::numbers::log10e); }>);
    set.add("log1p", {op::log1p}, rule<[](Emit &e) { return e.log(e.add(input(e), 1.0)); }>);
    set.add("log2", {op::log2},
            rule<[](Emit &e) { return e.mul(e.log(input(e)), std::numbers::log2e); }>);
    set.add("sinh", {op::sinh}, rule<[](Emit &e) { return half_sum(e, true); }>);
    set.add("tan", {op::tan}, rule<[](Emit &e) {
              V x = input(e);
              return e.div(e.op(op::sin, {x}), e.op(op::cos, {x}));
            }>);
    return set;
  }();
  ctx.run(rules);
}

} // namespace chute::aten
