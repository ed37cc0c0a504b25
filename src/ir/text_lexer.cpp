#include "ir/text_lexer.h"

#include <cmath>
#include <limits>

namespace chute::ir {

void TextLexer::skip() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '/' && raw(1) == '/') {
      const size_t end = text_.find('\n', at_);
      at_ = end == std::string_view::npos ? text_.size() : end;
    } else {
      return;
    }
  }
}

bool TextLexer::eat_arrow() {
  if (peek() != '-' || raw(1) != '>')
    return false;
  at_ += 2;
  return true;
}

std::string_view TextLexer::word() {
  skip();
  const char first = raw();
  if (!is_word_char(first) || is_digit(first) || first == '.' || first == '$')
    return {};
  const size_t start = at_;
  while (at_ < text_.size() && is_word_char(text_[at_]))
    ++at_;
  return text_.substr(start, at_ - start);
}

bool TextLexer::eat_word(std::string_view expected) {
  skip();
  const size_t before = at_;
  if (word() == expected)
    return true;
  at_ = before;
  return false;
}

std::string_view TextLexer::digits() {
  const size_t start = at_;
  while (is_digit(raw()))
    ++at_;
  return text_.substr(start, at_ - start);
}

namespace {
int hex_digit(char c) {
  if (is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
} // namespace

bool TextLexer::number(Number &out) {
  skip();
  const size_t start = at_;
  out = {};
  const auto done = [&] {
    out.text = text_.substr(start, at_ - start);
    return true;
  };
  if (raw() == '-' || raw() == '+') {
    out.negative = raw() == '-';
    ++at_;
  }
  if (!is_digit(raw())) {
    const size_t name = at_;
    const std::string_view w = is_word_char(raw()) ? word() : std::string_view();
    if (w == "inf") {
      out.is_float = true;
      return done();
    }
    if (w == "nan") {
      out.is_float = true;
      if (raw() == '(' && raw(1) == '0' && raw(2) == 'x' && hex_digit(raw(3)) >= 0) {
        at_ += 3;
        while (hex_digit(raw()) >= 0)
          ++at_;
        if (raw() == ')')
          ++at_;
        else
          at_ = name + 3;
      }
      return done();
    }
    at_ = start;
    return false;
  }
  out.fits = true;
  if (raw() == '0' && (raw(1) == 'x' || raw(1) == 'X') && hex_digit(raw(2)) >= 0) {
    at_ += 2;
    for (;; ++at_) {
      const int d = hex_digit(raw());
      if (d >= 0) {
        out.fits &= out.magnitude >> 60 == 0;
        out.magnitude = out.magnitude << 4 | static_cast<u64>(d);
      } else if (raw() == '.') {
        out.is_float = true;
      } else {
        break;
      }
    }
    if (raw() == 'p' || raw() == 'P') {
      out.is_float = true;
      at_ += raw(1) == '-' || raw(1) == '+' ? 2 : 1;
      digits();
    }
    return done();
  }
  for (; is_digit(raw()); ++at_)
    if (__builtin_mul_overflow(out.magnitude, u64{10}, &out.magnitude) ||
        __builtin_add_overflow(out.magnitude, static_cast<u64>(raw() - '0'), &out.magnitude))
      out.fits = false;
  if (raw() == '.') {
    out.is_float = true;
    ++at_;
    digits();
  }
  if ((raw() == 'e' || raw() == 'E') &&
      (is_digit(raw(1)) || ((raw(1) == '-' || raw(1) == '+') && is_digit(raw(2))))) {
    out.is_float = true;
    at_ += 2;
    digits();
  }
  return done();
}

bool TextLexer::Number::to_i64(i64 &out) const {
  if (is_float || !fits || magnitude > (u64{1} << 63) - (negative ? 0 : 1))
    return false;
  out = static_cast<i64>(negative ? 0 - magnitude : magnitude);
  return true;
}

bool TextLexer::Number::to_u64(u64 &out) const {
  out = magnitude;
  return !is_float && fits && (!negative || magnitude == 0);
}

namespace {
template <class T, class Bits>
bool to_floating(std::string_view text, T &out) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.starts_with("nan")) {
    out = std::numeric_limits<T>::quiet_NaN();
    if (text.size() > 3) {
      Bits bits = 0;
      const char *end = text.data() + text.size() - 1;
      const auto r = std::from_chars(text.data() + 6, end, bits, 16);
      out = std::bit_cast<T>(bits);
      if (r.ec != std::errc() || r.ptr != end || !std::isnan(out))
        return false;
    }
  } else if (text == "inf") {
    out = std::numeric_limits<T>::infinity();
  } else {
    const bool hex = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
    if (hex)
      text.remove_prefix(2);
    const auto r = std::from_chars(text.data(), text.data() + text.size(), out,
                                   hex ? std::chars_format::hex : std::chars_format::general);
    if (r.ec != std::errc() || r.ptr != text.data() + text.size())
      return false;
  }
  if (negative)
    out = std::copysign(out, T{-1});
  return true;
}
} // namespace

bool TextLexer::Number::to_double(double &out) const { return to_floating<double, u64>(text, out); }
bool TextLexer::Number::to_float(float &out) const { return to_floating<float, u32>(text, out); }

TextLexer::Quoted TextLexer::quoted(std::string &out) {
  if (peek() != '"')
    return Quoted::Absent;
  out.clear();
  for (size_t i = at_ + 1; i < text_.size();) {
    const char c = text_[i++];
    if (c == '"') {
      at_ = i;
      return Quoted::Ok;
    }
    if (c == '\n')
      return Quoted::Bad;
    if (c != '\\') {
      out += c;
      continue;
    }
    const char escape = i < text_.size() ? text_[i++] : '\0';
    if (escape == '"' || escape == '\\') {
      out += escape;
    } else if (escape == 'n') {
      out += '\n';
    } else if (escape == 't') {
      out += '\t';
    } else if (escape == 'x' && i + 1 < text_.size() && hex_digit(text_[i]) >= 0 &&
               hex_digit(text_[i + 1]) >= 0) {
      out += static_cast<char>(hex_digit(text_[i]) << 4 | hex_digit(text_[i + 1]));
      i += 2;
    } else {
      return Quoted::Bad;
    }
  }
  return Quoted::Bad;
}

std::string_view TextLexer::expression() {
  skip();
  const size_t start = at_;
  int depth = 0;
  bool in_quotes = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n')
      break;
    if (in_quotes) {
      if (c == '\\')
        at_ += at_ + 1 < text_.size();
      else if (c == '"')
        in_quotes = false;
      continue;
    }
    if (c == '"')
      in_quotes = true;
    else if (c == '(')
      ++depth;
    else if (c == ')' && depth > 0)
      --depth;
    else if (depth == 0 &&
             (c == ',' || c == ':' || c == '>' || c == ')' || c == ']' || c == '{' || c == '}'))
      break;
  }
  size_t end = at_;
  while (end > start && (text_[end - 1] == ' ' || text_[end - 1] == '\t' || text_[end - 1] == '\r'))
    --end;
  return text_.substr(start, end - start);
}

} // namespace chute::ir
