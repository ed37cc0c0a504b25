// fix-sizes: symbols that stand for sizes become numbers, in every type and attribute.
//
//   %x: f32[s77,4]   with sizes=s77=2   →   %x: f32[2,4]
//
// Settings: `sizes`, what the user wants ("s77=2,s0=8"), and `size_hints`, of the same form, what
// the program's example inputs had, for symbols that `sizes` does not name. A note (`sizes.fixed`)
// tells what was taken from hints. Errors: `sizes.form`, `sizes.unknown` (no such symbol),
// `sizes.range` (outside of what the program allows). Expressions of a symbol without a number
// stay.
#include "ir/context.h"
#include "ir/sym_table.h"
#include "ir/walk.h"
#include "pass/pass.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>

namespace chute::pass {

namespace {

using ir::SymInt;

class Fixer {
public:
  explicit Fixer(PassContext &ctx) : ctx_(ctx), sym_(ctx.graph.context().sym()) {}

  /// Reads a setting; false after an error. Symbols that have a number keep it.
  bool read(std::string_view setting, bool wanted, std::string *taken) {
    const auto found = ctx_.settings.find(setting);
    std::string_view rest = found == ctx_.settings.end() ? std::string_view() : found->second;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      const std::string_view item = rest.substr(0, comma);
      rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
      const size_t is = item.find('=');
      const std::string_view name = item.substr(0, is);
      const std::string_view digits = is == item.npos ? std::string_view() : item.substr(is + 1);
      i64 value = 0;
      const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (name.empty() || digits.empty() || bad != std::errc() ||
          end != digits.data() + digits.size() || value < 0)
        return complain("sizes.form", item, "is not a size", "like s77=2,s0=8");
      if (!add(name, value, wanted, taken) && wanted)
        return false;
    }
    return true;
  }

  bool any() const { return !values_.empty(); }
  SymInt fixed(SymInt v) const {
    if (!v.is_symbolic())
      return v;
    const auto value = sym_.evaluate(v, [&](SymInt symbol) -> std::optional<i64> {
      const auto at = values_.find(symbol.raw());
      return at == values_.end() ? std::nullopt : std::optional(at->second);
    });
    return value ? sym_.literal(*value) : v;
  }

private:
  bool complain(std::string code, std::string_view object, std::string message, std::string hint) {
    Diagnostic d;
    d.kind = ErrorKind::Usage;
    d.code = std::move(code);
    d.object = std::string(object);
    d.message = std::move(message);
    d.hint = std::move(hint);
    ctx_.diagnostics.add(std::move(d));
    return false;
  }

  bool add(std::string_view name, i64 value, bool wanted, std::string *taken) {
    std::string all;
    for (const SymInt s : sym_.symbols()) {
      all += (all.empty() ? "" : ", ") + std::string(sym_.symbol_name(s));
      if (sym_.symbol_name(s) != name)
        continue;
      const ir::SymRange range = sym_.range(s);
      if (wanted && (value < range.min || value > range.max))
        return complain("sizes.range", name,
                        std::to_string(value) + " is outside of what the program was exported for",
                        "from " + std::to_string(range.min) + " to " + std::to_string(range.max));
      if (values_.try_emplace(s.raw(), value).second && taken)
        *taken += (taken->empty() ? "" : ",") + std::string(name) + "=" + std::to_string(value);
      return true;
    }
    return wanted && complain("sizes.unknown", name, "the program has no size of that name",
                              all.empty() ? "all of its sizes are fixed" : "its sizes: " + all);
  }

  PassContext &ctx_;
  ir::SymTable &sym_;
  boost::unordered_flat_map<i64, i64> values_; // by the symbol's raw handle
};

void fix(ir::Graph &graph, const Fixer &fixer, ir::Value *v) {
  const ir::Type t = v->type();
  if (!t || !t.is_tensor() || t.has_static_shape())
    return;
  std::vector<SymInt> shape;
  for (const SymInt d : t.shape())
    shape.push_back(fixer.fixed(d));
  graph.set_type(v, graph.context().with_shape(t, shape));
}

void fix_attributes(ir::Graph &graph, const Fixer &fixer, ir::Op &op) {
  for (u32 i = 0; i < op.num_attrs(); ++i) {
    const ir::Attr a = op.attr(i);
    if (a.kind() == ir::AttrKind::Int && a.as_int().is_symbolic())
      graph.set_attr(&op, i, ir::Attr::of_int(fixer.fixed(a.as_int())));
    if (a.kind() != ir::AttrKind::Ints)
      continue;
    std::vector<SymInt> list;
    bool changed = false;
    for (const SymInt v : a.as_ints()) {
      list.push_back(fixer.fixed(v));
      changed = changed || !(list.back() == v);
    }
    if (changed)
      graph.set_attr(&op, i, graph.context().ints_attr(list));
  }
}

} // namespace

void fix_sizes(PassContext &ctx) {
  Fixer fixer(ctx);
  std::string taken;
  if (!fixer.read("sizes", true, nullptr) || !fixer.read("size_hints", false, &taken) ||
      !fixer.any())
    return;
  ir::Graph &graph = ctx.graph;
  for (ir::Value *v : graph.body().args())
    fix(graph, fixer, v);
  ir::walk(graph, [&](ir::Op &op) {
    ++ctx.counters.ops_visited;
    for (ir::Value &v : op.results())
      fix(graph, fixer, &v);
    for (ir::Region *r : op.regions())
      for (ir::Value *v : r->args())
        fix(graph, fixer, v);
    fix_attributes(graph, fixer, op);
    return true;
  });
  if (taken.empty())
    return;
  Diagnostic d;
  d.severity = Severity::Note;
  d.kind = ErrorKind::None;
  d.code = "sizes.fixed";
  d.message = "sizes are fixed at those of the export's example inputs: " + taken;
  d.hint = "--sizes " + taken + " sets others";
  ctx.diagnostics.add(std::move(d));
}

} // namespace chute::pass
