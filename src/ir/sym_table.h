#pragma once

#include "ir/sym.h"
#include "support/ints.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chute::ir {

/// Operations that are not sums or products; each is an atom of the polynomials that contain it.
enum class SymOp : u8 {
  Symbol,
  FloorDiv, ///< rounds toward minus infinity
  CeilDiv,
  Mod, ///< sign of the divisor, as Python
  Max,
  Min,
  Pow,
  Where, ///< (condition, then, else)
  Eq,
  Ne,
  Lt,
  Le,
  TrueDivToInt, ///< int(a / b)
  Opaque,       ///< an expression kept by its text; never simplified
};

/// The function name in the text form: "floordiv", "max", …; empty for a Symbol.
std::string_view sym_op_name(SymOp op);

struct SymRange {
  i64 min = 0;
  i64 max = std::numeric_limits<i64>::max();
  friend bool operator==(const SymRange &, const SymRange &) = default;
};

/// Interned symbolic integer expressions. An expression is a canonical polynomial
/// sum(coefficient * product of atoms), where an atom is a symbol or a SymOp node over expressions;
/// so equal sums and products have equal handles whatever order they were built in. Overflow of a
/// coefficient turns the result into an Opaque atom rather than a wrong number.
class SymTable {
public:
  SymTable();
  ~SymTable();

  /// The symbol of that name (made on first use, range [0, inf)).
  SymInt symbol(std::string_view name);
  void set_range(SymInt symbol, SymRange range);
  /// Bounds of an expression from its symbols' ranges (exact for a symbol, conservative otherwise).
  SymRange range(SymInt e) const;
  /// Every symbol in order of creation.
  std::vector<SymInt> symbols() const;
  /// The name of a plain symbol; empty for anything else.
  std::string_view symbol_name(SymInt e) const;

  /// Any 64-bit integer, also one from the range in which SymInt encodes expressions.
  SymInt literal(i64 value);
  SymInt add(SymInt a, SymInt b);
  SymInt sub(SymInt a, SymInt b);
  SymInt mul(SymInt a, SymInt b);
  SymInt neg(SymInt a) { return mul(a, -1); }
  SymInt floordiv(SymInt a, SymInt b);
  SymInt ceildiv(SymInt a, SymInt b);
  SymInt mod(SymInt a, SymInt b);
  SymInt max(SymInt a, SymInt b);
  SymInt min(SymInt a, SymInt b);
  /// Any other operation, over literals folded where defined. Min and Max are decided by the ranges
  /// of their arguments unless `use_ranges` is false.
  SymInt apply(SymOp op, std::span<const SymInt> args, bool use_ranges = true);
  SymInt opaque(std::string_view text);
  /// a / b when the division is exact as polynomials (7*s*t / s = 7*t), else nullopt.
  std::optional<SymInt> exact_div(SymInt a, SymInt b);
  SymInt product(std::span<const SymInt> factors);

  /// One term of a canonical sum: coefficient times the product of `atoms` (expression handles of
  /// single atoms, sorted, repeated for powers). A literal has one term without atoms.
  struct Term {
    i64 coefficient;
    std::vector<SymInt> atoms;
  };
  std::vector<Term> terms(SymInt e) const;
  /// Operation and arguments of a single-atom expression; Opaque and Symbol have no arguments.
  /// For a sum or product of several atoms: nullopt.
  struct Atom {
    SymOp op;
    std::string_view name; // Symbol, Opaque
    std::span<const SymInt> args;
  };
  std::optional<Atom> atom(SymInt e) const;

  /// The value for given symbol values (in `lookup`); nullopt when one is missing or undefined
  /// (division by zero). Iterative in depth of text, bounded by construction.
  template <class Lookup>
  std::optional<i64> evaluate(SymInt e, Lookup &&lookup) const;

  /// Text as in `6*s77 + floordiv(s3 + 1, 2)`, at most some 64 KiB, independent of the order in
  /// which symbols were made. parse is its inverse and also accepts spaces freely; it does not
  /// consult ranges, so that text means the same before and after they are set.
  std::string print(SymInt e) const;
  std::optional<SymInt> parse(std::string_view text);

  using LookupFn = std::optional<i64> (*)(void *, SymInt);
  std::optional<i64> evaluate_with(SymInt e, LookupFn lookup, void *state) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <class Lookup>
std::optional<i64> SymTable::evaluate(SymInt e, Lookup &&lookup) const {
  return evaluate_with(
      e,
      [](void *state, SymInt s) -> std::optional<i64> {
        return (*static_cast<std::remove_reference_t<Lookup> *>(state))(s);
      },
      const_cast<void *>(static_cast<const void *>(&lookup)));
}

} // namespace chute::ir
