#include "circle/passes/rules/rules.h"

#include "ir/element_convert.h"

#include <algorithm>
#include <cmath>

namespace chute::circle {

std::optional<Dims> small_ints(const Value *v, i64 most) {
  const ir::Constant *c = constant_of(v);
  return c && c->num_elements() <= most ? int_constant(v) : std::nullopt;
}

std::optional<double> real_splat(const Value *v) {
  const std::optional<double> stored = splat_of(v);
  const ir::Quantization *q = v ? v->type().quant() : nullptr;
  if (!stored || !q)
    return stored;
  if (q->kind != ir::QuantKind::PerTensor || q->scales.size() != 1)
    return {};
  const double zero = q->zero_points.empty() ? 0.0 : static_cast<double>(q->zero_points[0]);
  return (*stored - zero) * double{q->scales[0]};
}

std::optional<std::vector<float>> floats(const Value *v, i64 most) {
  const ir::Constant *c = constant_of(v);
  if (!c || !c->has_data || !is_f32(c->type) || c->num_elements() > most)
    return {};
  std::vector<float> out(static_cast<size_t>(c->num_elements()));
  c->copy_dense(reinterpret_cast<std::byte *>(out.data()));
  for (float f : out)
    if (!std::isfinite(f))
      return {};
  return out;
}

std::optional<std::vector<float>> per_last(const Value *v, size_t channels) {
  const std::span<const SymInt> shape = v->type().shape();
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    if (shape[i] != SymInt(1))
      return {};
  std::optional<std::vector<float>> out = floats(v, static_cast<i64>(channels));
  if (out && out->size() == 1)
    out->resize(channels, (*out)[0]);
  if (!out || out->size() != channels)
    return {};
  return out;
}

Value *f32_constant(pass::Rewriter &rw, ir::Op &before, Type type, std::span<const float> values) {
  return rw.before(before).constant(rw.graph().add_copy(type, std::as_bytes(values)));
}

std::optional<SymDims> broadcast(std::span<const SymInt> a, std::span<const SymInt> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SymDims out(a.begin(), a.end());
  for (size_t i = 0; i < b.size(); ++i) {
    SymInt &d = out[a.size() - b.size() + i];
    if (d == SymInt(1))
      d = b[i];
    else if (b[i] != SymInt(1) && b[i] != d)
      return {};
  }
  return out;
}

bool replace_by_view(ir::Op &op, pass::Rewriter &rw, Value *x) {
  const Type to = op.result()->type();
  if (x->type() == to) {
    rw.replace(op, x);
    return true;
  }
  if (!stored_alike(x->type(), to) || to.rank() == 0 || count_symbolic(to.shape()) > 1)
    return false;
  rw.replace(op, make_reshape(rw, op, x, to.shape()));
  return true;
}

Value *make(pass::Rewriter &rw, ir::Op &op, OpCode code, std::initializer_list<Value *> operands,
            std::initializer_list<ir::NamedAttr> attrs) {
  const Type type = op.result()->type();
  return rw.before(op)
      .create_typed(code, std::span(operands.begin(), operands.size()),
                    std::span(attrs.begin(), attrs.size()), std::span(&type, 1))
      ->result();
}

std::vector<OpCode> circle_ops(ir::trait::Set traits) {
  std::vector<OpCode> out;
  for (const ir::OpDef *def : ir::Registry::global().all())
    if (is_circle(def->opcode) && def->has(traits))
      out.push_back(def->opcode);
  return out;
}

} // namespace chute::circle
