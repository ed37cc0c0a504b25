// tico-switches: what the switches of TICO's configuration ask for, under TICO's names.
//
//   legalize_causal_mask_value (false)   x + c, every value of c 0 or below -1e38
//                                        → x + c', -120 for the values that are not 0
//   convert_expand_to_slice_cat (false)  view(expand(view(x))) that repeats each head k times
//                                        → concatenation of k copies of each slice
//   convert_lhs_const_mm_to_fc (false)   matmul(c, x) of matrices → linear(c, transposed x)
//   convert_single_batch_lhs_const_bmm_to_fc (false)
//                                        matmul(c, x) of [1, a, b] and [1, b, n]
//                                        → transposed linear(transposed x, c)
//   convert_rhs_const_mm_to_fc (true)    false: x @ c stays a BATCH_MATMUL
//   segment_index_select (false)         index_select(x, constant), x[…, constant]
//                                        → concatenation of slices, one per run of indices with
//                                          one step; TICO does it always, one slice per index
//   remove_constant_input (true)         false: Python numbers that export specialised become
//   inputs
//                                        of rank 0 that nothing reads
//
// The pipeline has circle_optimize (true) for itself: false leaves the passes after the lowering
// out. eliminate_rank_round_trip is accepted and without effect, as in TICO. Nothing is illegal to
// switch: results stay the same but for the first, whose result differs where a whole row is
// masked.
#include "aten/ops.h"
#include "circle/ops.h"
#include "circle/passes.h"
#include "ir/builder.h"
#include "ir/context.h"
#include "ir/element_convert.h"
#include "pass/constants.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace chute::circle {

namespace {

namespace a = aten::op;
using ir::Attr;
using ir::Op;
using ir::SymInt;
using ir::Value;

constexpr double kMasked = -120;
constexpr double kMinusInfinity = -1e38;

bool causal_mask(Op &op, pass::Rewriter &rw) {
  for (u32 i = 0; i < 2; ++i) {
    const ir::Constant *c = pass::constant_of(op.operand(i));
    if (!c || !c->has_data || !ir::is_float(c->type.element()) || !c->type.has_static_shape())
      continue;
    const ir::ElementType e = c->type.element();
    const auto size = static_cast<size_t>(ir::element_bytes(e));
    std::vector<std::byte> bytes(c->dense_bytes());
    c->copy_dense(bytes.data());
    bool mask = false;
    for (size_t at = 0; at < bytes.size(); at += size) {
      const double v = ir::load_element(e, bytes.data() + at);
      if (v != 0 && !(v < kMinusInfinity))
        return false;
      mask |= v != 0;
      ir::store_element(e, v == 0 ? v : kMasked, bytes.data() + at);
    }
    if (!mask)
      return false;
    ir::Builder b = rw.before(op);
    rw.graph().set_operand(&op, i, b.constant(rw.graph().add_copy(c->type, bytes)));
    return true;
  }
  return false;
}

Value *view(ir::Builder &b, Value *x, std::span<const SymInt> shape) {
  return b.create(a::view, {x}, {{"size", b.context().ints_attr(shape)}});
}

Value *swap_last(ir::Builder &b, Value *x) {
  std::vector<SymInt> perm;
  for (int i = 0; i < x->type().rank(); ++i)
    perm.emplace_back(static_cast<i64>(i));
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return b.create(a::permute, {x}, {{"dims", b.context().ints_attr(perm)}});
}

/// [b, h, s, d] with a dimension of 1 put in at 2, expanded to k there, and merged: [b, h*k, s, d].
bool expand_to_slice_cat(Op &op, pass::Rewriter &rw) {
  Op *expand = op.operand(0)->producer();
  if (!expand || expand->opcode() != a::expand || op.result()->type().rank() != 4)
    return false;
  Op *front = expand->operand(0)->producer();
  if (!front || front->opcode() != a::view)
    return false;
  Value *x = front->operand(0);
  const ir::Type narrow = front->result()->type(), wide = expand->result()->type();
  if (x->type().rank() != 4 || narrow.rank() != 5 || wide.rank() != 5 ||
      !(narrow.dim(2) == SymInt(1)) || wide.dim(2).is_symbolic() || x->type().dim(1).is_symbolic())
    return false;
  for (int i = 0; i < 5; ++i) {
    const bool same =
        i == 2 || (narrow.dim(i) == wide.dim(i) && x->type().dim(i < 2 ? i : i - 1) == wide.dim(i));
    if (!same) {
      rw.reject("more than the heads is expanded");
      return false;
    }
  }
  const i64 heads = x->type().dim(1).value(), copies = wide.dim(2).value();
  if (!(op.result()->type().dim(1) == SymInt(heads * copies)))
    return false;
  ir::Builder b = rw.before(op);
  std::vector<Value *> parts;
  for (i64 h = 0; h < heads; ++h) {
    Value *head = heads == 1 ? x
                             : b.create(a::slice_Tensor, {x},
                                        {{"dim", Attr::of_int(1)},
                                         {"start", Attr::of_int(h)},
                                         {"end", Attr::of_int(h + 1)},
                                         {"step", Attr::of_int(1)}});
    parts.insert(parts.end(), static_cast<size_t>(copies), head);
  }
  const ir::NamedAttr dim{"dim", Attr::of_int(1)};
  rw.replace(op, b.create(a::cat, parts, std::span(&dim, 1)));
  return true;
}

bool is_float_matrix(const Value *v, int rank) {
  return v->type().rank() == rank && ir::is_float(v->type().element());
}

bool lhs_constant(Op &op, pass::Rewriter &rw) {
  Value *x = op.operand(0), *y = op.operand(1);
  if (!pass::constant_of(x) || !is_float_matrix(x, 2) || !is_float_matrix(y, 2))
    return false;
  ir::Builder b = rw.before(op);
  rw.replace(op, b.create(a::linear, {x, swap_last(b, y), nullptr}));
  return true;
}

bool single_batch(Op &op, pass::Rewriter &rw) {
  Value *x = op.operand(0), *y = op.operand(1);
  if (!pass::constant_of(x) || !is_float_matrix(x, 3) || !is_float_matrix(y, 3) ||
      !(x->type().dim(0) == SymInt(1)) || !(y->type().dim(0) == SymInt(1)))
    return false;
  ir::Builder b = rw.before(op);
  const SymInt matrix[] = {x->type().dim(1), x->type().dim(2)};
  Value *r = b.create(a::linear, {swap_last(b, y), view(b, x, matrix), nullptr});
  rw.replace(op, swap_last(b, r));
  return true;
}

/// Lowered here, where legalize-circle would make a FULLY_CONNECTED of it.
bool rhs_constant(Op &op, pass::Rewriter &rw) {
  Value *x = op.operand(0), *y = op.operand(1);
  if (!pass::constant_of(y) || !is_float_matrix(y, 2) || x->type().rank() < 2)
    return false;
  ir::Builder b = rw.before(op);
  Value *operands[] = {x, y};
  const ir::Type type = op.result()->type();
  rw.replace(op,
             b.create_typed(circle::op::BATCH_MATMUL, operands, {}, std::span(&type, 1))->result());
  return true;
}

/// The dimension that an operator looks up with constant indices of rank 1; -1 for others.
int looked_up(const Op &op, const Value *&index) {
  if (op.opcode() == a::index_select) {
    index = op.operand(1);
    return static_cast<int>(op.attr("dim").as_int().value());
  }
  const Op::Segment list = op.segment(1);
  int dim = -1;
  for (u32 i = 0; i < list.count; ++i)
    if (const Value *v = op.operand(list.first + i)) {
      if (dim >= 0)
        return -1;
      dim = static_cast<int>(i);
      index = v;
    }
  return dim;
}

bool segment(Op &op, pass::Rewriter &rw) {
  const Value *index = nullptr;
  Value *x = op.operand(0);
  int dim = looked_up(op, index);
  const int rank = x->type().rank();
  if (!index || !ir::is_integer(index->type().element()) || index->type().rank() != 1 ||
      dim < -rank || dim >= rank)
    return false;
  dim += dim < 0 ? rank : 0;
  const std::optional<pass::Dims> at = pass::int_constant(index);
  if (!at || at->empty() || x->type().dim(dim).is_symbolic())
    return false;
  const i64 n = x->type().dim(dim).value();
  ir::Builder b = rw.before(op);
  std::vector<Value *> parts;
  for (size_t i = 0; i < at->size();) {
    const auto position = [&](size_t k) { return (*at)[k] + ((*at)[k] < 0 ? n : 0); };
    const i64 first = position(i);
    if (first < 0 || first >= n)
      return false;
    i64 step = i + 1 < at->size() ? position(i + 1) - first : 1;
    step = step < 1 ? 1 : step;
    i64 last = first;
    for (++i; i < at->size() && position(i) == last + step && position(i) < n; ++i)
      last += step;
    parts.push_back(b.create(a::slice_Tensor, {x},
                             {{"dim", Attr::of_int(dim)},
                              {"start", Attr::of_int(first)},
                              {"end", Attr::of_int(last + 1)},
                              {"step", Attr::of_int(first == last ? 1 : step)}}));
  }
  const ir::NamedAttr axis{"dim", Attr::of_int(dim)};
  rw.replace(op, parts.size() == 1 ? parts[0] : b.create(a::cat, parts, std::span(&axis, 1)));
  return true;
}

/// Specialised numbers become inputs.
void constant_inputs(ir::Graph &graph) {
  ir::Context &ctx = graph.context();
  for (ir::InputInfo &in : graph.inputs()) {
    ir::ElementType e = ir::ElementType::None;
    switch (in.literal.kind()) {
    case ir::AttrKind::Int: e = ir::ElementType::I64; break;
    case ir::AttrKind::Float: e = ir::ElementType::F32; break;
    case ir::AttrKind::Bool: e = ir::ElementType::Bool; break;
    default: break;
    }
    if (in.kind != ir::InputKind::Literal || e == ir::ElementType::None)
      continue;
    in.kind = ir::InputKind::User;
    in.value = graph.add_argument(graph.body(), ctx.tensor_type(e, {}), ctx.intern(in.name));
  }
}

} // namespace

void tico_switches(pass::PassContext &ctx) {
  const auto is = [&](std::string_view name, std::string_view value) {
    const auto it = ctx.settings.find(name);
    return it != ctx.settings.end() && it->second == value;
  };
  if (is("remove_constant_input", "false"))
    constant_inputs(ctx.graph);
  pass::PatternSet patterns;
  if (is("legalize_causal_mask_value", "true"))
    patterns.add("causal-mask", {a::add_Tensor}, causal_mask);
  if (is("convert_expand_to_slice_cat", "true"))
    patterns.add("expand-to-slice-cat", {a::view}, expand_to_slice_cat);
  if (is("segment_index_select", "true"))
    patterns.add("segment-index-select", {a::index_select, a::index_Tensor}, segment);
  if (is("convert_lhs_const_mm_to_fc", "true"))
    patterns.add("lhs-constant-matmul", {a::matmul}, lhs_constant);
  if (is("convert_single_batch_lhs_const_bmm_to_fc", "true"))
    patterns.add("single-batch-matmul", {a::matmul}, single_batch);
  if (is("convert_rhs_const_mm_to_fc", "false"))
    patterns.add("rhs-constant-matmul", {a::matmul}, rhs_constant);
  if (!patterns.patterns().empty())
    ctx.run(patterns);
}

} // namespace chute::circle
