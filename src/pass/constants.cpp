#include "pass/constants.h"

#include "ir/element_convert.h"

#include <algorithm>
#include <cstring>

namespace chute::pass {

using ir::ElementType;
using ir::SymInt;
using ir::Type;
using ir::Value;

namespace {

constexpr i64 kMaxSplat = 64;

Dims dense_strides(std::span<const SymInt> shape) {
  Dims strides(shape.size());
  i64 step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<i64>(shape[i].value(), 1);
  }
  return strides;
}

/// Where the elements lie one after the other: in place, or in `copy`.
const std::byte *row_major(const ir::Constant &c, std::vector<std::byte> &copy) {
  if (c.is_dense())
    return c.data;
  copy.resize(c.dense_bytes());
  c.copy_dense(copy.data());
  return copy.data();
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
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  std::vector<std::byte> copy;
  const std::byte *bytes = row_major(*c, copy);
  for (i64 i = 1; i < n; ++i)
    if (std::memcmp(bytes, bytes + static_cast<size_t>(i) * size, size) != 0)
      return {};
  return ir::load_element(e, bytes);
}

std::optional<Dims> int_constant(const Value *v) {
  const ir::Constant *c = constant_of(v);
  if (!c || !c->has_data)
    return {};
  const ElementType e = c->type.element();
  if (!ir::is_integer(e) && e != ElementType::Bool)
    return {};
  std::vector<std::byte> copy;
  const std::byte *bytes = row_major(*c, copy);
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  Dims out(static_cast<size_t>(c->num_elements()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = ir::load_element_int(e, bytes + i * size);
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

const ir::Constant *spread(ir::Graph &graph, const ir::Constant &kernel, const Dims &dilation) {
  const Dims from = static_dims(kernel.type);
  const Dims to{from[0], from[1], (from[2] - 1) * dilation[0] + 1, (from[3] - 1) * dilation[1] + 1};
  const SymDims shape(to.begin(), to.end());
  std::byte *bytes = nullptr;
  const ir::Constant *out =
      graph.add_buffer(graph.context().tensor_type(kernel.type.element(), shape), &bytes);
  const auto size = static_cast<size_t>(ir::element_bytes(kernel.type.element()));
  std::vector<std::byte> taps(kernel.dense_bytes());
  kernel.copy_dense(taps.data());
  size_t at = 0;
  for (i64 io = 0; io < from[0] * from[1]; ++io)
    for (i64 y = 0; y < from[2]; ++y)
      for (i64 x = 0; x < from[3]; ++x, at += size) {
        const i64 place = (io * to[2] + y * dilation[0]) * to[3] + x * dilation[1];
        std::copy_n(taps.data() + at, size, bytes + static_cast<size_t>(place) * size);
      }
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

Dims strides_of(const Dims &shape) {
  Dims strides(shape.size());
  i64 step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

Type permuted_type(ir::Context &ctx, Type t, std::span<const i64> perm) {
  SymDims shape;
  for (i64 p : perm)
    shape.push_back(t.dim(static_cast<int>(p)));
  const ir::Quantization *quant = t.quant();
  if (quant && quant->kind != ir::QuantKind::PerTensor) {
    ir::Quantization q = *quant;
    for (size_t i = 0; i < perm.size(); ++i)
      if (perm[i] == quant->axis)
        q.axis = static_cast<i32>(i);
    quant = ctx.quantization(q);
  }
  return ctx.tensor_type(t.element(), shape, quant);
}

bool moves_only_ones(std::span<const SymInt> shape, std::span<const i64> perm) {
  i64 last = -1;
  for (i64 p : perm) {
    if (shape[static_cast<size_t>(p)] == SymInt(1))
      continue;
    if (p < last)
      return false;
    last = p;
  }
  return true;
}

ir::Op *recreate(Rewriter &rw, ir::Op &op, std::span<Value *const> operands,
                 std::span<const Type> types) {
  const std::vector<ir::Attr> attrs(op.attrs().begin(), op.attrs().end());
  ir::Op *copy = rw.graph().create(op.opcode(), operands, attrs, types, op.loc());
  rw.graph().insert_before(*op.parent(), &op, copy);
  return copy;
}

bool has_elements(std::span<const SymInt> shape, i64 n) {
  i64 product = 1;
  for (SymInt d : shape) {
    if (d.is_symbolic())
      return false;
    product *= d.value();
  }
  return product == n;
}

} // namespace chute::pass
