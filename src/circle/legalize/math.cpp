// Elementary functions that Circle lacks, from those it has. Error bounds are absolute, in f32.
#include "circle/legalize/emit.h"

#include <numbers>

namespace chute::circle {

namespace {

namespace a = aten::op;

Value *input(Emit &e) { return e.cast(e.arg(0), e.element()); }

/// Horner's scheme; `c` from the highest power down.
Value *polynomial(Emit &e, Value *x, std::initializer_list<double> c) {
  Value *sum = nullptr;
  for (double k : c)
    sum = sum ? e.add(e.mul(sum, x), e.like(x, k)) : e.like(x, k);
  return sum;
}

Value *negated_where_negative(Emit &e, Value *of, Value *x) {
  return e.select(e(op::LESS, {x, e.like(x, 0)}), e(op::NEG, {of}), of);
}

/// Abramowitz and Stegun 4.4.49 on [0, 1] (error 2e-8), then reflections by octant.
Value *atan2_of(Emit &e, Value *y, Value *x) {
  const double pi = std::numbers::pi;
  Value *ax = e(op::ABS, {x}), *ay = e(op::ABS, {y});
  Value *big = e(op::MAXIMUM, {e(op::MAXIMUM, {ax, ay}), e.like(x, 1e-38)});
  Value *t = e.div(e(op::MINIMUM, {ax, ay}), big);
  Value *z = e.mul(t, t);
  Value *p = polynomial(e, z,
                        {0.0028662257, -0.0161657367, 0.0429096138, -0.0752896400, 0.1065626393,
                         -0.1420889944, 0.1999355085, -0.3333314528, 1.0});
  p = e.mul(p, t);
  p = e.select(e(op::GREATER, {ay, ax}), e.sub(e.like(x, pi / 2), p), p);
  p = e.select(e(op::LESS, {x, e.like(x, 0)}), e.sub(e.like(x, pi), p), p);
  return negated_where_negative(e, p, y);
}

Value *one_minus_square_root(Emit &e, Value *x) {
  Value *one = e.like(x, 1);
  return e(op::SQRT, {e.mul(e.sub(one, x), e.add(x, one))});
}

Value *atan2(Emit &e) { return atan2_of(e, input(e), e.cast(e.arg(1), e.element())); }
Value *atan(Emit &e) {
  Value *x = input(e);
  return atan2_of(e, x, e.like(x, 1));
}
Value *asin(Emit &e) {
  Value *x = input(e);
  return atan2_of(e, x, one_minus_square_root(e, x));
}
Value *acos(Emit &e) {
  Value *x = input(e);
  return atan2_of(e, one_minus_square_root(e, x), x);
}

Value *tan(Emit &e) {
  Value *x = input(e);
  return e.div(e(op::SIN, {x}), e(op::COS, {x}));
}
Value *half_sum(Emit &e, bool minus) {
  Value *x = input(e);
  Value *up = e(op::EXP, {x}), *down = e(op::EXP, {e(op::NEG, {x})});
  return e.mul(minus ? e.sub(up, down) : e.add(up, down), e.like(x, 0.5));
}
Value *sinh(Emit &e) { return half_sum(e, true); }
Value *cosh(Emit &e) { return half_sum(e, false); }

/// log(|x| + sqrt(x^2 + 1)) with the sign of x: no cancellation for negative x.
Value *asinh(Emit &e) {
  Value *x = input(e);
  Value *m = e(op::ABS, {x});
  Value *r = e(op::LOG, {e.add(m, e(op::SQRT, {e.add(e.mul(x, x), e.like(x, 1))}))});
  return negated_where_negative(e, r, x);
}
Value *acosh(Emit &e) {
  Value *x = input(e);
  return e(op::LOG, {e.add(x, e(op::SQRT, {e.sub(e.mul(x, x), e.like(x, 1))}))});
}
Value *atanh(Emit &e) {
  Value *x = input(e), *one = e.like(x, 1);
  return e.mul(e(op::LOG, {e.div(e.add(x, one), e.sub(one, x))}), e.like(x, 0.5));
}

/// tanh(x/2) (e^x + 1): exact where e^x - 1 cancels.
Value *expm1(Emit &e) {
  Value *x = input(e);
  return e.mul(e(op::TANH, {e.mul(x, e.like(x, 0.5))}), e.add(e(op::EXP, {x}), e.like(x, 1)));
}
Value *log1p(Emit &e) {
  Value *x = input(e);
  return e(op::LOG, {e.add(x, e.like(x, 1))});
}
Value *log2(Emit &e) {
  Value *x = input(e);
  return e.mul(e(op::LOG, {x}), e.like(x, std::numbers::log2e));
}
Value *log10(Emit &e) {
  Value *x = input(e);
  return e.mul(e(op::LOG, {x}), e.like(x, std::numbers::log10e));
}

/// Abramowitz and Stegun 7.1.26, error 1.5e-7.
Value *erf(Emit &e) {
  Value *x = input(e);
  Value *m = e(op::ABS, {x}), *one = e.like(x, 1);
  Value *t = e.div(one, e.add(e.mul(m, e.like(x, 0.3275911)), one));
  Value *p =
      polynomial(e, t, {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0});
  Value *r = e.sub(one, e.mul(p, e(op::EXP, {e(op::NEG, {e.mul(x, x)})})));
  return negated_where_negative(e, r, x);
}

/// Giles, "Approximating the erfinv function": two polynomials in -log(1 - x^2).
Value *erfinv(Emit &e) {
  Value *x = input(e), *one = e.like(x, 1);
  Value *w = e(op::NEG, {e(op::LOG, {e.mul(e.sub(one, x), e.add(x, one))})});
  Value *middle =
      polynomial(e, e.sub(w, e.like(x, 2.5)),
                 {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                  -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  Value *root = e(op::SQRT, {e(op::MAXIMUM, {w, e.like(x, 0)})});
  Value *tail = polynomial(e, e.sub(root, e.like(x, 3)),
                           {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                            0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  return e.mul(e.select(e(op::LESS, {w, e.like(x, 5)}), middle, tail), x);
}

} // namespace

void add_math_rules(pass::PatternSet &set) {
  set.add("acos", {a::acos}, lower<acos>);
  set.add("acosh", {a::acosh}, lower<acosh>);
  set.add("asin", {a::asin}, lower<asin>);
  set.add("asinh", {a::asinh}, lower<asinh>);
  set.add("atan", {a::atan}, lower<atan>);
  set.add("atan2", {a::atan2}, lower<atan2>);
  set.add("atanh", {a::atanh}, lower<atanh>);
  set.add("cosh", {a::cosh}, lower<cosh>);
  set.add("erf", {a::erf}, lower<erf>);
  set.add("erfinv", {a::erfinv}, lower<erfinv>);
  set.add("expm1", {a::expm1}, lower<expm1>);
  set.add("log10", {a::log10}, lower<log10>);
  set.add("log1p", {a::log1p}, lower<log1p>);
  set.add("log2", {a::log2}, lower<log2>);
  set.add("sinh", {a::sinh}, lower<sinh>);
  set.add("tan", {a::tan}, lower<tan>);
}

} // namespace chute::circle
