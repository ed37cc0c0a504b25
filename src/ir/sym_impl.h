#pragma once

#include "ir/sym_table.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>

/// Inside of SymTable: interning and text. Included by sym_table.cpp alone.
namespace chute::ir {

/// Bounds against hostile or runaway expressions. What exceeds one becomes an opaque atom, equal to
/// itself only: a bounded text then always exists, and printing needs no recursion.
inline constexpr size_t kMaxTerms = 256;
inline constexpr size_t kMaxAtoms = 64;      // in one term
inline constexpr size_t kMaxAtomText = 4096; // bytes
inline constexpr size_t kMaxText = 1 << 16;
inline constexpr u32 kMaxDepth = 48; // less than what SymTable::parse takes

struct Monomial {
  i64 coefficient = 0;
  std::vector<u32> atoms; // sorted atom indices, repeated for powers
};

struct AtomNode {
  SymOp op = SymOp::Symbol;
  std::string name;
  std::vector<SymInt> args;
  SymRange range; // of a Symbol
  std::string text;
  u32 depth = 0; // of nested operations
};

inline i64 floor_div(i64 a, i64 b) {
  const i64 q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

inline bool is_plain_name(std::string_view s) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !s.empty() && letter(s[0]) && std::all_of(s.begin(), s.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

inline std::string quoted(std::string_view function, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out(function);
  out += "(\"";
  for (char c : text) {
    const auto b = static_cast<u8>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (b < 0x20 || b == 0x7F) {
      out += "\\x";
      out += kHex[b >> 4];
      out += kHex[b & 15];
    } else {
      out += c;
    }
  }
  return out + "\")";
}

/// Folding stays clear of the ends of the range, where division, negation and the encoding of
/// expressions (SymInt) have their exceptions.
inline bool folds(i64 v) {
  constexpr i64 kBound = i64{1} << 62;
  return v > -kBound && v < kBound;
}

struct SymTable::Impl {
  std::vector<std::vector<Monomial>> exprs;
  std::vector<i32> single_atom; // per expression: its atom if it is exactly one, else -1
  std::deque<AtomNode> atoms;
  std::vector<u32> atom_expr; // the expression that is just this atom
  boost::unordered_flat_map<std::string, u32> expr_index;
  boost::unordered_flat_map<std::string, u32> atom_index;
  u64 next_large = 0; // names of opaque atoms made for what exceeds a bound

  static std::string key(const std::vector<Monomial> &terms) {
    std::string k;
    for (const Monomial &m : terms) {
      const auto n = static_cast<u32>(m.atoms.size());
      k.append(reinterpret_cast<const char *>(&m.coefficient), 8);
      k.append(reinterpret_cast<const char *>(&n), 4);
      for (u32 a : m.atoms)
        k.append(reinterpret_cast<const char *>(&a), 4);
    }
    return k;
  }

  size_t text_size(const std::vector<Monomial> &terms) const {
    size_t n = 0;
    for (const Monomial &m : terms) {
      n += 24;
      for (u32 a : m.atoms)
        n += atoms[a].text.size() + 1;
    }
    return n;
  }

  /// An opaque atom of a name that nothing else has.
  SymInt fresh_opaque() {
    std::string name;
    do
      name = "large " + std::to_string(next_large++);
    while (atom_index.contains(atom_key(SymOp::Opaque, name, {})));
    return intern_atom(SymOp::Opaque, name, {});
  }

  /// Canonical handle of a sorted, merged sum.
  SymInt intern(std::vector<Monomial> terms) {
    if (terms.empty())
      return 0;
    if (terms.size() == 1 && terms[0].atoms.empty()) {
      if (const SymInt literal(terms[0].coefficient); literal.is_static())
        return literal;
    }
    std::string k = key(terms);
    if (auto it = expr_index.find(k); it != expr_index.end())
      return SymInt::symbolic(it->second);
    const bool single =
        terms.size() == 1 && terms[0].coefficient == 1 && terms[0].atoms.size() == 1;
    if (!single && text_size(terms) > kMaxText) {
      const SymInt e = fresh_opaque();
      expr_index.emplace(std::move(k), e.expr());
      return e;
    }
    const auto id = static_cast<u32>(exprs.size());
    single_atom.push_back(single ? static_cast<i32>(terms[0].atoms[0]) : -1);
    exprs.push_back(std::move(terms));
    expr_index.emplace(std::move(k), id);
    return SymInt::symbolic(id);
  }

  static std::string atom_key(SymOp op, std::string_view name, std::span<const SymInt> args) {
    std::string k(1, static_cast<char>(op));
    k += name;
    k += '\0';
    k.append(reinterpret_cast<const char *>(args.data()), args.size_bytes());
    return k;
  }

  u32 depth(SymInt e) const {
    u32 d = 0;
    if (e.is_symbolic())
      for (const Monomial &m : exprs[e.expr()])
        for (u32 a : m.atoms)
          d = std::max(d, atoms[a].depth);
    return d;
  }

  SymInt intern_atom(SymOp op, std::string_view name, std::span<const SymInt> args) {
    std::string k = atom_key(op, name, args);
    if (auto it = atom_index.find(k); it != atom_index.end())
      return SymInt::symbolic(atom_expr[it->second]);
    AtomNode node;
    node.op = op;
    node.name = name;
    node.args.assign(args.begin(), args.end());
    if (op == SymOp::Symbol) {
      node.text = is_plain_name(name) ? std::string(name) : quoted("symbol", name);
    } else if (op == SymOp::Opaque) {
      node.text = quoted("opaque", name);
    } else {
      node.text = sym_op_name(op);
      node.text += '(';
      for (size_t i = 0; i < args.size(); ++i) {
        node.text += (i ? ", " : "") + text(args[i]);
        node.depth = std::max(node.depth, depth(args[i]) + 1);
      }
      node.text += ')';
      if (node.text.size() > kMaxAtomText || node.depth > kMaxDepth) {
        const SymInt e = fresh_opaque();
        atom_index.emplace(std::move(k), static_cast<u32>(single_atom[e.expr()]));
        return e;
      }
    }
    const auto id = static_cast<u32>(atoms.size());
    atoms.push_back(std::move(node));
    atom_index.emplace(std::move(k), id);
    const SymInt e = intern({Monomial{1, {id}}});
    atom_expr.push_back(e.expr());
    return e;
  }

  /// Terms in order of their text, the literal last: the text does not depend on the order in which
  /// symbols were made.
  std::string text(SymInt e) const {
    if (e.is_static())
      return std::to_string(e.value());
    struct Part {
      bool literal;
      std::string product;
      i64 coefficient;
    };
    std::vector<Part> parts;
    for (const Monomial &m : exprs[e.expr()]) {
      std::vector<std::string_view> factors;
      for (u32 a : m.atoms)
        factors.push_back(atoms[a].text);
      std::sort(factors.begin(), factors.end());
      Part p{m.atoms.empty(), {}, m.coefficient};
      for (std::string_view f : factors) {
        if (!p.product.empty())
          p.product += '*';
        p.product += f;
      }
      parts.push_back(std::move(p));
    }
    std::sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) {
      return a.literal != b.literal ? b.literal : a.product < b.product;
    });
    std::string out;
    for (const Part &p : parts) {
      i64 c = p.coefficient;
      const bool minus = c < 0 && c != std::numeric_limits<i64>::min();
      if (!out.empty())
        out += minus ? " - " : " + ";
      else if (minus)
        out += '-';
      c = minus ? -c : c;
      if (p.literal)
        out += std::to_string(c);
      else
        out += (c == 1 ? "" : std::to_string(c) + "*") + p.product;
    }
    return out;
  }

  /// What a sum or product becomes that does not fit: known by its text while that is short.
  SymInt unfit(SymInt a, const char *op, SymInt b) {
    std::string name = "(" + text(a) + ")" + op + "(" + text(b) + ")";
    return name.size() > kMaxAtomText ? fresh_opaque() : intern_atom(SymOp::Opaque, name, {});
  }

  std::vector<Monomial> poly(SymInt e) const {
    if (e.is_symbolic())
      return exprs[e.expr()];
    if (e.value() == 0)
      return {};
    return {Monomial{e.value(), {}}};
  }

  /// Sorts and merges; false on overflow or too many terms.
  static bool canonicalize(std::vector<Monomial> &terms) {
    std::sort(terms.begin(), terms.end(),
              [](const Monomial &a, const Monomial &b) { return a.atoms < b.atoms; });
    size_t out = 0;
    for (size_t i = 0; i < terms.size();) {
      Monomial m = std::move(terms[i++]);
      for (; i < terms.size() && terms[i].atoms == m.atoms; ++i)
        if (__builtin_add_overflow(m.coefficient, terms[i].coefficient, &m.coefficient))
          return false;
      if (m.coefficient != 0)
        terms[out++] = std::move(m);
    }
    terms.resize(out);
    return out <= kMaxTerms;
  }
};

} // namespace chute::ir
