#pragma once

#include "ir/text.h"

#include <charconv>
#include <string>
#include <string_view>

namespace chute::ir {

/// Characters of a bare name after the first one; the first is no digit, '.' or '$'.
constexpr bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '$';
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_word(std::string_view s) {
  if (s.empty() || is_digit(s[0]) || s[0] == '.' || s[0] == '$')
    return false;
  for (char c : s)
    if (!is_word_char(c))
      return false;
  return true;
}

/// Words that start something other than a symbolic expression where an attribute value stands.
bool is_value_keyword(std::string_view word);

/// Text in a buffer, drained into a sink when it is large.
class TextWriter {
public:
  explicit TextWriter(const TextSink *sink = nullptr) : sink_(sink) {}

  void put(char c) { text_ += c; }
  void put(std::string_view s) { text_ += s; }
  template <class T>
  void integer(T v) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), v).ptr;
    text_.append(digits, static_cast<size_t>(end - digits));
  }
  /// Shortest text that reads back as the same bits: always with '.', 'e', inf or nan.
  void number(double v);
  void number(float v);
  void hex(u64 v);
  void bytes_hex(const std::byte *data, size_t n);
  /// In double quotes; control characters, '"' and '\' escaped, other bytes as they are.
  void quoted(std::string_view s);

  /// Hands a large buffer to the sink; call between lines.
  void drain(bool all = false) {
    if (sink_ && (all || text_.size() >= kChunk)) {
      (*sink_)(text_);
      text_.clear();
    }
  }
  std::string take() { return std::move(text_); }

private:
  static constexpr size_t kChunk = size_t{1} << 16;
  template <class T, class Bits>
  void number_of(T v, Bits canonical_nan);
  const TextSink *sink_;
  std::string text_;
};

/// Prints what stands inside operators: types, attributes, constants.
class ValueWriter {
public:
  ValueWriter(const Context &ctx, TextWriter &out, const PrintOptions &options)
      : ctx_(ctx), out_(out), options_(options) {}

  void type(Type t);
  /// `slot` is the declared type of the field, which decides how a plain list reads.
  void attr(Attr a, AttrType slot);
  void int_value(SymInt v);
  /// `dense<…> : type`, or `#n` for a constant that was given a number.
  void constant(const Constant &c);
  /// Without the type and never as `#n`.
  void constant_body(const Constant &c);
  /// Makes later prints of `c` say `#number`.
  void set_number(const Constant &c, u32 number);

private:
  void scalar(Attr a);
  void leaf_list(Attr a, AttrType slot);
  void element(ElementType t, const std::byte *at);
  void quantization(const Quantization &q);

  const Context &ctx_;
  TextWriter &out_;
  const PrintOptions &options_;
  std::vector<std::string> types_; // by Type::id
  std::vector<u32> numbers_;       // by Constant::id; 0: none, else number + 1
};

/// Calls `visit(Attr)` for `a` and everything nested in it, in order, without recursion.
template <class Visit>
void for_each_nested(Attr a, Visit &&visit) {
  if (a.kind() != AttrKind::List) {
    visit(a);
    return;
  }
  std::vector<Attr> stack{a};
  while (!stack.empty()) {
    const Attr top = stack.back();
    stack.pop_back();
    visit(top);
    if (top.kind() == AttrKind::List) {
      const auto items = top.as_list();
      for (size_t i = items.size(); i-- > 0;)
        stack.push_back(items[i]);
    }
  }
}

} // namespace chute::ir
