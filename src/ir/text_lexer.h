#pragma once

#include "ir/text_writer.h"
#include "support/ints.h"

#include <string>
#include <string_view>

namespace chute::ir {

/// A cursor over text IR. Every reader skips white space and comments first and returns false (or
/// an empty view) without moving when its token is not there.
class TextLexer {
public:
  explicit TextLexer(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }
  size_t offset() const { return at_; }
  void rewind(size_t offset) { at_ = offset; }

  void skip();
  /// The next character, '\0' at the end.
  char peek() {
    skip();
    return raw();
  }
  bool at_end() {
    skip();
    return at_ >= text_.size();
  }
  bool eat(char c) {
    if (peek() != c || at_ >= text_.size())
      return false;
    ++at_;
    return true;
  }
  bool eat_arrow();
  /// The exact word, not a longer one that starts with it.
  bool eat_word(std::string_view expected);
  /// A bare name: letters, digits, '_', '.', '$'; not starting with a digit, '.' or '$'.
  std::string_view word();
  std::string_view peek_word() {
    skip();
    const size_t before = at_;
    const std::string_view w = word();
    at_ = before;
    return w;
  }
  /// Digits only; empty when there are none here (no white space is skipped).
  std::string_view digits();

  struct Number {
    std::string_view text; ///< with its sign; "inf", "nan" and hexadecimal forms included
    bool is_float = false;
    bool fits = false; ///< the integer is within 64 bits
    bool negative = false;
    u64 magnitude = 0; ///< of an integer

    bool to_i64(i64 &out) const;
    bool to_u64(u64 &out) const;
    bool to_double(double &out) const; ///< exact rounding of the text
    bool to_float(float &out) const;
  };
  bool number(Number &out);

  enum class Quoted : u8 { Absent, Ok, Bad };
  /// A string in double quotes; escapes \" \\ \n \t \xHH.
  Quoted quoted(std::string &out);

  /// A symbolic expression: up to the next ',', ':', '>', '{', newline or closing bracket that is
  /// not inside parentheses or quotes.
  std::string_view expression();

private:
  char raw() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char raw(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  std::string_view text_;
  size_t at_ = 0;
};

} // namespace chute::ir
