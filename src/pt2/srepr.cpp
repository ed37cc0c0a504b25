#include "pt2/srepr.h"

#include <boost/container/small_vector.hpp>
#include <cctype>
#include <charconv>

namespace chute::pt2 {

namespace {

using ir::SymInt;
using ir::SymOp;
using ir::SymTable;

constexpr size_t kMaxText = 16384;
constexpr int kMaxDepth = 48;

/// Recursive descent; the depth is bounded, since it is the file's.
class Parser {
public:
  Parser(std::string_view text, SymTable &table) : text_(text), table_(table) {}

  std::optional<SymInt> whole() {
    const auto e = expression(0);
    space();
    return e && at_ == text_.size() ? e : std::nullopt;
  }

private:
  using Args = boost::container::small_vector<SymInt, 8>;

  void space() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }
  bool eat(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    space();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  /// Skips to behind the bracket that closes the one before `at_`; strings hold no brackets.
  bool skip_arguments() {
    for (int depth = 1; at_ < text_.size();) {
      const char c = text_[at_++];
      depth += (c == '(') - (c == ')');
      if (depth == 0)
        return true;
    }
    return false;
  }
  std::optional<std::string_view> quoted() {
    space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
      return std::nullopt;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == text_.npos)
      return std::nullopt;
    const std::string_view s = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return s;
  }

  std::optional<SymInt> opaque(size_t begin) {
    return table_.opaque(text_.substr(begin, at_ - begin));
  }

  std::optional<SymInt> integer(size_t begin) {
    space();
    size_t end = at_;
    while (end < text_.size() &&
           (text_[end] == '-' || std::isdigit(static_cast<unsigned char>(text_[end]))))
      ++end;
    i64 v = 0;
    const auto [p, code] = std::from_chars(text_.data() + at_, text_.data() + end, v);
    const bool whole = p == text_.data() + end && end > at_;
    at_ = end;
    if (!whole || !eat(')'))
      return std::nullopt;
    if (code != std::errc() || SymInt(v).is_symbolic())
      return opaque(begin); // a literal outside of 64 bits
    return SymInt(v);
  }

  std::optional<SymInt> expression(int depth) {
    if (depth > kMaxDepth)
      return std::nullopt;
    space();
    const size_t begin = at_;
    const std::string_view name = word();
    if (name == "true" || name == "false")
      return SymInt(name == "true");
    if (name.empty() || !eat('('))
      return std::nullopt;
    if (name == "Integer")
      return integer(begin);
    if (name == "Symbol" || name == "Dummy") {
      const auto symbol = quoted();
      if (!symbol || symbol->empty() || !skip_arguments())
        return std::nullopt;
      for (const char c : *symbol)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
          return std::nullopt;
      return table_.symbol(*symbol);
    }
    // int(a / b) arrives as three nested functions; the quotient itself is no integer.
    if (name == "CeilToInt" || name == "FloorToInt" || name == "TruncToInt") {
      const size_t inner_begin = at_;
      const std::string_view inner = word();
      if (inner == "IntTrueDiv" && eat('(')) {
        Args args;
        if (!arguments(args, depth))
          return std::nullopt;
        if (args.size() != 2 || !eat(')'))
          return std::nullopt;
        if (name == "CeilToInt")
          return table_.ceildiv(args[0], args[1]);
        if (name == "FloorToInt")
          return table_.floordiv(args[0], args[1]);
        return table_.apply(SymOp::TrueDivToInt, args);
      }
      at_ = inner_begin;
      if (!skip_arguments())
        return std::nullopt;
      return opaque(begin);
    }
    if (name == "Float" || name == "Rational" || name == "FloatTrueDiv" || name == "IntTrueDiv" ||
        name == "FloatPow" || name == "ToFloat" || name == "TruncToFloat" ||
        name == "RoundDecimal") {
      if (!skip_arguments())
        return std::nullopt;
      return opaque(begin);
    }
    Args args;
    if (!arguments(args, depth))
      return std::nullopt;
    const auto result = apply(name, args);
    return result ? result : opaque(begin);
  }

  bool arguments(Args &args, int depth) {
    if (eat(')'))
      return true;
    do {
      // A keyword (evaluate=False) changes nothing that matters here.
      const size_t before = at_;
      if (!word().empty() && eat('=')) {
        word();
        continue;
      }
      at_ = before;
      const auto e = expression(depth + 1);
      if (!e)
        return false;
      args.push_back(*e);
    } while (eat(','));
    return eat(')');
  }

  SymInt pair(SymOp op, SymInt a, SymInt b) {
    const SymInt args[2] = {a, b};
    return table_.apply(op, args);
  }

  std::optional<SymInt> apply(std::string_view name, const Args &a) {
    const size_t n = a.size();
    if (n == 0)
      return std::nullopt;
    SymInt r = a[0];
    const auto fold = [&](auto &&f) {
      for (size_t i = 1; i < n; ++i)
        r = f(r, a[i]);
      return r;
    };
    if (name == "Add")
      return fold([&](SymInt x, SymInt y) { return table_.add(x, y); });
    if (name == "Mul")
      return fold([&](SymInt x, SymInt y) { return table_.mul(x, y); });
    if (name == "Max" || name == "Or")
      return fold([&](SymInt x, SymInt y) { return table_.max(x, y); });
    if (name == "Min" || name == "And")
      return fold([&](SymInt x, SymInt y) { return table_.min(x, y); });
    if (n == 1) {
      if (name == "Identity")
        return r;
      if (name == "Not")
        return table_.sub(1, r);
    }
    if (n == 2) {
      if (name == "FloorDiv" || name == "CleanDiv")
        return table_.floordiv(a[0], a[1]);
      if (name == "CeilDiv")
        return table_.ceildiv(a[0], a[1]);
      if (name == "Mod" || name == "PythonMod")
        return table_.mod(a[0], a[1]);
      if (name == "Pow" || name == "PowByNatural") {
        if (a[1].is_static() && a[1].value() >= 0 && a[1].value() <= 8) {
          SymInt p = 1;
          for (i64 i = 0; i < a[1].value(); ++i)
            p = table_.mul(p, a[0]);
          return p;
        }
        return pair(SymOp::Pow, a[0], a[1]);
      }
      if (name == "Equality")
        return pair(SymOp::Eq, a[0], a[1]);
      if (name == "Unequality")
        return pair(SymOp::Ne, a[0], a[1]);
      if (name == "GreaterThan")
        return pair(SymOp::Le, a[1], a[0]);
      if (name == "StrictGreaterThan")
        return pair(SymOp::Lt, a[1], a[0]);
      if (name == "LessThan")
        return pair(SymOp::Le, a[0], a[1]);
      if (name == "StrictLessThan")
        return pair(SymOp::Lt, a[0], a[1]);
    }
    if (n == 3) {
      if (name == "Where")
        return table_.apply(SymOp::Where, a);
      if (name == "ModularIndexing") // (base // divisor) % modulus
        return table_.mod(table_.floordiv(a[0], a[1]), a[2]);
    }
    return std::nullopt;
  }

  std::string_view text_;
  SymTable &table_;
  size_t at_ = 0;
};

} // namespace

std::optional<SymInt> parse_srepr(std::string_view text, SymTable &table) {
  if (text.size() > kMaxText)
    return std::nullopt;
  // Up to torch 2.5 sizes are plain text ("2*s0 + 1"), which is also the symbol table's own form.
  if (text.find('(') == text.npos)
    return table.parse(text);
  return Parser(text, table).whole();
}

} // namespace chute::pt2
