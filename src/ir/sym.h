#pragma once

#include "support/ints.h"

#include <limits>

namespace chute::ir {

/// A 64-bit integer that is either a literal or a symbolic expression interned in a Context
/// (ir/sym_table.h). Dimensions, sizes, slice bounds and every integer attribute use it.
///
/// Literals are stored as they are. An expression with index e is stored as INT64_MIN + 1 + e, a
/// range that no dimension, stride or bound of a real program reaches (INT64_MIN itself stays a
/// literal). Equality of raw values is equality of canonical expressions.
class SymInt {
public:
  constexpr SymInt() = default;
  constexpr SymInt(i64 literal) : raw_(literal) {} // NOLINT: implicit by design
  static constexpr SymInt symbolic(u32 expr) {
    SymInt s;
    s.raw_ = kFirst + static_cast<i64>(expr);
    return s;
  }
  static constexpr SymInt from_raw(i64 raw) {
    SymInt s;
    s.raw_ = raw;
    return s;
  }

  constexpr bool is_symbolic() const { return raw_ >= kFirst && raw_ < kLast; }
  constexpr bool is_static() const { return !is_symbolic(); }
  /// The literal; only when is_static().
  constexpr i64 value() const { return raw_; }
  /// The expression's index in its Context; only when is_symbolic().
  constexpr u32 expr() const { return static_cast<u32>(raw_ - kFirst); }
  constexpr i64 raw() const { return raw_; }

  friend constexpr bool operator==(SymInt a, SymInt b) { return a.raw_ == b.raw_; }

private:
  static constexpr i64 kFirst = std::numeric_limits<i64>::min() + 1;
  static constexpr i64 kLast = kFirst + (i64{1} << 32);
  i64 raw_ = 0;
};
static_assert(sizeof(SymInt) == 8);

} // namespace chute::ir
