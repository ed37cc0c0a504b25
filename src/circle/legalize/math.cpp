// erf, which Circle lacks; its kin is gone after expand-elementary. Error bounds are absolute, in
// f32.
#include "circle/legalize/emit.h"

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

} // namespace

void add_math_rules(pass::PatternSet &set) { set.add("erf", {a::erf}, lower<erf>); }

} // namespace chute::circle
