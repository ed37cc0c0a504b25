#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"
#include "aten/promotion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

// Special functions by the approximations that tables of functions print, in f32; and counting:
// divisors, powers, subsets, histograms.
namespace chute::aten {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Coefficients from the highest power down.
V polynomial(Emit &e, V x, std::initializer_list<double> coefficients) {
  V sum = nullptr;
  for (double k : coefficients)
    sum = sum ? e.add(e.mul(sum, x), k) : e.scalar_like(k, x);
  return sum;
}

V real_input(Emit &e) { return e.up(e.to_float(e.in())); }

/// Abramowitz and Stegun 9.8.1 and 9.8.2.
V bessel_i0(Emit &e) {
  V x = e.abs(real_input(e));
  V t = e.div(x, 3.75);
  V near = polynomial(e, e.mul(t, t),
                      {0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0});
  V large = e.maximum(x, 3.75);
  V far = polynomial(e, e.div(e.scalar_like(3.75, x), large),
                     {0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565,
                      0.00225319, 0.01328592, 0.39894228});
  far = e.mul(far, e.mul(e.exp(large), e.rsqrt(large)));
  return e.where(e.lt(x, 3.75), near, far);
}

/// log gamma of x >= 0.5: Lanczos' series with five terms behind the first.
V log_gamma_right(Emit &e, V x) {
  constexpr double kTerms[] = {76.18009172947146,  -86.50532032941677,    24.01409824083091,
                               -1.231739572450155, 0.1208650973866179e-2, -0.5395239384953e-5};
  V series = e.scalar_like(1.000000000190015, x);
  double at = 1;
  for (const double term : kTerms) {
    V below = e.add(x, at);
    series = e.add(series, e.div(e.scalar_like(term, below), below));
    at += 1;
  }
  V shifted = e.add(x, 5.5);
  V power = e.sub(e.mul(e.add(x, 0.5), e.log(shifted)), shifted);
  return e.add(power, e.log(e.div(e.mul(series, 2.5066282746310005), x)));
}

/// sin(pi x) without losing whole turns of a large x.
V sine_of_turns(Emit &e, V x) {
  V rest = e.sub(x, e.mul(e.op(op::round, {e.mul(x, 0.5)}), 2.0));
  return e.op(op::sin, {e.mul(rest, std::numbers::pi)});
}

V log_gamma(Emit &e) {
  V x = real_input(e);
  V left = e.lt(x, 0.5);
  V right = e.where(left, e.rsub(1, x), x);
  V value = log_gamma_right(e, right);
  V reflected =
      e.sub(e.log(e.div(e.scalar_like(std::numbers::pi, x), e.abs(sine_of_turns(e, x)))), value);
  V out = e.where(left, reflected, value);
  V pole = e.land(e.le(x, 0.0), e.eq(x, e.op(op::floor, {x})));
  out = e.where(e.lor(pole, e.eq(e.abs(x), kInf)), e.scalar_like(kInf, out), out);
  return out;
}

/// Seven steps of the recurrence, then the asymptotic series; reflected below 0.5.
V digamma(Emit &e) {
  V x = real_input(e);
  V left = e.lt(x, 0.5);
  V right = e.where(left, e.rsub(1, x), x);
  V steps = nullptr;
  for (int k = 0; k < 7; ++k) {
    V step = e.reciprocal(e.add(right, double(k)));
    steps = steps ? e.add(steps, step) : step;
  }
  V large = e.add(right, 7.0);
  V inverse = e.reciprocal(large);
  V square = e.mul(inverse, inverse);
  V series = e.mul(square, polynomial(e, square, {1.0 / 252, -1.0 / 120, 1.0 / 12}));
  V value = e.sub(e.sub(e.sub(e.log(large), e.mul(inverse, 0.5)), series), steps);
  // tan has the period 1 in turns of a half.
  V turn = e.mul(e.sub(x, e.op(op::round, {x})), std::numbers::pi);
  V cotangent = e.div(e.op(op::cos, {turn}), e.op(op::sin, {turn}));
  V out = e.where(left, e.sub(value, e.mul(cotangent, std::numbers::pi)), value);
  V whole = e.land(e.lt(x, 0.0), e.eq(x, e.op(op::floor, {x})));
  out = e.where(whole, e.scalar_like(kNan, out), out);
  return e.where(e.eq(x, 0.0), e.neg(e.reciprocal(x)), out);
}

/// Euclid's algorithm with as many steps as the widest operands of that type can take.
V greatest_divisor(Emit &e, V a, V b) {
  const double bits = ir::element_bits(a->type().element());
  const int steps = int(std::ceil(bits * std::numbers::ln2 / std::log(std::numbers::phi)));
  a = ir::is_signed(a->type().element()) ? e.abs(a) : a;
  b = ir::is_signed(b->type().element()) ? e.abs(b) : b;
  for (int i = 0; i < steps; ++i) {
    V done = e.eq(b, 0.0);
    V divisor = e.where(done, e.scalar_like(1, b), b);
    V rest = e.sub(a, e.mul(e.div_floor(a, divisor), divisor));
    V next = e.where(done, a, b);
    b = e.where(done, b, rest);
    a = next;
  }
  return a;
}

V divisors(Emit &e, bool multiple) {
  const auto compute = computation_type(e.root());
  if (!compute || !ir::is_integer(*compute))
    return e.reject("divisors of something that is no integer");
  V a = e.cast(e.in(0), *compute), b = e.cast(e.in(1), *compute);
  V divisor = greatest_divisor(e, a, b);
  if (!multiple)
    return divisor;
  V safe = e.where(e.eq(divisor, 0.0), e.scalar_like(1, divisor), divisor);
  V out = e.mul(e.div_floor(a, safe), b);
  return ir::is_signed(*compute) ? e.abs(out) : out;
}

V angle(Emit &e) {
  V x = e.in();
  if (ir::is_complex(x->type().element()))
    return e.reject("the angle of complex numbers");
  x = e.to_float(x);
  V out = e.where(e.lt(x, 0.0), e.scalar_like(std::numbers::pi, x), e.scalar_like(0, x));
  return ir::is_float(e.in()->type().element()) ? e.where(e.op(op::isnan_default, {x}), x, out)
                                                : out;
}

/// Columns are powers of the vector, from the highest down or rising.
V vandermonde(Emit &e) {
  V x = e.cast(e.in(), e.type().element());
  const SymInt columns = e.type().dim(1);
  if (columns.is_symbolic())
    return e.reject("as many powers as a size that is not static");
  if (columns == SymInt(0) || e.type().dim(0) == SymInt(0))
    return e.full(e.shape(), 0.0, e.type().element());
  Values powers{e.full(e.shape_of(x), 1.0, e.type().element())};
  while (i64(powers.size()) < columns.value())
    powers.push_back(e.mul(powers.back(), x));
  if (!e.flag("increasing"))
    std::reverse(powers.begin(), powers.end());
  for (V &p : powers)
    p = e.unsqueeze(p, 1);
  return e.cat(powers, 1);
}

/// All subsets of `r` places in order, as one table of positions.
V combinations(Emit &e) {
  const SymInt n = e.in()->type().dim(0);
  const i64 r = e.integer("r");
  const bool repeated = e.flag("with_replacement");
  if (n.is_symbolic())
    return e.reject("subsets of a vector whose size is not static");
  std::vector<i64> places, now(size_t(r), 0);
  for (i64 i = 0; i < r; ++i)
    now[size_t(i)] = repeated ? 0 : i;
  const auto limit = [&](i64 i) { return repeated ? n.value() - 1 : n.value() - r + i; };
  bool more = r > 0 && limit(0) >= 0;
  while (more) {
    places.insert(places.end(), now.begin(), now.end());
    i64 i = r - 1;
    while (i >= 0 && now[size_t(i)] == limit(i))
      --i;
    more = i >= 0;
    for (i64 next = more ? now[size_t(i)] + 1 : 0; more && i < r; ++i, next += repeated ? 0 : 1)
      now[size_t(i)] = next;
  }
  if (places.empty())
    return e.full(e.shape(), 0.0, e.type().element());
  return e.view(e.index_select(e.in(), 0, e.i64s(places)), e.shape());
}

/// How many elements fall into each of `bins` equal parts of [min, max], the last one closed; equal
/// bounds are those of the data, and a single value stands in the middle of a range of two.
V histogram(Emit &e) {
  V x = e.up(e.in());
  const i64 bins = e.integer("bins");
  const SymInt n = e.mul_sizes(e.shape_of(x));
  x = e.view(x, {n, 1});
  V low = e.scalar_like(e.number("min"), x), high = e.scalar_like(e.number("max"), x);
  if (e.number("min") == e.number("max")) {
    if (n == SymInt(0))
      return e.full(e.shape(), 0.0, e.type().element());
    low = e.amin(x, {0, 1}, false);
    high = e.amax(x, {0, 1}, false);
    V alone = e.eq(low, high);
    low = e.where(alone, e.sub(low, 1.0), low);
    high = e.where(alone, e.add(high, 1.0), high);
  }
  V at = e.op(op::floor, {e.mul(e.div(e.sub(x, low), e.sub(high, low)), double(bins))});
  at = e.where(e.eq(x, high), e.scalar_like(double(bins - 1), at), at);
  V inside = e.land(e.ge(x, low), e.le(x, high));
  V hit = e.land(e.eq(at, e.cast(e.arange(0, bins), at->type().element())), inside);
  return e.sum(e.cast(hit, e.type().element()), {0}, false);
}

/// The lower middle of what is a number, found by its rank among the sorted.
V nan_median(Emit &e) {
  V x = e.in();
  const SymInt n = e.mul_sizes(e.shape_of(x));
  if (!ir::is_float(x->type().element()))
    return e.op(op::median, {x});
  if (n == SymInt(0))
    return e.full({}, kNan, x->type().element());
  V flat = e.view(x, {n});
  V missing = e.op(op::isnan_default, {flat});
  ir::Op *sorted = e.multi(op::sort, {e.where(missing, e.scalar_like(kInf, flat), flat)},
                           {{"dim", Attr::of_int(0)}});
  if (!sorted)
    return nullptr;
  V count = e.sum(e.cast(e.lnot(missing), ElementType::I64), {0}, true);
  V at = e.div_floor(e.maximum(e.sub(count, 1.0), 0.0), e.scalar_like(2, count));
  V middle = e.view(e.index_select(sorted->result(0), 0, at), {});
  V none = e.view(e.eq(count, 0.0), {});
  return e.where(none, e.scalar_like(kNan, middle), middle);
}

/// Central differences of one dimension, one-sided at its ends.
V gradient_along(Emit &e, V x, int d, double step, bool second_order) {
  const SymInt n = x->type().dim(d);
  const auto at = [&](SymInt i) { return e.slice(x, d, i, e.sym().add(i, 1)); };
  const auto end = [&](i64 from, i64 way) { // the derivative at element `from`, looking inwards
    const auto near = [&](i64 k) {
      return at(from == 0 ? SymInt(way * k) : e.sym().add(n, from + way * k));
    };
    V rise = second_order
                 ? e.sub(e.sub(e.mul(near(1), 2.0), e.mul(near(0), 1.5)), e.mul(near(2), 0.5))
                 : e.sub(near(1), near(0));
    return e.div(rise, double(way) * step);
  };
  V middle = e.sub(e.slice(x, d, 2, n), e.slice(x, d, 0, e.sym().sub(n, 2)));
  return e.cat({end(0, 1), e.div(middle, 2 * step), end(-1, -1)}, d);
}

Values gradient(Emit &e) {
  V x = e.up(e.cast(e.in(), e.type().element()));
  const int rank = x->type().rank();
  const double step = e.given("spacing") ? e.number("spacing") : 1;
  const bool second_order = e.integer("edge_order") == 2;
  const Axes dims = e.given("dim") ? Axes{e.dim("dim", rank)} : e.all_dims(rank);
  Values out;
  for (const int d : dims)
    out.push_back(gradient_along(e, x, d, step, second_order));
  return out;
}

} // namespace

void add_special_rules(pass::PatternSet &set) {
  set.add("i0", {op::i0, op::special_i0}, rule<bessel_i0>);
  set.add("lgamma", {op::lgamma}, rule<log_gamma>);
  set.add("digamma", {op::digamma}, rule<digamma>);
  set.add("gcd", {op::gcd}, rule<[](Emit &e) { return divisors(e, false); }>);
  set.add("lcm", {op::lcm}, rule<[](Emit &e) { return divisors(e, true); }>);
  set.add("angle", {op::angle}, rule<angle>);
  set.add("vander", {op::vander}, rule<vandermonde>);
  set.add("combinations", {op::combinations}, rule<combinations>);
  set.add("histc", {op::histc}, rule<histogram>);
  set.add("gradient", {op::gradient_scalarint}, rule<gradient>);
  set.add("nanmedian", {op::nanmedian}, rule<nan_median>);
}

} // namespace chute::aten
