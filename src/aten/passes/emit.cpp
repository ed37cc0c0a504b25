#include "aten/passes/emit.h"

#include "aten/promotion.h"
#include "aten/shapes.h"
#include "ir/element_convert.h"
#include "pass/rewriter.h"

#include <algorithm>
#include <limits>

namespace chute::aten {

Emit::Emit(ir::Op &op, pass::Rewriter &rw)
    : op_(op), rw_(rw), builder_(rw.before(op)), mark_(op.previous()) {}

Values Emit::list(u32 spec) const {
  const ir::Op::Segment s = op_.segment(spec);
  Values out;
  for (u32 i = 0; i < s.count; ++i)
    out.push_back(op_.operand(s.first + i));
  return out;
}

bool Emit::flag(std::string_view name) const {
  const Attr a = attr(name);
  return a.kind() == ir::AttrKind::Bool && a.as_bool();
}

double Emit::number(std::string_view name) const {
  const Attr a = attr(name);
  switch (a.kind()) {
  case ir::AttrKind::Float: return a.as_float();
  case ir::AttrKind::Bool: return a.as_bool() ? 1.0 : 0.0;
  case ir::AttrKind::Int: return a.as_int().is_static() ? double(a.as_int().value()) : 0.0;
  default: return 0.0;
  }
}

i64 Emit::integer(std::string_view name) {
  const Attr a = attr(name);
  if (a.kind() == ir::AttrKind::Int && a.as_int().is_static())
    return a.as_int().value();
  if (a.kind() == ir::AttrKind::Bool)
    return a.as_bool();
  reject("an argument that must be a number is not static");
  return 0;
}

int Emit::wrap(i64 dim, int rank) const {
  const int n = std::max(rank, 1);
  return static_cast<int>(dim < 0 ? dim + n : dim);
}

int Emit::dim(std::string_view name, int rank) const {
  return wrap(attr(name).as_int().value(), rank);
}

std::vector<i64> Emit::ints(std::string_view name, size_t count) {
  std::vector<i64> out;
  const Attr a = attr(name);
  if (a.kind() == ir::AttrKind::Ints)
    for (SymInt s : a.as_ints()) {
      if (s.is_symbolic())
        reject("an argument that must be static is symbolic");
      out.push_back(s.is_symbolic() ? 1 : s.value());
    }
  if (count && out.size() == 1)
    out.assign(count, out[0]);
  return out;
}

Shape Emit::sizes(std::string_view name) const {
  const Attr a = attr(name);
  if (a.kind() != ir::AttrKind::Ints)
    return {};
  const auto s = a.as_ints();
  return {s.begin(), s.end()};
}

Axes Emit::all_dims(int rank) const {
  Axes out;
  for (int i = 0; i < rank; ++i)
    out.push_back(i);
  return out;
}

Axes Emit::dims(std::string_view name, int rank) const {
  const Attr a = attr(name);
  Axes out;
  if (a.kind() == ir::AttrKind::Int)
    out.push_back(dim(name, rank));
  else if (a.kind() == ir::AttrKind::Ints)
    for (SymInt d : a.as_ints())
      out.push_back(wrap(d.value(), rank));
  if (out.empty() || rank == 0)
    return all_dims(rank);
  std::sort(out.begin(), out.end());
  return out;
}

Shape Emit::shape(u32 result) const {
  const auto s = type(result).shape();
  return {s.begin(), s.end()};
}

Shape Emit::shape_of(V x) const {
  const auto s = x->type().shape();
  return {s.begin(), s.end()};
}

SymInt Emit::mul_sizes(const Shape &sizes) const {
  SymInt n = 1;
  for (SymInt s : sizes)
    n = sym().mul(n, s);
  return n;
}

std::nullptr_t Emit::reject(std::string_view why) {
  if (!failed_) {
    failed_ = true;
    rw_.reject(why);
  }
  return nullptr;
}

void Emit::undo() {
  while (op_.previous() != mark_)
    rw_.erase(*op_.previous());
}

bool Emit::done(const Values &values) {
  bool usable = !failed_ && values.size() == op_.num_results();
  for (u32 i = 0; usable && i < values.size(); ++i)
    usable = values[i] || !used(i);
  if (!usable) {
    undo();
    return false;
  }
  Values out = values;
  for (u32 i = 0; i < out.size(); ++i) {
    if (!out[i])
      continue;
    const ir::Type want = type(i);
    if (want.is_tensor() && out[i]->type() != want)
      out[i] = cast(out[i], want.element());
    const ir::Type got = out[i]->type();
    if (got == want)
      continue;
    // Symbolic sizes may be spelled differently; the recorded ones are the truth.
    bool same = want.is_tensor() && got.is_tensor() && got.rank() == want.rank();
    for (int d = 0; same && d < want.rank(); ++d)
      same = got.dim(d) == want.dim(d) || got.dim(d).is_symbolic() || want.dim(d).is_symbolic();
    if (!same || !out[i]->producer()) {
      rw_.error(pass::at_op(rw_.graph(), op_, ErrorKind::Failure, "aten.rule.type",
                            "a rewrite of this operator gives another result type than recorded",
                            "this is a fault in chute; please report the model"));
      undo();
      return false;
    }
    rw_.graph().set_type(out[i], want);
  }
  rw_.replace(op_, out);
  return true;
}

V Emit::dummy() const {
  if (op_.num_operands() && op_.operand(0))
    return op_.operand(0);
  return op_.result(0);
}

V Emit::op(ir::OpCode code, const Values &operands, std::initializer_list<ir::NamedAttr> attrs) {
  ir::Op *made = multi(code, operands, attrs);
  return made ? made->result() : dummy();
}

V Emit::op(ir::OpCode code, std::initializer_list<V> operands,
           std::initializer_list<ir::NamedAttr> attrs) {
  return op(code, Values(operands), attrs);
}

ir::Op *Emit::multi(ir::OpCode code, const Values &operands,
                    std::initializer_list<ir::NamedAttr> attrs) {
  if (failed_)
    return nullptr;
  Result<ir::Op *> made = builder_.try_create(
      code, operands, std::span<const ir::NamedAttr>(attrs.begin(), attrs.size()));
  if (made)
    return *made;
  reject("an operator of the replacement does not fit its operands");
  Diagnostic d = pass::at_op(rw_.graph(), op_, ErrorKind::Failure, "aten.rule.infer",
                             made.error().object + ": " + made.error().message,
                             "this is a fault in chute; please report the model");
  rw_.error(std::move(d));
  return nullptr;
}

ElementType common_element(V a, V b) {
  const ir::Type both[] = {a->type(), b->type()};
  return result_type(both).value_or(a->type().element());
}

V Emit::binary(ir::OpCode code, V a, V b) {
  if (a->type().element() != b->type().element()) {
    const ElementType common = common_element(a, b);
    a = cast(a, common);
    b = cast(b, common);
  }
  return op(code, {a, b});
}

V Emit::scalar(Attr value, ElementType element) {
  if (value.kind() == ir::AttrKind::Int && value.as_int().is_symbolic() && !ir::is_complex(element))
    return op(op::full, {},
              {{"size", ctx().ints_attr({})},
               {"fill_value", value},
               {"dtype", Attr::of_element(element)}});
  if (value.kind() == ir::AttrKind::Int && value.as_int().is_static() &&
      (ir::is_integer(element) || element == ElementType::Bool)) {
    std::byte bytes[16] = {};
    ir::store_element_int(element, value.as_int().value(), bytes);
    return builder_.constant(rw_.graph().add_copy(
        ctx().tensor_type(element, {}),
        std::span<const std::byte>(bytes, size_t(ir::element_bytes(element)))));
  }
  if (value.kind() == ir::AttrKind::Complex || ir::is_complex(element) ||
      (value.kind() == ir::AttrKind::Int && value.as_int().is_symbolic()) || !value.is_scalar()) {
    reject("a number is complex or symbolic");
    return dummy();
  }
  return scalar(value.scalar_as_double(), element);
}

V Emit::scalar(double value, ElementType element) {
  if (failed_ || ir::is_complex(element)) {
    reject("complex arithmetic");
    return dummy();
  }
  return builder_.scalar(element, value);
}

V Emit::i64s(const std::vector<i64> &values) { return builder_.constant_i64(values); }

V Emit::constant(ElementType element, const std::vector<i64> &shape,
                 const std::vector<double> &values) {
  Shape dims(shape.begin(), shape.end());
  std::byte *bytes = nullptr;
  const ir::Constant *c =
      rw_.graph().add_buffer(ctx().tensor_type(element, std::span<const SymInt>(dims)), &bytes);
  const auto width = static_cast<size_t>(ir::element_bytes(element));
  for (size_t i = 0; i < values.size(); ++i)
    ir::store_element(element, values[i], bytes + i * width);
  return builder_.constant(c);
}

V Emit::full(const Shape &shape, Attr value, ElementType element) {
  if (shape.empty())
    return scalar(value, element);
  return op(op::full, {},
            {{"size", ctx().ints_attr(shape)},
             {"fill_value", value},
             {"dtype", Attr::of_element(element)}});
}

V Emit::full(const Shape &shape, double value, ElementType element) {
  if (ir::is_integer(element))
    return full(shape, Attr::of_int(static_cast<i64>(value)), element);
  return full(shape,
              element == ElementType::Bool ? Attr::of_bool(value != 0) : Attr::of_float(value),
              element);
}

V Emit::arange(SymInt start, SymInt end, ElementType element) {
  return op(op::arange_start_step, {},
            {{"start", Attr::of_int(start)},
             {"end", Attr::of_int(end)},
             {"step", Attr::of_int(1)},
             {"dtype", Attr::of_element(element)}});
}

V Emit::cast(V x, ElementType element) {
  if (x->type().element() == element)
    return x;
  return op(op::u_to_copy, {x}, {{"dtype", Attr::of_element(element)}});
}

V Emit::up(V x) {
  const ElementType e = x->type().element();
  return e == ElementType::F16 || e == ElementType::BF16 ? cast(x, ElementType::F32) : x;
}

V Emit::to_float(V x) {
  const ElementType e = x->type().element();
  return ir::is_integer(e) || e == ElementType::Bool ? cast(x, ElementType::F32) : x;
}

V Emit::to_bool(V x) { return x->type().element() == ElementType::Bool ? x : ne(x, 0.0); }

V Emit::div_floor(V a, V b) {
  if (a->type().element() != b->type().element()) {
    const ElementType common = common_element(a, b);
    a = cast(a, common);
    b = cast(b, common);
  }
  return op(op::div_Tensor_mode, {a, b}, {{"rounding_mode", ctx().string_attr("floor")}});
}

V Emit::where(V condition, V a, V b) {
  if (a->type().element() != b->type().element()) {
    const ElementType common = common_element(a, b);
    a = cast(a, common);
    b = cast(b, common);
  }
  return op(op::where_self, {to_bool(condition), a, b});
}

V Emit::view(V x, const Shape &shape) {
  const auto now = x->type().shape();
  if (now.size() == shape.size() && std::equal(now.begin(), now.end(), shape.begin()))
    return x;
  return op(op::view, {x}, {{"size", ctx().ints_attr(shape)}});
}

V Emit::permute(V x, const Axes &order) {
  bool identity = true;
  Shape dims;
  for (size_t i = 0; i < order.size(); ++i) {
    identity &= order[i] == static_cast<int>(i);
    dims.emplace_back(order[i]);
  }
  return identity ? x : op(op::permute, {x}, {{"dims", ctx().ints_attr(dims)}});
}

V Emit::transpose(V x, int a, int b) {
  const int rank = x->type().rank();
  Axes order = all_dims(rank);
  if (rank)
    std::swap(order[size_t(wrap(a, rank))], order[size_t(wrap(b, rank))]);
  return permute(x, order);
}

V Emit::expand(V x, const Shape &shape) {
  const auto now = x->type().shape();
  if (now.size() == shape.size() && std::equal(now.begin(), now.end(), shape.begin()))
    return x;
  return op(op::expand, {x}, {{"size", ctx().ints_attr(shape)}});
}

V Emit::slice(V x, int dim, SymInt start, SymInt end, i64 step) {
  const SymInt n = x->type().dim(dim);
  const SliceRange r = resolve_slice(sym(), n, start, end, step);
  if (r.start == SymInt(0) && r.end == n && step == 1)
    return x;
  return op(op::slice_Tensor, {x},
            {{"dim", Attr::of_int(dim)},
             {"start", Attr::of_int(r.start)},
             {"end", Attr::of_int(r.end)},
             {"step", Attr::of_int(step)}});
}

V Emit::select(V x, int dim, SymInt index) {
  if (index.is_static() && index.value() < 0)
    index = sym().add(index, x->type().dim(dim));
  const V one = slice(x, dim, index, sym().add(index, 1));
  Shape s = shape_of(x);
  s.erase(s.begin() + dim);
  return view(one, s);
}

V Emit::unsqueeze(V x, int dim) {
  Shape s = shape_of(x);
  s.insert(s.begin() + dim, 1);
  return view(x, s);
}

V Emit::squeeze(V x, int dim) {
  Shape s = shape_of(x);
  s.erase(s.begin() + dim);
  return view(x, s);
}

V Emit::cat(const Values &values, int dim) {
  if (values.size() == 1)
    return values[0];
  return op(op::cat, values, {{"dim", Attr::of_int(dim)}});
}

Values Emit::split(V x, const Shape &sizes, int dim) {
  if (sizes.size() == 1)
    return {x};
  ir::Op *made = multi(op::split_with_sizes, {x},
                       {{"split_sizes", ctx().ints_attr(sizes)}, {"dim", Attr::of_int(dim)}});
  Values out(sizes.size(), dummy());
  for (u32 i = 0; made && i < made->num_results() && i < out.size(); ++i)
    out[i] = made->result(i);
  return out;
}

V Emit::flip(V x, const Axes &dims) {
  Shape d(dims.begin(), dims.end());
  return dims.empty() ? x : op(op::flip, {x}, {{"dims", ctx().ints_attr(d)}});
}

V Emit::pad(V x, std::vector<i64> amounts, Attr value) {
  bool grows = false;
  for (size_t i = 0; i < amounts.size(); i += 2) {
    const int d = x->type().rank() - 1 - static_cast<int>(i / 2);
    const i64 front = std::min<i64>(amounts[i], 0), back = std::min<i64>(amounts[i + 1], 0);
    if (front || back)
      x = slice(x, d, -front, sym().add(x->type().dim(d), back));
    amounts[i] -= front;
    amounts[i + 1] -= back;
    grows |= amounts[i] || amounts[i + 1];
  }
  if (!grows)
    return x;
  Shape full(2 * size_t(x->type().rank()), 0);
  std::copy(amounts.begin(), amounts.end(), full.begin());
  return op(op::constant_pad_nd, {x}, {{"pad", ctx().ints_attr(full)}, {"value", value}});
}

V Emit::index_select(V x, int dim, V index) {
  return op(op::index_select, {x, index}, {{"dim", Attr::of_int(dim)}});
}

V Emit::reduce(ir::OpCode code, V x, const Axes &dims, bool keep) {
  if (dims.empty())
    return x;
  Shape d(dims.begin(), dims.end());
  if (code == op::sum_dim_IntList && ir::is_integer(x->type().element()))
    return op(code, {x},
              {{"dim", ctx().ints_attr(d)},
               {"keepdim", Attr::of_bool(keep)},
               {"dtype", Attr::of_element(x->type().element())}});
  return op(code, {x}, {{"dim", ctx().ints_attr(d)}, {"keepdim", Attr::of_bool(keep)}});
}

V Emit::softmax(V x, int dim) {
  return op(op::u_softmax, {x},
            {{"dim", Attr::of_int(dim)}, {"half_to_float", Attr::of_bool(false)}});
}

V Emit::log_softmax(V x, int dim) {
  return op(op::u_log_softmax, {x},
            {{"dim", Attr::of_int(dim)}, {"half_to_float", Attr::of_bool(false)}});
}

V Emit::linear(V x, V w, V bias) { return op(op::linear, {x, w, bias}); }

} // namespace chute::aten
