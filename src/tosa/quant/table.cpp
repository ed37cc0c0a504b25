// A function of one stored tensor becomes a look-up:
//
//   quantize(SIGMOID(dequantize(x)))  ->  TABLE(x)
//
// The function may be any tree of elementwise operators whose only variable is that tensor. It is
// computed as those operators compute it, in f32, for every value that 8 bits can hold. 16-bit
// tensors take every 128th value; TABLE interpolates between them and adds 7 bits, which a RESCALE
// removes.
#include "quant/params.h"
#include "tosa/quant/fold.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>

namespace chute::tosa {

namespace {

using Values = std::vector<float>;
constexpr size_t kMostOperators = 200;

float apply(ir::OpCode code, float x, float y) {
  if (code == op::ADD)
    return x + y;
  if (code == op::SUB)
    return x - y;
  if (code == op::MUL)
    return x * y;
  if (code == op::POW)
    return std::pow(x, y);
  if (code == op::MAXIMUM)
    return std::isnan(x) || std::isnan(y) ? x + y : std::fmax(x, y);
  if (code == op::MINIMUM)
    return std::isnan(x) || std::isnan(y) ? x + y : std::fmin(x, y);
  if (code == op::EQUAL)
    return x == y ? 1.0f : 0.0f;
  if (code == op::GREATER)
    return x > y ? 1.0f : 0.0f;
  if (code == op::GREATER_EQUAL)
    return x >= y ? 1.0f : 0.0f;
  if (code == op::LOGICAL_AND)
    return x * y;
  if (code == op::LOGICAL_OR)
    return std::fmax(x, y);
  return x != y ? 1.0f : 0.0f; // LOGICAL_XOR
}

float apply(ir::OpCode code, float x) {
  if (code == op::ERF)
    return std::erf(x);
  if (code == op::SIGMOID)
    return 1.0f / (1.0f + std::exp(-x));
  if (code == op::TANH)
    return std::tanh(x);
  if (code == op::ABS)
    return std::fabs(x);
  if (code == op::CEIL)
    return std::ceil(x);
  if (code == op::FLOOR)
    return std::floor(x);
  if (code == op::COS)
    return std::cos(x);
  if (code == op::SIN)
    return std::sin(x);
  if (code == op::EXP)
    return std::exp(x);
  if (code == op::LOG)
    return std::log(x);
  if (code == op::RECIPROCAL)
    return 1.0f / x;
  if (code == op::RSQRT)
    return 1.0f / std::sqrt(x);
  if (code == op::NEGATE)
    return -x;
  if (code == op::LOGICAL_NOT)
    return x == 0.0f ? 1.0f : 0.0f;
  return x; // IDENTITY, CAST between floats and from bool
}

bool is_unary(ir::OpCode c) {
  for (const ir::OpCode known :
       {op::ERF, op::SIGMOID, op::TANH, op::ABS, op::CEIL, op::FLOOR, op::COS, op::SIN, op::EXP,
        op::LOG, op::RECIPROCAL, op::RSQRT, op::NEGATE, op::LOGICAL_NOT, op::IDENTITY})
    if (c == known)
      return true;
  return false;
}
bool is_binary(ir::OpCode c) {
  for (const ir::OpCode known :
       {op::ADD, op::SUB, op::MUL, op::POW, op::MAXIMUM, op::MINIMUM, op::EQUAL, op::GREATER,
        op::GREATER_EQUAL, op::LOGICAL_AND, op::LOGICAL_OR, op::LOGICAL_XOR})
    if (c == known)
      return true;
  return false;
}

/// The tree above one stored tensor, in an order in which it can be computed.
class Function {
public:
  /// False when `root` is no such tree.
  bool read(const Value *root) {
    std::vector<const Value *> pending{root};
    while (!pending.empty()) {
      const Value *v = pending.back();
      if (seen_.contains(v)) {
        pending.pop_back();
        continue;
      }
      if (const auto s = stored_of(v)) {
        if (variable_ && (variable_->value != s->value || !variable_->same_grid(*s)))
          return false;
        variable_ = s;
        seen_.emplace(v, nullptr);
        leaves_.push_back(v);
        continue;
      }
      if (constant_of(v)) {
        const auto splat = splat_of(v);
        if (!splat)
          return false;
        constants_.emplace(v, static_cast<float>(*splat));
        seen_.emplace(v, nullptr);
        continue;
      }
      const ir::Op *p = v->producer();
      if (!p || order_.size() > kMostOperators)
        return false;
      const u32 n = arity(*p);
      if (n == 0)
        return false;
      bool ready = true;
      for (u32 i = 0; i < n; ++i)
        if (!seen_.contains(p->operand(i))) {
          pending.push_back(p->operand(i));
          ready = false;
        }
      if (!ready)
        continue;
      seen_.emplace(v, p);
      order_.push_back(p);
      pending.pop_back();
    }
    return variable_.has_value() && !order_.empty() &&
           std::ranges::equal(variable_->value->type().shape(), root->type().shape());
  }

  const Stored &variable() const { return *variable_; }
  size_t size() const { return order_.size(); }

  /// The function at some reals.
  Values at(const Values &x) const {
    boost::unordered_flat_map<const Value *, Values> values;
    for (const Value *leaf : leaves_)
      values.emplace(leaf, x);
    for (const auto &[v, c] : constants_)
      values.emplace(v, Values(x.size(), c));
    Values out;
    for (const ir::Op *p : order_) {
      out.assign(x.size(), 0.0f);
      const ir::OpCode code = p->opcode();
      const Values &a = values.at(p->operand(0));
      if (code == op::SELECT) {
        const Values &b = values.at(p->operand(1)), &c = values.at(p->operand(2));
        for (size_t i = 0; i < x.size(); ++i)
          out[i] = a[i] != 0.0f ? b[i] : c[i];
      } else if (code == op::CLAMP) {
        const auto low = static_cast<float>(p->attr("min_val").scalar_as_double()),
                   high = static_cast<float>(p->attr("max_val").scalar_as_double());
        for (size_t i = 0; i < x.size(); ++i)
          out[i] = a[i] < low ? low : a[i] > high ? high : a[i];
      } else if (is_binary(code)) {
        const Values &b = values.at(p->operand(1));
        for (size_t i = 0; i < x.size(); ++i)
          out[i] = apply(code, a[i], b[i]);
      } else {
        for (size_t i = 0; i < x.size(); ++i)
          out[i] = apply(code, a[i]);
      }
      values.insert_or_assign(p->result(), out);
    }
    return out;
  }

private:
  static u32 arity(const ir::Op &p) {
    if (p.opcode() == op::SELECT)
      return 3;
    if (is_binary(p.opcode()))
      return 2;
    if (p.opcode() == op::CAST) {
      const ElementType from = p.operand(0)->type().element(), to = p.result()->type().element();
      return (from == ElementType::Bool || ir::is_float(from)) && ir::is_float(to) ? 1 : 0;
    }
    return p.opcode() == op::CLAMP || is_unary(p.opcode()) ? 1 : 0;
  }

  std::optional<Stored> variable_;
  std::vector<const Value *> leaves_;
  boost::unordered_flat_map<const Value *, float> constants_;
  boost::unordered_flat_map<const Value *, const ir::Op *> seen_;
  std::vector<const ir::Op *> order_;
};

bool is_relu_like(const ir::Op &op) { return op.opcode() == op::CLAMP; }

/// How far from zero entries of a table must go. An entry is limited to the result's grid, or twice
/// it where the next one lies inside: between the two, the function still rises.
double reach_of(const Values &results, const Grid &g) {
  const double low = g.scale * static_cast<double>(g.min - g.zero_point),
               high = g.scale * static_cast<double>(g.max - g.zero_point),
               limit = std::max(-low, high);
  const auto inside = [&](size_t i) {
    return i < results.size() && results[i] >= low && results[i] <= high;
  };
  double reach = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const bool near = inside(i) || inside(i + 1) || (i > 0 && inside(i - 1));
    const double size = std::fabs(static_cast<double>(results[i]));
    if (!std::isnan(size))
      reach = std::max(reach, std::min(size, near ? 2 * limit : limit));
  }
  return reach;
}

bool tabulate(ir::Op &op, pass::Rewriter &rw) {
  const auto g = grid_of(op);
  Function f;
  if (!g || (g->element != ElementType::I8 && g->element != ElementType::I16) ||
      !f.read(op.operand(0)))
    return false;
  const Stored &x = f.variable();
  Emit e(op, rw);
  // A clamp on the same grid is the cheaper operator.
  const ir::Op &last = *op.operand(0)->producer();
  if (f.size() == 1 && is_relu_like(last) && x.scale == g->scale && x.zero_point == g->zero_point &&
      x.element() == g->element) {
    const i64 low = on_grid(*g, last.attr("min_val").scalar_as_double()),
              high = on_grid(*g, last.attr("max_val").scalar_as_double());
    return e.finish(e(op::CLAMP, {x.value}, {{"min_val", of(low)}, {"max_val", of(high)}}));
  }
  const bool wide = x.element() == ElementType::I16;
  if (!wide && x.element() != ElementType::I8)
    return false;
  const size_t entries = wide ? 513 : 256;
  Values reals(entries);
  for (size_t i = 0; i < entries; ++i) {
    const i64 stored = wide ? (static_cast<i64>(i) - 256) * 128 : static_cast<i64>(i) - 128;
    reals[i] = static_cast<float>(x.scale * static_cast<double>(stored - x.zero_point));
  }
  const Values results = f.at(reals);
  const i64 dims[] = {static_cast<i64>(entries)};
  if (!wide && g->element == ElementType::I8) {
    std::vector<i64> table(entries);
    for (size_t i = 0; i < entries; ++i)
      table[i] = on_grid(*g, static_cast<double>(results[i]));
    const ir::Type type = e.context().tensor_type(ElementType::I8, x.value->type().shape());
    return e.finish(
        e.typed(op::TABLE, {x.value, e.constant_ints(ElementType::I8, dims, table)}, {}, type));
  }
  Value *in = x.value;
  if (!wide) // 8 bits in, 16 out: the table of 16 bits at 256 of its points
    return false;
  // On a grid of 16 bits around zero, whatever the result's own zero point is.
  const double reach = reach_of(results, *g) / 32767;
  Grid fine{std::max(reach, 1e-30), 0, -32768, 32767, ElementType::I16};
  if (g->element == ElementType::I16) {
    if (g->zero_point != 0) // RESCALE to 16 bits adds none
      fine = *g;
    fine.scale = std::max(g->scale, g->zero_point == 0 ? reach : 0);
  }
  std::vector<i64> table(entries);
  for (size_t i = 0; i < entries; ++i)
    table[i] = on_grid(fine, static_cast<double>(results[i]));
  const ir::Type type = e.context().tensor_type(ElementType::I32, in->type().shape());
  Value *y = e.typed(op::TABLE, {in, e.constant_ints(ElementType::I16, dims, table)}, {}, type);
  Value *out = rescale(e, y, g->element, fine.scale / g->scale / 128, 0,
                       g->element == ElementType::I16 ? 0 : g->zero_point);
  return out && e.finish(limited(e, out, *g));
}

} // namespace

void add_quantized_table_rules(pass::PatternSet &set) {
  set.add({"tabulate", quantize_opcodes(), tabulate});
}

} // namespace chute::tosa
