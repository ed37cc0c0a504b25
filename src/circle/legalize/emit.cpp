#include "circle/legalize/emit.h"

#include "ir/element_convert.h"
#include "ir/text.h"
#include "support/check.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace chute::circle {

namespace {

constexpr i64 kMaxSplat = 64;

i64 to_i32(i64 v) {
  return std::clamp<i64>(v, std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max());
}

Dims dense_strides(std::span<const SymInt> shape) {
  Dims strides(shape.size());
  i64 step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<i64>(shape[i].value(), 1);
  }
  return strides;
}

} // namespace

const ir::Constant *constant_of(const Value *v) {
  const ir::Op *p = v ? v->producer() : nullptr;
  return p && p->opcode() == ir::core_op::constant ? p->attr(0u).as_constant() : nullptr;
}

std::optional<double> splat_of(const Value *v) {
  const ir::Constant *c = constant_of(v);
  if (!c || !c->has_data || ir::is_complex(c->type.element()))
    return {};
  const i64 n = c->num_elements();
  if (n < 1 || n > kMaxSplat)
    return {};
  const ElementType e = c->type.element();
  std::vector<std::byte> bytes(c->dense_bytes());
  c->copy_dense(bytes.data());
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  for (i64 i = 1; i < n; ++i)
    if (std::memcmp(bytes.data(), bytes.data() + static_cast<size_t>(i) * size, size) != 0)
      return {};
  return ir::load_element(e, bytes.data());
}

std::optional<Dims> int_constant(const Value *v) {
  const ir::Constant *c = constant_of(v);
  if (!c || !c->has_data)
    return {};
  const ElementType e = c->type.element();
  if (!ir::is_integer(e) && e != ElementType::Bool)
    return {};
  std::vector<std::byte> bytes(c->dense_bytes());
  c->copy_dense(bytes.data());
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  Dims out(static_cast<size_t>(c->num_elements()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = ir::load_element_int(e, bytes.data() + i * size);
  return out;
}

const ir::Constant *permuted(ir::Graph &graph, const ir::Constant &c, std::span<const i64> perm) {
  const Dims from =
      c.is_dense() ? dense_strides(c.type.shape()) : Dims(c.strides.begin(), c.strides.end());
  Dims strides;
  SymDims shape;
  for (i64 p : perm) {
    strides.push_back(from[static_cast<size_t>(p)]);
    shape.push_back(c.type.dim(static_cast<int>(p)));
  }
  const ir::Quantization *quant = c.type.quant();
  if (quant && quant->kind != ir::QuantKind::PerTensor) {
    ir::Quantization q = *quant;
    q.axis = static_cast<i32>(std::find(perm.begin(), perm.end(), q.axis) - perm.begin());
    quant = graph.context().quantization(q);
  }
  const Type type = graph.context().tensor_type(c.type.element(), shape, quant);
  // Moving only dimensions of size 1 leaves the bytes dense.
  Dims expected = dense_strides(type.shape());
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == SymInt(1))
      expected[i] = strides[i];
  if (expected == strides)
    strides.clear();
  return graph.add_constant(type, c.data, c.owner, strides, c.has_data);
}

const ir::Constant *reshaped(ir::Graph &graph, const ir::Constant &c,
                             std::span<const SymInt> shape) {
  const Type type = graph.context().with_shape(c.type, shape);
  if (c.is_dense() || !c.has_data)
    return graph.add_constant(type, c.data, c.owner, {}, c.has_data);
  std::byte *bytes = nullptr;
  const ir::Constant *out = graph.add_buffer(type, &bytes);
  c.copy_dense(bytes);
  return out;
}

const ir::Constant *sliced(ir::Graph &graph, const ir::Constant &c, i64 axis, i64 begin, i64 end,
                           i64 step) {
  Dims strides =
      c.is_dense() ? dense_strides(c.type.shape()) : Dims(c.strides.begin(), c.strides.end());
  SymDims shape(c.type.shape().begin(), c.type.shape().end());
  const auto a = static_cast<size_t>(axis);
  const i64 offset = begin * strides[a] * ir::element_bytes(c.type.element());
  shape[a] = std::max<i64>(0, (end - begin + step - 1) / step);
  strides[a] *= step;
  const Type type = graph.context().with_shape(c.type, shape);
  return graph.add_constant(type, c.data ? c.data + offset : nullptr, c.owner,
                            strides == dense_strides(shape) ? Dims{} : strides, c.has_data);
}

Dims static_dims(Type t) {
  Dims out;
  for (SymInt d : t.shape())
    out.push_back(d.value());
  return out;
}

bool is_identity(std::span<const i64> perm) {
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<i64>(i))
      return false;
  return true;
}

Dims inverse(std::span<const i64> perm) {
  Dims out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    out[static_cast<size_t>(perm[i])] = static_cast<i64>(i);
  return out;
}

double Emit::number(std::string_view name, double fallback) const {
  const Attr a = attr(name);
  return a.is_none() ? fallback : a.scalar_as_double();
}

Dims Emit::ints(std::string_view name, size_t n) const {
  Dims out;
  const Attr a = attr(name);
  if (a.kind() == ir::AttrKind::Int)
    out.push_back(a.as_int().value());
  else if (a.kind() == ir::AttrKind::Ints)
    for (SymInt v : a.as_ints())
      out.push_back(v.value());
  if (out.size() == 1 && n > 1)
    out.resize(n, out[0]);
  return out;
}

bool Emit::is_static(std::string_view name) const {
  const Attr a = attr(name);
  if (a.kind() == ir::AttrKind::Int)
    return a.as_int().is_static();
  if (a.kind() != ir::AttrKind::Ints)
    return a.is_none();
  return std::ranges::all_of(a.as_ints(), [](SymInt v) { return v.is_static(); });
}

Value *Emit::operator()(OpCode code, std::span<Value *const> operands,
                        std::span<const NamedAttr> attrs) {
  if (!failed_) {
    auto made = b_.try_create(code, operands, attrs);
    if (made)
      return (*made)->result();
    // Recorded types that contradict each other get here, too: they are input.
    failed_ = true;
    rw.error(pass::at_op(graph(), op, ErrorKind::Failure, "circle.rule.type",
                         "its lowering does not fit its operands: " + made.error().message,
                         "the archive is damaged, or this is a fault in chute: please report it"));
  }
  return op.result(0);
}

Value *Emit::operator()(OpCode code, std::initializer_list<Value *> operands,
                        std::initializer_list<NamedAttr> attrs) {
  return (*this)(code, std::span<Value *const>(operands.begin(), operands.size()),
                 std::span<const NamedAttr>(attrs.begin(), attrs.size()));
}

ir::Op *Emit::typed(OpCode code, std::span<Value *const> operands, std::span<const NamedAttr> attrs,
                    std::span<const Type> types) {
  return b_.create_typed(code, operands, attrs, types);
}

Value *Emit::typed(OpCode code, std::initializer_list<Value *> operands,
                   std::initializer_list<NamedAttr> attrs, Type type) {
  return b_
      .create_typed(code, std::span<Value *const>(operands.begin(), operands.size()),
                    std::span<const NamedAttr>(attrs.begin(), attrs.size()),
                    std::span<const Type>(&type, 1))
      ->result();
}

Value *Emit::i32(i64 v) {
  const auto x = static_cast<chute::i32>(to_i32(v));
  return b_.constant_i32(std::span<const chute::i32>(&x, 1), true);
}

Value *Emit::i32s(std::span<const i64> v) {
  std::vector<chute::i32> x;
  for (i64 i : v)
    x.push_back(static_cast<chute::i32>(to_i32(i)));
  return b_.constant_i32(x);
}

Value *Emit::i32_pairs(std::span<const i64> flat) {
  const Dims shape{static_cast<i64>(flat.size() / 2), 2};
  return constant_ints(ElementType::I32, shape, flat);
}

Value *Emit::constant(ElementType e, std::span<const i64> shape, std::span<const double> values) {
  const SymDims dims(shape.begin(), shape.end());
  std::byte *bytes = nullptr;
  const ir::Constant *c = graph().add_buffer(context().tensor_type(e, dims), &bytes);
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  for (size_t i = 0; i < values.size(); ++i)
    ir::store_element(e, values[i], bytes + i * size);
  return b_.constant(c);
}

Value *Emit::constant_ints(ElementType e, std::span<const i64> shape, std::span<const i64> values) {
  const SymDims dims(shape.begin(), shape.end());
  std::byte *bytes = nullptr;
  const ir::Constant *c = graph().add_buffer(context().tensor_type(e, dims), &bytes);
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  for (size_t i = 0; i < values.size(); ++i)
    ir::store_element_int(e, values[i], bytes + i * size);
  return b_.constant(c);
}

Value *Emit::add(Value *x, Value *y, std::string_view activation) {
  // The schema's default for pot_scale_int16 restricts int16 scales to powers of two.
  return (*this)(op::ADD, {x, y},
                 {{"fused_activation_function", str(activation)}, {"pot_scale_int16", of(false)}});
}
Value *Emit::sub(Value *x, Value *y) {
  return (*this)(op::SUB, {x, y}, {{"pot_scale_int16", of(false)}});
}
Value *Emit::mul(Value *x, Value *y) { return (*this)(op::MUL, {x, y}); }
Value *Emit::div(Value *x, Value *y) { return (*this)(op::DIV, {x, y}); }

Value *Emit::cast(Value *x, ElementType to) {
  const ElementType from = x->type().element();
  if (from == to)
    return x;
  return typed(op::CAST, {x}, {{"in_data_type", of(from)}, {"out_data_type", of(to)}},
               context().tensor_type(to, x->type().shape()));
}

Value *Emit::select(Value *c, Value *x, Value *y) { return (*this)(op::SELECT_V2, {c, x, y}); }

Value *Emit::as_bool(Value *x) {
  if (x->type().element() == ElementType::Bool)
    return x;
  return (*this)(op::NOT_EQUAL, {x, like(x, 0)});
}

Value *Emit::transpose(Value *x, std::span<const i64> perm) {
  if (is_identity(perm))
    return x;
  if (const ir::Constant *c = constant_of(x))
    return b_.constant(permuted(graph(), *c, perm));
  return (*this)(op::TRANSPOSE, {x, i32s(perm)});
}

Value *Emit::reshape(Value *x, std::span<const SymInt> shape) {
  const std::span<const SymInt> from = x->type().shape();
  if (std::equal(from.begin(), from.end(), shape.begin(), shape.end()))
    return x;
  if (const ir::Constant *c = constant_of(x))
    return b_.constant(reshaped(graph(), *c, shape));
  Value *operand = shape_operand(shape, {x}, true);
  if (!operand)
    return unsupported("the target shape has several dimensions known only at run time",
                       "export with fewer dynamic dimensions");
  SymDims stated(shape.begin(), shape.end());
  for (SymInt &d : stated)
    if (d.is_symbolic())
      d = -1;
  const bool one = std::ranges::count(stated, SymInt(-1)) <= 1;
  return typed(op::RESHAPE, {x, operand},
               {{"new_shape", one ? context().ints_attr(stated) : context().ints_attr({})}},
               context().tensor_type(x->type().element(), shape));
}

Value *Emit::slices(Value *x, const Dims &begin, const Dims &end, const Dims &steps) {
  return (*this)(op::STRIDED_SLICE, {x, i32s(begin), i32s(end), i32s(steps)});
}

Value *Emit::slice(Value *x, i64 axis, i64 begin, i64 end, i64 step) {
  const auto rank = static_cast<size_t>(x->type().rank());
  Dims begins(rank, 0), ends, steps(rank, 1);
  i64 end_mask = 0;
  SymDims shape;
  for (size_t i = 0; i < rank; ++i) {
    const SymInt d = x->type().dim(static_cast<int>(i));
    ends.push_back(d.is_static() ? d.value() : 0);
    if (d.is_symbolic())
      end_mask |= i64{1} << i;
    shape.push_back(d);
  }
  const auto a = static_cast<size_t>(axis);
  if (begin == 0 && step == 1 && shape[a] == SymInt(end))
    return x;
  if (const ir::Constant *c = constant_of(x))
    return b_.constant(sliced(graph(), *c, axis, begin, end, step));
  begins[a] = begin;
  ends[a] = end;
  steps[a] = step;
  end_mask &= ~(i64{1} << a);
  shape[a] = std::max<i64>(0, (end - begin + step - 1) / step);
  return typed(op::STRIDED_SLICE, {x, i32s(begins), i32s(ends), i32s(steps)},
               {{"end_mask", of(end_mask)}}, context().tensor_type(x->type().element(), shape));
}

Value *Emit::pad(Value *x, const Dims &pairs, std::optional<double> value) {
  if (std::ranges::all_of(pairs, [](i64 p) { return p == 0; }))
    return x;
  if (value && *value != 0)
    return (*this)(op::PADV2, {x, i32_pairs(pairs), like(x, *value)});
  return (*this)(op::PAD, {x, i32_pairs(pairs)});
}

Value *Emit::reduce(OpCode code, Value *x, const Dims &axes, bool keep) {
  // Counted from the end: onert drops leading dimensions of a FULLY_CONNECTED result and of what is
  // computed from it, and only then still finds the right ones.
  Dims from_end;
  for (i64 a : axes)
    from_end.push_back(a - x->type().rank());
  return (*this)(code, {x, i32s(from_end)}, {{"keep_dims", of(keep)}});
}

Value *Emit::concat(std::span<Value *const> parts, i64 axis) {
  if (parts.size() == 1)
    return parts[0];
  const NamedAttr attr{"axis", of(axis)};
  return (*this)(op::CONCATENATION, parts, std::span<const NamedAttr>(&attr, 1));
}

Value *Emit::shape_operand(std::span<const SymInt> shape, std::initializer_list<Value *> sources,
                           bool infer_one) {
  const auto symbolic = std::ranges::count_if(shape, [](SymInt d) { return d.is_symbolic(); });
  if (symbolic == 0 || (infer_one && symbolic == 1)) {
    Dims stated;
    for (SymInt d : shape)
      stated.push_back(d.is_symbolic() ? -1 : d.value());
    return i32s(stated);
  }
  boost::unordered_flat_map<const Value *, Value *> shapes;
  std::vector<Value *> parts;
  Dims known;
  bool inferred = false;
  const auto flush = [&] {
    if (!known.empty())
      parts.push_back(i32s(known));
    known.clear();
  };
  for (SymInt d : shape) {
    if (d.is_static()) {
      known.push_back(d.value());
      continue;
    }
    Value *found = nullptr;
    for (Value *s : sources)
      for (int i = 0; i < s->type().rank() && !found; ++i)
        if (s->type().dim(i) == d) {
          Value *&of_source = shapes[s];
          if (!of_source)
            of_source = typed(op::SHAPE, {s}, {{"out_type", of(ElementType::I32)}},
                              context().tensor_type(ElementType::I32, {SymInt(s->type().rank())}));
          found = slice(of_source, 0, i, i + 1);
        }
    if (!found && infer_one && !inferred) {
      inferred = true;
      known.push_back(-1);
      continue;
    }
    if (!found)
      return nullptr;
    flush();
    parts.push_back(found);
  }
  flush();
  return concat(parts, 0);
}

std::nullptr_t Emit::unsupported(std::string reason, std::string hint) {
  static_cast<LegalizeState *>(rw.user())->refusals[op.id()] = {std::move(reason), std::move(hint)};
  return nullptr;
}

bool Emit::finish(std::span<Value *const> values) {
  if (failed_)
    return false;
  for (u32 i = 0; i < op.num_results(); ++i) {
    if (!values[i])
      continue;
    const Type want = type(i), got = values[i]->type();
    if (want == got)
      continue;
    bool same = want.element() == got.element() && want.rank() == got.rank();
    for (int d = 0; same && d < want.rank(); ++d)
      same = want.dim(d).is_symbolic() || got.dim(d).is_symbolic() || want.dim(d) == got.dim(d);
    if (!same) {
      // A program whose recorded types contradict each other gets here, too: it is input.
      rw.error(
          pass::at_op(graph(), op, ErrorKind::Failure, "circle.rule.type",
                      "its lowering gives " + ir::print(context(), got) +
                          " where the program records " + ir::print(context(), want),
                      "the archive is damaged, or this is a fault in chute: please report it"));
      return false;
    }
    // The exporter's expressions are the ones that inputs and other values share.
    if (values[i]->producer() && !constant_of(values[i]))
      graph().set_type(values[i], want);
  }
  rw.replace(op, values);
  return true;
}

Dims strides_of(const Dims &shape) {
  Dims strides(shape.size());
  i64 step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

} // namespace chute::circle
