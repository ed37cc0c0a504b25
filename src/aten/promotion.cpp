#include "aten/promotion.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace chute::aten {

using ir::ElementType;

namespace {

/// Bool 0, integers 1, floats 2, complex 3.
int category(ElementType e) {
  if (e == ElementType::Bool)
    return 0;
  if (ir::is_integer(e))
    return 1;
  return ir::is_complex(e) ? 3 : 2;
}

bool is_fp8(ElementType e) { return ir::is_float(e) && ir::element_bits(e) == 8; }

/// Unsigned types that PyTorch has for interchange only: they meet floats and themselves.
bool is_wide_unsigned(ElementType e) {
  return e == ElementType::U16 || e == ElementType::U32 || e == ElementType::U64;
}

/// A complex type whose parts hold `real` (of floats: half types give C32 only for F16).
ElementType complex_of(ElementType real) {
  switch (real) {
  case ElementType::F16: return ElementType::C32;
  case ElementType::F64: return ElementType::C128;
  default: return ElementType::C64;
  }
}

ElementType promote_integers(ElementType a, ElementType b) {
  const int wider = std::max(ir::element_bits(a), ir::element_bits(b));
  if (ir::is_signed(a) == ir::is_signed(b))
    return ir::element_bits(a) >= ir::element_bits(b) ? a : b;
  // U8 against a signed type: the signed one must be wider.
  const ElementType s = ir::is_signed(a) ? a : b;
  return wider == 8 ? ElementType::I16 : s;
}

bool is_scalar_operand(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"self", "other", "exponent", "min", "max"};
  for (std::string_view n : kNames)
    if (n == name)
      return true;
  return false;
}

} // namespace

std::optional<ElementType> promote_types(ElementType a, ElementType b) {
  if (a == ElementType::None)
    return b;
  if (b == ElementType::None || a == b)
    return a;
  if (is_fp8(a) || is_fp8(b) || a == ElementType::String || b == ElementType::String)
    return std::nullopt;
  if (category(a) < category(b))
    std::swap(a, b);
  const int high = category(a), low = category(b);
  if (is_wide_unsigned(a) || (is_wide_unsigned(b) && high != 2))
    return std::nullopt;
  if (high == 3)
    // The parts must hold both; integers and Bool never widen them.
    return low < 2 ? a : complex_of(*promote_types(real_element(a), real_element(b)));
  if (high == 2) {
    if (low < 2)
      return a;
    const int x = ir::element_bits(a), y = ir::element_bits(b);
    if (x == y)
      return ElementType::F32; // F16 with BF16: neither holds the other
    return x > y ? a : b;
  }
  return low == 0 ? a : promote_integers(a, b);
}

ElementType scalar_element(ir::Attr scalar) {
  switch (scalar.kind()) {
  case ir::AttrKind::Int: return ElementType::I64;
  case ir::AttrKind::Float: return kDefaultFloat;
  case ir::AttrKind::Bool: return ElementType::Bool;
  case ir::AttrKind::Complex: return ElementType::C64;
  default: return ElementType::None;
  }
}

ElementType int_to_float(ElementType e) {
  return ir::is_integer(e) || e == ElementType::Bool ? kDefaultFloat : e;
}

ElementType int_to_i64(ElementType e) {
  return ir::is_integer(e) || e == ElementType::Bool ? ElementType::I64 : e;
}

ElementType real_element(ElementType e) {
  switch (e) {
  case ElementType::C32: return ElementType::F16;
  case ElementType::C64: return ElementType::F32;
  case ElementType::C128: return ElementType::F64;
  default: return e;
  }
}

void PromotionState::merge(ElementType &slot, ElementType e) {
  const auto merged = promote_types(slot, e);
  refused_ |= !merged.has_value();
  slot = merged.value_or(slot);
}

void PromotionState::add_tensor(ir::Type type) {
  merge(type.rank() > 0 ? dimensioned_ : zero_dim_, type.element());
}

void PromotionState::add_scalar(ir::Attr scalar) {
  if (scalar.is_scalar())
    merge(scalar_, scalar_element(scalar));
}

std::optional<ElementType> PromotionState::result() const {
  if (refused_)
    return std::nullopt;
  // A lower-priority operand counts only when its category is higher; a complex one then takes the
  // width of the floats that it meets.
  const auto combine = [](ElementType high, ElementType low) -> std::optional<ElementType> {
    if (high == ElementType::None || low == ElementType::None)
      return high == ElementType::None ? low : high;
    const int h = category(high), l = category(low);
    if (h == 3)
      return high;
    if (h == 2)
      return l == 3 ? complex_of(high) : high;
    return h == 0 || l >= 2 ? promote_types(high, low) : high;
  };
  const auto lower = combine(zero_dim_, scalar_);
  if (!lower)
    return std::nullopt;
  const auto all = combine(dimensioned_, *lower);
  return all && *all != ElementType::None ? all : std::nullopt;
}

std::optional<ElementType> result_type(std::span<const ir::Type> tensors,
                                       std::span<const ir::Attr> scalars) {
  PromotionState state;
  for (ir::Type t : tensors)
    state.add_tensor(t);
  for (ir::Attr s : scalars)
    state.add_scalar(s);
  return state.result();
}

std::optional<ElementType> promoted_type(const ir::Op &op) {
  PromotionState state;
  const ir::OpDef &def = op.def();
  for (u32 i = 0; i < def.operands.size(); ++i) {
    const std::string_view name = def.operands[i].name;
    if (name == "out" || name == "condition")
      continue;
    const ir::Op::Segment s = op.segment(i);
    for (u32 k = 0; k < s.count; ++k)
      if (const ir::Value *v = op.operand(s.first + k); v && v->type().is_tensor())
        state.add_tensor(v->type());
  }
  for (u32 i = 0; i < def.attrs.size(); ++i)
    if (def.attrs[i].type == ir::AttrType::Scalar && is_scalar_operand(def.attrs[i].name))
      state.add_scalar(op.attr(i));
  return state.result();
}

std::optional<ElementType> computation_type(const ir::Op &op) {
  const auto e = promoted_type(op);
  return e && op.has(ir::trait::kIntToFloat) ? int_to_float(*e) : e;
}

} // namespace chute::aten
