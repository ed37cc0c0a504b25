#pragma once

#include "support/ints.h"
#include "support/result.h"

#include <array>
#include <bitset>
#include <string>
#include <string_view>
#include <vector>

namespace chute::toolkit {

/// A pattern over names. Matching takes time in proportion to name × pattern and constant stack,
/// whatever the pattern: names and patterns come from outside.
///
/// Regular expressions have the part of Python's `re` that needs no backtracking: literals, `.`,
/// `[…]`, `\d \w \s` and their complements, `( )`, `(?: )`, `|`, `* + ? {m,n}` (a lazy `?` behind
/// them changes nothing here), `^ $ \A \Z \b \B`. Look-around, back references and inline flags are
/// refused.
class Pattern {
public:
  /// Errors: kind Usage, `toolkit.pattern`, with the position of the fault.
  static Result<Pattern> regex(std::string_view text);
  /// `*` any characters, `?` one, `[…]` one of a set; matches whole names.
  static Result<Pattern> glob(std::string_view text);

  /// Somewhere in the text.
  bool search(std::string_view text) const { return run(text, false); }
  /// The text from its first to its last character.
  bool matches(std::string_view text) const { return run(text, true); }

private:
  friend class PatternParser;
  enum class Kind : u8 { Set, Split, Jump, Begin, End, Boundary, NoBoundary, Match };
  struct Step {
    Kind kind;
    u32 to = 0;    ///< Set: index into sets_; Split, Jump: a step
    u32 other = 0; ///< Split: the second step
  };
  bool run(std::string_view text, bool whole) const;

  std::vector<Step> steps_;
  std::vector<std::bitset<256>> sets_;
  std::string literal_; ///< the whole pattern, when it has no operators
  bool is_literal_ = false;
};

} // namespace chute::toolkit
