#include "ir/sym_table.h"
#include "ir/text.h"
#include "ir/text_writer.h"
#include "ir/walk.h"

#include <algorithm>
#include <map>

namespace chute::ir {

namespace {

class Printer {
public:
  Printer(const Graph &graph, TextWriter &out, const PrintOptions &options)
      : graph_(graph),
        ctx_(graph.context()),
        out_(out),
        options_(options),
        values_(ctx_, out, options) {}

  void graph();
  void single(const Op &op) {
    by_id_ = true;
    region_op(op, 0);
  }

private:
  static constexpr u32 kNamed = 1u << 31;

  void collect();
  void note_int(SymInt v, std::vector<SymInt> &found);
  void note_type(Type t, std::vector<SymInt> &found);
  void header();
  void signature();
  void input(const Value *value, const InputInfo *info, i64 position, bool ordered);
  void outputs();
  void value(const Value *v);
  void symbol_or_string(std::string_view name);
  void indent(size_t depth) {
    out_.put(std::string_view(kSpaces, std::min<size_t>(2 * depth, 64)));
  }
  void region_op(const Op &op, size_t depth);
  void op_head(const Op &op);
  void operands(const Op &op);
  void attributes(const Op &op, bool flat_segments);
  void op_tail(const Op &op);
  void location(LocId loc);

  static constexpr const char *kSpaces =
      "                                                                ";
  const Graph &graph_;
  const Context &ctx_;
  TextWriter &out_;
  const PrintOptions &options_;
  ValueWriter values_;
  std::vector<u32> names_;  // by Value::id: 0 not seen, kNamed, else running number + 1
  std::vector<bool> taken_; // by StringId
  u32 next_number_ = 0;
  std::vector<const Constant *> shared_; // numbered constants
  std::vector<std::string> symbols_;     // lines of symbol ranges, sorted
  bool by_id_ = false;
};

void Printer::symbol_or_string(std::string_view name) {
  if (is_word(name))
    out_.put(name);
  else
    out_.quoted(name);
}

// A source name goes to the first value that carries it, the others are numbered.
void Printer::value(const Value *v) {
  if (!v)
    return out_.put("none");
  out_.put('%');
  const StringId name = v->name();
  if (by_id_) {
    if (name)
      return symbol_or_string(ctx_.string(name));
    out_.put('#');
    return out_.integer(v->id());
  }
  if (names_.size() <= v->id())
    names_.resize(std::max<size_t>(v->id() + 1, graph_.num_value_ids()), 0);
  u32 &state = names_[v->id()];
  if (state == 0 && name) {
    if (taken_.size() <= name.id)
      taken_.resize(std::max<size_t>(name.id + 1, taken_.size() * 2), false);
    if (!taken_[name.id]) {
      taken_[name.id] = true;
      state = kNamed;
    }
  }
  if (state == 0)
    state = ++next_number_;
  if (state == kNamed)
    symbol_or_string(ctx_.string(name));
  else
    out_.integer(state - 1);
}

void Printer::note_int(SymInt v, std::vector<SymInt> &found) {
  if (v.is_symbolic())
    found.push_back(v);
}

void Printer::note_type(Type t, std::vector<SymInt> &found) {
  if (t && t.is_tensor())
    for (SymInt d : t.shape())
      note_int(d, found);
}

// One walk before printing: which constants are used more than once, which symbols occur.
void Printer::collect() {
  std::vector<u8> uses(graph_.constants().size(), 0);
  std::vector<bool> type_seen;
  std::vector<SymInt> found;
  const auto note_type_once = [&](Type t) {
    if (!t)
      return;
    if (type_seen.size() <= t.id())
      type_seen.resize(t.id() + 64, false);
    if (!type_seen[t.id()]) {
      type_seen[t.id()] = true;
      note_type(t, found);
    }
  };
  const auto note_attr = [&](Attr a) {
    switch (a.kind()) {
    case AttrKind::Int: return note_int(a.as_int(), found);
    case AttrKind::Ints:
      for (SymInt v : a.as_ints())
        note_int(v, found);
      return;
    case AttrKind::Type: return note_type_once(a.as_type());
    case AttrKind::Constant: {
      const Constant &c = *a.as_constant();
      note_type_once(c.type);
      if (c.id < uses.size() && uses[c.id] < 2 && ++uses[c.id] == 2) {
        values_.set_number(c, static_cast<u32>(shared_.size()));
        shared_.push_back(&c);
      }
      return;
    }
    default: return;
    }
  };
  for (const Value *arg : graph_.body().args())
    note_type_once(arg->type());
  for (const InputInfo &i : graph_.inputs())
    for_each_nested(i.literal, note_attr);
  for (const OutputInfo &o : graph_.outputs())
    for_each_nested(o.literal, note_attr);
  walk(graph_, [&](const Op &op) {
    for (const Value &r : op.results())
      note_type_once(r.type());
    for (const Region *r : op.regions())
      for (const Value *arg : r->args())
        note_type_once(arg->type());
    for (Attr a : op.attrs())
      for_each_nested(a, note_attr);
  });
  // Symbols inside the expressions found, each once.
  const SymTable &table = ctx_.sym();
  std::map<std::string, SymRange> ranges;
  std::vector<bool> expr_seen;
  while (!found.empty()) {
    const SymInt e = found.back();
    found.pop_back();
    if (e.is_static())
      continue;
    if (expr_seen.size() <= e.expr())
      expr_seen.resize(e.expr() + 1, false);
    if (expr_seen[e.expr()])
      continue;
    expr_seen[e.expr()] = true;
    if (const auto atom = table.atom(e)) {
      if (atom->op == SymOp::Symbol)
        ranges.emplace(table.print(e), table.range(e));
      found.insert(found.end(), atom->args.begin(), atom->args.end());
      continue;
    }
    for (const SymTable::Term &term : table.terms(e))
      found.insert(found.end(), term.atoms.begin(), term.atoms.end());
  }
  for (const auto &[name, range] : ranges) {
    const auto bound = [](i64 v) {
      if (v == std::numeric_limits<i64>::max())
        return std::string("inf");
      return v == std::numeric_limits<i64>::min() ? std::string("-inf") : std::to_string(v);
    };
    symbols_.push_back(name + " in [" + bound(range.min) + ", " + bound(range.max) + "]");
  }
}

void Printer::input(const Value *arg, const InputInfo *info, i64 position, bool ordered) {
  if (arg) {
    if (!info)
      out_.put("bare ");
    value(arg);
    out_.put(": ");
    values_.type(arg->type());
  } else {
    out_.put("literal ");
    values_.attr(info->literal, AttrType::Any);
  }
  if (!info)
    return;
  // The input's name is left out where it is the value's name as just printed.
  const bool same_name =
      arg && arg->name() && names_[arg->id()] == kNamed && ctx_.string(arg->name()) == info->name;
  const bool named = !same_name && !info->name.empty();
  bool first = true;
  const auto key = [&](std::string_view k) {
    out_.put(first ? " {" : ", ");
    first = false;
    out_.put(k);
    out_.put(" = ");
  };
  if (info->kind == InputKind::State) {
    key("kind");
    out_.put("state");
  }
  if (named || (info->name.empty() && arg && names_[arg->id()] == kNamed)) {
    key("name");
    out_.quoted(info->name);
  }
  if (!ordered) {
    key("input");
    out_.integer(position);
  }
  if (!first)
    out_.put('}');
}

void Printer::signature() {
  out_.put("graph @");
  symbol_or_string(graph_.name());
  out_.put('(');
  const auto &inputs = graph_.inputs();
  const auto args = graph_.body().args();
  // Usual case: the inputs that have values are the arguments, in order.
  std::vector<i64> info_of(args.size(), -1);
  bool ordered = true;
  u32 next = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const Value *v = inputs[i].value) {
      if (v->argument_of() == &graph_.body() && v->index() < args.size())
        info_of[v->index()] = static_cast<i64>(i);
      ordered &= v->index() == next++;
    }
  bool first = true;
  const auto separate = [&] {
    if (!first)
      out_.put(", ");
    first = false;
  };
  size_t literal = 0;
  const auto literals_before = [&](size_t end) {
    for (; literal < end; ++literal)
      if (!inputs[literal].value) {
        separate();
        input(nullptr, &inputs[literal], static_cast<i64>(literal), ordered);
      }
  };
  for (size_t a = 0; a < args.size(); ++a) {
    const i64 i = info_of[a];
    if (ordered && i >= 0)
      literals_before(static_cast<size_t>(i));
    separate();
    input(args[a], i >= 0 ? &inputs[static_cast<size_t>(i)] : nullptr, i, ordered);
  }
  literals_before(inputs.size());
  out_.put(") -> (");
  outputs();
  out_.put(") {\n");
}

void Printer::outputs() {
  const Op *ret = graph_.return_op();
  i32 expected = 0;
  bool first = true;
  for (const OutputInfo &o : graph_.outputs()) {
    if (!first)
      out_.put(", ");
    first = false;
    switch (o.kind) {
    case OutputKind::User: out_.quoted(o.name); break;
    case OutputKind::BufferMutation:
    case OutputKind::InputMutation:
      out_.put(o.kind == OutputKind::BufferMutation ? "buffer(" : "input(");
      out_.quoted(o.target);
      out_.put(')');
      break;
    case OutputKind::Literal:
      out_.put("literal(");
      values_.attr(o.literal, AttrType::Any);
      out_.put(')');
      break;
    }
    if (o.kind != OutputKind::User && !o.name.empty()) {
      out_.put(' ');
      out_.quoted(o.name);
    }
    if (o.kind == OutputKind::Literal)
      continue;
    if (o.operand != expected) {
      out_.put(" = ");
      out_.integer(o.operand);
    }
    ++expected;
    if (ret && o.operand >= 0 && static_cast<u32>(o.operand) < ret->num_operands())
      if (const Value *v = ret->operand(static_cast<u32>(o.operand))) {
        out_.put(": ");
        values_.type(v->type());
      }
  }
}

void Printer::header() {
  for (const std::string &s : symbols_) {
    out_.put("  sym ");
    out_.put(s);
    out_.put('\n');
  }
  for (size_t i = 0; i < shared_.size(); ++i) {
    out_.put("  const #");
    out_.integer(i);
    out_.put(" = ");
    values_.constant_body(*shared_[i]);
    out_.put(" : ");
    values_.type(shared_[i]->type);
    out_.put('\n');
    out_.drain();
  }
}

void Printer::graph() {
  collect();
  signature();
  header();
  if (const Op *first = graph_.body().front())
    region_op(*first, 1);
  out_.put("}\n");
}

namespace {
bool is_list(OperandArity a) {
  return a == OperandArity::Variadic || a == OperandArity::VariadicOptional;
}
/// Whether the `segments` of an operator with several lists describe its operands.
bool segments_fit(const Op &op) {
  if (op.num_attrs() == 0 || op.attrs().back().kind() != AttrKind::Ints)
    return false;
  const auto counts = op.attrs().back().as_ints();
  const auto specs = op.def().operands;
  if (counts.size() != specs.size())
    return false;
  i64 left = op.num_operands();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].is_symbolic() || counts[i].value() < 0 || counts[i].value() > left ||
        (!is_list(specs[i].arity) && counts[i].value() != 1))
      return false;
    left -= counts[i].value();
  }
  return left == 0;
}
} // namespace

// Lists among several operands are in brackets; a list that is the only operand stands plain.
void Printer::operands(const Op &op) {
  const OpDef &def = op.def();
  const int lists = def.variadic_operands();
  const bool grouped =
      def.operands.size() > 1 && lists > 0 &&
      (lists > 1 ? segments_fit(op) : op.num_operands() + 1 >= def.operands.size());
  out_.put('(');
  if (!grouped) {
    for (u32 i = 0; i < op.num_operands(); ++i) {
      if (i)
        out_.put(", ");
      value(op.operand(i));
    }
    return out_.put(')');
  }
  u32 next = 0;
  for (u32 s = 0; s < def.operands.size(); ++s) {
    if (s)
      out_.put(", ");
    const bool list = is_list(def.operands[s].arity);
    u32 count = 1;
    if (list)
      count = lists > 1 ? static_cast<u32>(op.attrs().back().as_ints()[s].value())
                        : op.num_operands() + 1 - static_cast<u32>(def.operands.size());
    if (list)
      out_.put('[');
    for (u32 i = 0; i < count; ++i, ++next) {
      if (i)
        out_.put(", ");
      value(op.operand(next));
    }
    if (list)
      out_.put(']');
  }
  out_.put(')');
}

void Printer::attributes(const Op &op, bool flat_segments) {
  const OpDef &def = op.def();
  const bool segmented = def.variadic_operands() >= 2 && !flat_segments;
  bool first = true;
  for (u32 i = 0; i < op.num_attrs() && i < def.attrs.size(); ++i) {
    const AttrSpec &spec = def.attrs[i];
    const Attr a = op.attr(i);
    const Attr implied = spec.has_default ? spec.default_value : Attr::none();
    if (!options_.default_attrs && (spec.has_default || spec.nullable) && a == implied)
      continue;
    if (segmented && i + 1 == op.num_attrs())
      continue; // the brackets say it
    out_.put(first ? " {" : ", ");
    first = false;
    out_.put(spec.name);
    out_.put(" = ");
    values_.attr(a, spec.type);
  }
  if (!first)
    out_.put('}');
}

void Printer::location(LocId loc) {
  if (!options_.locations || loc.id == 0)
    return;
  const Provenance p = graph_.locations().resolve(loc);
  if (p.nodes.empty() && p.module_path.empty() && p.module_type.empty() && p.source_line.empty())
    return;
  out_.put(" loc(");
  bool first = true;
  for (const std::string &n : p.nodes) {
    if (!first)
      out_.put(", ");
    first = false;
    out_.quoted(n);
  }
  const auto part = [&](std::string_view key, const std::string &text) {
    if (text.empty())
      return;
    if (!first)
      out_.put(' ');
    first = false;
    out_.put(key);
    out_.quoted(text);
  };
  part("in ", p.module_path);
  part("type ", p.module_type);
  part("at ", p.source_line);
  out_.put(')');
}

void Printer::op_head(const Op &op) {
  if (op.num_results()) {
    for (u32 i = 0; i < op.num_results(); ++i) {
      if (i)
        out_.put(", ");
      value(op.result(i));
    }
    out_.put(" = ");
  }
  if (op.opcode() == core_op::ret && op.num_results() == 0) {
    out_.put("return");
    for (u32 i = 0; i < op.num_operands(); ++i) {
      out_.put(i ? ", " : " ");
      value(op.operand(i));
    }
    return;
  }
  out_.put(op.name());
  if (op.opcode() == core_op::constant && op.num_operands() == 0 && op.num_results() == 1 &&
      op.attr(0).kind() == AttrKind::Constant &&
      op.attr(0).as_constant()->type == op.result()->type()) {
    out_.put(' ');
    return values_.constant(*op.attr(0).as_constant()); // its type is the result's
  }
  operands(op);
  attributes(op, op.def().variadic_operands() >= 2 && !segments_fit(op));
}

void Printer::op_tail(const Op &op) {
  const bool short_constant = op.opcode() == core_op::constant && op.num_operands() == 0 &&
                              op.num_results() == 1 && op.attr(0).kind() == AttrKind::Constant &&
                              op.attr(0).as_constant()->type == op.result()->type();
  if (!short_constant)
    for (u32 i = 0; i < op.num_results(); ++i) {
      out_.put(i ? ", " : " : ");
      values_.type(op.result(i)->type());
    }
  if (op.num_results() == 0 && !op.def().results.empty())
    out_.put(" : ()");
  location(op.loc());
  out_.put('\n');
}

// Operators of one region from `first` on (or just it, for a single print). Nested regions keep
// their place on a stack of their own.
void Printer::region_op(const Op &first, size_t depth) {
  struct Frame {
    const Op *op;
    u32 next_region;
  };
  std::vector<Frame> stack;
  const Op *op = &first;
  for (;;) {
    while (op) {
      indent(depth + stack.size());
      op_head(*op);
      if (op->num_regions()) {
        stack.push_back({op, 0});
        break;
      }
      op_tail(*op);
      out_.drain();
      op = by_id_ && stack.empty() ? nullptr : op->next();
    }
    if (stack.empty())
      return;
    Frame &top = stack.back();
    if (top.next_region > 0) {
      indent(depth + stack.size() - 1);
      out_.put('}');
    }
    if (top.next_region < top.op->num_regions()) {
      const Region &region = *top.op->region(top.next_region++);
      out_.put(" do (");
      for (u32 i = 0; i < region.num_args(); ++i) {
        if (i)
          out_.put(", ");
        value(region.arg(i));
        out_.put(": ");
        values_.type(region.arg(i)->type());
      }
      out_.put(") {\n");
      op = region.front();
      continue;
    }
    op_tail(*top.op);
    out_.drain();
    op = by_id_ && stack.size() == 1 ? nullptr : top.op->next();
    stack.pop_back();
  }
}

} // namespace

void print(const Graph &graph, const TextSink &sink, const PrintOptions &options) {
  TextWriter out(&sink);
  Printer(graph, out, options).graph();
  out.drain(true);
}

std::string print(const Graph &graph, const PrintOptions &options) {
  TextWriter out;
  Printer(graph, out, options).graph();
  return out.take();
}

bool print(const Graph &graph, std::FILE *file, const PrintOptions &options) {
  bool ok = true;
  print(
      graph,
      [&](std::string_view piece) {
        ok = ok && std::fwrite(piece.data(), 1, piece.size(), file) == piece.size();
      },
      options);
  return ok;
}

std::string print(const Graph &graph, const Op &op, const PrintOptions &options) {
  TextWriter out;
  Printer(graph, out, options).single(op);
  std::string text = out.take();
  if (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

std::string print(const Context &ctx, Type type) {
  TextWriter out;
  const PrintOptions options;
  ValueWriter(ctx, out, options).type(type);
  return out.take();
}

std::string print(const Context &ctx, Attr attr) {
  TextWriter out;
  const PrintOptions options;
  ValueWriter(ctx, out, options).attr(attr, AttrType::Any);
  return out.take();
}

} // namespace chute::ir
