// rms_norm and the softmax family.
#include "tosa/legalize/emit.h"

#include <limits>

namespace chute::tosa {

namespace {

namespace a = aten::op;

Value *rms_norm(Emit &e) {
  Value *x = e.arg(0), *weight = e.arg(1);
  const i64 rank = x->type().rank();
  Dims axes;
  i64 size = 1;
  for (i64 d = rank - static_cast<i64>(e.ints("normalized_shape").size()); d < rank; ++d) {
    axes.push_back(d);
    size *= x->type().dim(static_cast<int>(d)).value();
  }
  // torch's default is the type's epsilon.
  const double eps = e.number("eps", std::numeric_limits<float>::epsilon());
  Value *mean = e.mul(e.reduce(op::REDUCE_SUM, e.mul(x, x), axes), 1.0 / static_cast<double>(size));
  Value *y = e.mul(x, e.unary(op::RSQRT, e.add(mean, eps)));
  return weight ? e.mul(y, weight) : y;
}

template <bool logarithm>
Value *softmax(Emit &e) {
  Value *x = e.cast(e.arg(0), e.element());
  if (x->type().rank() == 0)
    return e.like(x, logarithm ? 0 : 1);
  const Dims axis{wrapped_dim(e.integer("dim"), x->type().rank())};
  x = e.sub(x, e.reduce(op::REDUCE_MAX, x, axis));
  Value *exponent = e.unary(op::EXP, x);
  Value *sum = e.reduce(op::REDUCE_SUM, exponent, axis);
  if (logarithm)
    return e.sub(x, e.unary(op::LOG, sum));
  return e.mul(exponent, e.unary(op::RECIPROCAL, sum));
}

} // namespace

void add_norm_rules(pass::PatternSet &set) {
  set.add("rms-norm", {a::rms_norm}, lower<rms_norm>);
  set.add("softmax", {a::u_softmax}, lower<softmax<false>>);
  set.add("log-softmax", {a::u_log_softmax}, lower<softmax<true>>);
}

} // namespace chute::tosa
