// Arithmetic, comparisons, logic, rounding and casts.
#include "tosa/legalize/emit.h"

#include <bit>
#include <cmath>
#include <limits>

namespace chute::tosa {

namespace {

namespace a = aten::op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Operand `i` in the element type of the result (torch promotes on the way).
Value *promoted(Emit &e, u32 i) { return e.cast(e.arg(i), e.element()); }

template <OpCode code>
Value *unary(Emit &e) {
  return e.unary(code, promoted(e, 0));
}

/// k when `y` is one number, 2^k, that is not the sign bit.
std::optional<i64> power_of_two(const Value *y) {
  const auto v = y->type().num_elements() == 1 ? int_constant(y) : std::nullopt;
  if (!v || (*v)[0] <= 0 || !std::has_single_bit(static_cast<u64>((*v)[0])))
    return std::nullopt;
  const int k = std::countr_zero(static_cast<u64>((*v)[0]));
  return k < 8 * static_cast<int>(ir::element_bytes(y->type().element())) - 1 ? std::optional(k)
                                                                              : std::nullopt;
}

/// Arithmetic of small integers runs in i32 and is cut back, which wraps around as torch does.
template <OpCode code, OpCode on_bool>
Value *arithmetic(Emit &e) {
  Value *x = promoted(e, 0), *y = promoted(e, 1);
  if (e.element() == ElementType::Bool)
    return e.binary(on_bool, x, y);
  if (code == op::MUL && (e.element() == ElementType::I8 || e.element() == ElementType::I16))
    for (int swap = 0; swap < 2; ++swap, std::swap(x, y))
      if (const auto k = power_of_two(y); k && x->type().rank() >= y->type().rank())
        return e.shift_left(x, *k); // cuts what leaves the type, as torch does
  x = e.widened(x);
  y = e.widened(y);
  return e.cast(code == op::MUL ? e.mul(x, y) : e.binary(code, x, y), e.element());
}

/// A constant bound makes a CLAMP, which the next one may join.
template <bool upper>
Value *extreme(Emit &e) {
  Value *x = promoted(e, 0), *y = promoted(e, 1);
  if (e.element() == ElementType::Bool)
    return e.binary(upper ? op::LOGICAL_AND : op::LOGICAL_OR, x, y);
  if (is_float(x))
    for (int swap = 0; swap < 2; ++swap, std::swap(x, y)) {
      const std::optional<double> v = splat_of(y);
      if (v && !std::isnan(*v) && y->type().num_elements() == 1 &&
          x->type().rank() >= y->type().rank())
        return e.clamp(x, upper ? -kInfinity : *v, upper ? *v : kInfinity);
    }
  x = e.widened(x);
  y = e.widened(y);
  return e.cast(e.binary(upper ? op::MINIMUM : op::MAXIMUM, x, y), e.element());
}

template <OpCode code, bool swapped, bool inverted>
Value *compare(Emit &e) {
  Value *x = e.arg(0), *y = e.arg(1);
  if (is_bool(x) && code == op::EQUAL) {
    Value *differ = e.binary(op::LOGICAL_XOR, x, y);
    return inverted ? differ : e.lnot(differ);
  }
  x = e.widened(x);
  y = e.widened(y);
  Value *r = swapped ? e.binary(code, y, x) : e.binary(code, x, y);
  return inverted ? e.lnot(r) : r;
}

template <OpCode code>
Value *logical(Emit &e) {
  return e.binary(code, e.as_bool(e.arg(0)), e.as_bool(e.arg(1)));
}

template <OpCode on_bool, OpCode on_bits>
Value *bitwise(Emit &e) {
  return e.binary(e.element() == ElementType::Bool ? on_bool : on_bits, promoted(e, 0),
                  promoted(e, 1));
}

Value *shift_right(Emit &e) {
  Value *x = promoted(e, 0), *y = promoted(e, 1);
  const int rank = std::max(x->type().rank(), y->type().rank());
  return e(op::ARITHMETIC_RIGHT_SHIFT, {e.with_rank(x, rank), e.with_rank(y, rank)},
           {{"round", of(false)}});
}
Value *shift_left(Emit &e) {
  return e.binary(op::LOGICAL_LEFT_SHIFT, promoted(e, 0), promoted(e, 1));
}

Value *bitwise_not(Emit &e) {
  return e.unary(is_bool(e.arg(0)) ? op::LOGICAL_NOT : op::BITWISE_NOT, e.arg(0));
}

Value *logical_not(Emit &e) { return e.lnot(e.as_bool(e.arg(0))); }

Value *negate(Emit &e) { return e.neg(promoted(e, 0)); }
Value *absolute(Emit &e) {
  return e.cast(e.unary(op::ABS, e.widened(promoted(e, 0))), e.element());
}

/// floor(x / y) of i32 from the quotient towards zero: one less where the remainder has a sign
/// other than the divisor's.
Value *floor_div_ints(Emit &e, Value *x, Value *y) {
  if (const auto k = power_of_two(y); k && x->type().rank() >= y->type().rank())
    return e.shift_right(x, *k);
  Value *q = e.div(x, y);
  Value *rest = e.sub(x, e.mul(q, y));
  if (const std::optional<double> v = splat_of(y); !v)
    rest = e.mul(rest, e.add(e.mul(e.sign_bit(y), -2.0), 1.0));
  else if (*v < 0)
    rest = e.sub(e.like(rest, 0), rest);
  return e.sub(q, e.sign_bit(rest));
}

Value *trunc_of(Emit &e, Value *x) {
  return e.select(e.negative(x), e.unary(op::CEIL, x), e.unary(op::FLOOR, x));
}

Value *divide(Emit &e) {
  const Attr mode = e.op.opcode() == a::div_Tensor ? Attr() : e.attr("rounding_mode");
  Value *x = promoted(e, 0), *y = promoted(e, 1);
  if (mode.is_none())
    return e.div(x, y);
  const bool floor = mode.as_string() == "floor";
  if (is_float(x)) {
    Value *q = e.div(x, y);
    return floor ? e.unary(op::FLOOR, q) : trunc_of(e, q);
  }
  if (const auto k = floor ? power_of_two(y) : std::nullopt;
      k && x->type().rank() >= y->type().rank())
    return e.shift_right(x, *k); // of 8 and 16 bits, too
  x = e.widened(x);
  y = e.widened(y);
  return e.cast(floor ? floor_div_ints(e, x, y) : e.div(x, y), e.element());
}

/// torch.remainder: sign of the divisor.
Value *remainder(Emit &e) {
  Value *x = e.widened(promoted(e, 0)), *y = e.widened(promoted(e, 1));
  Value *q = is_float(x) ? e.unary(op::FLOOR, e.div(x, y)) : floor_div_ints(e, x, y);
  return e.cast(e.sub(x, e.mul(q, y)), e.element());
}

/// torch.fmod: sign of the dividend.
Value *fmod(Emit &e) {
  Value *x = e.widened(promoted(e, 0)), *y = e.widened(promoted(e, 1));
  Value *q = is_float(x) ? trunc_of(e, e.div(x, y)) : e.div(x, y);
  return e.cast(e.sub(x, e.mul(q, y)), e.element());
}

/// x^n for a whole n by squaring.
Value *whole_power(Emit &e, Value *x, i64 n) {
  Value *result = nullptr;
  for (Value *square = x; n; n >>= 1) {
    if (n & 1)
      result = result ? e.mul(result, square) : square;
    if (n > 1)
      square = e.mul(square, square);
  }
  return result;
}

/// POW has no meaning for negative bases; these two give NaN, and zeros keep their sign.
Value *root(Emit &e, Value *x) { return e.unary(op::RECIPROCAL, e.unary(op::RSQRT, x)); }

enum class Sign : u8 { Any, NotNegative, Positive };

/// What the operators before `x`, which are lowered already, say of its sign.
Sign sign_of(const Value *x) {
  constexpr int kFurthest = 16;
  bool raised = false; // something positive is added on the way down from here
  const auto of_bound = [&](double low) {
    return !(low >= 0) ? Sign::Any : low > 0 || raised ? Sign::Positive : Sign::NotNegative;
  };
  for (int i = 0; i < kFurthest; ++i) {
    if (const auto v = splat_of(x))
      return of_bound(*v);
    const ir::Op *p = x->producer();
    if (!p)
      return Sign::Any;
    const OpCode code = p->opcode();
    if (code == op::CLAMP)
      return of_bound(p->attr("min_val").scalar_as_double());
    if (code == op::ABS || code == op::EXP || code == op::SIGMOID || code == op::POW ||
        (code == op::MUL && p->operand(0) == p->operand(1)))
      return of_bound(0); // exponentials underflow
    if (code == op::ADD) {
      const auto v = splat_of(p->operand(1));
      if (!v || !(*v >= 0))
        return Sign::Any;
      raised |= *v > 0;
    } else if (code != op::RESHAPE && code != op::TRANSPOSE && code != op::REDUCE_SUM &&
               code != op::REDUCE_MAX && code != op::REDUCE_MIN) {
      return Sign::Any;
    }
    x = p->operand(0);
  }
  return Sign::Any;
}

/// POW of the size of a base that is not zero, and what that leaves out. `whole` is the exponent
/// when it is one known number without a fraction.
Value *any_power(Emit &e, Value *x, Value *y, std::optional<double> whole, Sign base) {
  Value *zero = e.equal(x, e.like(x, 0));
  Value *size = base == Sign::Any ? e.unary(op::ABS, x) : x;
  size = e.binary(op::POW, e.select(zero, e.like(x, 1), size), y);
  Value *of_zero =
      whole ? e.like(x, std::pow(0.0, *whole))
            : e.select(e.greater(y, 0.0), e.like(y, 0),
                       e.select(e.equal(y, e.like(y, 0)), e.like(y, 1), e.like(y, kInfinity)));
  size = e.select(zero, of_zero, size);
  if (base != Sign::Any)
    return size;
  const auto is_whole = [&](Value *v) { return e.equal(v, e.unary(op::FLOOR, v)); };
  if (whole)
    return std::fmod(*whole, 2.0) == 0 ? size : e.select(e.negative(x), e.neg(size), size);
  Value *of_negative = e.select(is_whole(e.mul(y, 0.5)), size, e.neg(size));
  return e.select(e.negative(x), e.select(is_whole(y), of_negative, e.like(y, kNan)), size);
}

Value *power(Emit &e) {
  Value *x = promoted(e, 0), *y = promoted(e, 1);
  const std::optional<double> p = splat_of(y);
  const bool scalar = p && y->type().num_elements() == 1 && x->type().rank() >= y->type().rank();
  if (scalar && *p == std::floor(*p) && *p >= 1 && *p <= 64) {
    if (*p == 1)
      return x;
    // A negative base makes POW of whole numbers undefined.
    return e.cast(whole_power(e, e.widened(x), static_cast<i64>(*p)), e.element());
  }
  if (!is_float(x))
    return e.unsupported("of integers to a power that is no constant between 1 and 64",
                         "compute it in float");
  if (scalar && *p == -1)
    return e.unary(op::RECIPROCAL, x);
  if (scalar && *p == -0.5)
    return e.unary(op::RSQRT, x);
  if (scalar && *p == 0.5)
    return root(e, x);
  if (scalar && *p == std::floor(*p) && *p < 0 && *p >= -64)
    return e.unary(op::RECIPROCAL, whole_power(e, x, -static_cast<i64>(*p)));
  const Sign base = sign_of(x);
  if (base == Sign::Positive)
    return e.binary(op::POW, x, y);
  if (!scalar || *p == std::floor(*p))
    return any_power(e, x, y, scalar ? p : std::nullopt, base);
  // Zero to a negative power is infinite; TOSA takes it to a positive one.
  Value *bottom = base == Sign::Any ? e.binary(op::MAXIMUM, x, e.like(x, 0)) : x;
  Value *size = e.binary(op::POW, bottom, e.number_of(e.element(), std::abs(*p), y->type().rank()));
  size = *p < 0 ? e.unary(op::RECIPROCAL, size) : size;
  return base == Sign::Any ? e.select(e.negative(x), e.like(x, kNan), size) : size;
}

Value *where(Emit &e) { return e.select(e.as_bool(e.arg(0)), promoted(e, 1), promoted(e, 2)); }

Value *to_copy(Emit &e) { return e.cast(e.arg(0), e.element()); }

template <Value *(*fn)(Emit &, Value *)>
Value *rounding(Emit &e) {
  Value *x = e.arg(0);
  return is_float(x) ? fn(e, x) : x;
}
Value *floor_of(Emit &e, Value *x) { return e.unary(op::FLOOR, x); }
Value *ceil_of(Emit &e, Value *x) { return e.unary(op::CEIL, x); }
/// Half to even: up where the fraction is above a half, or a half behind an odd number.
Value *round_of(Emit &e, Value *x) {
  Value *low = e.unary(op::FLOOR, x);
  Value *rest = e.sub(x, low);
  Value *half = e.mul(low, 0.5);
  Value *even = e.equal(half, e.unary(op::FLOOR, half));
  Value *up = e.select(even, e.greater(rest, 0.5), e.greater_equal(rest, 0.5));
  return e.select(up, e.add(low, 1), low);
}

/// 0 for NaN, as torch.
Value *sign(Emit &e) {
  Value *x = e.widened(e.arg(0));
  if (is_bool(e.arg(0)))
    return e.arg(0);
  Value *below = e.select(e.negative(x), e.like(x, -1), e.like(x, 0));
  return e.cast(e.select(e.greater(x, 0.0), e.like(x, 1), below), e.element());
}

Value *isnan(Emit &e) {
  Value *x = e.widened(e.arg(0));
  return e.lnot(e.equal(x, x));
}
Value *isinf(Emit &e) {
  Value *x = e.widened(e.arg(0));
  if (!is_float(x))
    return e.lnot(e.equal(x, x));
  return e.equal(e.unary(op::ABS, x), kInfinity);
}

Value *sqrt(Emit &e) { return root(e, promoted(e, 0)); }

} // namespace

void add_elementwise_rules(pass::PatternSet &set) {
  set.add("abs", {a::abs}, lower<absolute>);
  set.add("neg", {a::neg}, lower<negate>);
  set.add("cos", {a::cos}, lower<unary<op::COS>>);
  set.add("sin", {a::sin}, lower<unary<op::SIN>>);
  set.add("exp", {a::exp}, lower<unary<op::EXP>>);
  set.add("log", {a::log}, lower<unary<op::LOG>>);
  set.add("erf", {a::erf}, lower<unary<op::ERF>>);
  set.add("rsqrt", {a::rsqrt}, lower<unary<op::RSQRT>>);
  set.add("reciprocal", {a::reciprocal}, lower<unary<op::RECIPROCAL>>);
  set.add("sqrt", {a::sqrt}, lower<sqrt>);
  set.add("floor", {a::floor}, lower<rounding<floor_of>>);
  set.add("ceil", {a::ceil}, lower<rounding<ceil_of>>);
  set.add("trunc", {a::trunc}, lower<rounding<trunc_of>>);
  set.add("round", {a::round}, lower<rounding<round_of>>);
  set.add("sign", {a::sign}, lower<sign>);
  set.add("isnan", {a::isnan_default}, lower<isnan>);
  set.add("isinf", {a::isinf_default}, lower<isinf>);
  set.add("logical-not", {a::logical_not}, lower<logical_not>);
  set.add("bitwise-not", {a::bitwise_not}, lower<bitwise_not>);

  set.add("add", {a::add_Tensor}, lower<arithmetic<op::ADD, op::LOGICAL_OR>>);
  set.add("sub", {a::sub_Tensor}, lower<arithmetic<op::SUB, op::LOGICAL_XOR>>);
  set.add("mul", {a::mul_Tensor}, lower<arithmetic<op::MUL, op::LOGICAL_AND>>);
  set.add("maximum", {a::maximum}, lower<extreme<false>>);
  set.add("minimum", {a::minimum}, lower<extreme<true>>);
  set.add("div", {a::div_Tensor, a::div_Tensor_mode}, lower<divide>);
  set.add("remainder", {a::remainder_Tensor}, lower<remainder>);
  set.add("fmod", {a::fmod_Tensor}, lower<fmod>);
  set.add("pow", {a::pow_Tensor_Tensor}, lower<power>);
  set.add("eq", {a::eq_Tensor}, lower<compare<op::EQUAL, false, false>>);
  set.add("ne", {a::ne_Tensor}, lower<compare<op::EQUAL, false, true>>);
  set.add("gt", {a::gt_Tensor}, lower<compare<op::GREATER, false, false>>);
  set.add("ge", {a::ge_Tensor}, lower<compare<op::GREATER_EQUAL, false, false>>);
  set.add("lt", {a::lt_Tensor}, lower<compare<op::GREATER, true, false>>);
  set.add("le", {a::le_Tensor}, lower<compare<op::GREATER_EQUAL, true, false>>);
  set.add("logical-and", {a::logical_and}, lower<logical<op::LOGICAL_AND>>);
  set.add("logical-or", {a::logical_or}, lower<logical<op::LOGICAL_OR>>);
  set.add("logical-xor", {a::logical_xor}, lower<logical<op::LOGICAL_XOR>>);
  set.add("bitwise-and", {a::bitwise_and_Tensor}, lower<bitwise<op::LOGICAL_AND, op::BITWISE_AND>>);
  set.add("bitwise-or", {a::bitwise_or_Tensor}, lower<bitwise<op::LOGICAL_OR, op::BITWISE_OR>>);
  set.add("bitwise-xor", {a::bitwise_xor_Tensor}, lower<bitwise<op::LOGICAL_XOR, op::BITWISE_XOR>>);
  set.add("shift-left", {a::bitwise_left_shift_Tensor}, lower<shift_left>);
  set.add("shift-right", {a::bitwise_right_shift_Tensor}, lower<shift_right>);
  set.add("where", {a::where_self}, lower<where>);
  set.add("cast", {a::u_to_copy}, lower<to_copy>);
}

} // namespace chute::tosa
