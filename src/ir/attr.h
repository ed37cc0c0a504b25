#pragma once

#include "ir/element_type.h"
#include "ir/sym.h"
#include "ir/type.h"

#include <bit>
#include <span>
#include <string_view>

namespace chute::ir {

struct Constant;

enum class AttrKind : u8 {
  None,  ///< Python None / absent
  Int,   ///< SymInt
  Float, ///< double
  Bool,
  String,
  Element, ///< an element type (torch dtype)
  Ints,    ///< list of SymInt
  Floats,  ///< list of double
  Bools,
  Strings,
  Type,
  Constant, ///< a tensor constant owned by the graph
  Complex,  ///< two doubles
  List,     ///< nested list of attributes (unregistered operators, optional-int lists)
  Operand,  ///< index into the operator's operands (unregistered operators only)
  Region,   ///< index into the operator's regions (higher-order operators only)
};

struct ArrayStorage {
  const void *data;
  size_t size; // elements
};

/// An attribute value: 16 bytes, trivially copyable. Lists and strings are interned in the Context,
/// so equality is bitwise. Constants compare by pointer.
class Attr {
public:
  Attr() = default;
  static Attr none() { return {}; }
  static Attr of_int(SymInt v) { return Attr(AttrKind::Int, static_cast<u64>(v.raw())); }
  static Attr of_float(double v) { return Attr(AttrKind::Float, std::bit_cast<u64>(v)); }
  static Attr of_bool(bool v) { return Attr(AttrKind::Bool, v); }
  static Attr of_element(ElementType v) { return Attr(AttrKind::Element, static_cast<u64>(v)); }
  static Attr of_type(Type t) { return Attr(AttrKind::Type, std::bit_cast<u64>(t)); }
  static Attr of_constant(const Constant *c) {
    return Attr(AttrKind::Constant, std::bit_cast<u64>(c));
  }
  static Attr of_operand(u32 index) { return Attr(AttrKind::Operand, index); }
  static Attr of_region(u32 index) { return Attr(AttrKind::Region, index); }
  /// Kinds String, Ints, Floats, Bools, Strings, List, Complex: `a` comes from a Context's
  /// interner.
  static Attr of_array(AttrKind kind, const ArrayStorage *a) {
    return Attr(kind, std::bit_cast<u64>(a));
  }

  AttrKind kind() const { return kind_; }
  bool is_none() const { return kind_ == AttrKind::None; }
  SymInt as_int() const { return SymInt::from_raw(static_cast<i64>(payload_)); }
  double as_float() const { return std::bit_cast<double>(payload_); }
  bool as_bool() const { return payload_ != 0; }
  ElementType as_element() const { return static_cast<ElementType>(payload_); }
  Type as_type() const { return std::bit_cast<Type>(payload_); }
  const Constant *as_constant() const { return std::bit_cast<const Constant *>(payload_); }
  u32 as_index() const { return static_cast<u32>(payload_); }
  std::string_view as_string() const {
    return {static_cast<const char *>(array()->data), array()->size};
  }
  std::span<const SymInt> as_ints() const { return as_span<SymInt>(); }
  std::span<const double> as_floats() const { return as_span<double>(); }
  std::span<const bool> as_bools() const { return as_span<bool>(); }
  std::span<const std::string_view> as_strings() const { return as_span<std::string_view>(); }
  std::span<const Attr> as_list() const { return as_span<Attr>(); }
  /// Real and imaginary part of a Complex.
  std::span<const double> as_complex() const { return as_span<double>(); }

  /// True for Int, Float, Bool, Complex: the kinds that a torch `Scalar` argument takes.
  bool is_scalar() const {
    return kind_ == AttrKind::Int || kind_ == AttrKind::Float || kind_ == AttrKind::Bool ||
           kind_ == AttrKind::Complex;
  }
  /// A Scalar (Int literal, Float or Bool) as a double.
  double scalar_as_double() const {
    switch (kind_) {
    case AttrKind::Float: return as_float();
    case AttrKind::Bool: return as_bool() ? 1.0 : 0.0;
    default: return static_cast<double>(as_int().value());
    }
  }

  u64 payload() const { return payload_; }
  friend bool operator==(Attr a, Attr b) { return a.kind_ == b.kind_ && a.payload_ == b.payload_; }

private:
  Attr(AttrKind kind, u64 payload) : kind_(kind), payload_(payload) {}
  const ArrayStorage *array() const { return std::bit_cast<const ArrayStorage *>(payload_); }
  template <class T>
  std::span<const T> as_span() const {
    return {static_cast<const T *>(array()->data), array()->size};
  }

  AttrKind kind_ = AttrKind::None;
  u64 payload_ = 0;
};
static_assert(sizeof(Attr) == 16);

} // namespace chute::ir
