#include "ir/sym_table.h"

#include <array>
#include <charconv>

namespace chute::ir {

namespace {

constexpr std::array<std::string_view, 14> kOpNames{"",    "floordiv", "ceildiv", "mod",   "max",
                                                    "min", "pow",      "where",   "eq",    "ne",
                                                    "lt",  "le",       "truediv", "opaque"};

} // namespace

std::string_view sym_op_name(SymOp op) { return kOpNames[static_cast<size_t>(op)]; }

namespace {

/// Recursive descent over `expr := term (('+'|'-') term)*`, `term := factor ('*' factor)*`,
/// `factor := integer | name | name '(' expr, … ')' | '(' expr ')' | '-' factor`.
class SymParser {
public:
  SymParser(SymTable &table, std::string_view text) : table_(table), text_(text) {}
  std::optional<SymInt> run() {
    const auto e = expr(0);
    skip();
    return e && at_ == text_.size() ? e : std::nullopt;
  }

private:
  static constexpr int kMaxDepth = 64;
  static constexpr size_t kMaxOpaque = 4096;
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }
  bool eat(char c) {
    skip();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }
  std::optional<SymInt> expr(int depth) {
    auto left = term(depth);
    while (left) {
      if (eat('+')) {
        const auto right = term(depth);
        left = right ? std::optional(table_.add(*left, *right)) : std::nullopt;
      } else if (eat('-')) {
        const auto right = term(depth);
        left = right ? std::optional(table_.sub(*left, *right)) : std::nullopt;
      } else {
        break;
      }
    }
    return left;
  }
  std::optional<SymInt> term(int depth) {
    auto left = factor(depth);
    while (left && eat('*')) {
      const auto right = factor(depth);
      left = right ? std::optional(table_.mul(*left, *right)) : std::nullopt;
    }
    return left;
  }
  std::optional<SymInt> factor(int depth) {
    if (depth > kMaxDepth)
      return std::nullopt;
    if (eat('(')) {
      const auto e = expr(depth + 1);
      return e && eat(')') ? e : std::nullopt;
    }
    skip();
    const bool negative_literal = at_ + 1 < text_.size() && text_[at_] == '-' &&
                                  text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9';
    if (!negative_literal && eat('-')) {
      const auto e = factor(depth + 1);
      return e ? std::optional(table_.neg(*e)) : std::nullopt;
    }
    const size_t start = at_;
    at_ += negative_literal;
    const auto word = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    while (at_ < text_.size() && word(text_[at_]))
      ++at_;
    const std::string_view token = text_.substr(start, at_ - start);
    if (token.empty())
      return std::nullopt;
    if (negative_literal || (token[0] >= '0' && token[0] <= '9')) {
      i64 v = 0;
      const char *end = token.data() + token.size();
      const auto r = std::from_chars(token.data(), end, v);
      return r.ec == std::errc() && r.ptr == end ? std::optional(table_.literal(v)) : std::nullopt;
    }
    if (!eat('('))
      return table_.symbol(token);
    if (token == "opaque" || token == "symbol")
      return quoted(token == "symbol");
    std::vector<SymInt> args;
    do {
      const auto e = expr(depth + 1);
      if (!e)
        return std::nullopt;
      args.push_back(*e);
    } while (eat(','));
    if (!eat(')'))
      return std::nullopt;
    for (size_t i = 1; i + 1 < kOpNames.size(); ++i)
      if (kOpNames[i] == token) {
        const auto op = static_cast<SymOp>(i);
        if (args.size() != (op == SymOp::Where ? 3u : 2u))
          return std::nullopt;
        return table_.apply(op, args, false);
      }
    return std::nullopt;
  }
  static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
      return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }
  /// `"text")` after the name of the function.
  std::optional<SymInt> quoted(bool symbol) {
    if (!eat('"'))
      return std::nullopt;
    std::string body;
    for (;;) {
      if (at_ == text_.size())
        return std::nullopt;
      const char c = text_[at_++];
      if (c == '"')
        break;
      if (c != '\\') {
        body += c;
        continue;
      }
      const char escape = at_ < text_.size() ? text_[at_++] : '\0';
      if (escape == '"' || escape == '\\') {
        body += escape;
      } else if (escape == 'x' && at_ + 1 < text_.size() && hex_digit(text_[at_]) >= 0 &&
                 hex_digit(text_[at_ + 1]) >= 0) {
        body += static_cast<char>(hex_digit(text_[at_]) << 4 | hex_digit(text_[at_ + 1]));
        at_ += 2;
      } else {
        return std::nullopt;
      }
    }
    if (!eat(')') || body.size() > kMaxOpaque)
      return std::nullopt;
    return symbol ? table_.symbol(body) : table_.opaque(body);
  }

  SymTable &table_;
  std::string_view text_;
  size_t at_ = 0;
};

} // namespace

std::optional<SymInt> SymTable::parse(std::string_view text) {
  return SymParser(*this, text).run();
}

} // namespace chute::ir
