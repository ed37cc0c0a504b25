// and, or, xor of integers. No runtime at hand executes a bitwise operator, so the bits are taken
// apart by division, combined, and summed up again.
//
// A negative x has the complement of the bits of -x - 1, which is not negative: no number on the
// way is larger than the operands and the result, so runtimes that divide in floating point agree.
#include "circle/legalize/emit.h"

namespace chute::circle {

namespace {

namespace a = aten::op;

enum class Bits : u8 { And, Or, Xor };

/// The number that a constant holds throughout, read exactly.
std::optional<i64> splat_int(const Value *v) {
  const std::optional<double> d = splat_of(v);
  if (!d || *d < -9007199254740992.0 || *d > 9007199254740992.0)
    return std::nullopt; // past 2^53 a double may have been rounded
  return static_cast<i64>(*d);
}

Value *number(Emit &e, ElementType t, i64 v) { return e.constant_ints(t, {}, Dims{v}); }

/// x, or -x - 1 where `below`.
Value *folded(Emit &e, Value *x, Value *below) {
  const ElementType t = x->type().element();
  return e.select(below, e.sub(number(e, t, -1), x), x);
}

Value *is_negative(Emit &e, Value *x) {
  return e(op::LESS, {x, number(e, x->type().element(), 0)});
}

/// Quotients and remainders of numbers that are not negative.
Value *bit(Emit &e, Value *x, Value *power) {
  Value *q = e.div(x, power), *two = number(e, x->type().element(), 2);
  return e.sub(q, e.mul(e.div(q, two), two));
}

Value *modulo(Emit &e, Value *x, i64 power) {
  Value *p = number(e, x->type().element(), power);
  return e.sub(x, e.mul(e.div(x, p), p));
}

/// x & mask for a mask of one run of set bits: the difference of two remainders.
Value *and_with_run(Emit &e, Value *x, i64 mask) {
  const auto bits = static_cast<u64>(mask);
  const u64 first = bits & (~bits + 1), past = bits + first;
  if (mask <= 0 || (past & (past - 1)) || past > (u64{1} << 53) ||
      (x->type().element() == ElementType::I32 && past > (u64{1} << 30)))
    return nullptr;
  Value *below = is_negative(e, x);
  Value *r = folded(e, x, below);
  Value *run = modulo(e, r, static_cast<i64>(past));
  if (first != 1)
    run = e.sub(run, modulo(e, r, static_cast<i64>(first)));
  return e.select(below, e.sub(number(e, x->type().element(), mask), run), run);
}

Value *combine_bits(Emit &e, Bits how, Value *x, Value *y) {
  switch (how) {
  case Bits::And: return e.mul(x, y);
  case Bits::Or: return e(op::MAXIMUM, {x, y});
  case Bits::Xor: break;
  }
  return e(op::ABS, {e.sub(x, y)});
}

Value *combine_signs(Emit &e, Bits how, Value *x, Value *y) {
  switch (how) {
  case Bits::And: return e(op::LOGICAL_AND, {x, y});
  // The sum of two truths is above 0: LOGICAL_OR runs in fewer places.
  case Bits::Or:
    return e(op::LOGICAL_NOT,
             {e(op::LOGICAL_AND, {e(op::LOGICAL_NOT, {x}), e(op::LOGICAL_NOT, {y})})});
  case Bits::Xor: break;
  }
  return e(op::NOT_EQUAL, {x, y});
}

Value *general(Emit &e, Bits how, Value *x, Value *y) {
  const ElementType t = x->type().element();
  const i64 count = t == ElementType::I64 ? 63 : 31;
  Dims powers;
  for (i64 k = 0; k < count; ++k)
    powers.push_back(i64{1} << k);
  Value *power = e.constant_ints(t, Dims{count}, powers);
  const auto column = [&](Value *v) {
    SymDims shape(v->type().shape().begin(), v->type().shape().end());
    shape.emplace_back(1);
    return e.reshape(v, shape);
  };
  const auto flipped = [&](Value *bits, Value *where) { // the complement where that is true
    return e(op::ABS, {e.sub(e.cast(column(where), t), bits)});
  };
  Value *below_x = is_negative(e, x), *below_y = is_negative(e, y);
  Value *column_x = column(folded(e, x, below_x)), *column_y = column(folded(e, y, below_y));
  if (!column_x || !column_y)
    return nullptr;
  Value *bits = combine_bits(e, how, flipped(bit(e, column_x, power), below_x),
                             flipped(bit(e, column_y, power), below_y));
  Value *below = combine_signs(e, how, below_x, below_y);
  Value *weighted = e.mul(flipped(bits, below), power);
  Value *sum = e.reduce(op::SUM, weighted, Dims{weighted->type().rank() - 1}, false);
  return folded(e, sum, below);
}

template <Bits how>
Value *bitwise(Emit &e) {
  const ElementType t = e.element();
  if (t == ElementType::Bool) {
    constexpr OpCode kLogical = how == Bits::And  ? op::LOGICAL_AND
                                : how == Bits::Or ? op::LOGICAL_OR
                                                  : op::NOT_EQUAL;
    return e(kLogical, {e.arg(0), e.arg(1)});
  }
  if (t == ElementType::U64 || t == ElementType::U32)
    return e.unsupported("bitwise, of unsigned integers that wide", "cast to int64 first");
  // Narrow integers fit into 32 bits.
  const ElementType wide = t == ElementType::I64 ? t : ElementType::I32;
  Value *x = e.cast(e.arg(0), wide), *y = e.cast(e.arg(1), wide);
  Value *out = nullptr;
  if constexpr (how == Bits::And) {
    const auto on_x = splat_int(e.arg(0)), on_y = splat_int(e.arg(1));
    if (on_y && e.arg(1)->type().num_elements() == 1 && x->type().rank() == e.type().rank())
      out = and_with_run(e, x, *on_y);
    else if (on_x && e.arg(0)->type().num_elements() == 1 && y->type().rank() == e.type().rank())
      out = and_with_run(e, y, *on_x);
  }
  if (!out)
    out = general(e, how, x, y);
  return out ? e.cast(out, t) : nullptr;
}

} // namespace

void add_bit_rules(pass::PatternSet &set) {
  set.add("bitwise-and", {a::bitwise_and_Tensor}, lower<bitwise<Bits::And>>);
  set.add("bitwise-or", {a::bitwise_or_Tensor}, lower<bitwise<Bits::Or>>);
  set.add("bitwise-xor", {a::bitwise_xor_Tensor}, lower<bitwise<Bits::Xor>>);
}

} // namespace chute::circle
