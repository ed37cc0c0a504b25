// requantize: QUANTIZE between two kinds of integers, where another operator can do its work.
//
//   quantize(quantize(x))          → quantize(x), or x where that has the result's type
//   quantize(quantize(x)) to the type of x, which only clamps from below or above
//                                  → maximum(x, bound) or minimum(x, bound)
//   quantize(negate(x)), ABS, RELU → the operator with the result's parameters
//   quantize(layer(x))             → the layer with the result's parameters; layers: convolutions,
//                                    FULLY_CONNECTED, BATCH_MATMUL, ADD, SUB, MUL
//
// All but the last are exact: they are made when all numbers that 8-bit storage holds (at most 256
// of them are tried) give the same result both ways. Bound of the last: one step of the result.
// It needs a step between that is less than twice the result's, and a range between that covers the
// result's up to half a step, so that rounding twice and rounding once differ by one at most, and
// no clamp is lost.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"
#include "quant/params.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

/// One scale, one zero point, 8 bits at most (`wide`: 16).
struct Grid {
  double scale = 0, zero = 0, low = 0, high = 0;

  static std::optional<Grid> of(Type t, int bits) {
    if (!quant::is_per_tensor(t) || ir::element_bits(t.element()) > bits)
      return {};
    const ir::Quantization &q = *t.quant();
    const quant::Range r = *quant::range_of(t.element());
    Grid g;
    g.scale = double{q.scales[0]};
    g.zero = q.zero_points.empty() ? 0 : static_cast<double>(q.zero_points[0]);
    g.low = static_cast<double>(r.min);
    g.high = static_cast<double>(r.max);
    return g;
  }
  double real(double code) const { return (code - zero) * scale; }
  double code(double real) const {
    return std::clamp(std::nearbyint(real / scale) + zero, low, high);
  }
};

double same(double x) { return x; }
double negated(double x) { return -x; }
double magnitude(double x) { return std::fabs(x); }
double positive(double x) { return x > 0 ? x : 0; }

/// Whether f on `from`, stored as `between`, stored as `to` is f on `from` stored as `to`, for all
/// that `from` holds.
bool agree(const Grid &from, const Grid &between, const Grid &to, double (*f)(double)) {
  for (double c = from.low; c <= from.high; ++c) {
    const double x = f(from.real(c));
    if (to.code(between.real(between.code(x))) != to.code(x))
      return false;
  }
  return true;
}

Op *copy_with(Rewriter &rw, Op &op, Value *x, Type type) {
  return recreate(rw, op, std::span(&x, 1), std::span(&type, 1));
}

/// The way to `between` and back only moves what lies beyond one of its ends to that end.
bool clamp_one_side(Op &op, Rewriter &rw, Value *x, const Grid &grid, const Grid &between) {
  const auto back = [&](double code) {
    return grid.code(between.real(between.code(grid.real(code))));
  };
  const double low = back(grid.low), high = back(grid.high);
  if ((low > grid.low) == (high < grid.high))
    return false;
  for (double c = grid.low; c <= grid.high; ++c)
    if (back(c) != std::clamp(c, low, high))
      return false;
  const OpCode code = low > grid.low ? op::MAXIMUM : op::MINIMUM;
  const float bound = static_cast<float>(grid.real(low > grid.low ? low : high));
  const ir::Constant *c =
      quant::quantize_values(rw.graph(), std::span(&bound, 1),
                             rw.context().tensor_type(x->type().element(), {}, x->type().quant()));
  rw.replace(op, make(rw, op, code, {x, rw.before(op).constant(c)}));
  return true;
}

bool requantize_pair(Op &op, Rewriter &rw) {
  const Op *inner = made_for_one(op.operand(0), op::QUANTIZE);
  if (!inner)
    return false;
  Value *x = inner->operand(0);
  const Type to = op.result()->type();
  const std::optional<Grid> a = Grid::of(x->type(), 8), b = Grid::of(op.operand(0)->type(), 16),
                            c = Grid::of(to, 16);
  if (!a || !b || !c)
    return false;
  if (agree(*a, *b, *c, same)) {
    rw.replace(op, x->type() == to ? x : copy_with(rw, op, x, to)->result());
    return true;
  }
  if (x->type() == to && clamp_one_side(op, rw, x, *a, *b))
    return true;
  rw.reject("the type between rounds, or clamps on both sides");
  return false;
}

bool requantize_unary(Op &op, Rewriter &rw) {
  struct Unary {
    OpCode code;
    double (*f)(double);
  };
  static constexpr std::array<Unary, 3> kUnary{Unary{op::NEG, negated}, Unary{op::ABS, magnitude},
                                               Unary{op::RELU, positive}};
  Op *p = op.operand(0)->producer();
  const auto *found = p ? std::ranges::find(kUnary, p->opcode(), &Unary::code) : kUnary.end();
  if (found == kUnary.end() || !op.operand(0)->has_one_use())
    return false;
  Value *x = p->operand(0);
  const Type to = op.result()->type();
  const std::optional<Grid> a = Grid::of(x->type(), 8), b = Grid::of(op.operand(0)->type(), 8),
                            c = Grid::of(to, 8);
  if (!a || !b || !c || x->type().element() != to.element() ||
      op.operand(0)->type().element() != to.element())
    return false;
  if (!agree(*a, *b, *c, found->f)) {
    rw.reject("the type between rounds or clamps");
    return false;
  }
  rw.replace(op, copy_with(rw, *p, x, to)->result());
  return true;
}

bool is_layer(const Op &op) {
  static constexpr std::array kLayers{op::CONV_2D,
                                      op::DEPTHWISE_CONV_2D,
                                      op::TRANSPOSE_CONV,
                                      op::FULLY_CONNECTED,
                                      op::BATCH_MATMUL,
                                      op::ADD,
                                      op::SUB,
                                      op::MUL};
  return std::ranges::find(kLayers, op.opcode()) != kLayers.end();
}

bool requantize_layer(Op &op, Rewriter &rw) {
  Op *p = op.operand(0)->producer();
  const Type between = op.operand(0)->type(), to = op.result()->type();
  if (!p || !is_layer(*p) || !op.operand(0)->has_one_use() || between.element() != to.element())
    return false;
  const std::optional<Grid> b = Grid::of(between, 16), c = Grid::of(to, 16);
  if (!b || !c)
    return false;
  const double slack = c->scale / 2;
  if (b->scale >= 2 * c->scale || b->real(b->low) > c->real(c->low) + slack ||
      b->real(b->high) < c->real(c->high) - slack) {
    rw.reject("the type between is coarser, or clamps");
    return false;
  }
  std::vector<Value *> operands;
  for (const ir::Use &u : p->operand_uses())
    operands.push_back(u.value());
  rw.replace(op, recreate(rw, *p, operands, std::span(&to, 1))->result());
  return true;
}

} // namespace

void add_requantize_rules(pass::PatternSet &set) {
  set.add("requantize-pair", {op::QUANTIZE}, requantize_pair);
  set.add("requantize-unary", {op::QUANTIZE}, requantize_unary);
  set.add("requantize-layer", {op::QUANTIZE}, requantize_layer);
}

void fuse_requantize(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_requantize_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle
