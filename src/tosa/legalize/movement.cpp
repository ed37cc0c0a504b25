// Operators that move elements, and those that create constants.
#include "tosa/legalize/emit.h"

#include <algorithm>

namespace chute::tosa {

namespace {

namespace a = aten::op;

Value *view(Emit &e) { return e.reshape(e.arg(0), static_dims(e.type())); }
Value *same(Emit &e) { return e.cast(e.arg(0), e.element()); }
Value *expand(Emit &e) { return e.broadcast(e.arg(0), static_dims(e.type())); }

Value *permute(Emit &e) {
  Dims perm = e.ints("dims");
  for (i64 &p : perm)
    p = wrapped_dim(p, static_cast<i64>(perm.size()));
  return e.transpose(e.arg(0), perm);
}

Value *slice(Emit &e) {
  Value *x = e.arg(0);
  const i64 dim = wrapped_dim(e.integer("dim"), x->type().rank());
  const i64 n = x->type().dim(static_cast<int>(dim)).value();
  const auto bound = [&](std::string_view name, i64 fallback) {
    const Attr v = e.attr(name);
    return v.is_none() ? fallback : std::clamp<i64>(wrapped_dim(v.as_int().value(), n), 0, n);
  };
  return e.slice(x, dim, bound("start", 0), bound("end", n), e.integer("step"));
}

Value *cat(Emit &e) {
  std::vector<Value *> parts;
  for (u32 i = 0; i < e.op.num_operands(); ++i)
    if (e.arg(i)->type().num_elements() != 0)
      parts.push_back(e.cast(e.arg(i), e.element()));
  return e.concat(parts, wrapped_dim(e.integer("dim"), e.type().rank()));
}

std::vector<Value *> split(Emit &e) {
  Value *x = e.arg(0);
  const i64 dim = wrapped_dim(e.integer("dim"), x->type().rank());
  const Dims sizes = e.ints("split_sizes");
  std::vector<Value *> out(e.op.num_results(), nullptr);
  i64 begin = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (e.op.result(static_cast<u32>(i))->has_uses())
      out[i] = e.slice(x, dim, begin, begin + sizes[i]);
    begin += sizes[i];
  }
  return out;
}

/// torch's list runs from the last dimension; negative entries cut.
Value *constant_pad(Emit &e) {
  Value *x = e.arg(0);
  const Dims given = e.ints("pad");
  const auto rank = static_cast<size_t>(x->type().rank());
  Dims pairs(rank * 2, 0);
  for (size_t i = 0; i + 1 < given.size(); i += 2) {
    const size_t d = rank - 1 - i / 2;
    const i64 n = x->type().dim(static_cast<int>(d)).value();
    x = e.slice(x, static_cast<i64>(d), std::max<i64>(0, -given[i]),
                n - std::max<i64>(0, -given[i + 1]));
    pairs[d * 2] = std::max<i64>(0, given[i]);
    pairs[d * 2 + 1] = std::max<i64>(0, given[i + 1]);
  }
  return e.pad(x, pairs, e.number("value", 0));
}

Value *flip(Emit &e) {
  Value *x = e.arg(0);
  for (i64 d : e.ints("dims")) {
    const i64 axis = wrapped_dim(d, x->type().rank());
    if (x->type().dim(static_cast<int>(axis)) != SymInt(1))
      x = e(op::REVERSE, {x}, {{"axis", of(axis)}});
  }
  return x;
}

Value *repeat(Emit &e) {
  const Dims times = e.ints("repeats");
  Value *x = e.with_rank(e.arg(0), static_cast<int>(times.size()));
  if (constant_of(x) && std::ranges::equal(x->type().shape(), SymDims(times.size(), 1)))
    return e.broadcast(x, times);
  return e.tile(x, times);
}

Value *full(Emit &e) {
  const Attr fill = e.attr("fill_value");
  if (fill.kind() == ir::AttrKind::Int && fill.as_int().is_symbolic())
    return e.unsupported("with a value known only at run time", "export with static shapes");
  return e.broadcast(e.number_of(e.element(), fill.scalar_as_double(), e.type().rank()),
                     static_dims(e.type()));
}

Value *arange(Emit &e) {
  const Attr start = e.attr("start"), step = e.attr("step");
  const auto symbolic = [](Attr v) {
    return v.kind() == ir::AttrKind::Int && v.as_int().is_symbolic();
  };
  if (symbolic(start) || symbolic(step))
    return e.unsupported("over a range known only at run time", "export with static shapes");
  const i64 n = e.type().dim(0).value();
  std::vector<double> v;
  for (i64 i = 0; i < n; ++i)
    v.push_back(start.scalar_as_double() + static_cast<double>(i) * step.scalar_as_double());
  return e.constant(e.element(), std::span(&n, 1), v);
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

} // namespace chute::tosa
