// Arithmetic of two stored tensors, comparisons and sums:
//
//   quantize(ADD(dequantize(a), dequantize(b)))  ->  RESCALE(ADD(RESCALE(a), RESCALE(b)))
//
// Operands are brought to one grid that is finer than the coarser of theirs by refinement() bits,
// so that rounding them costs nothing that the result's own rounding does not hide; the sum of two
// fits 32 bits.
#include "quant/params.h"
#include "tosa/quant/fold.h"

#include <algorithm>
#include <cmath>

namespace chute::tosa {

namespace {

/// Two operands as i32 on one grid.
struct Pair {
  Value *x = nullptr;
  Value *y = nullptr;
  double scale = 1; ///< of both
};

/// A real constant stored with 16 bits, or the dequantized tensor that `v` is.
std::optional<Stored> operand(Emit &e, Value *v) {
  if (const auto s = stored_of(v))
    return s;
  const ir::Constant *c = constant_of(v);
  if (!c || !c->has_data || !is_float(v))
    return std::nullopt;
  const std::vector<float> values = quant::real_values(*c);
  const auto fit = values.empty() ? std::nullopt : quant::fit(values, ElementType::I16);
  if (!fit) // 16 bits round finer than any 8-bit result, and as fine as 16-bit operands
    return std::nullopt;
  const auto *q = quant::per_tensor(e.context(), fit->scale, fit->zero_point);
  const ir::Constant *stored = quant::quantize_values(
      e.graph(), values, quant::stored_type(e.context(), v->type(), ElementType::I16, q));
  Value *plain = e.constant(stored);
  e.graph().set_type(plain, e.context().tensor_type(ElementType::I16, v->type().shape()));
  return Stored{plain, nullptr, static_cast<double>(fit->scale), fit->zero_point};
}

std::optional<Pair> aligned(Emit &e, Value *left, Value *right, bool same_grid_is_enough) {
  const auto a = operand(e, left), b = operand(e, right);
  if (!a || !b)
    return std::nullopt;
  const bool sums = a->element() == ElementType::I32 || b->element() == ElementType::I32;
  if (sums) { // no bits are left to refine with
    if (a->scale != b->scale)
      return std::nullopt;
    return Pair{centred(e, *a), centred(e, *b), a->scale};
  }
  if (same_grid_is_enough && a->scale == b->scale)
    return Pair{centred(e, *a), centred(e, *b), a->scale};
  const bool wide = a->element() == ElementType::I16 || b->element() == ElementType::I16;
  const int bits = refinement(wide ? ElementType::I16 : ElementType::I8);
  const double coarse = 2 * std::max(a->scale, b->scale), step = std::ldexp(coarse, -bits);
  Value *x = rescale(e, a->value, ElementType::I32, a->scale / step, a->zero_point, 0);
  Value *y = rescale(e, b->value, ElementType::I32, b->scale / step, b->zero_point, 0);
  if (!x || !y)
    return std::nullopt;
  return Pair{x, y, step};
}

bool finish(Emit &e, Value *sum, double scale, const Grid &g) {
  Value *out = sum ? rescale(e, sum, g.element, scale / g.scale, 0, g.zero_point) : nullptr;
  return out && e.finish(limited(e, out, g));
}

/// quantize over ADD, SUB, MAXIMUM, MINIMUM, MUL.
bool binary(ir::Op &op, pass::Rewriter &rw) {
  const ir::Op *made = op.operand(0) ? op.operand(0)->producer() : nullptr;
  const auto g = made ? grid_of(op) : std::nullopt;
  if (!g)
    return false;
  const ir::OpCode code = made->opcode();
  Emit e(op, rw);
  if (code == op::MUL) {
    const auto a = operand(e, made->operand(0)), b = operand(e, made->operand(1));
    if (!a || !b || a->element() == ElementType::I32 || b->element() == ElementType::I32)
      return false;
    Value *product = e.mul(centred(e, *a), centred(e, *b));
    return finish(e, product, a->scale * b->scale, *g);
  }
  if (code != op::ADD && code != op::SUB && code != op::MAXIMUM && code != op::MINIMUM)
    return false;
  const bool order = code == op::MAXIMUM || code == op::MINIMUM;
  const auto p = aligned(e, made->operand(0), made->operand(1), order);
  return p && finish(e, e.binary(code, p->x, p->y), p->scale, *g);
}

/// Comparisons of reals: of integers on one grid.
bool compare(ir::Op &op, pass::Rewriter &rw) {
  if (!stored_of(op.operand(0)) && !stored_of(op.operand(1)))
    return false;
  Emit e(op, rw);
  const auto p = aligned(e, op.operand(0), op.operand(1), true);
  return p && e.finish(e.binary(op.opcode(), p->x, p->y));
}

/// The quantize operator `op` on another real tensor.
Value *quantized(Emit &e, Value *real) {
  const std::vector<Attr> attrs(e.op.attrs().begin(), e.op.attrs().end());
  std::vector<Value *> operands = operands_of(e.op);
  operands[0] = real;
  const ir::Type type = e.context().tensor_type(e.type().element(), real->type().shape());
  ir::Op *made = e.graph().create(e.op.opcode(), operands, attrs, std::span(&type, 1), e.op.loc());
  e.graph().insert_before(*e.op.parent(), &e.op, made);
  return made->result();
}

/// quantize(CONCAT(a, b)) and quantize(SELECT(c, a, b)): each part is quantized.
bool choose(ir::Op &op, pass::Rewriter &rw) {
  ir::Op *made = op.operand(0) ? op.operand(0)->producer() : nullptr;
  if (!made || (made->opcode() != op::SELECT && made->opcode() != op::CONCAT) || !grid_of(op))
    return false;
  Emit e(op, rw);
  std::vector<Value *> operands;
  for (u32 i = 0; i < made->num_operands(); ++i) {
    Value *v = made->operand(i);
    operands.push_back(is_float(v) ? quantized(e, v) : v);
  }
  const std::vector<NamedAttr> attrs = attrs_of(*made);
  const ir::Type type = e.type();
  return e.finish(e.typed(made->opcode(), operands, attrs, std::span(&type, 1))->result());
}

/// quantize(CLAMP(y)) of reals that are computed: rounding keeps the order, so the integers are
/// clamped. Often to what the grid holds anyway.
bool clamp_integers(ir::Op &op, pass::Rewriter &rw) {
  const ir::Op *made = op.operand(0) ? op.operand(0)->producer() : nullptr;
  if (!made || made->opcode() != op::CLAMP || stored_of(made->operand(0)))
    return false;
  const auto g = grid_of(op);
  if (!g)
    return false;
  Emit e(op, rw);
  Grid inside = *g;
  inside.min = on_grid(*g, made->attr("min_val").scalar_as_double());
  inside.max = on_grid(*g, made->attr("max_val").scalar_as_double());
  return e.finish(limited(e, quantized(e, made->operand(0)), inside));
}

/// quantize(dequantize(x)): a change of grid.
bool requantize(ir::Op &op, pass::Rewriter &rw) {
  const auto s = stored_of(op.operand(0));
  const auto g = s ? grid_of(op) : std::nullopt;
  if (!g)
    return false;
  Emit e(op, rw);
  const auto whole = quant::range_of(g->element);
  if (s->scale == g->scale && s->zero_point == g->zero_point && s->element() == g->element) {
    if (whole && g->min <= whole->min && g->max >= whole->max) {
      rw.replace(op, s->value);
      return true;
    }
    return e.finish(limited(e, s->value, *g));
  }
  Value *x = s->value;
  Value *out = rescale(e, x, g->element, s->scale / g->scale, s->zero_point, g->zero_point);
  return out && e.finish(limited(e, out, *g));
}

/// quantize(CAST(integers)): integers are reals in steps of 1.
bool from_integers(ir::Op &op, pass::Rewriter &rw) {
  const ir::Op *cast = op.operand(0) ? op.operand(0)->producer() : nullptr;
  if (!cast || cast->opcode() != op::CAST)
    return false;
  Value *x = cast->operand(0);
  const auto g = grid_of(op);
  if (!g || x->type().element() == ElementType::None || is_float(x))
    return false;
  Emit e(op, rw);
  return finish(e, e.widened(x), 1.0, *g);
}

} // namespace

void add_quantized_sum_rules(pass::PatternSet &set) {
  const std::vector<ir::OpCode> roots = quantize_opcodes();
  set.add({"requantize", roots, requantize});
  set.add({"quantize-integers", roots, from_integers});
  set.add({"arithmetic-of-stored", roots, binary});
  set.add({"quantize-parts", roots, choose});
  set.add({"clamp-integers", roots, clamp_integers});
  set.add("compare-stored", {op::EQUAL, op::GREATER, op::GREATER_EQUAL}, compare);
}

} // namespace chute::tosa
