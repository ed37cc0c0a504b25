// Elementwise operators, reductions and the rows without a rule; what the families share.
#include "ir/element_convert.h"
#include "tosa/infer_support.h"
#include "tosa/ops.h"

namespace chute::tosa {

using ir::ElementType;
using ir::SymInt;

namespace {
constexpr i64 kMostInts = 64;
} // namespace

std::optional<std::vector<i64>> constant_ints(const ir::Value *v) {
  const ir::Op *p = v ? v->producer() : nullptr;
  if (!p || p->opcode() != ir::core_op::constant)
    return {};
  const ir::Constant *c = p->attr(0u).as_constant();
  const ElementType e = c->type.element();
  if (!c->has_data || !ir::is_integer(e) || c->num_elements() > kMostInts)
    return {};
  std::vector<std::byte> bytes(c->dense_bytes());
  c->copy_dense(bytes.data());
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  std::vector<i64> out(static_cast<size_t>(c->num_elements()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = ir::load_element_int(e, bytes.data() + i * size);
  return out;
}

Status Inference::tensors(u32 n, int rank) const {
  if (op.num_operands() < n)
    return bad("has too few operands");
  for (u32 i = 0; i < n; ++i) {
    if (!op.operand(i) || !type(i).is_tensor())
      return bad("operand " + std::to_string(i) + " is no tensor");
    if (rank >= 0 && i == 0 && type(i).rank() != rank)
      return bad("operand 0 has rank " + std::to_string(type(i).rank()) + ", not " +
                 std::to_string(rank));
  }
  return {};
}

Result<size_t> Inference::axis() const {
  const SymInt a = op.attr("axis").as_int();
  if (a.is_symbolic() || a.value() < 0 || a.value() >= rank())
    return bad("axis is no dimension of operand 0, which has rank " + std::to_string(rank()));
  return static_cast<size_t>(a.value());
}

Result<std::vector<i64>> Inference::list(std::string_view name, size_t n, i64 low) const {
  const std::span<const SymInt> given = op.attr(name).as_ints();
  if (given.size() != n)
    return bad(std::string(name) + " has " + std::to_string(given.size()) + " entries, not " +
               std::to_string(n));
  std::vector<i64> values;
  for (SymInt v : given) {
    if (v.is_symbolic() || v.value() < low || v.value() > (i64{1} << 31))
      return bad(std::string(name) + " has an entry that is out of range");
    values.push_back(v.value());
  }
  return values;
}

Result<Inference::Dims> Inference::broadcast(const Dims &a, const Dims &b) const {
  if (a.size() != b.size())
    return bad("operands have ranks " + std::to_string(a.size()) + " and " +
               std::to_string(b.size()) + ", which must be equal");
  Dims shape;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || b[i] == SymInt(1))
      shape.push_back(a[i]);
    else if (a[i] == SymInt(1))
      shape.push_back(b[i]);
    else if (a[i].is_symbolic() || b[i].is_symbolic())
      shape.push_back(a[i].is_static() ? a[i] : b[i]);
    else
      return bad("shapes do not broadcast: dimension " + std::to_string(i) + " is " +
                 std::to_string(a[i].value()) + " and " + std::to_string(b[i].value()));
  }
  return shape;
}

Status infer_unset(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return Inference{op, graph, out}.unknown("the operands do not tell its result type");
}

Status infer_nothing(const ir::Op &, ir::Graph &, std::vector<ir::Type> &) { return {}; }

Status infer_unary(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1));
  return in.moved(in.type(0).shape());
}

namespace {

Status same_elements(const Inference &in, u32 a, u32 b) {
  if (in.element(a) != in.element(b))
    return in.bad("operands have different element types, " +
                  std::string(ir::element_type_name(in.element(a))) + " and " +
                  std::string(ir::element_type_name(in.element(b))));
  return {};
}

Status binary(const Inference &in, ElementType result) {
  TOSA_TRY(in.tensors(2));
  TOSA_TRY(same_elements(in, 0, 1));
  TOSA_TRY_TO(shape, in.broadcast(in.dims(0), in.dims(1)));
  return in.give(result == ElementType::None ? in.element() : result, shape);
}

} // namespace

Status infer_binary(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return binary({op, graph, out}, ElementType::None);
}

/// Products of 8 and 16 bits are 32 bits wide.
Status infer_mul(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(2));
  const bool narrow = in.element() == ElementType::I8 || in.element() == ElementType::I16;
  return binary(in, narrow ? ElementType::I32 : ElementType::None);
}

Status infer_compare(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  return binary({op, graph, out}, ElementType::Bool);
}

Status infer_select(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(3));
  if (in.element() != ElementType::Bool)
    return in.bad("the condition is of type bool");
  TOSA_TRY(same_elements(in, 1, 2));
  TOSA_TRY_TO(both, in.broadcast(in.dims(1), in.dims(2)));
  TOSA_TRY_TO(shape, in.broadcast(in.dims(0), both));
  return in.give(in.element(1), shape);
}

/// 8 bits give 8 bits; 16 bits give the interpolated value with 7 fractional bits.
Status infer_table(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(2));
  return in.give(in.element() == ElementType::I16 ? ElementType::I32 : in.element(), in.dims());
}

Status infer_reduce(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1));
  TOSA_TRY_TO(axis, in.axis());
  Inference::Dims shape = in.dims();
  shape[axis] = 1;
  return in.moved(shape);
}

Status infer_argmax(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out) {
  const Inference in{op, graph, out};
  TOSA_TRY(in.tensors(1));
  TOSA_TRY_TO(axis, in.axis());
  Inference::Dims shape = in.dims();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return in.give(ElementType::I32, shape);
}

} // namespace chute::tosa
