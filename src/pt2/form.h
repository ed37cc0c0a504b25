#pragma once

#include "support/ints.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chute::pt2 {

/// JSON that a program writes repeats itself: of two records of a kind, most bytes are the same. A
/// form is one record's text with holes where records differ. What a parser found out about the
/// record that the form was made of then holds for every text that matches, but for what is in the
/// holes; and matching is a comparison of bytes.

enum class HoleKind : u8 {
  Text,    ///< the inside of a string: printable ASCII without escapes
  Integer, ///< a number without fraction and exponent that fits in 64 bits
  Real,    ///< a number that fits in a double
  Strings, ///< a whole object that holds strings only; nothing in it is kept
};

/// A hole in an example: where, counted from the example's first byte.
struct Hole {
  HoleKind kind = HoleKind::Text;
  u64 offset = 0;
  u64 size = 0;
};

/// What a text has in a form's hole. Holes of kind Strings have none.
struct Filling {
  union {
    const char *s;
    i64 i = 0;
    double f;
  };
  u32 size = 0; ///< of a Text
  std::string_view text() const { return {s, size}; }
};

class Form {
public:
  /// Bytes behind a text's end that a match may read.
  static constexpr size_t kPadding = 64;
  static constexpr size_t kMaxHoles = 64;

  /// `example` must be well-formed JSON, `holes` ascending. nullopt when the example itself would
  /// not match, or has too many holes.
  static std::optional<Form> of(std::string_view example, std::span<const Hole> holes);

  /// Compares the text from `p` on; `fillings` takes kMaxHoles. The place behind the record, or
  /// null when it differs or reaches behind `end`.
  const char *match(const char *p, const char *end, Filling *fillings) const;

  /// The bytes before the first hole.
  std::string_view head() const { return {literals_.data(), parts_[0].size}; }

private:
  struct Part {
    u32 offset = 0, size = 0; ///< of the literal, in literals_
    bool last = false;        ///< no hole behind it
    HoleKind hole = HoleKind::Text;
  };
  std::string literals_; // with kPadding bytes more, so that both sides compare in whole vectors
  std::vector<Part> parts_;
};

/// Forms of one kind of record. Records come in sequences that repeat too, so the form that came
/// after the last one the time before is tried first.
class FormTable {
public:
  static constexpr u32 kNone = ~u32{0};
  /// Records of the kind have at least `prefix` bytes before what differs first in their forms.
  explicit FormTable(size_t prefix) : prefix_(prefix) {}

  /// The form that matches at `p`, or kNone. `p` may move to the place behind the record.
  u32 match(const char *&p, const char *end, Filling *fillings);
  /// Adds a form; kNone when it can not be told apart by its head, or the table is full.
  u32 add(Form form);

  const Form &operator[](u32 form) const { return forms_[form]; }
  /// Whether decoding records only to learn their forms still pays.
  bool learns() const { return misses_ < 256 || hits_ > misses_; }
  void count_miss() { ++misses_; }
  size_t size() const { return forms_.size(); }

private:
  static constexpr size_t kMaxForms = 2048;
  static constexpr size_t kMaxTries = 64; // forms of one head

  u64 key(const char *p) const;

  size_t prefix_;
  std::deque<Form> forms_;
  std::vector<u32> follower_;                                // by form: what came next
  boost::unordered_flat_map<u64, std::vector<u32>> by_head_; // latest first
  u32 last_ = kNone;
  u64 hits_ = 0, misses_ = 0;
};

/// Behind an object at `p` that holds strings only and is spaced as Python writes it; null for
/// anything else. All of it is printable ASCII.
const char *skip_strings(const char *p, const char *end);

} // namespace chute::pt2
