// tosa-sink-layouts: moves TRANSPOSE and RESHAPE from operands to results, where they meet their
// inverse.
//
//   tanh(transpose(x, p))                     → transpose(tanh(x), p)
//   add(transpose(x, p), transpose(y, p))     → transpose(add(x, y), p)
//   mul(transpose(x, p), constant)            → transpose(mul(x, constant permuted), p)
//   concat, pad, slice, tile, reverse, reductions, rescale, table of transposes: axes,
//   per-dimension
//     operands follow the permutation
//   tanh(reshape(x))                          → reshape(tanh(x))
//   add(reshape(x), reshape(y)), mul(reshape(x), constant of the last dimension): likewise
//
// Other operands of an elementwise operator may be constants, values of one element, or values
// whose permutation only moves dimensions of size 1 (a RESHAPE).
//
// Illegal or left alone: operands in different layouts; a transpose or reshape that another user
// needs as it is (moving it would add one); i48 tensors; the last of more than four transposes and
// reshapes in a row, which would carry the whole row through the graph one by one. Ends because
// every step moves towards the outputs. Cost follows the number of steps: a step looks at its
// operands' users, 16 at most.
#include "tosa/passes.h"
#include "tosa/passes/match.h"

#include <algorithm>

namespace chute::tosa {

namespace {

constexpr int kMostUsersChecked = 16;
constexpr int kMostInARow = 4;

bool is_elementwise(const Op &o) {
  if (o.has(ir::trait::kElementwise) || o.opcode() == op::IDENTITY)
    return true;
  return o.opcode() == op::TABLE || (o.opcode() == op::RESCALE && !o.attr("per_channel").as_bool());
}

/// Operators that transposes can move through, as far as the operator's kind tells.
bool absorbs_transpose(const Op &user) {
  const OpCode c = user.opcode();
  return is_elementwise(user) || c == op::TRANSPOSE || c == op::CONCAT || c == op::PAD ||
         c == op::SLICE || c == op::TILE || c == op::REVERSE || user.has(ir::trait::kReduction);
}
bool absorbs_reshape(const Op &user) {
  return is_elementwise(user) || user.opcode() == op::RESHAPE;
}

/// Whether `v` is at the end of more layout operators than one place needs.
bool ends_long_row(const Value *v) {
  int n = 0;
  for (const Op *o = v->producer();
       o && (o->opcode() == op::TRANSPOSE || o->opcode() == op::RESHAPE);
       o = o->operand(0)->producer())
    if (++n > kMostInARow)
      return true;
  return false;
}

/// Whether the operator that makes `v` is gone once it has moved through its users.
bool leaves(const Value *v, bool (*absorbs)(const Op &)) {
  if (v->type().element() == ElementType::I48 || ends_long_row(v))
    return false;
  int n = 0;
  for (ir::Use *u = v->first_use(); u; u = u->next())
    if (++n > kMostUsersChecked || !absorbs(*u->owner()))
      return false;
  return true;
}

Transposed sinkable(const Value *v) {
  Transposed t = transposed(v);
  if (t && !leaves(v, absorbs_transpose))
    t.source = nullptr;
  return t;
}

/// An operand of an elementwise operator of rank `rank`, permuted by `inv`; null when that costs.
Value *follow(Op &op, Rewriter &rw, Value *v, size_t rank, std::span<const i64> inv, bool dry) {
  const std::span<const SymInt> given = v->type().shape();
  if (pass::has_elements(given, 1))
    return v;
  if (given.size() != rank)
    return nullptr;
  if (const ir::Constant *c = constant_of(v))
    return dry ? v : rw.before(op).constant(pass::permuted(rw.graph(), *c, inv));
  if (!pass::moves_only_ones(given, inv) || !v->type().has_static_shape())
    return nullptr;
  Dims moved;
  for (i64 p : inv)
    moved.push_back(given[static_cast<size_t>(p)].value());
  return dry ? v : make_reshape(rw, op, v, moved);
}

bool replace_transposed(Op &op, Rewriter &rw, Op *moved, std::span<const i64> perm) {
  Value *result = make_transpose(rw, op, moved->result(), perm);
  rw.graph().set_type(result, op.result()->type());
  rw.replace(op, result);
  return true;
}

bool through_elementwise(Op &op, Rewriter &rw) {
  if (!is_elementwise(op))
    return false;
  const auto rank = static_cast<size_t>(op.result()->type().rank());
  Transposed first;
  for (const ir::Use &u : op.operand_uses()) {
    Transposed t = sinkable(u.value());
    if (t && t.perm.size() == rank) {
      first = std::move(t);
      break;
    }
  }
  if (!first)
    return false;
  const Dims inv = pass::inverse(first.perm);
  std::vector<Value *> operands;
  for (const bool dry : {true, false}) {
    operands.clear();
    for (u32 i = 0; i < op.num_operands(); ++i) {
      Value *v = op.operand(i);
      const Transposed t = transposed(v);
      // The table of TABLE has no dimensions in common with the result.
      const bool apart = op.opcode() == op::TABLE && i == 1;
      operands.push_back(apart                       ? v
                         : t && t.perm == first.perm ? t.source
                                                     : follow(op, rw, v, rank, inv, dry));
      if (!operands.back()) {
        rw.reject("operands in different layouts");
        return false;
      }
    }
  }
  const Type type = pass::permuted_type(rw.context(), op.result()->type(), inv);
  return replace_transposed(op, rw, pass::recreate(rw, op, operands, std::span(&type, 1)),
                            first.perm);
}

/// `axis` of the moved operator.
bool with_axis(Op &op, Rewriter &rw, std::span<Value *const> operands, const Dims &perm) {
  const auto slot = static_cast<u32>(op.def().attr_index("axis"));
  const i64 axis = perm[static_cast<size_t>(op.attr(slot).as_int().value())];
  const Type type = pass::permuted_type(rw.context(), op.result()->type(), pass::inverse(perm));
  Op *moved = pass::recreate(rw, op, operands, std::span(&type, 1));
  rw.graph().set_attr(moved, slot, Attr::of_int(axis));
  return replace_transposed(op, rw, moved, perm);
}

bool through_axis(Op &op, Rewriter &rw) {
  const Transposed t = sinkable(op.operand(0));
  return t && with_axis(op, rw, std::span(&t.source, 1), t.perm);
}

bool through_concat(Op &op, Rewriter &rw) {
  Transposed first;
  for (const ir::Use &u : op.operand_uses())
    if (Transposed t = sinkable(u.value()); t && !first)
      first = std::move(t);
  if (!first)
    return false;
  std::vector<Value *> operands;
  for (const ir::Use &u : op.operand_uses()) {
    const Transposed t = transposed(u.value());
    if (t && t.perm == first.perm)
      operands.push_back(t.source);
    else if (constant_of(u.value()))
      operands.push_back(u.value());
    else
      return false;
  }
  const Dims inv = pass::inverse(first.perm);
  for (Value *&v : operands)
    if (const ir::Constant *c = constant_of(v))
      v = rw.before(op).constant(pass::permuted(rw.graph(), *c, inv));
  return with_axis(op, rw, operands, first.perm);
}

/// PAD, SLICE, TILE: `width` numbers per dimension in each shape operand.
bool through_lists(Op &op, Rewriter &rw) {
  const Transposed t = sinkable(op.operand(0));
  if (!t)
    return false;
  const size_t width = op.opcode() == op::PAD ? 2 : 1;
  const u32 lists = op.opcode() == op::SLICE ? 2 : 1;
  std::vector<Value *> operands{t.source};
  for (u32 i = 1; i < op.num_operands(); ++i) {
    if (i > lists) {
      operands.push_back(op.operand(i));
      continue;
    }
    const auto given = constant_ints(op.operand(i));
    if (!given || given->size() != t.perm.size() * width)
      return false;
    Dims moved(given->size());
    for (size_t d = 0; d < t.perm.size(); ++d)
      for (size_t k = 0; k < width; ++k)
        moved[static_cast<size_t>(t.perm[d]) * width + k] = (*given)[d * width + k];
    operands.push_back(make_shape(rw, op, moved));
  }
  const Type type = pass::permuted_type(rw.context(), op.result()->type(), pass::inverse(t.perm));
  return replace_transposed(op, rw, pass::recreate(rw, op, operands, std::span(&type, 1)), t.perm);
}

/// The shape that a reshape hides, when the reshape can go.
std::optional<Dims> hidden_shape(const Value *v) {
  const Op *r = made_by(v, op::RESHAPE);
  if (!r || !leaves(v, absorbs_reshape) || !r->operand(0)->type().has_static_shape())
    return {};
  return static_dims(r->operand(0));
}

/// A constant that only varies along the last dimension, for an operand of shape `shape`.
Value *along_last(Op &op, Rewriter &rw, Value *v, const Dims &shape, bool dry) {
  const Dims own = static_dims(v);
  // A computed number would get a reshape of its own, for the next round to take away again.
  if (product_of(own) == 1 && (constant_of(v) || own.size() == shape.size()))
    return dry ? v : make_reshape(rw, op, v, Dims(shape.size(), 1));
  if (!constant_of(v) || shape.empty() || own.back() != shape.back() ||
      product_of(own) != own.back())
    return nullptr;
  Dims dims(shape.size(), 1);
  dims.back() = own.back();
  return dry ? v : make_reshape(rw, op, v, dims);
}

bool reshape_through_elementwise(Op &op, Rewriter &rw) {
  if (!is_elementwise(op) || !op.result()->type().has_static_shape())
    return false;
  const Dims target = static_dims(op.result());
  std::optional<Dims> shape;
  for (const ir::Use &u : op.operand_uses())
    if (!shape && static_dims(u.value()) == target)
      shape = hidden_shape(u.value());
  if (!shape || shape->size() > kMostDims)
    return false;
  const size_t first_parameter = op.opcode() == op::TABLE || op.opcode() == op::RESCALE ? 1
                                 : op.opcode() == op::MUL                               ? 2
                                 : op.opcode() == op::NEGATE                            ? 1
                                                                                        : 3;
  std::vector<Value *> operands;
  for (const bool dry : {true, false}) {
    operands.clear();
    for (u32 i = 0; i < op.num_operands(); ++i) {
      Value *v = op.operand(i);
      if (i >= first_parameter) {
        operands.push_back(v);
        continue;
      }
      const Op *r = made_by(v, op::RESHAPE);
      if (r && static_dims(v) == target && static_dims(r->operand(0)) == *shape)
        operands.push_back(r->operand(0));
      else
        operands.push_back(along_last(op, rw, v, *shape, dry));
      if (!operands.back())
        return false;
    }
  }
  const SymDims dims(shape->begin(), shape->end());
  const Type type = rw.context().with_shape(op.result()->type(), dims);
  Op *moved = pass::recreate(rw, op, operands, std::span(&type, 1));
  return replace_by(rw, op, make_reshape(rw, op, moved->result(), target));
}

const pass::PatternSet &patterns() {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    s.add("concat-of-transposes", {op::CONCAT}, through_concat);
    s.add("list-of-transpose", {op::PAD, op::SLICE, op::TILE}, through_lists);
    pass::Pattern axis{"axis-of-transpose", {op::REVERSE}, through_axis};
    pass::Pattern map{
        "elementwise-of-transposes", {op::TABLE, op::RESCALE, op::IDENTITY}, through_elementwise};
    for (const ir::OpDef *def : ir::Registry::global().all()) {
      if (!is_tosa(def->opcode))
        continue;
      if (def->has(ir::trait::kReduction))
        axis.roots.push_back(def->opcode);
      if (def->has(ir::trait::kElementwise))
        map.roots.push_back(def->opcode);
    }
    pass::Pattern reshape{"elementwise-of-reshapes", map.roots, reshape_through_elementwise};
    s.add(std::move(axis));
    s.add(std::move(map));
    s.add(std::move(reshape));
    add_simplify_patterns(s);
    return s;
  }();
  return set;
}

} // namespace

void sink_layouts(pass::PassContext &ctx) { ctx.run(patterns()); }

} // namespace chute::tosa
