#include "ir/element_convert.h"
#include "ir/text_values.h"

#include <algorithm>
#include <cmath>

namespace chute::ir {

struct ValueReader::Body {
  std::string_view kind; // "dense", "splat", …
  size_t offset = 0;     // of the kind
  size_t begin = 0;      // of the text between the brackets
  size_t end = 0;
};

bool ValueReader::at_constant() {
  const char c = lex_.peek();
  if (c != 'd' && c != 's' && c != 'i' && c != 'r' && c != 'h' && c != 'e' && c != 'n')
    return false;
  const size_t before = lex_.offset();
  const std::string_view w = lex_.word();
  const char next = lex_.peek();
  lex_.rewind(before);
  if (w == "dense" || w == "splat" || w == "hex" || w == "elided")
    return next == '<';
  if (w == "rand")
    return next == '(';
  return (w == "iota" || w == "nodata") && next == ':';
}

// Finds the extent of what is written; it is read when the type after it is known.
bool ValueReader::constant_body(Body &body) {
  lex_.skip();
  body.offset = lex_.offset();
  body.kind = lex_.word();
  if (body.kind == "iota" || body.kind == "nodata")
    return true;
  const char open = body.kind == "rand" ? '(' : '<';
  const char close = body.kind == "rand" ? ')' : '>';
  if (!expect(open))
    return false;
  body.begin = lex_.offset();
  const std::string_view text = lex_.text();
  bool quoted = false;
  size_t at = body.begin;
  for (; at < text.size() && (quoted || text[at] != close); ++at)
    if (text[at] == '"')
      quoted = !quoted;
  if (at == text.size())
    return error(body.offset, "constant without end");
  body.end = at;
  lex_.rewind(at + 1);
  return true;
}

namespace {

bool hex_bytes(std::string_view digits, std::byte *to) {
  const auto value = [](char c) {
    if (is_digit(c))
      return c - '0';
    if (c >= 'a' && c <= 'f')
      return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    const int high = value(digits[i]), low = value(digits[i + 1]);
    if (high < 0 || low < 0)
      return false;
    to[i / 2] = static_cast<std::byte>(high << 4 | low);
  }
  return true;
}

/// SplitMix64: the state advances by the golden ratio, so element i needs no earlier one.
u64 random_bits(u64 seed, u64 i) {
  u64 z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

} // namespace

bool ValueReader::element(ElementType t, std::byte *to) {
  const size_t start = (lex_.skip(), lex_.offset());
  const auto size = static_cast<size_t>(element_bytes(t));
  TextLexer::Number n;
  if (lex_.number(n)) {
    if (t == ElementType::U64) {
      u64 v = 0;
      if (!n.to_u64(v))
        return error(start, "unsigned 64-bit integer expected");
      store_element_int(t, static_cast<i64>(v), to);
      return true;
    }
    if (is_integer(t) || t == ElementType::Bool) {
      i64 v = 0;
      if (!n.to_i64(v))
        return error(start, "integer expected");
      const int bits = t == ElementType::Bool ? 1 : element_bits(t);
      const bool fits =
          bits == 64 || (is_signed(t) ? v >= -(i64{1} << (bits - 1)) && v < i64{1} << (bits - 1)
                                      : v >= 0 && v < i64{1} << bits);
      if (!fits)
        return error(start, "value does not fit " + std::string(element_type_name(t)));
      store_element_int(t, v, to);
      return true;
    }
    if (!is_float(t))
      return error(start,
                   "write raw(\"hex\") for elements of type " + std::string(element_type_name(t)));
    double v = 0;
    float f = 0;
    // Rounded once, from the text, for the type that has its own shortest form.
    if (t == ElementType::F32 && !n.text.ends_with(')') && n.to_float(f)) {
      v = static_cast<double>(f);
    } else if (!n.to_double(v)) {
      return error(start, "number out of range");
    }
    store_element(t, v, to);
    return true;
  }
  const std::string_view word = lex_.word();
  if (t == ElementType::Bool && (word == "true" || word == "false")) {
    *to = static_cast<std::byte>(word == "true");
    return true;
  }
  if (word == "raw") {
    std::string digits;
    if (!expect('(') || !string(digits) || !expect(')'))
      return false;
    return (digits.size() == 2 * size && hex_bytes(digits, to)) ||
           error(start, "raw() needs " + std::to_string(2 * size) + " hexadecimal digits");
  }
  if (word == "complex" && (t == ElementType::C64 || t == ElementType::C128)) {
    const ElementType part = t == ElementType::C64 ? ElementType::F32 : ElementType::F64;
    return expect('(') && element(part, to) && expect(',') && element(part, to + size / 2) &&
           expect(')');
  }
  return error(start, "element of type " + std::string(element_type_name(t)) + " expected");
}

bool ValueReader::dense(const Body &body, Type t, std::byte *to) {
  const auto n = static_cast<u64>(t.num_elements());
  const auto size = static_cast<size_t>(element_bytes(t.element()));
  lex_.rewind(body.begin);
  u64 count = 0;
  size_t depth = 0;
  bool after_value = false; // a value or a closed list came last
  for (;;) {
    const char c = lex_.peek();
    if (lex_.offset() >= body.end)
      break;
    const size_t at = lex_.offset();
    if (c == '[' && !after_value) {
      lex_.eat('[');
      ++depth;
    } else if (c == ']' && depth > 0) {
      lex_.eat(']');
      --depth;
      after_value = true;
    } else if (c == ',' && after_value && depth > 0) {
      lex_.eat(',');
      after_value = false;
    } else if (after_value) {
      return error(at, "',' or ']' expected");
    } else {
      if (count == n)
        return error(at, "more elements than the type has");
      if (!element(t.element(), to + count++ * size))
        return false;
      after_value = true;
    }
  }
  if (depth != 0)
    return error(body.end, "']' expected");
  return count == n || error(body.offset, "the type has " + std::to_string(n) + " elements, " +
                                              std::to_string(count) + " are given");
}

bool ValueReader::generate(const Body &body, Type t, std::byte *to) {
  const auto n = static_cast<u64>(t.num_elements());
  const ElementType e = t.element();
  const auto size = static_cast<size_t>(element_bytes(e));
  if (body.kind == "iota") {
    for (u64 i = 0; i < n; ++i)
      store_element_int(e, static_cast<i64>(i), to + i * size);
    return true;
  }
  lex_.rewind(body.begin);
  TextLexer::Number number;
  u64 seed = 0;
  double low = 0, high = 0;
  const bool ok = lex_.number(number) && number.to_u64(seed) && lex_.eat(',') &&
                  lex_.number(number) && number.to_double(low) && lex_.eat(',') &&
                  lex_.number(number) && number.to_double(high) && lex_.peek() == ')';
  // Within 2^53 both bounds and their distance are exact.
  if (!ok || !(low <= high) || !(std::fabs(low) <= 0x1p53) || !(std::fabs(high) <= 0x1p53))
    return error(body.offset, "rand(seed, low, high) expected", "bounds are at most 2^53");
  for (u64 i = 0; i < n; ++i) {
    const u64 bits = random_bits(seed, i);
    if (is_integer(e) || e == ElementType::Bool) {
      const auto first = static_cast<i64>(std::ceil(low));
      const u64 span = static_cast<u64>(static_cast<i64>(std::floor(high)) - first) + 1;
      store_element_int(e, first + static_cast<i64>(span ? bits % span : 0), to + i * size);
    } else {
      const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
      store_element(e, low + unit * (high - low), to + i * size);
    }
  }
  return true;
}

bool ValueReader::constant(const Constant *&out) {
  if (lex_.eat('#')) {
    const size_t start = lex_.offset();
    const std::string_view digits = lex_.digits();
    size_t index = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (r.ec != std::errc() || digits.empty() || index >= numbered_.size())
      return error(start, "no constant of that number");
    out = numbered_[index];
    return true;
  }
  if (!at_constant())
    return error_here("constant expected");
  Body body;
  Type t;
  if (!constant_body(body) || !expect(':') || !type(t))
    return false;
  const size_t after = lex_.offset();
  if (!t.is_tensor() || !t.has_static_shape())
    return error(body.offset, "a constant has a tensor type with a static shape");
  const auto size = static_cast<u64>(element_bytes(t.element()));
  const i64 n = t.num_elements();
  u64 bytes = 0;
  if (n == std::numeric_limits<i64>::max() ||
      __builtin_mul_overflow(static_cast<u64>(n), size, &bytes) || bytes > u64{1} << 62)
    return error(body.offset, "constant too large");
  const std::string_view inside = lex_.text().substr(body.begin, body.end - body.begin);

  if (body.kind == "nodata" || body.kind == "elided") {
    out = graph_->add_constant(t, nullptr, nullptr, {}, false);
    return true;
  }
  // No more is allocated than the text is long, or than the caller allows.
  const bool written = body.kind == "dense" || body.kind == "hex";
  if (written ? static_cast<u64>(n) > inside.size() && bytes > 0
              : bytes > options_.max_generated_bytes)
    return written ? error(body.offset, "fewer elements are given than the type has")
                   : error(body.offset, "generated constant too large");
  std::byte *to = nullptr;
  if (body.kind == "splat") {
    lex_.rewind(body.begin);
    if (size == 0 || n == 0)
      return error(body.offset, "splat of a type without elements");
    std::shared_ptr<std::byte[]> one(new std::byte[16]());
    if (!element(t.element(), one.get()))
      return false;
    lex_.skip();
    if (lex_.offset() != body.end)
      return error_here("'>' expected");
    const std::vector<i64> strides(t.shape().size(), 0);
    const std::byte *data = one.get();
    out = graph_->add_constant(t, data, std::shared_ptr<const void>(std::move(one), data), strides);
    lex_.rewind(after);
    return true;
  }
  if (body.kind == "hex") {
    std::string_view digits = inside;
    if (digits.size() < 2 || digits.front() != '"' || digits.back() != '"')
      return error(body.offset, "hex<\"…\"> expected");
    digits = digits.substr(1, digits.size() - 2);
    if (digits.size() != 2 * bytes)
      return error(body.offset, "the type has " + std::to_string(bytes) + " bytes, " +
                                    std::to_string(digits.size()) + " digits are given");
    out = graph_->add_buffer(t, &to);
    return hex_bytes(digits, to) || error(body.offset, "not a hexadecimal digit");
  }
  if (size == 0)
    return error(body.offset, "elements of that type have no value");
  out = graph_->add_buffer(t, &to);
  if (!(written ? dense(body, t, to) : generate(body, t, to)))
    return false;
  lex_.rewind(after);
  return true;
}

} // namespace chute::ir
