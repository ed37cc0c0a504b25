#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>

// Writes at positions that several index tensors give together: the indexed dimensions become one,
// the indices one position in it. Unpooling writes at the positions that pooling gave.
namespace chute::aten {

namespace {

V wrapped(Emit &e, V index, i64 n) {
  index = e.cast(index, ElementType::I64);
  return e.where(e.lt(index, 0.0), e.add(index, static_cast<double>(n)), index);
}

V put_many(Emit &e) {
  V x = e.in(0), values = e.in(2);
  const Values given = e.list(1);
  const int rank = x->type().rank();
  Axes dims;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i])
      continue;
    if (!ir::is_integer(given[i]->type().element()) ||
        given[i]->type().element() == ElementType::U8)
      return nullptr;
    dims.push_back(int(i));
  }
  if (dims.size() < 2)
    return nullptr;
  Shape at; // the broadcast shape of the indices
  for (int d : dims) {
    const Shape s = e.shape_of(given[size_t(d)]);
    if (s.size() > at.size())
      at.insert(at.begin(), s.size() - at.size(), 1);
    for (size_t i = 0; i < s.size(); ++i)
      if (s[s.size() - 1 - i] != SymInt(1))
        at[at.size() - 1 - i] = s[s.size() - 1 - i];
    if (x->type().dim(d).is_symbolic())
      return e.reject("positions in a dimension that is not static");
  }
  i64 stride = 1;
  V position = nullptr;
  for (size_t k = dims.size(); k-- > 0;) {
    const i64 n = x->type().dim(dims[k]).value();
    V part = e.mul(wrapped(e, given[size_t(dims[k])], n), static_cast<double>(stride));
    position = position ? e.add(position, part) : part;
    stride *= n;
  }
  position = e.expand(position, at);
  // Indexed dimensions go first in x; in the values they stand where torch puts them.
  Axes order = dims, back(size_t(rank), 0);
  Shape rest;
  for (int d = 0; d < rank; ++d)
    if (!std::binary_search(dims.begin(), dims.end(), d)) {
      order.push_back(d);
      rest.push_back(x->type().dim(d));
    }
  for (int d = 0; d < rank; ++d)
    back[size_t(order[size_t(d)])] = d;
  const bool adjacent = dims.back() - dims.front() + 1 == int(dims.size());
  const auto before = size_t(adjacent ? dims.front() : 0);
  Shape wanted(rest.begin(), rest.begin() + i64(before));
  wanted.insert(wanted.end(), at.begin(), at.end());
  wanted.insert(wanted.end(), rest.begin() + i64(before), rest.end());
  values = e.cast(values, x->type().element());
  // One value for all positions stays one: it may go to a position twice.
  const bool single = e.mul_sizes(e.shape_of(values)) == SymInt(1);
  V one = single ? e.view(values, {}) : nullptr;
  values = e.expand(values, wanted);
  Axes to_front;
  for (size_t i = 0; i < at.size(); ++i)
    to_front.push_back(int(before + i));
  for (size_t i = 0; i < wanted.size(); ++i)
    if (i < before || i >= before + at.size())
      to_front.push_back(int(i));
  values = e.permute(values, to_front);

  Shape flat = rest, rows = rest;
  flat.insert(flat.begin(), stride);
  const SymInt count = e.mul_sizes(at);
  rows.insert(rows.begin(), count);
  V moved = e.permute(x, order);
  const Shape moved_shape = e.shape_of(moved);
  V y = e.op(op::index_put,
             {e.view(moved, flat), e.view(position, {count}), single ? one : e.view(values, rows)},
             {{"accumulate", Attr::of_bool(e.flag("accumulate"))}});
  return e.permute(e.view(y, moved_shape), back);
}

/// Pooling's indices count within one picture.
V unpool(Emit &e, int spatial) {
  V x = e.in(0), index = e.in(1);
  const Shape out = e.shape();
  const int lead = x->type().rank() - spatial;
  Shape flat(out.begin(), out.begin() + lead), from = flat;
  flat.push_back(e.mul_sizes(Shape(out.begin() + lead, out.end())));
  const Shape in = e.shape_of(x);
  from.push_back(e.mul_sizes(Shape(in.begin() + lead, in.end())));
  V zeros = e.full(flat, 0, x->type().element());
  V y = e.op(op::scatter_src, {zeros, e.view(index, from), e.view(x, from)},
             {{"dim", Attr::of_int(lead)}});
  return e.view(y, out);
}

} // namespace

void add_position_rules(pass::PatternSet &set) {
  set.add("put-many", {op::index_put}, rule<put_many>);
  set.add("max-unpool-2d", {op::max_unpool2d}, rule<[](Emit &e) { return unpool(e, 2); }>);
}

} // namespace chute::aten
