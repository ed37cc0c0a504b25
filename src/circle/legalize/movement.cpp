// Operators that move elements, and those that create constants.
#include "circle/legalize/emit.h"
#include "ir/sym_table.h"

#include <algorithm>
#include <cmath>

namespace chute::circle {

namespace {

namespace a = aten::op;

constexpr i64 kMostCopies = 16; ///< CONCATENATION of the same value up to here, TILE beyond

Value *view(Emit &e) { return e.reshape(e.arg(0), e.type().shape()); }
Value *same(Emit &e) { return e.cast(e.arg(0), e.element()); }

Value *permute(Emit &e) {
  Dims perm = e.ints("dims");
  for (i64 &p : perm)
    p += p < 0 ? static_cast<i64>(perm.size()) : 0;
  return e.transpose(e.arg(0), perm);
}

Value *broadcast(Emit &e, Value *x, Type type) {
  if (x->type() == type)
    return x;
  Value *shape = e.shape_operand(type.shape(), {x}, false);
  if (!shape)
    return e.unsupported("to a size that no input tells", "export with static shapes");
  return e.typed(op::BROADCAST_TO, {x, shape}, {}, type);
}

Value *expand(Emit &e) { return broadcast(e, e.arg(0), e.type()); }

Value *slice(Emit &e) {
  Value *x = e.arg(0);
  const i64 rank = x->type().rank();
  i64 dim = e.integer("dim");
  dim += dim < 0 ? rank : 0;
  const SymInt extent = x->type().dim(static_cast<int>(dim));
  const Attr start = e.attr("start"), end = e.attr("end");
  const SymInt step = e.attr("step").as_int();
  if (step.is_symbolic())
    return e.unsupported("with a step known only at run time", "use index_select");
  const SymInt from = start.is_none() ? SymInt(0) : start.as_int();
  const SymInt to = end.is_none() ? extent : end.as_int();
  if (extent.is_static() && to.is_static() && from.is_static()) {
    const i64 n = extent.value();
    const auto wrap = [n](i64 v) { return std::clamp<i64>(v < 0 ? v + n : v, 0, n); };
    return e.slice(x, dim, wrap(from.value()), wrap(to.value()), step.value());
  }
  Value *y = e.slice_between(x, dim, from, to, step.value(), e.type().dim(static_cast<int>(dim)));
  return y ? y
           : e.unsupported("at a position that no input tells",
                           "give the position as a size of an input, or use index_select");
}

bool is_empty_list(const Value *v) {
  return v->type().rank() == 1 && v->type().dim(0) == SymInt(0);
}

Value *cat(Emit &e) {
  std::vector<Value *> parts;
  for (u32 i = 0; i < e.op.num_operands(); ++i)
    if (!is_empty_list(e.arg(i)) || e.type().rank() == 1)
      parts.push_back(e.cast(e.arg(i), e.element()));
  // Parts without elements add nothing; one stays when there is nothing else.
  const auto empty = [](const Value *v) {
    return std::ranges::count(v->type().shape(), SymInt(0)) > 0;
  };
  if (!std::ranges::all_of(parts, empty))
    std::erase_if(parts, empty);
  else if (!parts.empty())
    parts.resize(1);
  i64 dim = e.integer("dim");
  dim += dim < 0 ? e.type().rank() : 0;
  if (parts.size() == 1)
    return parts[0];
  const NamedAttr axis{"axis", of(dim)};
  const Type type = e.type();
  return e.typed(op::CONCATENATION, parts, std::span(&axis, 1), std::span(&type, 1))->result();
}

/// SPLIT into equal parts; other sizes one slice each: a runtime gets SPLIT_V wrong.
std::vector<Value *> split(Emit &e) {
  Value *x = e.arg(0);
  i64 dim = e.integer("dim");
  dim += dim < 0 ? x->type().rank() : 0;
  if (!e.is_static("split_sizes") || x->type().dim(static_cast<int>(dim)).is_symbolic()) {
    std::vector<Value *> out(e.op.num_results(), nullptr);
    SymInt begin = 0;
    const std::span<const SymInt> sizes = e.attr("split_sizes").as_ints();
    for (u32 i = 0; i < e.op.num_results(); ++i) {
      const SymInt end = e.context().sym().add(begin, sizes[i]);
      if (e.op.result(i)->has_uses() &&
          !(out[i] = e.slice_between(x, dim, begin, end, 1, sizes[i]))) {
        e.unsupported("into sizes that no input tells", "export with static shapes");
        return {};
      }
      begin = end;
    }
    return out;
  }
  const Dims sizes = e.ints("split_sizes");
  const u32 n = e.op.num_results();
  std::vector<Value *> out(n, nullptr);
  const bool all_used =
      std::ranges::all_of(e.op.results(), [](const Value &v) { return v.has_uses(); });
  const bool equal = std::ranges::all_of(sizes, [&](i64 s) { return s == sizes[0]; });
  if (n > 1 && equal && all_used) {
    std::vector<Type> types;
    for (const Value &v : e.op.results())
      types.push_back(v.type());
    Value *operands[] = {e.i32(dim), x};
    const NamedAttr count{"num_splits", of(static_cast<i64>(n))};
    ir::Op *s = e.typed(op::SPLIT, operands, std::span(&count, 1), types);
    for (u32 i = 0; i < n; ++i)
      out[i] = s->result(i);
    return out;
  }
  i64 begin = 0;
  for (u32 i = 0; i < n; ++i) {
    if (e.op.result(i)->has_uses())
      out[i] = e.slice(x, dim, begin, begin + sizes[i]);
    begin += sizes[i];
  }
  return out;
}

/// torch's list runs from the last dimension; negative entries cut.
Value *constant_pad(Emit &e) {
  Value *x = e.arg(0);
  const std::span<const SymInt> given = e.attr("pad").as_ints();
  const auto rank = static_cast<size_t>(x->type().rank());
  SymDims pairs(rank * 2, 0);
  for (size_t i = 0; i + 1 < given.size(); i += 2) {
    const size_t d = rank - 1 - i / 2;
    const auto part = [](SymInt v, bool positive) {
      return v.is_symbolic() ? (positive ? v : SymInt(0))
                             : SymInt(std::max<i64>(0, positive ? v.value() : -v.value()));
    };
    pairs[d * 2] = part(given[i], true);
    pairs[d * 2 + 1] = part(given[i + 1], true);
    const SymInt before = part(given[i], false), after = part(given[i + 1], false);
    if (before == SymInt(0) && after == SymInt(0))
      continue;
    const auto axis = static_cast<int>(d);
    const SymInt n = x->type().dim(axis);
    const SymInt end = e.context().sym().sub(n, after);
    if (n.is_static())
      x = e.slice(x, axis, before.value(), end.value());
    else
      x = e.slice_between(x, axis, before, after == SymInt(0) ? n : SymInt(-after.value()), 1,
                          e.context().sym().sub(end, before));
  }
  if (std::ranges::all_of(pairs, [](SymInt p) { return p.is_static(); })) {
    Dims literal;
    for (const SymInt p : pairs)
      literal.push_back(p.value());
    return e.pad(x, literal, e.number("value", 0));
  }
  Value *amounts = e.sizes_operand(pairs);
  if (!amounts)
    return e.unsupported("by amounts that no input tells", "export with static shapes");
  amounts = e.reshape(amounts, Dims{static_cast<i64>(rank), 2});
  const double value = e.number("value", 0);
  if (value != 0)
    return e.typed(op::PADV2, {x, amounts, e.like(x, value)}, {}, e.type());
  return e.typed(op::PAD, {x, amounts}, {}, e.type());
}

/// A slice with step -1, which takes several axes at once.
Value *flip(Emit &e) {
  Value *x = e.arg(0);
  const auto rank = static_cast<size_t>(x->type().rank());
  Dims begin(rank, 0), end(rank), step(rank, 1);
  i64 mask = 0;
  std::vector<bool> flipped(rank, false);
  for (i64 d : e.ints("dims"))
    flipped[static_cast<size_t>(d < 0 ? d + static_cast<i64>(rank) : d)] = true;
  for (size_t i = 0; i < rank; ++i) {
    const SymInt n = x->type().dim(static_cast<int>(i));
    if (flipped[i]) {
      step[i] = -1;
      begin[i] = -1;
      end[i] = n.is_static() ? -n.value() - 1 : std::numeric_limits<i32>::min();
    } else if (n.is_static()) {
      end[i] = n.value();
    } else {
      mask |= i64{1} << i;
    }
  }
  if (std::ranges::count(flipped, true) == 0)
    return x;
  return e.typed(op::STRIDED_SLICE, {x, e.i32s(begin), e.i32s(end), e.i32s(step)},
                 {{"end_mask", of(mask)}}, e.type());
}

/// Times known at run time only: a dimension for the copies beside each that is repeated, a
/// broadcast, and the two made one.
Value *repeat_dynamic(Emit &e) {
  Value *x = e.arg(0);
  const std::span<const SymInt> times = e.attr("repeats").as_ints();
  const size_t added = times.size() - static_cast<size_t>(x->type().rank());
  SymDims apart, wide;
  for (size_t i = 0; i < times.size(); ++i) {
    const SymInt size = i < added ? SymInt(1) : x->type().dim(static_cast<int>(i - added));
    if (!(times[i] == SymInt(1)) && !(size == SymInt(1))) {
      apart.push_back(1);
      wide.push_back(times[i]);
    }
    apart.push_back(size);
    wide.push_back(size == SymInt(1) ? times[i] : size);
  }
  Value *y = e.reshape(x, apart);
  y = y ? broadcast(e, y, e.context().tensor_type(e.element(), wide)) : nullptr;
  return y ? e.reshape(y, e.type().shape()) : nullptr;
}

Value *repeat(Emit &e) {
  Value *x = e.arg(0);
  if (!e.is_static("repeats"))
    return repeat_dynamic(e);
  const Dims times = e.ints("repeats");
  SymDims shape(times.size() - static_cast<size_t>(x->type().rank()), 1);
  shape.insert(shape.end(), x->type().shape().begin(), x->type().shape().end());
  if (std::ranges::count(times, 0) > 0)
    return e.unsupported("zero times: an empty tensor");
  bool widens = true; // only dimensions of size 1 are repeated
  for (size_t i = 0; i < times.size(); ++i)
    widens = widens && (times[i] == 1 || shape[i] == SymInt(1));
  if (widens)
    return broadcast(e, x, e.type());
  Value *y = e.reshape(x, shape);
  if (!y)
    return nullptr;
  if (std::ranges::any_of(times, [](i64 t) { return t > kMostCopies; }))
    return e.typed(op::TILE, {y, e.i32s(times)}, {}, e.type());
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] == 1)
      continue;
    shape[i] = e.type().dim(static_cast<int>(i));
    const std::vector<Value *> copies(static_cast<size_t>(times[i]), y);
    const NamedAttr axis{"axis", of(static_cast<i64>(i))};
    const Type type = e.context().tensor_type(e.element(), shape);
    y = e.typed(op::CONCATENATION, copies, std::span(&axis, 1), std::span(&type, 1))->result();
  }
  return y;
}

/// FILL, or BROADCAST_TO where runtimes have that: onert does for floats, tico has no FILL.
Value *filled(Emit &e, Value *one) {
  if (ir::is_float(e.element()))
    return broadcast(e, one, e.type());
  Value *shape = e.sizes_operand(e.type().shape());
  return shape ? e.typed(op::FILL, {shape, one}, {}, e.type())
               : e.unsupported("of a size that no input tells", "export with static shapes");
}

Value *full(Emit &e) {
  const Attr fill = e.attr("fill_value");
  const bool symbolic = fill.kind() == ir::AttrKind::Int && fill.as_int().is_symbolic();
  Value *one = symbolic ? e.size_scalar(fill.as_int(), e.element())
                        : e.scalar(e.element(), fill.scalar_as_double());
  if (!one)
    return e.unsupported("with a value that no input tells", "export with static shapes");
  if (symbolic || !e.type().has_static_shape())
    return e.type().rank() == 0 ? one : filled(e, one);
  const ir::Constant *c = constant_of(one);
  const std::vector<i64> strides(static_cast<size_t>(e.type().rank()), 0);
  return e.constant(e.graph().add_constant(e.type(), c->data, c->owner, strides));
}

/// start + k * step for k below the result's size, which the exporter knows as an expression.
Value *arange_dynamic(Emit &e) {
  const SymInt n = e.type().dim(0);
  const auto number = [&](std::string_view name, ElementType element) {
    const Attr a = e.attr(name);
    return a.kind() == ir::AttrKind::Int ? e.size_scalar(a.as_int(), element)
                                         : e.scalar(element, a.scalar_as_double());
  };
  const auto is = [&](std::string_view name, i64 v) {
    const Attr a = e.attr(name);
    return a.kind() == ir::AttrKind::Int && a.as_int() == SymInt(v);
  };
  Value *count = e.size_scalar(n, ElementType::I32);
  if (!count)
    return e.unsupported("over a range that no input tells", "export with static shapes");
  Value *v = e.typed(op::RANGE, {e.i32(0), count, e.i32(1)}, {},
                     e.context().tensor_type(ElementType::I32, {n}));
  v = e.cast(v, e.element());
  for (const std::string_view name : {"step", "start"}) {
    const bool is_step = name == "step";
    if (is(name, is_step ? 1 : 0))
      continue;
    Value *by = number(name, e.element());
    if (!by)
      return e.unsupported("over a range that no input tells", "export with static shapes");
    v = is_step ? e.mul(v, by) : e.add(v, by);
  }
  return v;
}

Value *arange(Emit &e) {
  const Attr start = e.attr("start"), step = e.attr("step");
  const bool known = e.type().has_static_shape() &&
                     !(start.kind() == ir::AttrKind::Int && start.as_int().is_symbolic()) &&
                     !(step.kind() == ir::AttrKind::Int && step.as_int().is_symbolic());
  if (!known)
    return arange_dynamic(e);
  const i64 n = e.type().dim(0).value();
  if (ir::is_float(e.element())) {
    std::vector<double> v;
    for (i64 i = 0; i < n; ++i)
      v.push_back(start.scalar_as_double() + static_cast<double>(i) * step.scalar_as_double());
    return e.constant(e.element(), std::span(&n, 1), v);
  }
  const auto whole = [](Attr x) {
    return x.kind() == ir::AttrKind::Int ? x.as_int().value()
                                         : static_cast<i64>(x.scalar_as_double());
  };
  Dims v;
  for (i64 i = 0; i < n; ++i)
    v.push_back(whole(start) + i * whole(step));
  return e.constant_ints(e.element(), std::span(&n, 1), v);
}

} // namespace

void add_movement_rules(pass::PatternSet &set) {
  set.add("view", {a::view}, lower<view>);
  set.add("clone", {a::clone}, lower<same>);
  set.add("permute", {a::permute}, lower<permute>);
  set.add("expand", {a::expand}, lower<expand>);
  set.add("slice", {a::slice_Tensor}, lower<slice>);
  set.add("cat", {a::cat}, lower<cat>);
  set.add("split", {a::split_with_sizes}, lower_many<split>);
  set.add("pad", {a::constant_pad_nd}, lower<constant_pad>);
  set.add("flip", {a::flip}, lower<flip>);
  set.add("repeat", {a::repeat}, lower<repeat>);
  set.add("full", {a::full}, lower<full>);
  set.add("arange", {a::arange_start_step}, lower<arange>);
}

} // namespace chute::circle
