// tosa-fit-profile: with the profile fp, integers move and compare as f32.
//
//   RESHAPE(i: i32)       ->  CAST(RESHAPE(CAST(i: f32)): i32)      indices, small numbers
//   GREATER(x, y: i32)    ->  of upper halves, then of lower halves
//   CAST(b: bool to i32)  ->  CAST(SELECT(b, 1.0, 0.0))
//
// The floating-point profile adds, multiplies, divides and shifts i32, looks up by indices of i32
// and casts to and from floats; moving, choosing, comparing and narrowing integers is left to the
// integer profile. f32 holds whole numbers up to 2^24: i8, i16, bool and values that are known to
// be small cross as they are, other i32 tensors as two halves of 16 bits. What has no such form
// (bitwise operators, long sums, integer products) stays, and tosa-check-profile names it.
//
// Setting: tosa_profile, what `--profile` says.
#include "tosa/passes.h"
#include "tosa/quant/fold.h"
#include "tosa/verify.h"

#include <algorithm>
#include <cmath>

namespace chute::tosa {

namespace {

constexpr i64 kMostWhole = i64{1} << 24; ///< f32 holds every whole number up to here
constexpr int kHalfBits = 16;
constexpr i64 kLongestSum = 256; ///< so many halves of 16 bits add up exactly
constexpr int kFarthest = 8;     ///< operators that are looked past

bool is_stored(ElementType e) {
  return e == ElementType::I8 || e == ElementType::I16 || e == ElementType::I32;
}
bool is_stored(const Value *v) { return is_stored(v->type().element()); }

bool moves(ir::OpCode c) {
  for (const ir::OpCode known : {op::RESHAPE, op::TRANSPOSE, op::SLICE, op::TILE, op::REVERSE,
                                 op::PAD, op::CONCAT, op::GATHER, op::SCATTER, op::SELECT})
    if (c == known)
      return true;
  return false;
}

/// Whether the i-th operand of an operator that moves holds elements.
bool holds_elements(ir::OpCode c, u32 i) {
  if (c == op::CONCAT)
    return true;
  if (c == op::SELECT)
    return i > 0;
  return i == 0 || (i == 2 && (c == op::SCATTER || c == op::PAD));
}

/// A value that only selects rows of at most 2^24.
bool only_indexes(const Value *v, int depth) {
  if (!v->has_uses() || depth > kFarthest)
    return false;
  for (const ir::Use &u : v->uses()) {
    const ir::Op *user = u.owner();
    const bool looks_up = user->opcode() == op::GATHER || user->opcode() == op::SCATTER;
    if (looks_up && user->operand(1) == v && user->operand(0) != v) {
      if (user->operand(0)->type().dim(1).value() > kMostWhole)
        return false;
    } else if (!moves(user->opcode()) || looks_up || !only_indexes(user->result(), depth + 1)) {
      return false;
    }
  }
  return true;
}

/// Whether f32 holds every element exactly, as far as the operators above tell.
bool is_small(const Value *v, int depth = 0) {
  if (v->type().element() != ElementType::I32)
    return true;
  const ir::Op *p = v->producer();
  if (const auto known = int_constant(v))
    return std::ranges::all_of(*known, [](i64 x) { return std::abs(x) <= kMostWhole; });
  if (!p || depth > kFarthest)
    return false;
  if (p->opcode() == op::ARGMAX)
    return true;
  if (p->opcode() == op::CAST)
    return !is_float(p->operand(0)) && is_small(p->operand(0), depth + 1);
  if (!moves(p->opcode()))
    return false;
  for (u32 i = 0; i < p->num_operands(); ++i)
    if (holds_elements(p->opcode(), i) && !is_small(p->operand(i), depth + 1))
      return false;
  return true;
}

/// Whether a tensor of f32 holds elements of the integer type `e` and nothing else.
bool holds_integers(const Value *v, ElementType e, int depth = 0) {
  const ir::Op *p = v->producer();
  if (!p || depth > kFarthest)
    return false;
  if (const auto splat = splat_of(v))
    return *splat == 0 || *splat == 1;
  if (p->opcode() == op::CAST)
    return p->operand(0)->type().element() == e;
  if (!moves(p->opcode()))
    return false;
  for (u32 i = 0; i < p->num_operands(); ++i)
    if (holds_elements(p->opcode(), i) && !holds_integers(p->operand(i), e, depth + 1))
      return false;
  return true;
}

/// A tensor of integers as one of f32, or as two: upper (without a sign) and lower 16 bits.
using Reals = std::vector<Value *>;

Value *upper_bits(Emit &e, Value *x, i64 from) {
  return e(op::LOGICAL_RIGHT_SHIFT, {x, e.like(x, static_cast<double>(from))});
}

Reals to_reals(Emit &e, Value *x, bool small) {
  if (small)
    return {e.cast(x, ElementType::F32)};
  if (const auto known = int_constant(x)) {
    std::vector<double> high, low;
    for (const i64 v : *known) {
      high.push_back(static_cast<double>(static_cast<u32>(v) >> kHalfBits));
      low.push_back(static_cast<double>(static_cast<u32>(v) & 0xffff));
    }
    const Dims dims = static_dims(x);
    return {e.constant(ElementType::F32, dims, high), e.constant(ElementType::F32, dims, low)};
  }
  Value *high = upper_bits(e, x, kHalfBits);
  Value *low = e.sub(x, e.shift_left(high, kHalfBits));
  return {e.cast(high, ElementType::F32), e.cast(low, ElementType::F32)};
}

/// CAST alone: these reals are whole.
Value *to_integer(Emit &e, Value *x, ElementType to) {
  return e.typed(op::CAST, {x}, {}, e.context().tensor_type(to, x->type().shape()));
}
Value *from_reals(Emit &e, const Reals &x, ElementType to) {
  Value *high = to_integer(e, x[0], to);
  return x.size() == 1 ? high : e.add(e.shift_left(high, kHalfBits), to_integer(e, x[1], to));
}

/// The operator on reals instead, once per half.
bool as_reals(Emit &e, bool small) {
  const ir::Op &op = e.op;
  std::vector<Reals> parts;
  for (u32 i = 0; i < op.num_operands(); ++i) {
    Value *v = op.operand(i);
    const bool elements = holds_elements(op.opcode(), i);
    parts.push_back(elements ? to_reals(e, v, small) : Reals{v});
  }
  const std::vector<NamedAttr> attrs = attrs_of(op);
  const ir::Type type = e.context().with_element(op.result()->type(), ElementType::F32);
  Reals out;
  for (size_t half = 0; half < (small ? 1 : 2); ++half) {
    std::vector<Value *> operands;
    for (const Reals &p : parts)
      operands.push_back(p[std::min(half, p.size() - 1)]);
    out.push_back(e.typed(op.opcode(), operands, attrs, std::span(&type, 1))->result());
  }
  return e.finish(from_reals(e, out, e.element()));
}

bool move(Emit &e) {
  if (!is_stored(e.element()))
    return false;
  bool small = only_indexes(e.op.result(), 0);
  if (!small) {
    small = true;
    for (u32 i = 0; i < e.op.num_operands(); ++i)
      small = small && (!holds_elements(e.op.opcode(), i) || is_small(e.op.operand(i)));
  }
  return as_reals(e, small);
}

/// The order of two tensors of integers.
Value *ordered(Emit &e, ir::OpCode code, Value *x, Value *y) {
  const bool small = is_small(x) && is_small(y);
  Reals a = to_reals(e, x, small), b = to_reals(e, y, small);
  if (small)
    return e(code, {a[0], b[0]});
  // With their signs: 65536 less where the upper half begins with a one.
  if (code != op::EQUAL)
    for (Value **upper : {&a[0], &b[0]})
      *upper = e.select(e.greater(e.like(*upper, 32768), *upper), *upper, e.sub(*upper, 65536.0));
  Value *same = e.equal(a[0], b[0]), *low = e(code, {a[1], b[1]});
  Value *both = e(op::LOGICAL_AND, {same, low});
  return code == op::EQUAL ? both : e(op::LOGICAL_OR, {e.greater(a[0], b[0]), both});
}

bool compare(Emit &e) {
  return is_stored(e.arg(0)) && e.finish(ordered(e, e.op.opcode(), e.arg(0), e.arg(1)));
}

bool extreme(Emit &e) {
  if (!is_stored(e.arg(0)))
    return false;
  const bool upper = e.op.opcode() == op::MAXIMUM;
  Value *x = e.arg(0), *y = e.arg(1);
  Value *first = upper ? ordered(e, op::GREATER, x, y) : ordered(e, op::GREATER, y, x);
  const bool small = is_small(x) && is_small(y);
  const Reals a = to_reals(e, x, small), b = to_reals(e, y, small);
  Reals out;
  for (size_t i = 0; i < a.size(); ++i)
    out.push_back(e.select(first, a[i], b[i]));
  return e.finish(from_reals(e, out, e.element()));
}

/// x times 1 or -1.
bool absolute(Emit &e) {
  if (e.element() != ElementType::I32)
    return false;
  Value *x = e.arg(0);
  return e.finish(e.mul(x, e.add(e.mul(e.sign_bit(x), -2.0), 1.0)));
}

bool negate(Emit &e) {
  return e.element() == ElementType::I32 && e.finish(e.sub(e.like(e.arg(0), 0), e.arg(0)));
}

/// Without the sign, then the bits that the sign would have filled.
bool shift_right(Emit &e) {
  const auto by = splat_of(e.arg(1));
  if (!by || !(*by > 0) || e.attr("round").as_bool() || !is_stored(e.element()))
    return false;
  Value *x = e.arg(0);
  if (e.element() != ElementType::I32)
    x = to_integer(e, e.cast(x, ElementType::F32), ElementType::I32);
  const auto bits = static_cast<i64>(*by);
  Value *y = e.add(upper_bits(e, x, bits),
                   e.mul(e.sign_bit(x), -std::ldexp(1.0, 32 - static_cast<int>(bits))));
  return e.finish(e.element() == ElementType::I32
                      ? y
                      : to_integer(e, e.cast(y, ElementType::F32), e.element()));
}

bool reduce(Emit &e) {
  if (!is_stored(e.element()))
    return false;
  const bool small = is_small(e.arg(0));
  const i64 n = e.arg(0)->type().dim(static_cast<int>(e.integer("axis"))).value();
  if (e.op.opcode() == op::REDUCE_SUM)
    return n <= kLongestSum && as_reals(e, false);
  return small && as_reals(e, true);
}

bool cast(Emit &e) {
  Value *x = e.arg(0);
  const ElementType from = x->type().element(), to = e.element();
  if (from == ElementType::Bool && is_stored(to)) {
    const int rank = x->type().rank();
    return e.finish(to_integer(
        e,
        e.select(x, e.number_of(ElementType::F32, 1, rank), e.number_of(ElementType::F32, 0, rank)),
        to));
  }
  if (!is_stored(from))
    return false;
  if (to == ElementType::Bool) // no integer but 0 becomes 0.0
    return e.finish(e.lnot(e.equal(e.cast(x, ElementType::F32), 0.0)));
  if (!is_stored(to))
    return false;
  const bool cut = ir::element_bytes(to) < ir::element_bytes(from);
  if (cut && from != ElementType::I32) // i16 to i8: by way of i32
    return e.finish(e(op::CAST, {to_integer(e, e.cast(x, ElementType::F32), ElementType::I32)}));
  if (cut) { // keeps the low bits, where a CAST of floats would saturate
    const i64 bits = 8 * static_cast<i64>(ir::element_bytes(to));
    x = e.sub(x, e.shift_left(upper_bits(e, x, bits), bits));
    x = e.sub(x, e.shift_left(upper_bits(e, x, bits - 1), bits));
  }
  return e.finish(to_integer(e, e.cast(x, ElementType::F32), to));
}

/// CAST(CAST(x: integer): f32) is x where x holds such integers.
bool cast_back(ir::Op &op, pass::Rewriter &rw) {
  const ir::Op *inner = op.operand(0)->producer();
  if (op.result()->type().element() != ElementType::F32 || !inner || inner->opcode() != op::CAST)
    return false;
  Value *x = inner->operand(0);
  if (x->type().element() != ElementType::F32 ||
      !holds_integers(x, inner->result()->type().element()))
    return false;
  rw.replace(op, x);
  return true;
}

Target fp_target() {
  Target t;
  t.minor = 1;
  t.features = feature::kAll & ~(feature::kInt | feature::kInt16 | feature::kInt4 |
                                 feature::kInt64 | feature::kDoubleRound | feature::kInexactRound);
  t.level_8k = false;
  return t;
}

/// Shown to `rule` when only the integer profile has the operator.
template <bool (*rule)(Emit &)>
bool fit(ir::Op &op, pass::Rewriter &rw) {
  static const Target fp = fp_target();
  const auto bad = check_operator(op, fp);
  if (!bad || bad->code != "tosa.profile")
    return false;
  Emit e(op, rw);
  return rule(e);
}

const pass::PatternSet &patterns() {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    s.add("move-as-floats",
          {op::RESHAPE, op::TRANSPOSE, op::SLICE, op::TILE, op::REVERSE, op::PAD, op::CONCAT,
           op::GATHER, op::SCATTER, op::SELECT},
          fit<move>);
    s.add("compare-as-floats", {op::EQUAL, op::GREATER, op::GREATER_EQUAL}, fit<compare>);
    s.add("extreme-by-choice", {op::MAXIMUM, op::MINIMUM}, fit<extreme>);
    s.add("absolute-by-sign", {op::ABS}, fit<absolute>);
    s.add("negate-by-difference", {op::NEGATE}, fit<negate>);
    s.add("shift-without-sign", {op::ARITHMETIC_RIGHT_SHIFT}, fit<shift_right>);
    s.add("reduce-as-floats", {op::REDUCE_SUM, op::REDUCE_MAX, op::REDUCE_MIN}, fit<reduce>);
    s.add("cast-by-float", {op::CAST}, fit<cast>);
    s.add("cast-back", {op::CAST}, cast_back);
    return s;
  }();
  return set;
}

std::string_view profile_of(const pass::PassContext &ctx) {
  const auto at = ctx.settings.find("tosa_profile");
  return at == ctx.settings.end() ? std::string_view() : std::string_view(at->second);
}

} // namespace

void fit_profile(pass::PassContext &ctx) {
  if (profile_of(ctx) != "fp")
    return;
  LegalizeState state;
  ctx.run(patterns(), &state);
}

void check_profile(pass::PassContext &ctx) {
  const std::string_view profile = profile_of(ctx);
  Target target = fp_target();
  if (profile == "int")
    target.features =
        feature::kAll & ~(feature::kFp | feature::kBf16 | feature::kFp8e4m3 | feature::kFp8e5m2 |
                          feature::kFft | feature::kMxfp | feature::kMxfpConv);
  else if (profile != "fp")
    target.features = feature::kAll;
  target.level_8k = true;
  validate(ctx.graph, target, ctx.diagnostics, ErrorKind::Unsupported,
           "convert with --profile int+fp, which allows both");
}

} // namespace chute::tosa
