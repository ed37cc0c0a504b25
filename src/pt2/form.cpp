#include "pt2/form.h"

#include <bit>
#include <charconv>
#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace chute::pt2 {

namespace {

/// Whether `n` bytes are equal; both sides may be read up to 15 bytes further.
inline bool equal(const char *a, const char *b, size_t n) {
#if defined(__SSE2__)
  const auto mask = [&](size_t at) {
    return static_cast<u32>(_mm_movemask_epi8(
        _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(a + at)),
                       _mm_loadu_si128(reinterpret_cast<const __m128i *>(b + at)))));
  };
  size_t at = 0;
  for (; at + 16 <= n; at += 16)
    if (mask(at) != 0xFFFF)
      return false;
  const u32 wanted = (u32{1} << (n - at)) - 1;
  return (mask(at) & wanted) == wanted;
#else
  return std::memcmp(a, b, n) == 0;
#endif
}

/// Length of a string's inside: up to a quote, with nothing before it that needs a parser.
inline bool text_size(const char *p, const char *end, u32 &size) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'),
                space = _mm_set1_epi8(0x20);
  for (const char *at = p; at < end; at += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
    // Signed: bytes beyond ASCII are below a space as well.
    const __m128i special =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash)),
                     _mm_cmplt_epi8(v, space));
    if (const auto found = static_cast<u32>(_mm_movemask_epi8(special))) {
      const char *stop = at + std::countr_zero(found);
      size = static_cast<u32>(stop - p);
      return stop < end && *stop == '"';
    }
  }
  return false;
#else
  for (const char *at = p; at < end; ++at)
    if (*at == '"' || *at == '\\' || static_cast<signed char>(*at) < 0x20) {
      size = static_cast<u32>(at - p);
      return *at == '"';
    }
  return false;
#endif
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Behind a number's whole part as JSON allows it; null when there is none.
const char *skip_whole(const char *p) {
  p += *p == '-';
  if (!is_digit(*p))
    return nullptr;
  if (*p == '0')
    return p + 1;
  while (is_digit(*p))
    ++p;
  return p;
}

// The padding behind a text may go on with digits: numbers that reach `end` do not match.

const char *integer(const char *p, const char *end, i64 &out) {
  if (end - p < 32) // the longest is 20 characters
    return nullptr;
  const char *q = p + (*p == '-');
  if (!is_digit(*q) || (*q == '0' && is_digit(q[1])))
    return nullptr;
  u64 v = 0;
  const char *first = q;
  for (; is_digit(*q) && q - first < 18; ++q)
    v = v * 10 + static_cast<u64>(*q - '0');
  if (!is_digit(*q)) {
    out = *p == '-' ? -static_cast<i64>(v) : static_cast<i64>(v);
    return q;
  }
  const auto [behind, code] = std::from_chars(p, p + 24, out);
  return code == std::errc() ? behind : nullptr;
}

const char *real(const char *p, const char *end, double &out) {
  constexpr ptrdiff_t kLongest = 48; // Python writes 24 at most
  if (end - p < kLongest)
    return nullptr;
  const char *q = skip_whole(p);
  if (!q)
    return nullptr;
  const auto digits = [&] {
    const char *first = q;
    while (q - p < kLongest && is_digit(*q))
      ++q;
    return q > first;
  };
  if (*q == '.' && (++q, !digits()))
    return nullptr;
  if (*q == 'e' || *q == 'E') {
    ++q;
    q += *q == '+' || *q == '-';
    if (!digits())
      return nullptr;
  }
  if (q - p >= kLongest)
    return nullptr;
  const auto [behind, code] = std::from_chars(p, q, out);
  return code == std::errc() && behind == q ? q : nullptr;
}

/// Where in a text strings begin and end, 64 bytes at a time.
class Quotes {
public:
  Quotes(const char *p, const char *end) : next_block_(p), end_(end) {}

  /// The next quote without a backslash before it; null when there is none before the end.
  const char *next() {
    while (!quotes_) {
      if (next_block_ >= end_)
        return nullptr;
      load();
    }
    const char *at = block_ + std::countr_zero(quotes_);
    quotes_ &= quotes_ - 1;
    return at < end_ ? at : nullptr;
  }
  /// Whether all bytes so far, to the end of the last block, are printable ASCII.
  bool plain() const { return plain_; }

private:
  void load() {
    block_ = next_block_;
    next_block_ += 64;
    u64 backslashes = 0;
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'),
                  space = _mm_set1_epi8(0x20);
    __m128i special = _mm_setzero_si128();
    for (unsigned i = 0; i < 4; ++i) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i *>(block_) + i);
      special = _mm_or_si128(special, _mm_cmplt_epi8(v, space));
      quotes_ |= u64{static_cast<u32>(_mm_movemask_epi8(_mm_cmpeq_epi8(v, quote)))} << (16 * i);
      backslashes |= u64{static_cast<u32>(_mm_movemask_epi8(_mm_cmpeq_epi8(v, backslash)))}
                     << (16 * i);
    }
    plain_ &= _mm_movemask_epi8(special) == 0;
#else
    for (unsigned i = 0; i < 64; ++i) {
      quotes_ |= u64{block_[i] == '"'} << i;
      backslashes |= u64{block_[i] == '\\'} << i;
      plain_ &= static_cast<signed char>(block_[i]) >= 0x20;
    }
#endif
    if (!backslashes && !carry_)
      return;
    // A backslash escapes what follows unless it is escaped itself: every second one of a run that
    // starts at an even place, and of one at an odd place, found by where an addition ripples to.
    constexpr u64 kEven = 0x5555555555555555;
    backslashes &= ~carry_;
    const u64 follows = backslashes << 1 | carry_;
    const u64 odd_starts = backslashes & ~kEven & ~follows;
    u64 rippled = 0;
    carry_ = __builtin_add_overflow(odd_starts, backslashes, &rippled);
    quotes_ &= ~((kEven ^ (rippled << 1)) & follows);
  }

  const char *block_ = nullptr;
  const char *next_block_;
  const char *end_;
  u64 quotes_ = 0;
  u64 carry_ = 0; // 1: the byte before the next block escapes its first one
  bool plain_ = true;
};

} // namespace

const char *skip_strings(const char *p, const char *end) {
  if (end - p < 3 || p[0] != '{')
    return nullptr;
  if (p[1] == '}')
    return p + 2;
  if (p[1] != '"')
    return nullptr;
  Quotes quotes(p + 2, end);
  for (bool key = true;; key = !key) {
    const char *close = quotes.next();
    if (!close || end - close < 2)
      return nullptr;
    if (!key && close[1] == '}')
      return quotes.plain() ? close + 2 : nullptr;
    if (end - close < 4 || close[1] != (key ? ':' : ',') || close[2] != ' ' ||
        quotes.next() != close + 3)
      return nullptr;
  }
}

std::optional<Form> Form::of(std::string_view example, std::span<const Hole> holes) {
  if (holes.size() > kMaxHoles || example.size() > (u32{1} << 20))
    return std::nullopt;
  Form form;
  u64 at = 0;
  const auto add = [&](u64 to) -> Part & {
    const std::string_view literal = example.substr(at, to - at);
    Part &part = form.parts_.emplace_back();
    part.offset = static_cast<u32>(form.literals_.size());
    part.size = static_cast<u32>(literal.size());
    form.literals_ += literal;
    return part;
  };
  for (const Hole &h : holes) {
    if (h.offset < at || h.offset + h.size >= example.size())
      return std::nullopt;
    add(h.offset).hole = h.kind;
    at = h.offset + h.size;
  }
  add(example.size()).last = true;
  form.literals_.append(kPadding, '\0');
  // A hole ends where its kind does, which the text behind it must agree with.
  // Once for a number, which wants room before the end, and once for reading in whole vectors.
  std::string padded(example);
  padded.append(2 * kPadding, ' ');
  Filling fillings[kMaxHoles];
  const char *behind =
      form.match(padded.data(), padded.data() + example.size() + kPadding, fillings);
  if (behind != padded.data() + example.size())
    return std::nullopt;
  return form;
}

const char *Form::match(const char *p, const char *end, Filling *fillings) const {
  for (const Part &part : parts_) {
    if (end - p < static_cast<ptrdiff_t>(part.size) ||
        !equal(p, literals_.data() + part.offset, part.size))
      return nullptr;
    p += part.size;
    if (part.last)
      return p;
    switch (part.hole) {
    case HoleKind::Text:
      fillings->s = p;
      if (!text_size(p, end, fillings->size))
        return nullptr;
      p += fillings->size;
      ++fillings;
      break;
    case HoleKind::Integer:
      if (!(p = integer(p, end, fillings->i)))
        return nullptr;
      ++fillings;
      break;
    case HoleKind::Real:
      if (!(p = real(p, end, fillings->f)))
        return nullptr;
      ++fillings;
      break;
    case HoleKind::Strings:
      if (!(p = skip_strings(p, end)))
        return nullptr;
      break;
    }
  }
  return nullptr;
}

u64 FormTable::key(const char *p) const { return XXH3_64bits(p, prefix_); }

u32 FormTable::match(const char *&p, const char *end, Filling *fillings) {
  const auto found = [&](u32 form, const char *behind) {
    if (last_ != kNone)
      follower_[last_] = form;
    last_ = form;
    ++hits_;
    p = behind;
    return form;
  };
  const u32 guess = last_ == kNone ? kNone : follower_[last_];
  if (guess != kNone)
    if (const char *behind = forms_[guess].match(p, end, fillings))
      return found(guess, behind);
  if (end - p < static_cast<ptrdiff_t>(prefix_))
    return kNone;
  const auto it = by_head_.find(key(p));
  if (it == by_head_.end())
    return kNone;
  std::vector<u32> &forms = it->second;
  for (size_t i = 0; i < forms.size(); ++i)
    if (const char *behind =
            forms[i] == guess ? nullptr : forms_[forms[i]].match(p, end, fillings)) {
      const u32 form = forms[i];
      forms.erase(forms.begin() + static_cast<ptrdiff_t>(i));
      forms.insert(forms.begin(), form);
      return found(form, behind);
    }
  return kNone;
}

u32 FormTable::add(Form form) {
  if (form.head().size() < prefix_ || forms_.size() >= kMaxForms)
    return kNone;
  std::vector<u32> &same = by_head_[key(form.head().data())];
  if (same.size() >= kMaxTries)
    return kNone;
  const auto id = static_cast<u32>(forms_.size());
  same.insert(same.begin(), id);
  forms_.push_back(std::move(form));
  follower_.push_back(kNone);
  if (last_ != kNone)
    follower_[last_] = id;
  last_ = id;
  return id;
}

} // namespace chute::pt2
