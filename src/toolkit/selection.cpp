#include "toolkit/selection.h"

#include "ir/walk.h"
#include "toolkit/pattern.h"

#include <algorithm>

namespace chute::toolkit {

namespace {

using ir::Op;
using ir::Value;

tl::unexpected<Diagnostic> usage(std::string code, std::string message, std::string hint) {
  return fail(ErrorKind::Usage, std::move(code), std::move(message), {}, std::move(hint));
}

/// A name, a glob or a regular expression.
class NameMatcher {
public:
  static Result<NameMatcher> make(const std::string &text, const Selection &s) {
    NameMatcher out;
    out.text_ = text;
    out.plain_ = !s.regex && text.find_first_of("*?[") == std::string::npos;
    out.search_ = s.regex && !s.full_match;
    if (out.plain_)
      return out;
    auto p = s.regex ? Pattern::regex(text) : Pattern::glob(text);
    if (!p)
      return tl::unexpected(std::move(p.error()));
    out.pattern_ = std::move(*p);
    return out;
  }
  bool operator()(std::string_view name) const {
    if (plain_)
      return name == text_;
    return search_ ? pattern_.search(name) : pattern_.matches(name);
  }
  bool plain() const { return plain_; }
  const std::string &text() const { return text_; }

private:
  std::string text_;
  Pattern pattern_;
  bool plain_ = true;
  bool search_ = false;
};

Result<std::vector<NameMatcher>> matchers(const std::vector<std::string> &texts,
                                          const Selection &s) {
  std::vector<NameMatcher> out;
  for (const std::string &t : texts) {
    auto m = NameMatcher::make(t, s);
    if (!m)
      return tl::unexpected(std::move(m.error()));
    out.push_back(std::move(*m));
  }
  return out;
}

/// "3,5-9,12:20" as flags.
Status parse_ranges(std::string_view text, std::vector<u8> &flags) {
  const auto wrong = [&](const std::string &why) {
    return usage("toolkit.select.ops", "the operator range '" + std::string(text) + "' " + why,
                 "write positions and ranges such as 3,5-9,12:20; `chute inspect` counts the "
                 "operators");
  };
  std::string packed;
  for (char c : text)
    if (c != ' ' && c != '\t')
      packed += c;
  size_t at = 0;
  const auto number = [&](u64 &value) {
    const size_t start = at;
    value = 0;
    while (at < packed.size() && packed[at] >= '0' && packed[at] <= '9')
      value = std::min<u64>(value * 10 + static_cast<u64>(packed[at++] - '0'), u64{1} << 40);
    return at > start;
  };
  bool any = false;
  while (at < packed.size()) {
    if (packed[at] == ',') {
      ++at;
      continue;
    }
    u64 first = 0, last = 0;
    if (!number(first))
      return wrong("is not a list of numbers");
    last = first;
    if (at < packed.size() && (packed[at] == '-' || packed[at] == ':')) {
      ++at;
      if (!number(last))
        return wrong("has a range without an end");
    }
    if (at < packed.size() && packed[at] != ',')
      return wrong("is not a list of numbers");
    if (first > last)
      return wrong("has a range that starts behind its end (" + std::to_string(first) + " > " +
                   std::to_string(last) + ")");
    if (last >= flags.size())
      return wrong("reaches operator " + std::to_string(last) + ", but the program has " +
                   std::to_string(flags.size()));
    std::fill(flags.begin() + static_cast<i64>(first), flags.begin() + static_cast<i64>(last) + 1,
              u8{1});
    any = true;
  }
  return any ? Status{} : wrong("holds no number");
}

bool inside_module(std::string_view name, std::string_view module) {
  if (!name.starts_with(module))
    return false;
  return name.size() == module.size() ||
         std::string_view("./:;_").find(name[module.size()]) != std::string_view::npos;
}

class Selector {
public:
  Selector(const ir::Graph &graph, const std::vector<Op *> &ops, const Selection &selection,
           WorkCounters &work)
      : graph_(graph), ops_(ops), selection_(selection), work_(work) {}

  Result<std::vector<u8>> run() {
    if (selection_.empty())
      return usage("toolkit.select.none", "nothing says which operators to keep",
                   "give --ops, --names, --module, --from or --to");
    std::vector<u8> flags(ops_.size(), 0);
    if (!selection_.ops.empty())
      if (Status s = parse_ranges(selection_.ops, flags); !s)
        return tl::unexpected(std::move(s.error()));
    if (Status s = by_name(flags); !s)
      return tl::unexpected(std::move(s.error()));
    if (Status s = by_module(flags); !s)
      return tl::unexpected(std::move(s.error()));
    if (!selection_.from.empty() || !selection_.to.empty()) {
      const bool whole =
          selection_.ops.empty() && selection_.names.empty() && selection_.modules.empty();
      auto between = region();
      if (!between)
        return tl::unexpected(std::move(between.error()));
      for (size_t i = 0; i < flags.size(); ++i)
        flags[i] = static_cast<u8>((whole || flags[i]) && (*between)[i]);
    }
    if (std::find(flags.begin(), flags.end(), 1) == flags.end())
      return usage("toolkit.select.empty",
                   selection_.from.empty() && selection_.to.empty()
                       ? "the selection holds no operator"
                       : "no operator lies on a path between the given tensors",
                   "check the direction: --from names tensors nearer to the inputs");
    return flags;
  }

private:
  std::string_view name_of(const Value &v) const { return graph_.context().string(v.name()); }

  Status unmatched(std::string_view what, const std::vector<NameMatcher> &list,
                   const std::vector<u64> &hits) const {
    std::string texts;
    for (size_t i = 0; i < list.size(); ++i)
      if (hits[i] == 0)
        texts += (texts.empty() ? "'" : ", '") + list[i].text() + "'";
    if (texts.empty())
      return {};
    return usage("toolkit.select.unmatched", "no " + std::string(what) + " matches " + texts,
                 "`chute inspect MODEL --ir` shows the names");
  }

  Status by_name(std::vector<u8> &flags) {
    auto list = matchers(selection_.names, selection_);
    if (!list)
      return tl::unexpected(std::move(list.error()));
    std::vector<u64> hits(list->size(), 0);
    for (size_t i = 0; !list->empty() && i < ops_.size(); ++i)
      for (const Value &v : ops_[i]->results())
        for (size_t k = 0; k < list->size(); ++k)
          if ((*list)[k](name_of(v))) {
            ++hits[k];
            flags[i] = 1;
          }
    return unmatched("operator", *list, hits);
  }

  Status by_module(std::vector<u8> &flags) {
    if (selection_.modules.empty())
      return {};
    std::vector<u64> hits(selection_.modules.size(), 0);
    for (size_t i = 0; i < ops_.size(); ++i) {
      ++work_.ops_visited;
      const std::string path = graph_.locations().resolve(ops_[i]->loc()).module_path;
      for (size_t k = 0; k < selection_.modules.size(); ++k) {
        bool hit = !path.empty() && inside_module(path, selection_.modules[k]);
        if (path.empty())
          for (const Value &v : ops_[i]->results())
            hit = hit || inside_module(name_of(v), selection_.modules[k]);
        if (hit) {
          ++hits[k];
          flags[i] = 1;
        }
      }
    }
    for (size_t k = 0; k < hits.size(); ++k)
      if (hits[k] == 0)
        return usage("toolkit.select.unmatched",
                     "no operator comes from module '" + selection_.modules[k] + "'",
                     "modules are prefixes of names up to a separator; `chute inspect MODEL --ir` "
                     "shows them");
    return {};
  }

  /// Values that match, arguments and results of the body; every pattern has to match something.
  Result<std::vector<const Value *>> tensors(const std::vector<std::string> &texts) {
    auto list = matchers(texts, selection_);
    if (!list)
      return tl::unexpected(std::move(list.error()));
    std::vector<u64> hits(list->size(), 0);
    std::vector<const Value *> out;
    const auto consider = [&](std::string_view name) {
      bool hit = false;
      for (size_t k = 0; k < list->size(); ++k)
        if ((*list)[k](name)) {
          ++hits[k];
          hit = true;
        }
      return hit;
    };
    for (const Value *a : graph_.body().args()) {
      bool hit = consider(name_of(*a));
      // The interface may know an argument under another name than its own.
      for (const ir::InputInfo &info : graph_.inputs())
        if (!hit && info.value == a && info.name != name_of(*a))
          hit = consider(info.name);
      if (hit)
        out.push_back(a);
    }
    for (const Op *op : ops_)
      for (const Value &v : op->results())
        if (consider(name_of(v)))
          out.push_back(&v);
    if (Status s = unmatched("tensor", *list, hits); !s)
      return tl::unexpected(std::move(s.error()));
    for (size_t k = 0; k < list->size(); ++k)
      if ((*list)[k].plain() && hits[k] > 1)
        return usage("toolkit.select.ambiguous",
                     std::to_string(hits[k]) + " tensors are called '" + (*list)[k].text() + "'",
                     "select by position with --ops, or by a pattern that means them all");
    return out;
  }

  Result<std::vector<u8>> region() {
    std::vector<u8> out(ops_.size(), 1);
    std::vector<u8> marked(graph_.num_value_ids(), 0);
    const auto operands = [&](const Op &op, auto &&visit) {
      for (const ir::Use &u : op.operand_uses())
        if (u.value())
          visit(*u.value());
      for (ir::Region *r : op.regions())
        ir::walk(*r, [&](const Op &inner) {
          for (const ir::Use &u : inner.operand_uses())
            if (u.value())
              visit(*u.value());
        });
    };
    if (!selection_.from.empty()) {
      auto from = tensors(selection_.from);
      if (!from)
        return tl::unexpected(std::move(from.error()));
      for (const Value *v : *from)
        marked[v->id()] = 1;
      for (size_t i = 0; i < ops_.size(); ++i) {
        bool reached = false;
        ++work_.ops_visited;
        operands(*ops_[i], [&](const Value &v) { reached = reached || marked[v.id()]; });
        out[i] = reached;
        if (reached)
          for (const Value &r : ops_[i]->results())
            marked[r.id()] = 1;
      }
    }
    if (!selection_.to.empty()) {
      auto to = tensors(selection_.to);
      if (!to)
        return tl::unexpected(std::move(to.error()));
      std::fill(marked.begin(), marked.end(), 0);
      for (const Value *v : *to)
        marked[v->id()] = 1;
      for (size_t i = ops_.size(); i-- > 0;) {
        bool needed = false;
        ++work_.ops_visited;
        for (const Value &r : ops_[i]->results())
          needed = needed || marked[r.id()];
        if (needed)
          operands(*ops_[i], [&](const Value &v) { marked[v.id()] = 1; });
        out[i] = static_cast<u8>(out[i] && needed);
      }
    }
    return out;
  }

  const ir::Graph &graph_;
  const std::vector<Op *> &ops_;
  const Selection &selection_;
  WorkCounters &work_;
};

} // namespace

Result<std::vector<u8>> select_ops(const ir::Graph &graph, const std::vector<Op *> &ops,
                                   const Selection &selection, WorkCounters &work) {
  return Selector(graph, ops, selection, work).run();
}

} // namespace chute::toolkit
