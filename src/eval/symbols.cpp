#include "eval/symbols.h"

#include "ir/sym_table.h"

namespace chute::eval {

std::optional<i64> SymbolValues::value(ir::SymInt e) const {
  if (e.is_static())
    return e.value();
  return ctx_.sym().evaluate(e, [this](ir::SymInt s) -> std::optional<i64> {
    const auto it = values_.find(s.raw());
    return it == values_.end() ? std::nullopt : std::optional<i64>(it->second);
  });
}

Status SymbolValues::bind(ir::SymInt symbol, i64 v, const std::string &where) {
  const auto [it, fresh] = values_.emplace(symbol.raw(), v);
  const std::string name(ctx_.sym().symbol_name(symbol));
  if (!fresh) {
    if (it->second == v)
      return {};
    return fail(ErrorKind::Usage, "eval.shape",
                where + " makes the symbolic size " + name + " " + std::to_string(v) +
                    ", but it is " + std::to_string(it->second) + " already");
  }
  const ir::SymRange range = ctx_.sym().range(symbol);
  if (v < range.min || v > range.max)
    return fail(ErrorKind::Usage, "eval.shape",
                where + " makes the symbolic size " + name + " " + std::to_string(v) +
                    ", outside its range [" + std::to_string(range.min) + ", " +
                    std::to_string(range.max) + "]");
  return {};
}

std::optional<ir::SymInt> SymbolValues::find(std::string_view name) const {
  if (names_.empty())
    for (const ir::SymInt s : ctx_.sym().symbols())
      names_.emplace(ctx_.sym().symbol_name(s), s);
  const auto it = names_.find(name);
  return it == names_.end() ? std::nullopt : std::optional<ir::SymInt>(it->second);
}

void SymbolValues::define(std::string_view name, i64 v) {
  if (const std::optional<ir::SymInt> s = find(name))
    values_[s->raw()] = v;
}

Result<bool> SymbolValues::unify(ir::SymInt e, i64 v, const std::string &where) {
  if (const std::optional<i64> known = value(e)) {
    if (*known == v)
      return true;
    return fail(ErrorKind::Usage, "eval.shape",
                where + " has size " + std::to_string(v) + " where the program needs " +
                    (e.is_symbolic() ? ctx_.sym().print(e) + " = " : std::string()) +
                    std::to_string(*known));
  }
  const ir::SymTable &sym = ctx_.sym();
  if (!sym.symbol_name(e).empty()) {
    if (const Status s = bind(e, v, where); !s)
      return tl::unexpected(s.error());
    return true;
  }
  // coefficient * s + known = v, with one unknown symbol of degree 1.
  ir::SymInt unknown;
  i64 coefficient = 0;
  i64 rest = v;
  for (const ir::SymTable::Term &term : sym.terms(e)) {
    i64 product = term.coefficient;
    ir::SymInt open;
    bool has_open = false;
    for (const ir::SymInt atom : term.atoms) {
      const std::optional<i64> known = value(atom);
      if (known ? __builtin_mul_overflow(product, *known, &product) : has_open)
        return false;
      if (!known) {
        open = atom;
        has_open = true;
      }
    }
    if (!has_open) {
      if (__builtin_sub_overflow(rest, product, &rest))
        return false;
    } else {
      if (sym.symbol_name(open).empty() || (coefficient && !(open == unknown)))
        return false;
      unknown = open;
      if (__builtin_add_overflow(coefficient, product, &coefficient))
        return false;
    }
  }
  if (coefficient == 0)
    return false;
  if (rest % coefficient)
    return fail(ErrorKind::Usage, "eval.shape",
                where + " has size " + std::to_string(v) + ", which " + sym.print(e) +
                    " can not be");
  if (const Status s = bind(unknown, rest / coefficient, where); !s)
    return tl::unexpected(s.error());
  return true;
}

} // namespace chute::eval
