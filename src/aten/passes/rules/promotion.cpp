#include "aten/promotion.h"
#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>

// Type promotion made explicit: operands are cast to the type in which PyTorch computes, Python
// numbers become rank-0 constants of it, alpha becomes a multiplication. Arithmetic on bools
// becomes logic.
namespace chute::aten {

namespace {

struct ScalarForm {
  ir::OpCode from;
  ir::OpCode to;
  std::string_view scalar; // attribute that becomes an operand
  bool scalar_first;
};
constexpr ScalarForm kScalarForms[] = {
    {op::add_Scalar, op::add_Tensor, "other", false},
    {op::sub_Scalar, op::sub_Tensor, "other", false},
    {op::rsub_Scalar, op::sub_Tensor, "other", true},
    {op::mul_Scalar, op::mul_Tensor, "other", false},
    {op::div_Scalar, op::div_Tensor, "other", false},
    {op::div_Scalar_mode, op::div_Tensor_mode, "other", false},
    {op::floor_divide_Scalar, op::div_Tensor_mode, "other", false},
    {op::fmod_Scalar, op::fmod_Tensor, "other", false},
    {op::remainder_Scalar, op::remainder_Tensor, "other", false},
    {op::remainder_Scalar_Tensor, op::remainder_Tensor, "self", true},
    {op::pow_Tensor_Scalar, op::pow_Tensor_Tensor, "exponent", false},
    {op::pow_Scalar, op::pow_Tensor_Tensor, "self", true},
    {op::eq_Scalar, op::eq_Tensor, "other", false},
    {op::ne_Scalar, op::ne_Tensor, "other", false},
    {op::lt_Scalar, op::lt_Tensor, "other", false},
    {op::le_Scalar, op::le_Tensor, "other", false},
    {op::gt_Scalar, op::gt_Tensor, "other", false},
    {op::ge_Scalar, op::ge_Tensor, "other", false},
    {op::bitwise_and_Scalar, op::bitwise_and_Tensor, "other", false},
    {op::bitwise_or_Scalar, op::bitwise_or_Tensor, "other", false},
    {op::bitwise_xor_Scalar, op::bitwise_xor_Tensor, "other", false},
    {op::bitwise_and_Scalar_Tensor, op::bitwise_and_Tensor, "self", true},
    {op::bitwise_or_Scalar_Tensor, op::bitwise_or_Tensor, "self", true},
    {op::bitwise_xor_Scalar_Tensor, op::bitwise_xor_Tensor, "self", true},
};

V scalar_form(Emit &e) {
  static const auto *forms = [] {
    auto *map = new boost::unordered_flat_map<u16, const ScalarForm *>;
    for (const ScalarForm &f : kScalarForms)
      map->emplace(ir::index(f.from), &f);
    return map;
  }();
  const ScalarForm &f = *forms->at(ir::index(e.root().opcode()));
  const auto compute = computation_type(e.root());
  if (!compute)
    return e.reject("operand types that PyTorch does not combine");
  V x = e.cast(e.in(), *compute);
  V y = e.scalar(e.attr(f.scalar), *compute);
  // add and sub scale their second operand, rsub the tensor that it takes away.
  if (e.root().def().attr_index("alpha") >= 0 && e.number("alpha") != 1.0) {
    V &scaled = f.scalar_first ? x : y;
    scaled = e.mul(scaled, e.scalar(e.attr("alpha"), *compute));
  }
  if (f.scalar_first)
    std::swap(x, y);
  if (f.to == op::div_Tensor_mode) {
    if (e.root().opcode() == op::floor_divide_Scalar)
      return e.div_floor(x, y);
    if (!e.given("rounding_mode"))
      return e.div(e.to_float(x), e.to_float(y));
    return e.op(f.to, {x, y}, {{"rounding_mode", e.attr("rounding_mode")}});
  }
  return e.op(f.to, {x, y});
}

/// x ** c for the exponents that PyTorch computes without pow.
V easy_power(Emit &e) {
  const Attr a = e.attr("exponent");
  const auto compute = computation_type(e.root());
  if (!compute || a.kind() == ir::AttrKind::Complex || ir::is_complex(*compute))
    return nullptr;
  const double c = e.number("exponent");
  const bool floating = ir::is_float(*compute);
  if (c != 0 && c != 1 && c != 2 && c != 3 &&
      (!floating || (c != 0.5 && c != -0.5 && c != -1 && c != -2)))
    return nullptr;
  V x = e.cast(e.in(), *compute);
  if (c == 0)
    return e.full(e.shape_of(x), 1, *compute);
  if (c == 1)
    return x;
  if (c == 2)
    return e.mul(x, x);
  if (c == 3)
    return e.mul(e.mul(x, x), x);
  if (c == 0.5)
    return e.sqrt(x);
  if (c == -0.5)
    return e.rsqrt(x);
  if (c == -1)
    return e.reciprocal(x);
  return e.reciprocal(e.mul(x, x));
}

V promote(Emit &e) {
  const bool where = e.root().opcode() == op::where_self;
  const bool logical = e.root().opcode() == op::logical_and ||
                       e.root().opcode() == op::logical_or || e.root().opcode() == op::logical_xor;
  const auto compute = logical ? std::optional(ElementType::Bool) : computation_type(e.root());
  if (!compute)
    return e.reject("operand types that PyTorch does not combine");
  Values operands;
  bool changed = false;
  for (u32 i = 0; i < e.root().num_operands(); ++i) {
    V x = e.root().operand(i);
    V y = (where && i == 0) || logical ? e.to_bool(x) : e.cast(x, *compute);
    changed |= x != y;
    operands.push_back(y);
  }
  if (e.root().def().attr_index("alpha") >= 0 && e.number("alpha") != 1.0) {
    operands[1] = e.mul(operands[1], e.scalar(e.attr("alpha"), *compute));
    changed = true;
  }
  if (e.root().def().attr_index("rounding_mode") >= 0) {
    if (!e.given("rounding_mode"))
      return e.div(e.to_float(operands[0]), e.to_float(operands[1]));
    return changed ? e.op(e.root().opcode(), operands, {{"rounding_mode", e.attr("rounding_mode")}})
                   : nullptr;
  }
  return changed ? e.op(e.root().opcode(), operands) : nullptr;
}

V bool_logic(Emit &e) {
  if (e.in()->type().element() != ElementType::Bool ||
      (e.root().num_operands() > 1 && e.in(1)->type().element() != ElementType::Bool) ||
      e.type().element() != ElementType::Bool)
    return nullptr;
  switch (ir::index(e.root().opcode())) {
  case ir::index(op::bitwise_not): return e.lnot(e.in());
  case ir::index(op::bitwise_xor_Tensor): return e.op(op::logical_xor, {e.in(), e.in(1)});
  case ir::index(op::add_Tensor):
  case ir::index(op::maximum):
  case ir::index(op::bitwise_or_Tensor): return e.lor(e.in(), e.in(1));
  default: return e.land(e.in(), e.in(1));
  }
}

bool is_discrete(V x) {
  return ir::is_integer(x->type().element()) || x->type().element() == ElementType::Bool;
}

} // namespace

void add_scalar_rules(pass::PatternSet &set) {
  set.add("easy-power", {op::pow_Tensor_Scalar}, rule<easy_power>);
  pass::Pattern p{"scalar-form", {}, rule<scalar_form>};
  for (const ScalarForm &f : kScalarForms)
    p.roots.push_back(f.from);
  set.add(std::move(p));
  set.add("where-scalar", {op::where_Scalar, op::where_ScalarOther, op::where_ScalarSelf},
          rule<[](Emit &e) -> V {
            const ElementType t = e.type().element();
            V other = e.given("other") ? e.scalar(e.attr("other"), t) : nullptr;
            V self = e.given("self") ? e.scalar(e.attr("self"), t) : nullptr;
            if (!self)
              self = e.cast(e.in(1), t);
            if (!other)
              other = e.cast(e.in(e.root().opcode() == op::where_ScalarSelf ? 1 : 2), t);
            return e.where(e.in(), self, other);
          }>);
}

void add_promotion_rules(pass::PatternSet &set) {
  set.add("bool-logic",
          {op::add_Tensor, op::mul_Tensor, op::maximum, op::minimum, op::bitwise_and_Tensor,
           op::bitwise_or_Tensor, op::bitwise_xor_Tensor, op::bitwise_not},
          rule<bool_logic>);
  set.add("promote",
          {op::add_Tensor,
           op::sub_Tensor,
           op::mul_Tensor,
           op::div_Tensor,
           op::div_Tensor_mode,
           op::pow_Tensor_Tensor,
           op::atan2,
           op::fmod_Tensor,
           op::remainder_Tensor,
           op::maximum,
           op::minimum,
           op::eq_Tensor,
           op::ne_Tensor,
           op::lt_Tensor,
           op::le_Tensor,
           op::gt_Tensor,
           op::ge_Tensor,
           op::logical_and,
           op::logical_or,
           op::logical_xor,
           op::bitwise_and_Tensor,
           op::bitwise_or_Tensor,
           op::bitwise_xor_Tensor,
           op::where_self},
          rule<promote>);
  set.add("unary-to-float",
          {op::acos,    op::acosh, op::asin,  op::asinh,  op::atan,       op::atanh,
           op::cos,     op::cosh,  op::erf,   op::erfinv, op::exp,        op::expm1,
           op::log,     op::log10, op::log1p, op::log2,   op::reciprocal, op::rsqrt,
           op::sigmoid, op::sin,   op::sinh,  op::sqrt,   op::tan,        op::tanh},
          rule<[](Emit &e) -> V {
            return is_discrete(e.in()) ? e.op(e.root().opcode(), {e.to_float(e.in())}) : nullptr;
          }>);
  set.add("round-integer", {op::ceil, op::floor, op::round, op::trunc},
          rule<[](Emit &e) -> V { return is_discrete(e.in()) ? e.in() : nullptr; }>);
  set.add("test-integer", {op::isinf_default, op::isnan_default}, rule<[](Emit &e) -> V {
            return is_discrete(e.in()) ? e.full(e.shape(), 0, ElementType::Bool) : nullptr;
          }>);
  set.add("logical-not", {op::logical_not}, rule<[](Emit &e) -> V {
            return e.in()->type().element() == ElementType::Bool ? nullptr : e.eq(e.in(), 0.0);
          }>);
}

} // namespace chute::aten
