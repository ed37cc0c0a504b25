#include "circle/infer_support.h"

#include "circle/ops.h"
#include "ir/element_convert.h"

namespace chute::circle {

using ir::ElementType;
using ir::Op;
using ir::SymInt;
using ir::Value;

namespace {

constexpr i64 kMaxElements = 64;
constexpr int kMaxDepth = 12;
constexpr int kMaxSteps = 200;

const ir::Constant *constant_of(const Value *v) {
  const Op *p = v ? v->producer() : nullptr;
  if (!p || p->opcode() != ir::core_op::constant)
    return nullptr;
  const ir::Constant *c = p->attr(0u).as_constant();
  return c->has_data ? c : nullptr;
}

/// Follows integer tensors back to shapes. Depth and steps are bounded, so that a hostile or merely
/// long chain costs a constant.
class IntegerTracer {
public:
  explicit IntegerTracer(ir::Graph &graph) : graph_(graph) {}

  std::optional<Dims> trace(const Value *v, int depth) {
    if (!v || !v->type().is_tensor() || depth > kMaxDepth || ++steps_ > kMaxSteps)
      return std::nullopt;
    const ir::Type type = v->type();
    if (type.rank() > 2 || !type.has_static_shape() || type.num_elements() > kMaxElements)
      return std::nullopt;
    if (const ir::Constant *c = constant_of(v))
      return constant(*c);
    const Op *p = v->producer();
    if (!p || p->num_operands() == 0)
      return std::nullopt;
    const ir::OpCode code = p->opcode();
    if (code == op::SHAPE)
      return p->operand(0)->type().is_tensor()
                 ? std::optional(to_dims(p->operand(0)->type().shape()))
                 : std::nullopt;
    if (code == op::CAST || code == op::RESHAPE || code == op::SQUEEZE || code == op::EXPAND_DIMS)
      return trace(p->operand(0), depth + 1);
    if (code == op::CONCATENATION || code == op::PACK)
      return type.rank() == 1 ? join(*p, depth) : std::nullopt;
    if (code == op::STRIDED_SLICE || code == op::SLICE)
      return slice(*p, depth);
    if (code == op::GATHER)
      return gather(*p, depth);
    if (code == op::MUL || code == op::ADD || code == op::SUB || code == op::FLOOR_DIV ||
        code == op::MAXIMUM || code == op::MINIMUM)
      return arithmetic(*p, depth);
    return std::nullopt;
  }

private:
  std::optional<Dims> constant(const ir::Constant &c) {
    if (!ir::is_integer(c.type.element()))
      return std::nullopt;
    const auto n = static_cast<size_t>(c.num_elements());
    const auto width = static_cast<size_t>(ir::element_bytes(c.type.element()));
    std::vector<std::byte> bytes(n * width);
    c.copy_dense(bytes.data());
    Dims out;
    for (size_t i = 0; i < n; ++i)
      out.push_back(ir::load_element_int(c.type.element(), bytes.data() + i * width));
    return out;
  }

  std::optional<Dims> join(const Op &p, int depth) {
    Dims out;
    for (u32 i = 0; i < p.num_operands(); ++i) {
      const auto part = trace(p.operand(i), depth + 1);
      if (!part || out.size() + part->size() > static_cast<size_t>(kMaxElements))
        return std::nullopt;
      out.insert(out.end(), part->begin(), part->end());
    }
    return out;
  }

  static std::optional<i64> literal(const std::optional<Dims> &v) {
    if (!v || v->size() != 1 || (*v)[0].is_symbolic())
      return std::nullopt;
    return (*v)[0].value();
  }

  /// One-dimensional slices with a literal start; how many elements follows from the result's
  /// shape.
  std::optional<Dims> slice(const Op &p, int depth) {
    const auto from = trace(p.operand(0), depth + 1);
    auto begin = literal(trace(p.operand(1), depth + 1));
    if (!from || p.operand(0)->type().rank() != 1 || !begin)
      return std::nullopt;
    i64 step = 1;
    if (p.opcode() == op::STRIDED_SLICE) {
      const auto stride = literal(trace(p.operand(3), depth + 1));
      if (!stride || *stride <= 0 || p.attr("new_axis_mask").as_int().value() != 0 ||
          p.attr("ellipsis_mask").as_int().value() != 0)
        return std::nullopt;
      step = *stride;
      if (p.attr("begin_mask").as_int().value() & 1)
        begin = 0;
    }
    const auto size = static_cast<i64>(from->size());
    if (*begin < -size || *begin >= size)
      return std::nullopt;
    const i64 count = p.result()->type().num_elements();
    Dims out;
    for (i64 i = 0, at = *begin < 0 ? *begin + size : *begin; i < count; ++i, at += step) {
      if (at < 0 || at >= size)
        return std::nullopt;
      out.push_back((*from)[static_cast<size_t>(at)]);
    }
    return out;
  }

  std::optional<Dims> gather(const Op &p, int depth) {
    const auto from = trace(p.operand(0), depth + 1);
    const auto indices = trace(p.operand(1), depth + 1);
    if (!from || !indices || p.operand(0)->type().rank() != 1)
      return std::nullopt;
    Dims out;
    for (SymInt i : *indices) {
      if (i.is_symbolic() || i.value() < 0 || i.value() >= static_cast<i64>(from->size()))
        return std::nullopt;
      out.push_back((*from)[static_cast<size_t>(i.value())]);
    }
    return out;
  }

  std::optional<Dims> arithmetic(const Op &p, int depth) {
    const auto a = trace(p.operand(0), depth + 1);
    const auto b = trace(p.operand(1), depth + 1);
    if (!a || !b || a->empty() || b->empty())
      return std::nullopt;
    if (a->size() != b->size() && a->size() != 1 && b->size() != 1)
      return std::nullopt;
    ir::SymTable &sym = graph_.context().sym();
    Dims out;
    for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
      const SymInt x = (*a)[a->size() == 1 ? 0 : i];
      const SymInt y = (*b)[b->size() == 1 ? 0 : i];
      const ir::OpCode code = p.opcode();
      if (code == op::FLOOR_DIV && y.is_static() && y.value() == 0)
        return std::nullopt;
      out.push_back(code == op::MUL         ? sym.mul(x, y)
                    : code == op::ADD       ? sym.add(x, y)
                    : code == op::SUB       ? sym.sub(x, y)
                    : code == op::FLOOR_DIV ? sym.floordiv(x, y)
                    : code == op::MAXIMUM   ? sym.max(x, y)
                                            : sym.min(x, y));
    }
    return out;
  }

  ir::Graph &graph_;
  int steps_ = 0;
};

} // namespace

std::optional<Dims> integer_values(const Value *value, ir::Graph &graph) {
  return IntegerTracer(graph).trace(value, 0);
}

std::optional<SymInt> integer_value(const Value *value, ir::Graph &graph) {
  const auto v = integer_values(value, graph);
  if (!v || v->size() != 1)
    return std::nullopt;
  return (*v)[0];
}

std::optional<double> scalar_value(const Value *value) {
  const ir::Constant *c = constant_of(value);
  if (!c || c->num_elements() != 1 || ir::element_bytes(c->type.element()) == 0)
    return std::nullopt;
  return ir::load_element(c->type.element(), c->data);
}

Dims to_dims(std::span<const SymInt> shape) { return Dims(shape.begin(), shape.end()); }

std::string to_string(std::span<const SymInt> shape, const ir::SymTable &sym) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") +
            (shape[i].is_symbolic() ? sym.print(shape[i]) : std::to_string(shape[i].value()));
  return text + "]";
}

Result<int> Inference::axis(i64 value, int rank) const {
  const i64 wrapped = value < 0 ? value + rank : value;
  if (wrapped < 0 || wrapped >= std::max(rank, 1))
    return bad("axis " + std::to_string(value) + " is outside a tensor of rank " +
               std::to_string(rank));
  return static_cast<int>(wrapped);
}

Result<Dims> Inference::broadcast(std::span<const SymInt> a, std::span<const SymInt> b) const {
  const size_t rank = std::max(a.size(), b.size());
  Dims shape(rank, SymInt(1));
  for (size_t i = 0; i < rank; ++i) {
    const SymInt x = i < rank - a.size() ? SymInt(1) : a[i - (rank - a.size())];
    const SymInt y = i < rank - b.size() ? SymInt(1) : b[i - (rank - b.size())];
    if (x == y || y == SymInt(1))
      shape[i] = x;
    else if (x == SymInt(1))
      shape[i] = y;
    else if (x.is_static() && y.is_static())
      return bad("shapes " + to_string(a, sym()) + " and " + to_string(b, sym()) +
                 " do not broadcast");
    else // one of them symbolic: they agree at run time, and a literal says more
      shape[i] = x.is_static() ? x : y.is_static() ? y : x;
  }
  return shape;
}

Status Inference::need_rank(u32 operand, int rank) const {
  if (type(operand).rank() != rank)
    return bad("operand '" + std::string(op.def().operands[operand].name) + "' has rank " +
               std::to_string(type(operand).rank()) + ", not " + std::to_string(rank));
  return {};
}

Status Inference::need_min_rank(u32 operand, int rank) const {
  if (type(operand).rank() < rank)
    return bad("operand '" + std::string(op.def().operands[operand].name) + "' has rank " +
               std::to_string(type(operand).rank()) + ", less than " + std::to_string(rank));
  return {};
}

} // namespace chute::circle
