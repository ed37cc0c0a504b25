#include "ir/sym_impl.h"
#include "support/check.h"

#include <array>

namespace chute::ir {

SymTable::SymTable() : impl_(std::make_unique<Impl>()) {}
SymTable::~SymTable() = default;

SymInt SymTable::symbol(std::string_view name) {
  return impl_->intern_atom(SymOp::Symbol, name, {});
}

SymInt SymTable::literal(i64 value) {
  return SymInt(value).is_static() ? SymInt(value) : impl_->intern({Monomial{value, {}}});
}

SymInt SymTable::opaque(std::string_view text) {
  return impl_->intern_atom(SymOp::Opaque, text, {});
}

void SymTable::set_range(SymInt symbol, SymRange range) {
  const i32 a = symbol.is_symbolic() ? impl_->single_atom[symbol.expr()] : -1;
  CHUTE_CHECK(a >= 0, "a range belongs to a symbol");
  impl_->atoms[static_cast<size_t>(a)].range = range;
}

std::vector<SymInt> SymTable::symbols() const {
  std::vector<SymInt> out;
  for (size_t i = 0; i < impl_->atoms.size(); ++i)
    if (impl_->atoms[i].op == SymOp::Symbol)
      out.push_back(SymInt::symbolic(impl_->atom_expr[i]));
  return out;
}

std::string_view SymTable::symbol_name(SymInt e) const {
  const i32 a = e.is_symbolic() ? impl_->single_atom[e.expr()] : -1;
  if (a < 0 || impl_->atoms[static_cast<size_t>(a)].op != SymOp::Symbol)
    return {};
  return impl_->atoms[static_cast<size_t>(a)].name;
}

SymInt SymTable::add(SymInt a, SymInt b) {
  i64 sum = 0;
  if (a.is_static() && b.is_static() && !__builtin_add_overflow(a.value(), b.value(), &sum) &&
      SymInt(sum).is_static())
    return sum;
  std::vector<Monomial> terms = impl_->poly(a);
  for (Monomial &m : impl_->poly(b))
    terms.push_back(std::move(m));
  if (!Impl::canonicalize(terms))
    return impl_->unfit(a, " + ", b);
  return impl_->intern(std::move(terms));
}

SymInt SymTable::sub(SymInt a, SymInt b) { return add(a, mul(b, -1)); }

SymInt SymTable::mul(SymInt a, SymInt b) {
  i64 product = 0;
  if (a.is_static() && b.is_static() && !__builtin_mul_overflow(a.value(), b.value(), &product) &&
      SymInt(product).is_static())
    return product;
  std::vector<Monomial> terms;
  const std::vector<Monomial> left = impl_->poly(a), right = impl_->poly(b);
  bool fits = left.size() * right.size() <= kMaxTerms * 4;
  for (size_t i = 0; fits && i < left.size(); ++i)
    for (const Monomial &r : right) {
      Monomial m;
      fits &= !__builtin_mul_overflow(left[i].coefficient, r.coefficient, &m.coefficient);
      m.atoms.resize(left[i].atoms.size() + r.atoms.size());
      fits &= m.atoms.size() <= kMaxAtoms;
      std::merge(left[i].atoms.begin(), left[i].atoms.end(), r.atoms.begin(), r.atoms.end(),
                 m.atoms.begin());
      terms.push_back(std::move(m));
    }
  if (!fits || !Impl::canonicalize(terms))
    return impl_->unfit(a, " * ", b);
  return impl_->intern(std::move(terms));
}

SymInt SymTable::product(std::span<const SymInt> factors) {
  SymInt p = 1;
  for (SymInt f : factors)
    p = mul(p, f);
  return p;
}

std::optional<SymInt> SymTable::exact_div(SymInt a, SymInt b) {
  if (b == SymInt(0))
    return std::nullopt;
  if (a == SymInt(0))
    return SymInt(0);
  if (a == b)
    return SymInt(1);
  const std::vector<Monomial> divisor = impl_->poly(b);
  // Long division by the leading term; the remainder must vanish. The term of highest degree leads,
  // among equals the last in order of atoms: an order that multiplication keeps.
  const auto leading = [](const std::vector<Monomial> &terms) -> const Monomial & {
    return *std::max_element(terms.begin(), terms.end(), [](const Monomial &x, const Monomial &y) {
      return x.atoms.size() != y.atoms.size() ? x.atoms.size() < y.atoms.size() : x.atoms < y.atoms;
    });
  };
  std::vector<Monomial> rest = impl_->poly(a), quotient;
  const Monomial &lead = leading(divisor);
  for (size_t step = 0; !rest.empty(); ++step) {
    if (step > kMaxTerms)
      return std::nullopt;
    const Monomial top = leading(rest);
    Monomial q;
    if (lead.coefficient == 0 || !folds(top.coefficient) || !folds(lead.coefficient) ||
        top.coefficient % lead.coefficient != 0 ||
        !std::includes(top.atoms.begin(), top.atoms.end(), lead.atoms.begin(), lead.atoms.end()))
      return std::nullopt;
    q.coefficient = top.coefficient / lead.coefficient;
    std::set_difference(top.atoms.begin(), top.atoms.end(), lead.atoms.begin(), lead.atoms.end(),
                        std::back_inserter(q.atoms));
    for (const Monomial &d : divisor) {
      Monomial m;
      if (__builtin_mul_overflow(q.coefficient, d.coefficient, &m.coefficient) ||
          m.coefficient == std::numeric_limits<i64>::min())
        return std::nullopt;
      m.coefficient = -m.coefficient;
      m.atoms.resize(q.atoms.size() + d.atoms.size());
      std::merge(q.atoms.begin(), q.atoms.end(), d.atoms.begin(), d.atoms.end(), m.atoms.begin());
      rest.push_back(std::move(m));
    }
    if (!Impl::canonicalize(rest))
      return std::nullopt;
    quotient.push_back(std::move(q));
  }
  if (!Impl::canonicalize(quotient))
    return std::nullopt;
  return impl_->intern(std::move(quotient));
}

SymInt SymTable::apply(SymOp op, std::span<const SymInt> args, bool use_ranges) {
  const bool literal = std::all_of(args.begin(), args.end(),
                                   [](SymInt s) { return s.is_static() && folds(s.value()); });
  const auto v = [&](size_t i) { return args[i].value(); };
  switch (op) {
  case SymOp::FloorDiv:
  case SymOp::CeilDiv:
  case SymOp::TrueDivToInt:
    if (literal && v(1) != 0) {
      if (op == SymOp::FloorDiv)
        return floor_div(v(0), v(1));
      return op == SymOp::CeilDiv ? -floor_div(-v(0), v(1)) : v(0) / v(1);
    }
    if (args[1] == SymInt(1))
      return args[0];
    if (const auto q = exact_div(args[0], args[1]))
      return *q;
    break;
  case SymOp::Mod:
    if (literal && v(1) != 0)
      return v(0) - floor_div(v(0), v(1)) * v(1);
    if (args[1] == SymInt(1) || exact_div(args[0], args[1]))
      return 0;
    break;
  case SymOp::Max:
  case SymOp::Min: {
    if (literal)
      return op == SymOp::Max ? std::max(v(0), v(1)) : std::min(v(0), v(1));
    if (args[0] == args[1])
      return args[0];
    if (!use_ranges)
      break;
    const SymRange a = range(args[0]), b = range(args[1]);
    if (a.min >= b.max)
      return op == SymOp::Max ? args[0] : args[1];
    if (b.min >= a.max)
      return op == SymOp::Max ? args[1] : args[0];
    break;
  }
  case SymOp::Pow:
    if (args[1].is_static() && v(1) >= 0 && v(1) <= 16) {
      SymInt p = 1;
      for (i64 i = 0; i < v(1); ++i)
        p = mul(p, args[0]);
      return p;
    }
    break;
  case SymOp::Eq:
  case SymOp::Ne:
    if (args[0] == args[1])
      return op == SymOp::Eq;
    if (literal)
      return op == SymOp::Ne;
    break;
  case SymOp::Lt:
    if (literal)
      return v(0) < v(1);
    break;
  case SymOp::Le:
    if (literal)
      return v(0) <= v(1);
    break;
  case SymOp::Where:
    if (args[0].is_static())
      return v(0) ? args[1] : args[2];
    break;
  case SymOp::Symbol:
  case SymOp::Opaque: CHUTE_CHECK(false, "symbols are made by name");
  }
  return impl_->intern_atom(op, {}, args);
}

SymInt SymTable::floordiv(SymInt a, SymInt b) { return apply(SymOp::FloorDiv, std::array{a, b}); }
SymInt SymTable::ceildiv(SymInt a, SymInt b) { return apply(SymOp::CeilDiv, std::array{a, b}); }
SymInt SymTable::mod(SymInt a, SymInt b) { return apply(SymOp::Mod, std::array{a, b}); }
SymInt SymTable::max(SymInt a, SymInt b) { return apply(SymOp::Max, std::array{a, b}); }
SymInt SymTable::min(SymInt a, SymInt b) { return apply(SymOp::Min, std::array{a, b}); }

SymRange SymTable::range(SymInt e) const {
  constexpr i64 kInf = std::numeric_limits<i64>::max(), kNegInf = std::numeric_limits<i64>::min();
  if (e.is_static())
    return {e.value(), e.value()};
  if (const i32 a = impl_->single_atom[e.expr()]; a >= 0)
    if (const AtomNode &node = impl_->atoms[static_cast<size_t>(a)]; node.op == SymOp::Symbol)
      return node.range;
  // Bounds of sums of non-negative monomials; anything else is unbounded.
  SymRange out{0, 0};
  const auto add = [&](i64 a, i64 b) {
    i64 s = 0;
    if (a == kInf || b == kInf)
      return kInf;
    return __builtin_add_overflow(a, b, &s) ? (a > 0 ? kInf : kNegInf) : s;
  };
  for (const Monomial &m : impl_->exprs[e.expr()]) {
    i64 low = 1, high = 1;
    for (u32 a : m.atoms) {
      const AtomNode &node = impl_->atoms[a];
      if (node.op != SymOp::Symbol || node.range.min < 0)
        return {kNegInf, kInf};
      if (__builtin_mul_overflow(low, node.range.min, &low))
        low = kInf;
      if (node.range.max == kInf || high == kInf ||
          __builtin_mul_overflow(high, node.range.max, &high))
        high = kInf;
    }
    const auto scaled = [&](i64 bound) {
      i64 r = 0;
      if (bound == kInf || __builtin_mul_overflow(bound, m.coefficient, &r))
        return m.coefficient > 0 ? kInf : kNegInf;
      return r;
    };
    const i64 first = scaled(low), second = scaled(high);
    const i64 lo = std::min(first, second), hi = std::max(first, second);
    out.min = lo == kNegInf || out.min == kNegInf ? kNegInf : add(out.min, lo);
    out.max = add(out.max, hi);
  }
  return out;
}

std::vector<SymTable::Term> SymTable::terms(SymInt e) const {
  std::vector<Term> out;
  for (const Monomial &m : impl_->poly(e)) {
    Term t{m.coefficient, {}};
    for (u32 a : m.atoms)
      t.atoms.push_back(SymInt::symbolic(impl_->atom_expr[a]));
    out.push_back(std::move(t));
  }
  return out;
}

std::optional<SymTable::Atom> SymTable::atom(SymInt e) const {
  const i32 a = e.is_symbolic() ? impl_->single_atom[e.expr()] : -1;
  if (a < 0)
    return std::nullopt;
  const AtomNode &node = impl_->atoms[static_cast<size_t>(a)];
  return Atom{node.op, node.name, node.args};
}

std::optional<i64> SymTable::evaluate_with(SymInt e, LookupFn lookup, void *state) const {
  if (e.is_static())
    return e.value();
  // Arguments of an atom were interned before it, so evaluating atoms in order of index needs no
  // recursion. Only those reachable from `e` are computed.
  std::vector<u8> needed(impl_->atoms.size(), 0);
  std::vector<u32> stack;
  const auto need = [&](SymInt s) {
    if (s.is_symbolic())
      for (const Monomial &m : impl_->exprs[s.expr()])
        for (u32 a : m.atoms)
          if (!needed[a]) {
            needed[a] = 1;
            stack.push_back(a);
          }
  };
  need(e);
  while (!stack.empty()) {
    const u32 a = stack.back();
    stack.pop_back();
    for (SymInt s : impl_->atoms[a].args)
      need(s);
  }
  // Division has results for all but zero, and for what overflows.
  const auto divides = [](i64 a, i64 b) {
    return b != 0 && a != std::numeric_limits<i64>::min() && b != std::numeric_limits<i64>::min();
  };
  std::vector<std::optional<i64>> value(impl_->atoms.size());
  const auto poly_value = [&](SymInt s) -> std::optional<i64> {
    if (s.is_static())
      return s.value();
    i64 sum = 0;
    for (const Monomial &m : impl_->exprs[s.expr()]) {
      i64 product = m.coefficient;
      for (u32 a : m.atoms)
        if (!value[a] || __builtin_mul_overflow(product, *value[a], &product))
          return std::nullopt;
      if (__builtin_add_overflow(sum, product, &sum))
        return std::nullopt;
    }
    return sum;
  };
  for (size_t a = 0; a < impl_->atoms.size(); ++a) {
    if (!needed[a])
      continue;
    const AtomNode &node = impl_->atoms[a];
    if (node.op == SymOp::Symbol || node.op == SymOp::Opaque) {
      value[a] = lookup(state, SymInt::symbolic(impl_->atom_expr[a]));
      continue;
    }
    std::array<i64, 3> x{};
    bool ok = node.args.size() <= x.size();
    for (size_t i = 0; ok && i < node.args.size(); ++i) {
      const auto v = poly_value(node.args[i]);
      ok = v.has_value();
      x[i] = v.value_or(0);
    }
    if (!ok)
      continue;
    switch (node.op) {
    case SymOp::FloorDiv:
      if (divides(x[0], x[1]))
        value[a] = floor_div(x[0], x[1]);
      break;
    case SymOp::CeilDiv:
      if (divides(x[0], x[1]))
        value[a] = -floor_div(-x[0], x[1]);
      break;
    case SymOp::TrueDivToInt:
      if (divides(x[0], x[1]))
        value[a] = x[0] / x[1];
      break;
    case SymOp::Mod:
      if (divides(x[0], x[1]))
        value[a] = x[0] - floor_div(x[0], x[1]) * x[1];
      break;
    case SymOp::Max: value[a] = std::max(x[0], x[1]); break;
    case SymOp::Min: value[a] = std::min(x[0], x[1]); break;
    case SymOp::Eq: value[a] = x[0] == x[1]; break;
    case SymOp::Ne: value[a] = x[0] != x[1]; break;
    case SymOp::Lt: value[a] = x[0] < x[1]; break;
    case SymOp::Le: value[a] = x[0] <= x[1]; break;
    case SymOp::Where: value[a] = x[0] ? x[1] : x[2]; break;
    case SymOp::Pow: {
      i64 p = 1;
      bool fits = x[1] >= 0 && x[1] < 64;
      for (i64 i = 0; fits && i < x[1]; ++i)
        fits = !__builtin_mul_overflow(p, x[0], &p);
      if (fits)
        value[a] = p;
      break;
    }
    case SymOp::Symbol:
    case SymOp::Opaque: break;
    }
  }
  return poly_value(e);
}

std::string SymTable::print(SymInt e) const { return impl_->text(e); }

} // namespace chute::ir
