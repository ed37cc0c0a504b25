#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"
#include "aten/passes/view_step.h"
#include "aten/shapes.h"

#include <algorithm>

// Shape and order: everything becomes view, permute, expand, slice, cat, split_with_sizes, flip,
// repeat.
namespace chute::aten {

namespace {

bool same_sizes(Attr a, ir::Type t) {
  return a.kind() == ir::AttrKind::Ints &&
         std::equal(a.as_ints().begin(), a.as_ints().end(), t.shape().begin(), t.shape().end());
}

V to_view(Emit &e) {
  if (e.root().opcode() == op::view && e.in()->type() != e.type() &&
      same_sizes(e.attr("size"), e.type()))
    return nullptr;
  return e.view(e.in(), e.shape());
}

V expand(Emit &e) {
  if (e.root().opcode() == op::expand && e.in()->type() != e.type() &&
      same_sizes(e.attr("size"), e.type()))
    return nullptr;
  return e.expand(e.in(), e.shape());
}

V slice(Emit &e) {
  const Attr start = e.attr("start"), end = e.attr("end");
  const int dim = e.dim("dim", e.in()->type().rank());
  const i64 step = e.integer("step");
  const SliceRange r =
      resolve_slice(e.sym(), e.in()->type().dim(dim),
                    start.is_none() ? std::nullopt : std::optional(start.as_int()),
                    end.is_none() ? std::nullopt : std::optional(end.as_int()), step);
  // Symbolic bounds are what they are: resolving a resolved one may spell it differently.
  const auto settled = [](Attr given, SymInt resolved) {
    return given.kind() == ir::AttrKind::Int &&
           (given.as_int() == resolved || given.as_int().is_symbolic());
  };
  if (e.attr("dim").as_int() == SymInt(dim) && settled(start, r.start) && settled(end, r.end) &&
      !(r.start == SymInt(0) && r.end == e.in()->type().dim(dim) && step == 1))
    return nullptr;
  return e.slice(e.in(), dim, r.start, r.end, step);
}

V movedim(Emit &e, const std::vector<i64> &source, const std::vector<i64> &destination) {
  return e.permute(e.in(), movedim_order(e.type().rank(), source, destination));
}

V permute(Emit &e) {
  const auto dims = e.ints("dims");
  Axes order;
  bool canonical = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    order.push_back(e.wrap(dims[i], int(dims.size())));
    canonical |= order.back() != int(i);
  }
  for (i64 d : dims)
    canonical &= d >= 0;
  return canonical ? nullptr : e.permute(e.in(), order);
}

V reverse_dims(Emit &e) {
  Axes order = e.all_dims(e.type().rank());
  std::reverse(order.begin(), order.end());
  return e.permute(e.in(), order);
}

Values by_sizes(Emit &e, int dim) {
  Shape sizes;
  for (const ir::Value &r : e.root().results())
    sizes.push_back(r.type().dim(dim));
  return e.split(e.in(), sizes, dim);
}

/// Python's slices between the bounds, which may fall: parts then are empty, or repeat elements.
Values split_at(Emit &e) {
  const int dim = e.dim("dim", e.in()->type().rank());
  const SymInt n = e.in()->type().dim(dim);
  const Shape bounds = e.sizes("indices");
  bool rising = true;
  for (size_t i = 0; i < bounds.size(); ++i)
    rising &= bounds[i].is_static() && bounds[i].value() >= 0 &&
              (i == 0 || bounds[i].value() >= bounds[i - 1].value());
  if (rising)
    return by_sizes(e, dim);
  Values parts;
  for (size_t i = 0; i <= bounds.size(); ++i)
    parts.push_back(
        e.slice(e.in(), dim, i ? bounds[i - 1] : SymInt(0), i < bounds.size() ? bounds[i] : n));
  return parts;
}

Values unbind(Emit &e) {
  const int dim = e.dim("dim", e.in()->type().rank());
  Values out;
  for (u32 i = 0; i < e.root().num_results(); ++i)
    out.push_back(e.used(i) ? e.select(e.in(), dim, i64(i)) : nullptr);
  return out;
}

V stack(Emit &e, int dim) {
  Values parts;
  for (V x : e.list(0))
    parts.push_back(e.unsqueeze(x, dim));
  return e.cat(parts, dim);
}

/// Concatenation of operands that first get the rank of the result by `lift`.
template <class Lift>
V cat_lifted(Emit &e, int dim, Lift lift) {
  Values parts;
  for (V x : e.list(0))
    parts.push_back(e.cast(lift(x), e.type().element()));
  return e.cat(parts, dim);
}

V at_least(Emit &e, V x, int rank) {
  Shape s = e.shape_of(x);
  if (rank == 3 && s.size() == 1)
    return e.view(x, {1, s[0], 1});
  while (int(s.size()) < rank)
    s.insert(rank == 3 && s.size() == 2 ? s.end() : s.begin(), 1);
  return e.view(x, s);
}

V cat(Emit &e) {
  // Pieces without elements add nothing (PyTorch lets a [0] stand for "none yet" among any shapes).
  const int dim = e.wrap(e.attr("dim").as_int().value(), e.type().rank());
  if (e.mul_sizes(e.shape()) == SymInt(0))
    return e.full(e.shape(), 0, e.type().element());
  Values parts;
  bool changed = e.attr("dim").as_int() != SymInt(dim);
  for (V x : e.list(0)) {
    const ir::Type t = x->type();
    const bool empty = (t.rank() == 1 && e.type().rank() != 1 && t.dim(0) == SymInt(0)) ||
                       (t.rank() == e.type().rank() && t.dim(dim) == SymInt(0));
    changed |= empty || t.element() != e.type().element();
    if (!empty)
      parts.push_back(e.cast(x, e.type().element()));
  }
  if (parts.empty())
    return e.list(0).size() == 1 ? e.list(0)[0] : e.full(e.shape(), 0, e.type().element());
  return changed || parts.size() == 1 ? e.cat(parts, dim) : nullptr;
}

V repeat(Emit &e) {
  // No times leaves nothing; leading repeats add dimensions; all ones is a view.
  const Shape times = e.sizes("repeats");
  if (std::ranges::count(times, SymInt(0)) > 0)
    return e.full(e.shape(), 0.0, e.in()->type().element());
  Shape shape = e.shape_of(e.in());
  bool plain = shape.size() == times.size();
  shape.insert(shape.begin(), times.size() - shape.size(), 1);
  bool ones = true;
  for (SymInt t : times)
    ones &= t == SymInt(1);
  if (ones)
    return e.view(e.in(), shape);
  if (plain)
    return nullptr;
  return e.op(op::repeat, {e.view(e.in(), shape)}, {{"repeats", e.ctx().ints_attr(times)}});
}

V tile(Emit &e) {
  Shape times = e.sizes("dims");
  const size_t rank = size_t(e.in()->type().rank());
  if (times.size() < rank)
    times.insert(times.begin(), rank - times.size(), 1);
  return e.op(op::repeat, {e.in()}, {{"repeats", e.ctx().ints_attr(times)}});
}

V repeat_interleave(Emit &e) {
  V x = e.in();
  int dim = 0;
  if (e.given("dim"))
    dim = e.dim("dim", x->type().rank());
  else
    x = e.view(x, {e.mul_sizes(e.shape_of(x))});
  Shape s = e.shape_of(x);
  s.insert(s.begin() + dim + 1, e.size("repeats"));
  return e.view(e.expand(e.unsqueeze(x, dim + 1), s), e.shape());
}

V roll(Emit &e) {
  V x = e.in();
  const auto shifts = e.ints("shifts");
  auto dims = e.ints("dims");
  if (dims.empty()) {
    x = e.view(x, {e.mul_sizes(e.shape_of(x))});
    dims = {0};
  }
  for (size_t i = 0; i < shifts.size() && i < dims.size(); ++i) {
    const int d = e.wrap(dims[i], x->type().rank());
    const SymInt n = x->type().dim(d);
    if (n == SymInt(0))
      continue;
    // The last `shift` elements come first.
    const SymInt shift = e.sym().mod(shifts[i], n);
    const SymInt cut = e.sym().sub(n, shift);
    if (shift != SymInt(0))
      x = e.cat({e.slice(x, d, cut, n), e.slice(x, d, 0, cut)}, d);
  }
  return e.view(x, e.shape());
}

V rot90(Emit &e) {
  const auto dims = e.ints("dims");
  const int rank = e.type().rank();
  const int a = e.wrap(dims[0], rank), b = e.wrap(dims[1], rank);
  switch (((e.integer("k") % 4) + 4) % 4) {
  case 1: return e.transpose(e.flip(e.in(), {b}), a, b);
  case 2: return e.flip(e.in(), {std::min(a, b), std::max(a, b)});
  case 3: return e.transpose(e.flip(e.in(), {a}), a, b);
  default: return e.in();
  }
}

/// [.., C*r*r, H, W] to [.., C, H*r, W*r].
V pixel_shuffle(Emit &e) {
  const Shape in = e.shape_of(e.in()), out = e.shape();
  const int lead = int(in.size()) - 3;
  const i64 r = e.integer("upscale_factor");
  Shape s(in.begin(), in.begin() + lead);
  s.insert(s.end(), {out[size_t(lead)], r, r, in[size_t(lead) + 1], in[size_t(lead) + 2]});
  Axes order = e.all_dims(lead);
  for (int d : {0, 3, 1, 4, 2})
    order.push_back(lead + d);
  return e.view(e.permute(e.view(e.in(), s), order), out);
}

V pixel_unshuffle(Emit &e) {
  const Shape in = e.shape_of(e.in()), out = e.shape();
  const int lead = int(in.size()) - 3;
  const i64 r = e.integer("downscale_factor");
  Shape s(in.begin(), in.begin() + lead);
  s.insert(s.end(), {in[size_t(lead)], out[size_t(lead) + 1], r, out[size_t(lead) + 2], r});
  Axes order = e.all_dims(lead);
  for (int d : {0, 2, 4, 1, 3})
    order.push_back(lead + d);
  return e.view(e.permute(e.view(e.in(), s), order), out);
}

V channel_shuffle(Emit &e) {
  const Shape in = e.shape_of(e.in());
  const SymInt groups = e.size("groups");
  const auto each = e.sym().exact_div(in[1], groups);
  if (!each)
    return e.reject("channels that do not divide into groups");
  Shape s = in;
  s[1] = groups;
  s.insert(s.begin() + 2, *each);
  return e.view(e.transpose(e.view(e.in(), s), 1, 2), in);
}

/// Windows of `size` at every `step` along a dimension; the window becomes the last dimension.
V unfold(Emit &e) {
  V x = e.in();
  const int rank = x->type().rank();
  const int d = e.dim("dimension", rank);
  const i64 size = e.integer("size"), step = e.integer("step");
  const SymInt count = e.type().dim(d);
  if (rank == 0 || count.is_symbolic())
    return e.reject("windows over a symbolic dimension");
  V windows = nullptr;
  if (size == step) {
    windows = e.slice(x, d, 0, count.value() * size);
  } else {
    std::vector<i64> at;
    for (i64 w = 0; w < count.value(); ++w)
      for (i64 i = 0; i < size; ++i)
        at.push_back(w * step + i);
    windows = e.index_select(x, d, e.i64s(at));
  }
  Shape s = e.shape_of(x);
  s[size_t(d)] = count;
  s.insert(s.begin() + d + 1, size);
  Axes order = e.all_dims(rank + 1);
  order.erase(order.begin() + d + 1);
  order.push_back(d + 1);
  return e.permute(e.view(windows, s), order);
}

/// Sizes and strides over the dense operand; a plain reinterpretation is a view, anything else a
/// gather from the flat tensor.
V as_strided(Emit &e) {
  const auto size = e.ints("size"), stride = e.ints("stride");
  const i64 offset = e.given("storage_offset") ? e.integer("storage_offset") : 0;
  if (e.failed())
    return nullptr;
  i64 dense = 1, count = 1;
  bool contiguous = offset == 0;
  for (size_t i = size.size(); i-- > 0;) {
    contiguous &= size[i] == 1 || stride[i] == dense;
    dense *= size[i];
    count *= size[i];
  }
  const SymInt total = e.mul_sizes(e.shape_of(e.in()));
  V flat = e.view(e.in(), {total});
  if (contiguous)
    return e.view(e.slice(flat, 0, 0, count), e.shape());
  std::vector<i64> at(size_t(count), offset);
  i64 inner = 1;
  for (size_t i = size.size(); i-- > 0;) {
    for (i64 n = 0; n < count; ++n)
      at[size_t(n)] += n / inner % size[i] * stride[i];
    inner *= size[i];
  }
  return e.view(e.index_select(flat, 0, e.i64s(at)), e.shape());
}

// --- padding ------------------------------------------------------------------------------------

V pad_dim(Emit &e, V x, int d, i64 front, i64 back, std::string_view mode) {
  const SymInt n = x->type().dim(d);
  V middle = e.slice(x, d, std::max<i64>(-front, 0), e.sym().add(n, std::min<i64>(back, 0)));
  Values parts;
  const auto edge = [&](SymInt at, i64 count) {
    V one = e.slice(x, d, at, e.sym().add(at, 1));
    Shape s = e.shape_of(one);
    s[size_t(d)] = count;
    return e.expand(one, s);
  };
  if (front > 0) {
    if (mode == "reflect")
      parts.push_back(e.flip(e.slice(x, d, 1, front + 1), {d}));
    else if (mode == "replicate")
      parts.push_back(edge(0, front));
    else
      parts.push_back(e.slice(x, d, e.sym().sub(n, front), n));
  }
  parts.push_back(middle);
  if (back > 0) {
    if (mode == "reflect")
      parts.push_back(e.flip(e.slice(x, d, e.sym().sub(n, back + 1), e.sym().sub(n, 1)), {d}));
    else if (mode == "replicate")
      parts.push_back(edge(e.sym().sub(n, 1), back));
    else
      parts.push_back(e.slice(x, d, 0, back));
  }
  return e.cat(parts, d);
}

V pad_mode(Emit &e, std::vector<i64> amounts, std::string_view mode) {
  V x = e.in();
  // A wrapped border repeats what all the cropping leaves.
  if (mode == "circular") {
    std::vector<i64> crop = amounts;
    for (size_t i = 0; i < crop.size(); ++i) {
      crop[i] = std::min<i64>(amounts[i], 0);
      amounts[i] -= crop[i];
    }
    if (std::ranges::any_of(crop, [](i64 a) { return a != 0; }))
      x = e.pad(x, std::move(crop), Attr::of_int(0));
  }
  for (size_t i = 0; i + 1 < amounts.size(); i += 2)
    if (amounts[i] || amounts[i + 1])
      x = pad_dim(e, x, e.in()->type().rank() - 1 - int(i / 2), amounts[i], amounts[i + 1], mode);
  return x;
}

/// Emit::pad with amounts that may be symbolic; those are not negative.
V pad_sizes(Emit &e, V x, const Shape &amounts, Attr value) {
  std::vector<i64> literal;
  for (const SymInt a : amounts)
    if (a.is_static())
      literal.push_back(a.value());
  if (literal.size() == amounts.size())
    return e.pad(x, std::move(literal), value);
  Shape full(2 * size_t(x->type().rank()), 0);
  std::copy(amounts.begin(), amounts.end(), full.begin());
  return e.op(op::constant_pad_nd, {x}, {{"pad", e.ctx().ints_attr(full)}, {"value", value}});
}

V pad(Emit &e) {
  const std::string_view mode = e.attr("mode").as_string();
  if (mode == "constant")
    return pad_sizes(e, e.in(), e.sizes("pad"),
                     e.given("value") ? e.attr("value") : Attr::of_float(0));
  const auto amounts = e.ints("pad");
  return e.failed() ? nullptr : pad_mode(e, amounts, mode);
}

V pad_enum(Emit &e) {
  // at::padding_mode, ATen/native/PadNd.h.
  constexpr std::string_view kModes[] = {"reflect", "replicate", "circular"};
  constexpr i64 kConstant = 3;
  const i64 mode = e.integer("mode");
  if (mode < 0 || mode > kConstant)
    return nullptr;
  if (mode == kConstant)
    return e.pad(e.in(), e.ints("pad"), e.given("value") ? e.attr("value") : Attr::of_float(0));
  return pad_mode(e, e.ints("pad"), kModes[mode]);
}

V constant_pad(Emit &e) {
  const Shape amounts = e.sizes("pad");
  bool canonical = amounts.size() == 2 * size_t(e.type().rank()), grows = false;
  for (const SymInt a : amounts) {
    canonical &= a.is_symbolic() || a.value() >= 0;
    grows |= a.is_symbolic() || a.value() > 0;
  }
  return canonical && grows ? nullptr : pad_sizes(e, e.in(), amounts, e.attr("value"));
}

/// The diagonal of dimensions d1, d2 as last dimension: both indexed by one range.
V diagonal(Emit &e, V x, i64 offset, int d1, int d2) {
  const int rank = x->type().rank();
  const SymInt length = e.type().dim(rank - 2);
  Axes order{d1, d2}, rest;
  for (int d = 0; d < rank; ++d)
    if (d != d1 && d != d2)
      order.push_back(d);
  V front = e.permute(x, order);
  const SymInt r0 = std::max<i64>(-offset, 0), c0 = std::max<i64>(offset, 0);
  V rows = e.arange(r0, e.sym().add(r0, length)), columns = e.arange(c0, e.sym().add(c0, length));
  V line = e.op(op::index_Tensor, {front, rows, columns}); // [length, rest…]
  for (int d = 1; d < rank - 1; ++d)
    rest.push_back(d);
  rest.push_back(0);
  return e.permute(line, rest);
}

} // namespace

void add_movement_rules(pass::PatternSet &set) {
  set.add("view",
          {op::view, op::reshape, op::reshape_as, op::view_as, op::flatten_using_ints,
           op::unflatten_int, op::squeeze, op::squeeze_dim, op::squeeze_dims, op::unsqueeze,
           op::ravel},
          rule<to_view>);
  set.add("atleast", {op::atleast_1d, op::atleast_2d, op::atleast_3d}, rule<to_view>);
  set.add("expand", {op::expand, op::expand_as}, rule<expand>);
  set.add("broadcast-tensors", {op::broadcast_tensors}, rule<[](Emit &e) {
            Values out = e.list(0);
            for (u32 i = 0; i < out.size(); ++i)
              out[i] = e.expand(out[i], e.shape(i));
            return out;
          }>);
  set.add("permute", {op::permute}, rule<permute>);
  set.add("transpose", {op::transpose_int}, rule<[](Emit &e) {
            const int rank = e.type().rank();
            return e.transpose(e.in(), e.dim("dim0", rank), e.dim("dim1", rank));
          }>);
  set.add("swapdims", {op::swapdims}, rule<[](Emit &e) {
            const int rank = e.type().rank();
            return e.transpose(e.in(), e.dim("dim0", rank), e.dim("dim1", rank));
          }>);
  set.add("t", {op::t, op::numpy_T}, rule<reverse_dims>);
  set.add("mT", {op::mT, op::adjoint, op::mH}, rule<[](Emit &e) -> V {
            if (ir::is_complex(e.type().element()) && e.root().opcode() != op::mT)
              return nullptr;
            return e.transpose(e.in(), -2, -1);
          }>);
  set.add(
      "movedim", {op::movedim_int},
      rule<[](Emit &e) { return movedim(e, {e.integer("source")}, {e.integer("destination")}); }>);
  set.add("movedim-list", {op::movedim_intlist},
          rule<[](Emit &e) { return movedim(e, e.ints("source"), e.ints("destination")); }>);
  set.add("slice", {op::slice_Tensor}, rule<slice>);
  set.add("narrow", {op::narrow}, rule<[](Emit &e) {
            const int d = e.dim("dim", e.type().rank());
            SymInt start = e.size("start");
            if (start.is_static() && start.value() < 0)
              start = e.sym().add(start, e.in()->type().dim(d));
            return e.slice(e.in(), d, start, e.sym().add(start, e.size("length")));
          }>);
  set.add("select", {op::select_int}, rule<[](Emit &e) {
            return e.select(e.in(), e.dim("dim", e.in()->type().rank()), e.size("index"));
          }>);
  set.add("split", {op::split_Tensor, op::chunk, op::tensor_split_sections},
          rule<[](Emit &e) { return by_sizes(e, e.dim("dim", e.in()->type().rank())); }>);
  set.add("split-at", {op::tensor_split_indices}, rule<split_at>);
  set.add("split-one", {op::split_with_sizes},
          rule<[](Emit &e) { return e.root().num_results() == 1 ? Values{e.in()} : Values{}; }>);
  set.add("hsplit", {op::hsplit_int},
          rule<[](Emit &e) { return by_sizes(e, e.in()->type().rank() == 1 ? 0 : 1); }>);
  set.add("vsplit", {op::vsplit_int}, rule<[](Emit &e) { return by_sizes(e, 0); }>);
  set.add("dsplit", {op::dsplit_int}, rule<[](Emit &e) { return by_sizes(e, 2); }>);
  set.add("unbind", {op::unbind_int}, rule<unbind>);
  set.add("stack", {op::stack},
          rule<[](Emit &e) { return stack(e, e.dim("dim", e.type().rank())); }>);
  set.add("cat", {op::cat}, rule<cat>);
  set.add("hstack", {op::hstack}, rule<[](Emit &e) {
            return cat_lifted(e, e.type().rank() == 1 ? 0 : 1,
                              [&](V x) { return at_least(e, x, 1); });
          }>);
  set.add("vstack", {op::vstack},
          rule<[](Emit &e) { return cat_lifted(e, 0, [&](V x) { return at_least(e, x, 2); }); }>);
  set.add("dstack", {op::dstack},
          rule<[](Emit &e) { return cat_lifted(e, 2, [&](V x) { return at_least(e, x, 3); }); }>);
  set.add("column-stack", {op::column_stack}, rule<[](Emit &e) {
            return cat_lifted(e, 1, [&](V x) {
              const Shape s = e.shape_of(x);
              return s.size() >= 2 ? x : e.view(x, {e.mul_sizes(s), 1});
            });
          }>);
  set.add("repeat", {op::repeat}, rule<repeat>);
  set.add("tile", {op::tile}, rule<tile>);
  set.add("repeat-interleave", {op::repeat_interleave_self_int}, rule<repeat_interleave>);
  set.add("roll", {op::roll}, rule<roll>);
  set.add("rot90", {op::rot90}, rule<rot90>);
  set.add("fliplr", {op::fliplr}, rule<[](Emit &e) { return e.flip(e.in(), {1}); }>);
  set.add("flipud", {op::flipud}, rule<[](Emit &e) { return e.flip(e.in(), {0}); }>);
  set.add("pixel-shuffle", {op::pixel_shuffle}, rule<pixel_shuffle>);
  set.add("pixel-unshuffle", {op::pixel_unshuffle}, rule<pixel_unshuffle>);
  set.add("channel-shuffle", {op::channel_shuffle}, rule<channel_shuffle>);
  set.add("unfold", {op::unfold}, rule<unfold>);
  set.add("as-strided", {op::as_strided}, rule<as_strided>);
  set.add("view-same-dtype", {op::view_dtype},
          rule<[](Emit &e) -> V { return e.in()->type() == e.type() ? e.in() : nullptr; }>);
  set.add("pad", {op::pad}, rule<pad>);
  set.add("constant-pad", {op::constant_pad_nd}, rule<constant_pad>);
  set.add("reflection-pad", {op::reflection_pad1d, op::reflection_pad2d, op::reflection_pad3d},
          rule<[](Emit &e) { return pad_mode(e, e.ints("padding"), "reflect"); }>);
  set.add("replication-pad", {op::replication_pad1d, op::replication_pad2d, op::replication_pad3d},
          rule<[](Emit &e) { return pad_mode(e, e.ints("padding"), "replicate"); }>);
  set.add("circular-pad", {op::u_pad_circular},
          rule<[](Emit &e) { return pad_mode(e, e.ints("pad"), "circular"); }>);
  set.add("pad-enum", {op::u_pad_enum}, rule<pad_enum>);
  set.add("diagonal", {op::diagonal}, rule<[](Emit &e) {
            const int rank = e.in()->type().rank();
            return diagonal(e, e.in(), e.integer("offset"), e.dim("dim1", rank),
                            e.dim("dim2", rank));
          }>);
  set.add("meshgrid", {op::meshgrid, op::meshgrid_indexing}, rule<[](Emit &e) {
            Values out = e.list(0);
            const bool xy = e.root().def().attr_index("indexing") >= 0 &&
                            e.attr("indexing").as_string() == "xy" && out.size() >= 2;
            for (u32 i = 0; i < out.size(); ++i) {
              const u32 at = xy && i < 2 ? 1 - i : i;
              Shape s(out.size(), 1);
              s[at] = e.mul_sizes(e.shape_of(out[i]));
              out[i] = e.expand(e.view(out[i], s), e.shape(i));
            }
            return out;
          }>);
}

} // namespace chute::aten
