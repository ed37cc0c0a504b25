#pragma once

#include "support/ints.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chute::pt2 {

/// Finds where the members of JSON containers begin and end, without decoding them: 64 bytes at a
/// time by masks of quotes and brackets. This is what cuts a document into pieces that a real
/// parser then takes one by one, so no piece nears the parser's 4 GiB limit, and pieces can go to
/// several threads.
///
/// Structure outside of the members that are looked at is checked only as far as the scan needs:
/// brackets and quotes must pair up. Decoding a member finds everything else.

/// A piece of text: offset from the start of the scanned document and length.
struct Extent {
  u64 offset = 0;
  u64 size = 0;
};

/// A member of a JSON object; `key` is the text between the quotes, escapes untouched.
struct Member {
  std::string_view key;
  Extent value;
};

/// Why a scan failed and where.
struct ScanError {
  u64 offset = 0;
  const char *message = nullptr;
};

/// The elements of the array that starts at `offset` (a `[`), and the offset behind it in `end`.
/// nullopt on malformed text.
std::optional<std::vector<Extent>> scan_array(std::string_view document, u64 offset,
                                              ScanError &error, u64 *end = nullptr);
/// The members of the object that starts at `offset` (a `{`).
std::optional<std::vector<Member>> scan_object(std::string_view document, u64 offset,
                                               ScanError &error, u64 *end = nullptr);

/// Offset of the first character from `offset` that is not white space; may be document.size().
u64 skip_space(std::string_view document, u64 offset);
/// Offset behind the value that starts at `offset`.
std::optional<u64> skip_value(std::string_view document, u64 offset, ScanError &error);
/// Reads `"key":` at `offset`; `value` becomes the offset of the value.
bool scan_key(std::string_view document, u64 offset, std::string_view &key, u64 &value,
              ScanError &error);

/// Goes through the object at `offset` without looking into its values: `member(key, value_offset)`
/// consumes the value itself and returns the offset behind it (nullopt: stop). So nested containers
/// are scanned once.
template <class F>
std::optional<u64> walk_object(std::string_view document, u64 offset, ScanError &error,
                               F &&member) {
  if (offset >= document.size() || document[offset] != '{') {
    error = {offset, "an object was expected"};
    return std::nullopt;
  }
  offset = skip_space(document, offset + 1);
  if (offset < document.size() && document[offset] == '}')
    return offset + 1;
  for (;;) {
    std::string_view key;
    u64 value = 0;
    if (!scan_key(document, offset, key, value, error))
      return std::nullopt;
    const std::optional<u64> end = member(key, value);
    if (!end)
      return std::nullopt;
    offset = skip_space(document, *end);
    if (offset < document.size() && document[offset] == '}')
      return offset + 1;
    if (offset >= document.size() || document[offset] != ',') {
      error = {offset, "a comma or the end of the object was expected"};
      return std::nullopt;
    }
    offset = skip_space(document, offset + 1);
  }
}

/// The same for the array at `offset`: `element(offset)` consumes an element.
template <class F>
std::optional<u64> walk_array(std::string_view document, u64 offset, ScanError &error,
                              F &&element) {
  if (offset >= document.size() || document[offset] != '[') {
    error = {offset, "an array was expected"};
    return std::nullopt;
  }
  offset = skip_space(document, offset + 1);
  if (offset < document.size() && document[offset] == ']')
    return offset + 1;
  for (;;) {
    const std::optional<u64> end = element(offset);
    if (!end)
      return std::nullopt;
    offset = skip_space(document, *end);
    if (offset < document.size() && document[offset] == ']')
      return offset + 1;
    if (offset >= document.size() || document[offset] != ',') {
      error = {offset, "a comma or the end of the array was expected"};
      return std::nullopt;
    }
    offset = skip_space(document, offset + 1);
  }
}

/// The text of a JSON string's inside with escapes resolved. nullopt when an escape is malformed.
/// Unpaired surrogates become U+FFFD.
std::optional<std::string> unescape(std::string_view inside);

} // namespace chute::pt2
