#include "toolkit/pattern.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace chute::toolkit {

namespace {

using Set = std::bitset<256>;

constexpr size_t kMostSteps = 20'000;
constexpr int kDeepest = 100;

bool is_word(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// \d \w \s and their complements.
bool class_escape(char c, Set &out) {
  Set set;
  for (unsigned i = 0; i < 256; ++i) {
    const auto ch = static_cast<unsigned char>(i);
    switch (c | 0x20) {
    case 'd': set[i] = ch >= '0' && ch <= '9'; break;
    case 'w': set[i] = is_word(ch); break;
    case 's': set[i] = ch == ' ' || (ch >= '\t' && ch <= '\r'); break;
    default: return false;
    }
  }
  out |= (c & 0x20) ? set : ~set;
  return true;
}

char plain_escape(char c) {
  switch (c) {
  case 'n': return '\n';
  case 't': return '\t';
  case 'r': return '\r';
  case 'f': return '\f';
  case 'v': return '\v';
  case '0': return '\0';
  default: return c;
  }
}

} // namespace

/// Translates a pattern to steps; nested groups are bounded, so that recursion is, too.
class PatternParser {
public:
  PatternParser(std::string_view text, Pattern &out) : text_(text), out_(out) {}

  Status regex() {
    if (text_.find_first_of("\\.[](){}*+?|^$") == std::string_view::npos) {
      out_.literal_ = std::string(text_);
      out_.is_literal_ = true;
      return {};
    }
    const Status status = alternatives(0);
    if (!status)
      return status;
    if (at_ < text_.size())
      return fault("')' without '('");
    return finish();
  }

  Status glob() {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      Set set;
      if (c == '*') {
        const u32 split = add(Kind::Split);
        add(Kind::Set, new_set(~Set()));
        add(Kind::Jump, split);
        out_.steps_[split].to = split + 1;
        out_.steps_[split].other = here();
        continue;
      }
      if (c == '?')
        set.set();
      else if (c == '[') {
        if (const Status s = bracket(set, '!'); !s)
          return s;
      } else
        set.set(static_cast<unsigned char>(c));
      add(Kind::Set, new_set(set));
    }
    return finish();
  }

private:
  using Kind = Pattern::Kind;

  Status fault(std::string why) const {
    return fail(ErrorKind::Usage, "toolkit.pattern",
                "the pattern '" + std::string(text_) + "' is wrong at character " +
                    std::to_string(at_) + ": " + why,
                {}, "quote special characters with a backslash");
  }
  Status finish() {
    add(Kind::Match);
    return out_.steps_.size() <= kMostSteps ? Status{} : fault("it is too large");
  }
  u32 here() const { return static_cast<u32>(out_.steps_.size()); }
  u32 add(Kind kind, u32 to = 0) {
    out_.steps_.push_back({kind, to, 0});
    return here() - 1;
  }
  u32 new_set(const Set &set) {
    out_.sets_.push_back(set);
    return static_cast<u32>(out_.sets_.size() - 1);
  }
  bool more() const { return at_ < text_.size(); }

  /// Puts one step in front of those from `start` on. Targets inside the moved part move along.
  void insert_before(u32 start, Kind kind) {
    out_.steps_.insert(out_.steps_.begin() + start, {kind, 0, 0});
    for (u32 i = start + 1; i < here(); ++i) {
      Pattern::Step &s = out_.steps_[i];
      if (s.kind != Kind::Split && s.kind != Kind::Jump)
        continue;
      s.to += s.to >= start;
      s.other += s.kind == Kind::Split && s.other >= start;
    }
  }

  Status alternatives(int depth) {
    if (depth > kDeepest)
      return fault("groups are nested too deeply");
    const u32 start = here();
    std::vector<u32> ends;
    u32 branch = start;
    while (true) {
      if (const Status s = sequence(depth); !s)
        return s;
      if (!more() || text_[at_] != '|')
        break;
      ++at_;
      insert_before(branch, Kind::Split);
      for (u32 &e : ends)
        e += e >= branch;
      ends.push_back(add(Kind::Jump));
      out_.steps_[branch].to = branch + 1;
      out_.steps_[branch].other = here();
      branch = here();
    }
    for (u32 e : ends)
      out_.steps_[e].to = here();
    return {};
  }

  Status sequence(int depth) {
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      const u32 start = here();
      bool repeatable = true;
      if (const Status s = atom(depth, repeatable); !s)
        return s;
      bool first = true;
      while (more() && is_quantifier()) {
        if (!repeatable || !first)
          return fault("nothing to repeat");
        if (const Status s = repeat(start); !s)
          return s;
        first = false;
        if (more() && text_[at_] == '?') // lazy: whether there is a match stays the same
          ++at_;
      }
    }
    return {};
  }

  bool is_quantifier() const {
    const char c = text_[at_];
    return c == '*' || c == '+' || c == '?' ||
           (c == '{' && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9');
  }

  Status repeat(u32 start) {
    const char c = text_[at_++];
    u32 low = c == '+', high = c == '?' ? 1 : std::numeric_limits<u32>::max();
    if (c == '{') {
      const auto number = [&](u32 &value) {
        u64 n = 0;
        bool any = false;
        while (more() && text_[at_] >= '0' && text_[at_] <= '9') {
          n = std::min<u64>(n * 10 + static_cast<u64>(text_[at_++] - '0'), kMostSteps);
          any = true;
        }
        if (any)
          value = static_cast<u32>(n);
      };
      number(low);
      high = low;
      if (more() && text_[at_] == ',') {
        ++at_;
        high = std::numeric_limits<u32>::max();
        number(high);
      }
      if (!more() || text_[at_] != '}')
        return fault("'{' without '}'");
      ++at_;
      if (high < low)
        return fault("the repetition's bounds are in the wrong order");
    }
    const std::vector<Pattern::Step> body(out_.steps_.begin() + start, out_.steps_.end());
    const bool open = high == std::numeric_limits<u32>::max();
    if ((static_cast<u64>(open ? low + 1 : high) + 1) * (body.size() + 2) > kMostSteps)
      return fault("the repetition is too large");
    out_.steps_.resize(start);
    const auto copy = [&] {
      const u32 to = here();
      for (Pattern::Step s : body) {
        if (s.kind == Kind::Split || s.kind == Kind::Jump)
          s.to = s.to - start + to;
        if (s.kind == Kind::Split)
          s.other = s.other - start + to;
        out_.steps_.push_back(s);
      }
    };
    for (u32 i = 0; i < low; ++i)
      copy();
    if (open) {
      const u32 split = add(Kind::Split);
      copy();
      add(Kind::Jump, split);
      out_.steps_[split].to = split + 1;
      out_.steps_[split].other = here();
      return {};
    }
    std::vector<u32> splits;
    for (u32 i = low; i < high; ++i) {
      splits.push_back(add(Kind::Split, here() + 1));
      copy();
    }
    for (u32 s : splits)
      out_.steps_[s].other = here();
    return {};
  }

  Status atom(int depth, bool &repeatable) {
    const char c = text_[at_++];
    Set set;
    switch (c) {
    case '^':
      repeatable = false;
      add(Kind::Begin);
      return {};
    case '$':
      repeatable = false;
      add(Kind::End);
      return {};
    case '(': {
      if (more() && text_[at_] == '?') {
        if (text_.substr(at_, 2) != "?:")
          return fault("look-around, named groups and flags are not known here");
        at_ += 2;
      }
      if (const Status s = alternatives(depth + 1); !s)
        return s;
      if (!more() || text_[at_] != ')')
        return fault("'(' without ')'");
      ++at_;
      return {};
    }
    case '*':
    case '+':
    case '?': return fault("nothing to repeat");
    case '[':
      if (const Status s = bracket(set, '^'); !s)
        return s;
      break;
    case '.':
      set.set();
      set.reset('\n');
      break;
    case '\\': {
      if (!more())
        return fault("a backslash at the end");
      const char e = text_[at_++];
      if (e == 'A' || e == 'Z' || e == 'b' || e == 'B') {
        repeatable = false;
        add(e == 'A'   ? Kind::Begin
            : e == 'Z' ? Kind::End
            : e == 'b' ? Kind::Boundary
                       : Kind::NoBoundary);
        return {};
      }
      if (e >= '1' && e <= '9')
        return fault("back references are not known here");
      if (!class_escape(e, set))
        set.set(static_cast<unsigned char>(plain_escape(e)));
      break;
    }
    default: set.set(static_cast<unsigned char>(c));
    }
    add(Kind::Set, new_set(set));
    return {};
  }

  /// After the opening bracket.
  Status bracket(Set &out, char negation) {
    const bool negated = more() && text_[at_] == negation;
    at_ += negated;
    Set set;
    for (bool first = true;; first = false) {
      if (!more())
        return fault("'[' without ']'");
      if (text_[at_] == ']' && !first)
        break;
      char low = text_[at_++];
      if (low == '\\' && more()) {
        const char e = text_[at_++];
        if (class_escape(e, set))
          continue;
        low = plain_escape(e);
      }
      char high = low;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        high = text_[++at_];
        ++at_;
        if (high == '\\' && more())
          high = plain_escape(text_[at_++]);
      }
      if (static_cast<unsigned char>(high) < static_cast<unsigned char>(low))
        return fault("a range in the wrong order");
      for (unsigned i = static_cast<unsigned char>(low); i <= static_cast<unsigned char>(high); ++i)
        set.set(i);
    }
    ++at_;
    out |= negated ? ~set : set;
    return {};
  }

  std::string_view text_;
  Pattern &out_;
  size_t at_ = 0;
};

Result<Pattern> Pattern::regex(std::string_view text) {
  Pattern out;
  if (Status s = PatternParser(text, out).regex(); !s)
    return tl::unexpected(std::move(s.error()));
  return out;
}

Result<Pattern> Pattern::glob(std::string_view text) {
  Pattern out;
  if (Status s = PatternParser(text, out).glob(); !s)
    return tl::unexpected(std::move(s.error()));
  return out;
}

/// All ways through the pattern at once, one character after the other.
bool Pattern::run(std::string_view text, bool whole) const {
  if (is_literal_)
    return whole ? text == literal_ : text.find(literal_) != std::string_view::npos;
  thread_local std::vector<u32> current, next, stack, seen;
  thread_local u32 mark = 0;
  if (seen.size() < steps_.size() || mark > std::numeric_limits<u32>::max() - 4) {
    seen.assign(std::max(seen.size(), steps_.size()), 0);
    mark = 0;
  }
  current.clear();
  bool found = false;
  const auto enter = [&](u32 start, size_t at, std::vector<u32> &into) {
    stack.assign(1, start);
    while (!stack.empty()) {
      const u32 i = stack.back();
      stack.pop_back();
      if (seen[i] == mark)
        continue;
      seen[i] = mark;
      const Step &s = steps_[i];
      const auto boundary = [&] {
        const bool before = at > 0 && is_word(static_cast<unsigned char>(text[at - 1]));
        const bool after = at < text.size() && is_word(static_cast<unsigned char>(text[at]));
        return before != after;
      };
      switch (s.kind) {
      case Kind::Set: into.push_back(i); break;
      case Kind::Split:
        stack.push_back(s.other);
        stack.push_back(s.to);
        break;
      case Kind::Jump: stack.push_back(s.to); break;
      case Kind::Begin:
        if (at == 0)
          stack.push_back(i + 1);
        break;
      case Kind::End:
        if (at == text.size())
          stack.push_back(i + 1);
        break;
      case Kind::Boundary:
        if (boundary())
          stack.push_back(i + 1);
        break;
      case Kind::NoBoundary:
        if (!boundary())
          stack.push_back(i + 1);
        break;
      case Kind::Match: found = found || !whole || at == text.size(); break;
      }
    }
  };
  ++mark;
  enter(0, 0, current);
  for (size_t at = 0; at < text.size() && !found; ++at) {
    next.clear();
    ++mark;
    for (u32 i : current)
      if (sets_[steps_[i].to][static_cast<unsigned char>(text[at])])
        enter(i + 1, at + 1, next);
    if (!whole)
      enter(0, at + 1, next);
    std::swap(current, next);
    if (current.empty() && whole)
      break;
  }
  return found;
}

} // namespace chute::toolkit
