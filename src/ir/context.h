#pragma once

#include "ir/attr.h"
#include "ir/sym.h"
#include "ir/type.h"

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace chute::ir {

/// Handle of an interned string; 0 is the empty string.
struct StringId {
  u32 id = 0;
  friend bool operator==(StringId a, StringId b) = default;
  explicit operator bool() const { return id != 0; }
};

class SymTable;

/// Owns everything that is interned: strings, types, quantization parameters, attribute lists,
/// symbolic expressions. One Context serves any number of graphs; it is not thread-safe.
class Context {
public:
  Context();
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  StringId intern(std::string_view text);
  /// The same for many: their look-ups overlap in memory, where one by one each waits for several
  /// cache lines. `ids` has the size of `texts`.
  void intern(std::span<const std::string_view> texts, std::span<StringId> ids);
  std::string_view string(StringId id) const; ///< stable for the Context's life

  Type none_type() const;
  Type int_type() const;
  Type float_type() const;
  Type bool_type() const;
  Type opaque_type() const;
  Type tensor_type(ElementType element, std::span<const SymInt> shape,
                   const Quantization *quant = nullptr);
  Type tensor_type(ElementType element, std::initializer_list<SymInt> shape) {
    return tensor_type(element, std::span<const SymInt>(shape.begin(), shape.size()));
  }
  /// The same type with one part replaced.
  Type with_element(Type t, ElementType element) {
    return tensor_type(element, t.shape(), t.quant());
  }
  Type with_shape(Type t, std::span<const SymInt> shape) {
    return tensor_type(t.element(), shape, t.quant());
  }
  Type with_quant(Type t, const Quantization *quant) {
    return tensor_type(t.element(), t.shape(), quant);
  }
  /// Interns parameters; spans are copied. Zero points may be left out when all are zero: what
  /// comes back has one per scale. Fields that the kind does not use come back 0.
  const Quantization *quantization(const Quantization &q);

  Attr string_attr(std::string_view text);
  Attr ints_attr(std::span<const SymInt> values);
  Attr ints_attr(std::initializer_list<SymInt> values) {
    return ints_attr(std::span<const SymInt>(values.begin(), values.size()));
  }
  Attr floats_attr(std::span<const double> values);
  Attr bools_attr(std::span<const bool> values);
  Attr strings_attr(std::span<const std::string_view> values);
  Attr list_attr(std::span<const Attr> values);
  Attr complex_attr(double real, double imaginary);

  /// Whether a tensor type of that element type was ever made: never false for one that a graph
  /// has.
  bool has_element(ElementType element) const {
    return elements_ >> static_cast<unsigned>(element) & 1;
  }

  SymTable &sym() { return *sym_; }
  const SymTable &sym() const { return *sym_; }

  /// Bytes held by the interners (for memory reports).
  size_t bytes() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<SymTable> sym_;
  u64 elements_ = 0; ///< by ElementType
};

} // namespace chute::ir
