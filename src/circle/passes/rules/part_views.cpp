// part-views: RESHAPEs around SPLIT and CONCATENATION, as stacking, selecting and unrolled heads
// leave them.
//
//   concatenation(reshape(a), reshape(b))                     → reshape(concatenation(a, b))
//   reshape of every part of split(x), to one shape           → split(reshape(x))
//
// Both only when there are fewer RESHAPEs afterwards: those that end up behind another one count as
// gone, since they merge with it. A new RESHAPE before a SPLIT is made only for parts whose own can
// not sink any further. The axis is found again by what lies before it: joining along an
// axis appends blocks as long as the dimensions from it on, once for every index of those before.
//
// Exact: no element moves. Left alone: run-time shapes, per-channel quantization, parts with other
// parameters than their view.
#include "circle/passes/rules/rules.h"

#include <algorithm>

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

constexpr size_t kMostViews = 256;

i64 product(std::span<const SymInt> dims) {
  i64 n = 1;
  for (SymInt d : dims)
    n *= d.value();
  return n;
}

bool is_view(const Op &op) {
  return op.opcode() == op::RESHAPE && stored_alike(op.operand(0)->type(), op.result()->type()) &&
         op.operand(0)->type().has_static_shape() && op.result()->type().has_static_shape();
}

/// The operand of the RESHAPE that makes `v`; null when none does.
Value *viewed(const Value *v) {
  const Op *p = v->producer();
  return p && is_view(*p) ? p->operand(0) : nullptr;
}

/// All users are RESHAPEs (and there is one), so that another before them merges with each.
bool only_viewed(const Value *v) {
  size_t n = 0;
  for (const ir::Use *u = v->first_use(); u; u = u->next())
    if (++n > kMostViews || !is_view(*u->owner()))
      return false;
  return n > 0;
}

/// Axes of `shape` with `outer` elements in the dimensions before them.
Dims axes_behind(std::span<const SymInt> shape, i64 outer) {
  Dims out;
  for (size_t i = 0; i < shape.size(); ++i)
    if (product(shape.first(i)) == outer)
      out.push_back(static_cast<i64>(i));
  return out;
}

/// The shape of `sources` joined along `axis`; nullopt when they differ elsewhere.
std::optional<SymDims> joined(std::span<Value *const> sources, size_t axis) {
  const std::span<const SymInt> first = sources[0]->type().shape();
  SymDims out(first.begin(), first.end());
  i64 total = 0;
  for (const Value *v : sources) {
    const std::span<const SymInt> shape = v->type().shape();
    if (shape.size() != first.size())
      return {};
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis && shape[i] != first[i])
        return {};
    total += shape[axis].value();
  }
  out[axis] = SymInt(total);
  return out;
}

bool concatenation_of_views(Op &op, Rewriter &rw) {
  const Type type = op.result()->type();
  if (has_activation(op) || !type.has_static_shape() || op.num_operands() < 2 ||
      op.num_operands() > kMostViews || has_elements(type.shape(), 0))
    return false;
  std::vector<Value *> sources;
  i64 gone = 0;
  for (const ir::Use &u : op.operand_uses()) {
    Value *source = viewed(u.value());
    if (!source || !stored_alike(source->type(), type))
      return false;
    gone += u.value()->has_one_use();
    sources.push_back(source);
  }
  i64 axis = op.attr("axis").as_int().value();
  axis += axis < 0 ? type.rank() : 0;
  const i64 outer = product(type.shape().first(static_cast<size_t>(axis)));
  // The shape that a RESHAPE behind asks for is the best one, then the innermost axis.
  const Op *next =
      type.rank() > 0 && op.result()->has_one_use() ? op.result()->first_use()->owner() : nullptr;
  std::optional<SymDims> shape;
  i64 chosen = -1;
  for (i64 candidate : axes_behind(sources[0]->type().shape(), outer)) {
    const std::optional<SymDims> here = joined(sources, static_cast<size_t>(candidate));
    if (!here || product(*here) != type.num_elements())
      continue;
    shape = here;
    chosen = candidate;
    if (next && is_view(*next) && std::ranges::equal(*here, next->result()->type().shape()))
      break;
  }
  if (!shape)
    return false;
  const bool same = std::ranges::equal(*shape, type.shape());
  if (gone - (same || only_viewed(op.result()) ? 0 : 1) <= 0) {
    rw.reject("as many reshapes would be left");
    return false;
  }
  const NamedAttr attrs[] = {{"axis", Attr::of_int(chosen)}};
  const Type whole = rw.context().with_shape(type, *shape);
  Value *v =
      rw.before(op).create_typed(op::CONCATENATION, sources, attrs, std::span(&whole, 1))->result();
  rw.replace(op, same ? v : make_reshape(rw, op, v, type.shape()));
  return true;
}

/// Whether a RESHAPE may still meet another: behind elementwise operators, or behind a TRANSPOSE
/// that is one itself.
bool may_sink(const Op &view) {
  size_t n = 0;
  for (const ir::Use *u = view.result()->first_use(); u && ++n <= kMostViews; u = u->next())
    if (const Op &user = *u->owner(); user.opcode() == op::RESHAPE ||
                                      user.opcode() == op::TRANSPOSE ||
                                      user.has(ir::trait::kElementwise))
      return true;
  return false;
}

bool views_of_split(Op &op, Rewriter &rw) {
  Value *x = op.operand(1);
  const std::optional<Dims> at = small_ints(op.operand(0), 1);
  const Type type = x->type();
  if (!at || at->size() != 1 || !type.has_static_shape() || has_elements(type.shape(), 0))
    return false;
  // All parts are read through RESHAPEs to one shape.
  const Value *some = nullptr;
  i64 gone = 0;
  bool settled = true;
  for (const Value &part : op.results()) {
    if (!part.has_uses())
      continue;
    if (!only_viewed(&part) || !stored_alike(part.type(), type))
      return false;
    for (const ir::Use *u = part.first_use(); u; u = u->next(), ++gone) {
      const Value *to = u->owner()->result();
      if (some && !same_shape(some->type(), to->type()))
        return false;
      settled = settled && !may_sink(*u->owner());
      some = to;
    }
  }
  if (!some || same_shape(some->type(), op.result()->type()))
    return false;
  const i64 axis = (*at)[0] + ((*at)[0] < 0 ? type.rank() : 0);
  const i64 outer = product(type.shape().first(static_cast<size_t>(axis)));
  const Dims axes = axes_behind(some->type().shape(), outer);
  if (axes.empty())
    return false;
  SymDims part(some->type().shape().begin(), some->type().shape().end());
  // The innermost: the one whose own size the parts multiply.
  const i64 chosen = axes.back();
  SymDims whole = part;
  whole[static_cast<size_t>(chosen)] =
      SymInt(part[static_cast<size_t>(chosen)].value() * static_cast<i64>(op.num_results()));
  Value *source = viewed(x);
  const bool same = std::ranges::equal(whole, type.shape());
  const bool merges =
      source && (x->has_one_use() || std::ranges::equal(whole, source->type().shape()));
  if (gone - (same || merges ? 0 : 1) <= 0 || !(same || merges || settled)) {
    rw.reject("as many reshapes would be left, or they may still meet others");
    return false;
  }
  ir::Builder b = rw.before(op);
  const i32 from_end[] = {static_cast<i32>(chosen - static_cast<i64>(whole.size()))};
  Value *operands[] = {b.constant_i32(from_end, true), same ? x : make_reshape(rw, op, x, whole)};
  const NamedAttr num{"num_splits", Attr::of_int(op.num_results())};
  const std::vector<Type> types(op.num_results(), rw.context().with_shape(type, part));
  Op *split = b.create_typed(op::SPLIT, operands, std::span(&num, 1), types);
  for (u32 i = 0; i < op.num_results(); ++i)
    while (const ir::Use *u = op.result(i)->first_use())
      rw.replace(*u->owner(), split->result(i));
  return true;
}

} // namespace

void add_part_view_rules(pass::PatternSet &set) {
  set.add("concatenation-of-views", {op::CONCATENATION}, concatenation_of_views);
  set.add("views-of-split", {op::SPLIT}, views_of_split);
}

} // namespace chute::circle
