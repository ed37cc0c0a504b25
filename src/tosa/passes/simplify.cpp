// tosa-simplify: operators that nothing needs.
//
//   reshape(reshape(x))            → reshape(x), or x
//   transpose(transpose(x))        → one transpose, or x
//   transpose that only moves dimensions of size 1 → reshape
//   reshape, transpose, slice of a constant        → a view of the constant
//   slice(slice(x)), with one use  → slice(x)
//   clamp(clamp(x))                → clamp(x)
//   cast(x) to its own type, identity(x), reverse along a dimension of size 1 → x
//   pad(pad(x)) with equal values  → pad(x)
//   logical_not(logical_not(x))    → x
//
// Illegal: clamps whose bounds do not meet (the outer bound wins), inner operators that others use
// where that would add work.
#include "tosa/passes.h"
#include "tosa/passes/match.h"

#include <algorithm>

namespace chute::tosa {

namespace {

bool simplify_reshape(Op &op, Rewriter &rw) {
  Value *x = op.operand(0);
  if (!op.result()->type().has_static_shape() || !x->type().has_static_shape())
    return false;
  const Dims target = static_dims(op.result());
  if (static_dims(x) == target) {
    rw.replace(op, x);
    return true;
  }
  if (const Op *inner = made_by(x, op::RESHAPE)) {
    Value *y = make_reshape(rw, op, inner->operand(0), target);
    rw.replace(op, y);
    return true;
  }
  if (!constant_of(x))
    return false;
  rw.replace(op, make_reshape(rw, op, x, target));
  return true;
}

bool simplify_transpose(Op &op, Rewriter &rw) {
  const Transposed outer = transposed(op.result());
  if (is_identity(outer.perm)) {
    rw.replace(op, outer.source);
    return true;
  }
  if (const ir::Constant *c = constant_of(outer.source)) {
    rw.replace(op, rw.before(op).constant(pass::permuted(rw.graph(), *c, outer.perm)));
    return true;
  }
  if (const Transposed inner = transposed(outer.source)) {
    Dims both;
    for (i64 p : outer.perm)
      both.push_back(inner.perm[static_cast<size_t>(p)]);
    rw.replace(op, is_identity(both) ? inner.source : make_transpose(rw, op, inner.source, both));
    return true;
  }
  if (!pass::moves_only_ones(outer.source->type().shape(), outer.perm) ||
      !op.result()->type().has_static_shape())
    return false;
  return replace_by(rw, op, make_reshape(rw, op, outer.source, static_dims(op.result())));
}

bool simplify_slice(Op &op, Rewriter &rw) {
  const auto start = constant_ints(op.operand(1)), size = constant_ints(op.operand(2));
  if (!start || !size || !op.result()->type().has_static_shape())
    return false;
  Value *x = op.operand(0);
  if (x->type() == op.result()->type()) {
    rw.replace(op, x);
    return true;
  }
  if (const ir::Constant *c = constant_of(x)) {
    for (size_t d = 0; d < start->size(); ++d)
      c = pass::sliced(rw.graph(), *c, static_cast<i64>(d), (*start)[d],
                       (*start)[d] + op.result()->type().dim(static_cast<int>(d)).value(), 1);
    rw.replace(op, rw.before(op).constant(c));
    return true;
  }
  const Op *inner = made_by(x, op::SLICE);
  const auto before = inner && x->has_one_use() ? constant_ints(inner->operand(1)) : std::nullopt;
  if (!before)
    return false;
  Dims begin;
  for (size_t d = 0; d < start->size(); ++d)
    begin.push_back((*before)[d] + (*start)[d]);
  Value *operands[] = {inner->operand(0), make_shape(rw, op, begin), op.operand(2)};
  const Type type = op.result()->type();
  rw.replace(op,
             rw.before(op).create_typed(op::SLICE, operands, {}, std::span(&type, 1))->result());
  return true;
}

bool simplify_pad(Op &op, Rewriter &rw) {
  const auto outer = constant_ints(op.operand(1));
  if (!outer)
    return false;
  Value *x = op.operand(0);
  if (std::ranges::all_of(*outer, [](i64 p) { return p == 0; })) {
    rw.replace(op, x);
    return true;
  }
  const Op *inner = made_by(x, op::PAD);
  const auto within = inner && x->has_one_use() ? constant_ints(inner->operand(1)) : std::nullopt;
  const ir::Constant *a = constant_of(op.operand(2));
  const ir::Constant *b = inner ? constant_of(inner->operand(2)) : nullptr;
  if (!within || !a || !b || !ir::same_content(*a, *b))
    return false;
  Dims pairs;
  for (size_t i = 0; i < outer->size(); ++i)
    pairs.push_back((*outer)[i] + (*within)[i]);
  Value *operands[] = {inner->operand(0), make_shape(rw, op, pairs), op.operand(2)};
  const Type type = op.result()->type();
  rw.replace(op, rw.before(op).create_typed(op::PAD, operands, {}, std::span(&type, 1))->result());
  return true;
}

bool simplify_clamp(Op &op, Rewriter &rw) {
  const Op *inner = made_by(op.operand(0), op::CLAMP);
  if (!inner || inner->attr("nan_mode") != op.attr("nan_mode"))
    return false;
  const Attr low[] = {inner->attr("min_val"), op.attr("min_val")};
  const Attr high[] = {inner->attr("max_val"), op.attr("max_val")};
  const auto value = [](Attr a) { return a.scalar_as_double(); };
  // Intervals that do not meet are left alone.
  if (value(low[1]) > value(high[0]) || value(low[0]) > value(high[1]))
    return false;
  const std::initializer_list<ir::NamedAttr> attrs = {
      {"min_val", value(low[0]) < value(low[1]) ? low[1] : low[0]},
      {"max_val", value(high[0]) < value(high[1]) ? high[0] : high[1]},
      {"nan_mode", op.attr("nan_mode")}};
  return replace_by(rw, op, rw.before(op).create(op::CLAMP, {inner->operand(0)}, attrs));
}

/// Operators that hand their operand on.
bool drop(Op &op, Rewriter &rw) {
  Value *x = op.operand(0);
  if (op.opcode() == op::REVERSE) {
    const i64 axis = op.attr("axis").as_int().value();
    if (x->type().dim(static_cast<int>(axis)) != SymInt(1))
      return false;
  }
  if (op.opcode() == op::LOGICAL_NOT) {
    const Op *inner = made_by(x, op::LOGICAL_NOT);
    if (!inner)
      return false;
    x = inner->operand(0);
  }
  if (x->type() != op.result()->type())
    return false;
  rw.replace(op, x);
  return true;
}

} // namespace

void add_simplify_patterns(pass::PatternSet &s) {
  s.add("simplify-reshape", {op::RESHAPE}, simplify_reshape);
  s.add("simplify-transpose", {op::TRANSPOSE}, simplify_transpose);
  s.add("simplify-slice", {op::SLICE}, simplify_slice);
  s.add("simplify-pad", {op::PAD}, simplify_pad);
  s.add("simplify-clamp", {op::CLAMP}, simplify_clamp);
  add_rescale_patterns(s);
  s.add("drop-no-op", {op::CAST, op::IDENTITY, op::REVERSE, op::LOGICAL_NOT}, drop);
}

void simplify(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_simplify_patterns(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::tosa
