#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>

// Writes through boolean masks. The k-th chosen position takes the k-th row of the source, and k is
// one less than the running count of chosen positions: a lookup of fixed size, then `where`.
namespace chute::aten {

namespace {

/// Rows of `source` for each position of the flat `mask`: row k where the k-th true one is.
V rows_by_rank(Emit &e, V mask, V source) {
  const SymInt n = e.mul_sizes(e.shape_of(mask));
  V counts = e.op(op::cumsum, {e.cast(e.view(mask, {n}), ElementType::I64)},
                  {{"dim", Attr::of_int(0)}, {"dtype", Attr::of_element(ElementType::I64)}});
  V at = e.maximum(e.sub(counts, 1.0), 0.0);
  const SymInt rows = source->type().dim(0);
  if (rows.is_static())
    at = e.minimum(at, static_cast<double>(rows.value() - 1));
  return e.index_select(source, 0, at);
}

V masked_scatter(Emit &e) {
  V x = e.in(0), source = e.in(2);
  V mask = e.expand(e.to_bool(e.in(1)), e.shape_of(x));
  const SymInt count = e.mul_sizes(e.shape_of(source));
  if (count == SymInt(0))
    return x;
  V picked = rows_by_rank(e, mask, e.cast(e.view(source, {count}), x->type().element()));
  return e.where(mask, e.view(picked, e.shape_of(x)), x);
}

/// x[mask] of both broadcast; its size, known at run time, is the recorded one.
bool masked_select(ir::Op &op, pass::Rewriter &rw) {
  V x = op.operand(0), mask = op.operand(1);
  if (mask->type().element() != ElementType::Bool)
    return false;
  const auto a = x->type().shape(), b = mask->type().shape();
  const size_t rank = std::max(a.size(), b.size());
  Shape shape;
  for (size_t d = 0; d < rank; ++d) {
    const SymInt left = d + a.size() < rank ? SymInt(1) : a[d + a.size() - rank];
    const SymInt right = d + b.size() < rank ? SymInt(1) : b[d + b.size() - rank];
    shape.push_back(left == SymInt(1) ? right : left);
  }
  ir::Builder builder = rw.before(op);
  const auto wide = [&](V v) {
    return std::ranges::equal(v->type().shape(), shape)
               ? v
               : builder.create(op::expand, {v}, {{"size", rw.context().ints_attr(shape)}});
  };
  V operands[] = {wide(x), wide(mask)};
  const ir::Type type = op.result()->type();
  rw.replace(op,
             builder.create_typed(op::index_Tensor, operands, {}, std::span(&type, 1))->result());
  return true;
}

/// The mask of an index list that holds one, over leading dimensions, and nothing else; or null.
V sole_mask(const Values &indices) {
  V mask = nullptr;
  for (V i : indices) {
    if (!i)
      continue;
    const ElementType t = i->type().element();
    if (mask || (t != ElementType::Bool && t != ElementType::U8))
      return nullptr;
    mask = i;
  }
  return !indices.empty() && indices[0] == mask ? mask : nullptr;
}

/// What `values` is a selection of by the same mask, or null.
V selected_from(V values, V mask) {
  ir::Op *producer = values->producer();
  if (!producer || producer->opcode() != op::index_Tensor)
    return nullptr;
  const ir::Op::Segment list = producer->segment(1);
  if (list.count == 0 || producer->operand(list.first) != mask)
    return nullptr;
  for (u32 i = 1; i < list.count; ++i)
    if (producer->operand(list.first + i))
      return nullptr;
  return producer->operand(0);
}

/// x[mask] = values, or += values.
V put_by_mask(Emit &e) {
  V x = e.in(0), values = e.in(2);
  const V given = sole_mask(e.list(1));
  if (!given)
    return nullptr;
  const int over = given->type().rank(), rank = x->type().rank();
  if (over > rank || over == 0)
    return nullptr;
  const Shape shape = e.shape_of(x);
  const Shape rest(shape.begin() + over, shape.end());
  Shape wide = e.shape_of(given);
  wide.resize(size_t(rank), 1);
  V mask = e.view(e.to_bool(given), wide);
  V rows = nullptr;
  if (V base = selected_from(values, given)) {
    rows = e.cast(base, x->type().element());
    if (e.shape_of(rows) != shape)
      return e.reject("a selection of another shape than what it is written to");
  } else {
    values = e.cast(values, x->type().element());
    // One row for all positions, or one per chosen position.
    const bool one_row =
        values->type().rank() <= rank - over ||
        (values->type().rank() == rank - over + 1 && values->type().dim(0) == SymInt(1));
    if (one_row) {
      if (values->type().rank() == rank - over + 1)
        values = e.squeeze(values, 0);
      rows = e.expand(values, shape);
    } else {
      Shape each = rest;
      each.insert(each.begin(), values->type().dim(0));
      if (values->type().dim(0).is_symbolic())
        return e.reject("a number of values that depends on the data");
      rows = e.view(rows_by_rank(e, given, e.expand(values, each)), shape);
    }
  }
  return e.where(mask, e.flag("accumulate") ? e.add(x, rows) : rows, x);
}

} // namespace

void add_mask_rules(pass::PatternSet &set) {
  set.add("masked-select", {op::masked_select}, masked_select);
  set.add("masked-scatter", {op::masked_scatter}, rule<masked_scatter>);
  set.add("put-by-mask", {op::index_put}, rule<put_by_mask>);
}

} // namespace chute::aten
