// Operators that move elements, and those that create constants.
#include "circle/legalize/emit.h"

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
    return e.unsupported("to a size known only at run time that is no size of the input",
                         "export with static shapes");
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
  const SymInt from = start.is_none() ? SymInt(0) : start.as_int();
  const SymInt to = end.is_none() ? extent : end.as_int();
  if (from.is_symbolic() || step.is_symbolic())
    return e.unsupported("from a position known only at run time", "use index_select");
  if (extent.is_static() && to.is_static()) {
    const i64 n = extent.value();
    const auto wrap = [n](i64 v) { return std::clamp<i64>(v < 0 ? v + n : v, 0, n); };
    return e.slice(x, dim, wrap(from.value()), wrap(to.value()), step.value());
  }
  // The dimension's size is known at run time only: up to its end, or up to a literal inside it.
  const bool to_end = to == extent || (to.is_static() && to.value() >= (i64{1} << 30));
  if (!to_end && to.is_symbolic())
    return e.unsupported("up to a position known only at run time", "use index_select");
  Dims begins(static_cast<size_t>(rank), 0), ends(begins), steps(static_cast<size_t>(rank), 1);
  const auto at = static_cast<size_t>(dim);
  begins[at] = from.value();
  ends[at] = to_end ? 0 : to.value();
  steps[at] = step.value();
  i64 mask = (i64{1} << rank) - 1;
  if (!to_end)
    mask &= ~(i64{1} << dim);
  return e.typed(op::STRIDED_SLICE, {x, e.i32s(begins), e.i32s(ends), e.i32s(steps)},
                 {{"end_mask", of(mask)}}, e.type());
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
    e.unsupported("of a dimension whose size is known only at run time",
                  "export with static shapes");
    return {};
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
  if (!e.is_static("pad"))
    return e.unsupported("by amounts known only at run time", "export with static shapes");
  const Dims given = e.ints("pad");
  const auto rank = static_cast<size_t>(x->type().rank());
  Dims pairs(rank * 2, 0);
  for (size_t i = 0; i + 1 < given.size(); i += 2) {
    const size_t d = rank - 1 - i / 2;
    const i64 before = given[i], after = given[i + 1];
    const i64 axis = static_cast<i64>(d);
    if (before < 0 || after < 0) {
      const SymInt n = x->type().dim(static_cast<int>(d));
      if (n.is_symbolic())
        return e.unsupported("that cuts a dimension whose size is known only at run time",
                             "export with static shapes");
      x = e.slice(x, axis, std::max<i64>(0, -before), n.value() - std::max<i64>(0, -after));
    }
    pairs[d * 2] = std::max<i64>(0, before);
    pairs[d * 2 + 1] = std::max<i64>(0, after);
  }
  return e.pad(x, pairs, e.number("value", 0));
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

Value *repeat(Emit &e) {
  Value *x = e.arg(0);
  if (!e.is_static("repeats"))
    return e.unsupported("a number of times known only at run time", "export with static shapes");
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

Value *full(Emit &e) {
  if (!e.type().has_static_shape())
    return e.unsupported("of a shape known only at run time", "export with static shapes");
  const Attr fill = e.attr("fill_value");
  Value *one = fill.kind() == ir::AttrKind::Int && fill.as_int().is_symbolic()
                   ? nullptr
                   : e.scalar(e.element(), fill.scalar_as_double());
  if (!one)
    return e.unsupported("with a value known only at run time", "export with static shapes");
  const ir::Constant *c = constant_of(one);
  const std::vector<i64> strides(static_cast<size_t>(e.type().rank()), 0);
  return e.constant(e.graph().add_constant(e.type(), c->data, c->owner, strides));
}

Value *arange(Emit &e) {
  const Attr start = e.attr("start"), step = e.attr("step");
  const bool known = e.type().has_static_shape() &&
                     !(start.kind() == ir::AttrKind::Int && start.as_int().is_symbolic()) &&
                     !(step.kind() == ir::AttrKind::Int && step.as_int().is_symbolic());
  if (!known)
    return e.unsupported("over a range known only at run time", "export with static shapes");
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
