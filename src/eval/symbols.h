#pragma once

#include "ir/context.h"
#include "ir/sym.h"
#include "ir/type.h"
#include "support/result.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace chute::eval {

/// The values of symbolic integers in one run.
class SymbolValues {
public:
  explicit SymbolValues(const ir::Context &ctx) : ctx_(ctx) {}

  /// The value of a literal or of an expression all of whose symbols are bound.
  std::optional<i64> value(ir::SymInt e) const;
  /// Binds a symbol; an error when it has another value already or lies outside its range.
  Status bind(ir::SymInt symbol, i64 value, const std::string &where);
  /// Sets the symbol of that name, if there is one, over any earlier value: a number read from
  /// data, which a loop reads anew in each round.
  void define(std::string_view name, i64 value);
  /// The symbol of that name, if there is one.
  std::optional<ir::SymInt> find(std::string_view name) const;
  /// Makes `e` equal to `value`: compares when it is known, binds the unknown symbol of a linear
  /// expression when there is one. Returns false when it is too early to tell.
  Result<bool> unify(ir::SymInt e, i64 value, const std::string &where);

private:
  const ir::Context &ctx_;
  // Looked up only, never iterated.
  std::unordered_map<i64, i64> values_;                            // by SymInt::raw of the symbol
  mutable std::unordered_map<std::string_view, ir::SymInt> names_; // filled on the first look-up
};

} // namespace chute::eval
