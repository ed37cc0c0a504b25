#include "pt2/json_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace chute::pt2 {

namespace {

/// One bit per byte of a 64-byte block.
struct Masks {
  u64 quote, backslash, open, close, comma;
};

#if defined(__SSE2__)
u64 equal64(const __m128i (&v)[4], char c) {
  const __m128i wanted = _mm_set1_epi8(c);
  u64 out = 0;
  for (unsigned i = 0; i < 4; ++i)
    out |= static_cast<u64>(static_cast<u32>(_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], wanted))))
           << (16 * i);
  return out;
}

Masks classify(const char *p) {
  __m128i v[4], folded[4];
  const __m128i fold = _mm_set1_epi8(0x20);
  for (unsigned i = 0; i < 4; ++i) {
    v[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p) + i);
    folded[i] = _mm_or_si128(v[i], fold); // '[' becomes '{', ']' becomes '}'
  }
  return {equal64(v, '"'), equal64(v, '\\'), equal64(folded, '{'), equal64(folded, '}'),
          equal64(v, ',')};
}
#else
Masks classify(const char *p) {
  Masks m{};
  for (unsigned i = 0; i < 64; ++i) {
    const u64 bit = u64{1} << i;
    switch (p[i]) {
    case '"': m.quote |= bit; break;
    case '\\': m.backslash |= bit; break;
    case '{':
    case '[': m.open |= bit; break;
    case '}':
    case ']': m.close |= bit; break;
    case ',': m.comma |= bit; break;
    default: break;
    }
  }
  return m;
}
#endif

/// Bits from each odd set bit up to before the next one: the insides of quoted stretches.
u64 prefix_xor(u64 x) {
  for (unsigned shift = 1; shift < 64; shift *= 2)
    x ^= x << shift;
  return x;
}

/// Calls `member(begin, end)` for each stretch between the container's brackets and its own commas,
/// in order. Returns the offset behind the closing bracket, or nullopt with `error` set.
template <class Emit>
std::optional<u64> scan_container(std::string_view doc, u64 offset, ScanError &error, Emit &&emit) {
  u64 depth = 0;
  u64 begin = offset + 1;
  bool escape_carry = false; // the byte before this block escapes its first byte
  u64 string_carry = 0;      // all ones inside a string
  char tail[64];
  for (u64 at = offset; at < doc.size(); at += 64) {
    const char *block = doc.data() + at;
    if (doc.size() - at < 64) {
      std::memset(tail, ' ', sizeof(tail));
      std::memcpy(tail, block, doc.size() - at);
      block = tail;
    }
    Masks m = classify(block);
    if (m.backslash || escape_carry) {
      u64 escaped = escape_carry;
      escape_carry = false;
      for (u64 left = m.backslash & ~escaped; left;) {
        const int i = std::countr_zero(left);
        left &= left - 1;
        if (i == 63) {
          escape_carry = true;
          break;
        }
        escaped |= u64{2} << i;
        left &= ~(u64{2} << i);
      }
      m.quote &= ~escaped;
    }
    const u64 in_string = prefix_xor(m.quote) ^ string_carry;
    string_carry = static_cast<u64>(static_cast<i64>(in_string) >> 63);
    m.open &= ~in_string;
    m.close &= ~in_string;
    const auto closes = static_cast<u64>(std::popcount(m.close));
    if (depth > closes + 1) { // nothing in this block can be at the container's own level
      depth += static_cast<u64>(std::popcount(m.open)) - closes;
      continue;
    }
    for (u64 events = m.open | m.close | (m.comma & ~in_string); events; events &= events - 1) {
      const u64 bit = events & (~events + 1);
      const u64 position = at + static_cast<u64>(std::countr_zero(events));
      if (m.open & bit) {
        ++depth;
      } else if (m.close & bit) {
        if (--depth > 0)
          continue;
        // `{` and `[` fold into one mask; that the outer pair matches is checked here, the inner
        // ones when the members are decoded.
        if (doc[position] != doc[offset] + 2) {
          error = {position, "brackets do not match"};
          return std::nullopt;
        }
        if (!emit(begin, position, true))
          return std::nullopt;
        return position + 1;
      } else if (depth == 1) {
        if (!emit(begin, position, false))
          return std::nullopt;
        begin = position + 1;
      }
    }
  }
  error = {doc.size(), "the text ends inside of a container or string"};
  return std::nullopt;
}

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// Cuts white space off both ends.
Extent trimmed(std::string_view doc, u64 begin, u64 end) {
  while (begin < end && is_space(doc[begin]))
    ++begin;
  while (end > begin && is_space(doc[end - 1]))
    --end;
  return {begin, end - begin};
}

bool starts_with(std::string_view doc, u64 offset, char c, ScanError &error, const char *message) {
  if (offset < doc.size() && doc[offset] == c)
    return true;
  error = {offset, message};
  return false;
}

} // namespace

u64 skip_space(std::string_view document, u64 offset) {
  while (offset < document.size() && is_space(document[offset]))
    ++offset;
  return offset;
}

std::optional<u64> skip_value(std::string_view document, u64 offset, ScanError &error) {
  if (offset >= document.size()) {
    error = {offset, "a value was expected"};
    return std::nullopt;
  }
  if (document[offset] == '{' || document[offset] == '[')
    return scan_container(document, offset, error, [](u64, u64, bool) { return true; });
  u64 at = offset;
  if (document[at] == '"') {
    for (++at; at < document.size() && document[at] != '"'; ++at)
      if (document[at] == '\\')
        ++at;
    if (at < document.size())
      return at + 1;
    error = {offset, "a string is not closed"};
    return std::nullopt;
  }
  while (at < document.size() && document[at] != ',' && document[at] != '}' &&
         document[at] != ']' && !is_space(document[at]))
    ++at;
  if (at > offset)
    return at;
  error = {offset, "a value was expected"};
  return std::nullopt;
}

bool scan_key(std::string_view document, u64 offset, std::string_view &key, u64 &value,
              ScanError &error) {
  if (!starts_with(document, offset, '"', error, "a key was expected"))
    return false;
  u64 quote = offset + 1;
  while (quote < document.size() && document[quote] != '"')
    quote += document[quote] == '\\' ? 2 : 1;
  const u64 colon = skip_space(document, quote + 1);
  if (!starts_with(document, colon, ':', error, "a key without a value"))
    return false;
  value = skip_space(document, colon + 1);
  if (value >= document.size()) {
    error = {colon, "a key without a value"};
    return false;
  }
  key = document.substr(offset + 1, quote - offset - 1);
  return true;
}

std::optional<std::vector<Extent>> scan_array(std::string_view document, u64 offset,
                                              ScanError &error, u64 *after) {
  if (!starts_with(document, offset, '[', error, "an array was expected"))
    return std::nullopt;
  std::vector<Extent> out;
  const auto end = scan_container(document, offset, error, [&](u64 begin, u64 end, bool last) {
    const Extent e = trimmed(document, begin, end);
    if (e.size == 0) {
      if (last && out.empty())
        return true;
      error = {e.offset, "an array element is missing"};
      return false;
    }
    out.push_back(e);
    return true;
  });
  if (!end)
    return std::nullopt;
  if (after)
    *after = *end;
  return out;
}

std::optional<std::vector<Member>> scan_object(std::string_view document, u64 offset,
                                               ScanError &error, u64 *after) {
  if (!starts_with(document, offset, '{', error, "an object was expected"))
    return std::nullopt;
  std::vector<Member> out;
  const auto end = scan_container(document, offset, error, [&](u64 begin, u64 end, bool last) {
    const Extent e = trimmed(document, begin, end);
    if (e.size == 0) {
      if (last && out.empty())
        return true;
      error = {e.offset, "an object member is missing"};
      return false;
    }
    const u64 stop = e.offset + e.size;
    Member m;
    if (!scan_key(document.substr(0, stop), e.offset, m.key, m.value.offset, error))
      return false;
    m.value.size = stop - m.value.offset;
    out.push_back(m);
    return true;
  });
  if (!end)
    return std::nullopt;
  if (after)
    *after = *end;
  return out;
}

namespace {

void append_utf8(std::string &out, u32 c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

/// Four hexadecimal digits at `i`, or -1.
i32 hex4(std::string_view s, size_t i) {
  if (s.size() < i + 4)
    return -1;
  i32 v = 0;
  for (const char c : s.substr(i, 4)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0)
      return -1;
    v = v * 16 + digit;
  }
  return v;
}

} // namespace

std::optional<std::string> unescape(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\') {
      out += s[i];
      continue;
    }
    if (++i == s.size())
      return std::nullopt;
    switch (s[i]) {
    case '"':
    case '\\':
    case '/': out += s[i]; break;
    case 'b': out += '\b'; break;
    case 'f': out += '\f'; break;
    case 'n': out += '\n'; break;
    case 'r': out += '\r'; break;
    case 't': out += '\t'; break;
    case 'u': {
      const i32 unit = hex4(s, i + 1);
      if (unit < 0)
        return std::nullopt;
      i += 4;
      auto c = static_cast<u32>(unit);
      if (c >= 0xD800 && c < 0xDC00 && s.substr(i + 1, 2) == "\\u") {
        const i32 low = hex4(s, i + 3);
        if (low >= 0xDC00 && low < 0xE000) {
          c = 0x10000 + ((c - 0xD800) << 10) + static_cast<u32>(low - 0xDC00);
          i += 6;
        }
      }
      append_utf8(out, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
      break;
    }
    default: return std::nullopt;
    }
  }
  return out;
}

} // namespace chute::pt2
