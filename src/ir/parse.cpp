#include "ir/op_check.h"
#include "ir/sym_table.h"
#include "ir/text.h"
#include "ir/text_values.h"

#include <array>
#include <map>

namespace chute::ir {

namespace {

/// A value's name as written: a running number, or a name (interned).
struct NameRef {
  StringId name;
  u32 number = 0;
  size_t offset = 0;
};

/// An operator that was read up to its attributes, or up to one of its regions.
struct PendingOp {
  const OpDef *def = nullptr;
  size_t offset = 0;
  std::vector<NameRef> results;
  std::vector<Value *> operands;
  std::vector<size_t> groups; ///< sizes of bracketed lists; 1 for a plain operand
  bool grouped = false;
  std::vector<NamedAttr> attrs;
  std::vector<Region *> regions;
  const Constant *constant = nullptr; ///< of the short form `core.constant dense<…> : type`

  void clear() {
    results.clear();
    operands.clear();
    groups.clear();
    attrs.clear();
    regions.clear();
    grouped = false;
    constant = nullptr;
  }
};

class GraphReader : ValueReader {
public:
  using ValueReader::ValueReader;
  Result<std::unique_ptr<Graph>> run() {
    if (!graph())
      return tl::unexpected(std::move(error_));
    return std::move(graph_);
  }

private:
  struct Frame {
    PendingOp op;         // whose region is being read
    Region *region;       // that region's enclosing one
    size_t scope_start;   // names defined inside the region start here
  };

  bool graph();
  bool name(std::string &out);
  bool inputs();
  bool input(std::vector<i64> &positions);
  bool input_keys(InputInfo &info, i64 &position);
  bool outputs();
  bool output();
  bool check_outputs();
  bool symbol();
  bool numbered_constant();
  bool body();
  bool op_start();
  bool op_operands();
  bool operand(Value *&out);
  bool attributes();
  bool result_types(std::vector<Type> &types);
  bool location(LocId &loc);
  bool finish();
  bool open_region();
  bool close_region();

  bool value_ref(NameRef &out);
  Value **slot(const NameRef &ref, bool create);
  bool define(const NameRef &ref, Value *value);

  struct DeclaredOutput {
    size_t offset;
    Type type;
  };
  std::vector<DeclaredOutput> declared_outputs_; // types given in the signature
  bool outputs_given_ = false;
  std::vector<Value *> by_name_;   // by StringId
  std::vector<Value *> by_number_;
  std::map<u32, Value *> by_far_number_; // numbers far beyond what was defined
  u32 num_defined_ = 0;
  std::vector<NameRef> scope_; // names defined inside open regions
  std::vector<Frame> frames_;
  PendingOp op_;
  Region *region_ = nullptr;
  std::string text_;
  std::vector<Type> types_;
  bool types_given_ = false;
};

bool GraphReader::name(std::string &out) {
  if (const std::string_view w = lex_.word(); !w.empty()) {
    out = w;
    return true;
  }
  return string(out);
}

// --- names of values ---------------------------------------------------------------------------

bool GraphReader::value_ref(NameRef &out) {
  lex_.skip();
  out = {};
  out.offset = lex_.offset();
  if (!lex_.eat('%'))
    return error(out.offset, "value expected, for example %x");
  if (const std::string_view digits = lex_.digits(); !digits.empty()) {
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), out.number);
    if (r.ec != std::errc() || (digits.size() > 1 && digits[0] == '0'))
      return error(out.offset, "bad number of a value");
    return true;
  }
  if (const std::string_view w = lex_.word(); !w.empty()) {
    out.name = ctx_.intern(w);
    return true;
  }
  if (!string(text_))
    return false;
  out.name = ctx_.intern(text_);
  return static_cast<bool>(out.name) || error(out.offset, "empty name of a value");
}

Value **GraphReader::slot(const NameRef &ref, bool create) {
  if (ref.name) {
    if (by_name_.size() <= ref.name.id) {
      if (!create)
        return nullptr;
      by_name_.resize(std::max<size_t>(ref.name.id + 1, by_name_.size() * 2), nullptr);
    }
    return &by_name_[ref.name.id];
  }
  // Text numbers values densely; a number that is far out must not cost memory.
  if (ref.number < by_number_.size())
    return &by_number_[ref.number];
  if (const auto it = by_far_number_.find(ref.number); it != by_far_number_.end())
    return &it->second;
  if (!create)
    return nullptr;
  if (ref.number > 2 * (num_defined_ + u64{64}))
    return &by_far_number_[ref.number];
  by_number_.resize(std::max<size_t>(ref.number + 1, by_number_.size() * 2), nullptr);
  for (auto it = by_far_number_.begin(); it != by_far_number_.end();) {
    if (it->first < by_number_.size()) {
      by_number_[it->first] = it->second;
      it = by_far_number_.erase(it);
    } else {
      ++it;
    }
  }
  return &by_number_[ref.number];
}

bool GraphReader::define(const NameRef &ref, Value *value) {
  Value **to = slot(ref, true);
  if (*to)
    return error(ref.offset, "a value of that name exists already");
  *to = value;
  ++num_defined_;
  if (!frames_.empty())
    scope_.push_back(ref);
  if (ref.name)
    graph_->set_name(value, ref.name);
  return true;
}

// --- signature ---------------------------------------------------------------------------------

bool GraphReader::input_keys(InputInfo &info, i64 &position) {
  do {
    const size_t at = (lex_.skip(), lex_.offset());
    const std::string_view key = lex_.word();
    if (!expect('='))
      return false;
    if (key == "name") {
      if (!string(info.name))
        return false;
    } else if (key == "kind") {
      if (lex_.eat_word("user"))
        info.kind = InputKind::User;
      else if (lex_.eat_word("state"))
        info.kind = InputKind::State;
      else
        return error_here("user or state expected");
    } else if (key == "input") {
      if (!integer(position))
        return false;
      if (position < 0)
        return error(at, "negative position");
    } else {
      return error(at, "an input has name, kind and input");
    }
  } while (lex_.eat(','));
  return expect('}');
}

bool GraphReader::input(std::vector<i64> &positions) {
  InputInfo info;
  bool bare = false;
  const size_t start = (lex_.skip(), lex_.offset());
  if (lex_.eat_word("literal")) {
    info.kind = InputKind::Literal;
    if (!attr(AttrType::Any, info.literal))
      return false;
  } else {
    bare = lex_.eat_word("bare");
    NameRef ref;
    Type t;
    if (!value_ref(ref) || !expect(':') || !type(t))
      return false;
    info.value = graph_->add_argument(graph_->body(), t);
    if (!define(ref, info.value))
      return false;
    info.name = ctx_.string(ref.name);
  }
  i64 position = -1;
  const InputKind written = info.kind;
  if (lex_.eat('{')) {
    if (bare)
      return error(start, "a bare argument is no input");
    if (!input_keys(info, position))
      return false;
    if (written == InputKind::Literal && info.kind != InputKind::Literal)
      return error(start, "a literal has no kind");
  }
  if (!bare) {
    graph_->inputs().push_back(std::move(info));
    positions.push_back(position);
  }
  return true;
}

bool GraphReader::inputs() {
  const size_t start = lex_.offset();
  std::vector<i64> positions;
  if (!lex_.eat(')')) {
    do {
      if (!input(positions))
        return false;
    } while (lex_.eat(','));
    if (!expect(')'))
      return false;
  }
  // Positions are given for all inputs or for none.
  size_t given = 0;
  for (i64 p : positions)
    given += p >= 0;
  if (given == 0)
    return true;
  std::vector<InputInfo> ordered(positions.size());
  std::vector<bool> taken(positions.size(), false);
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto p = static_cast<size_t>(positions[i]);
    if (given != positions.size() || p >= positions.size() || taken[p])
      return error(start, "positions of inputs are not 0, 1, 2, …");
    taken[p] = true;
    ordered[p] = std::move(graph_->inputs()[i]);
  }
  graph_->inputs() = std::move(ordered);
  return true;
}

bool GraphReader::output() {
  OutputInfo info;
  const size_t start = (lex_.skip(), lex_.offset());
  if (lex_.peek() != '"') {
    const std::string_view kind = lex_.word();
    if (kind != "buffer" && kind != "input" && kind != "literal")
      return error(start, "output expected: \"name\", buffer(\"…\"), input(\"…\") or literal(…)");
    if (!expect('('))
      return false;
    if (kind == "literal") {
      info.kind = OutputKind::Literal;
      if (!attr(AttrType::Any, info.literal))
        return false;
    } else {
      info.kind = kind == "buffer" ? OutputKind::BufferMutation : OutputKind::InputMutation;
      if (!string(info.target))
        return false;
    }
    if (!expect(')'))
      return false;
  }
  if (lex_.peek() == '"' && !string(info.name))
    return false;
  DeclaredOutput declared{start, {}};
  if (info.kind != OutputKind::Literal) {
    for (const OutputInfo &o : graph_->outputs())
      info.operand += o.kind != OutputKind::Literal;
    ++info.operand;
    if (lex_.eat('=')) {
      i64 index = 0;
      if (!integer(index))
        return false;
      if (index < -1 || index != static_cast<i32>(index))
        return error(start, "operand of the return out of range");
      info.operand = static_cast<i32>(index);
    }
    if (lex_.eat(':') && !type(declared.type))
      return false;
  }
  graph_->outputs().push_back(std::move(info));
  declared_outputs_.push_back(declared);
  return true;
}

bool GraphReader::outputs() {
  if (!lex_.eat_arrow())
    return true;
  outputs_given_ = true;
  if (!expect('('))
    return false;
  if (lex_.eat(')'))
    return true;
  do {
    if (!output())
      return false;
  } while (lex_.eat(','));
  return expect(')');
}

bool GraphReader::check_outputs() {
  const Op *ret = graph_->return_op();
  if (!ret)
    return true; // the verifier says so
  if (!outputs_given_) {
    for (u32 i = 0; i < ret->num_operands(); ++i) {
      OutputInfo info;
      const Value *v = ret->operand(i);
      info.name = v && v->name() ? std::string(ctx_.string(v->name())) : "out" + std::to_string(i);
      info.operand = static_cast<i32>(i);
      graph_->outputs().push_back(std::move(info));
    }
    return true;
  }
  for (size_t i = 0; i < declared_outputs_.size(); ++i) {
    const OutputInfo &o = graph_->outputs()[i];
    const DeclaredOutput &declared = declared_outputs_[i];
    if (!declared.type || o.operand < 0 || static_cast<u32>(o.operand) >= ret->num_operands())
      continue;
    const Value *v = ret->operand(static_cast<u32>(o.operand));
    if (v && v->type() != declared.type)
      return error(declared.offset,
                   "output declared as " + print(ctx_, declared.type) + " but returned as " +
                       print(ctx_, v->type()));
  }
  return true;
}

// --- header lines ------------------------------------------------------------------------------

bool GraphReader::symbol() {
  const size_t start = (lex_.skip(), lex_.offset());
  const std::string_view w = lex_.word();
  std::optional<SymInt> s;
  if (w == "symbol" && lex_.eat('(')) {
    if (!string(text_) || !expect(')'))
      return false;
    s = ctx_.sym().symbol(text_);
  } else if (!w.empty()) {
    s = ctx_.sym().symbol(w);
  }
  if (!s)
    return error(start, "name of a symbol expected");
  SymRange range;
  const auto bound = [&](i64 &to) {
    TextLexer::Number n;
    const size_t at = (lex_.skip(), lex_.offset());
    if (!lex_.number(n))
      return error(at, "bound expected");
    if (n.text.ends_with("inf")) {
      to = n.negative ? std::numeric_limits<i64>::min() : std::numeric_limits<i64>::max();
      return true;
    }
    return n.to_i64(to) || error(at, "bound out of range");
  };
  if (!lex_.eat_word("in"))
    return error_here("'in' expected");
  if (!expect('[') || !bound(range.min) || !expect(',') || !bound(range.max) || !expect(']'))
    return false;
  if (range.min > range.max)
    return error(start, "empty range");
  ctx_.sym().set_range(*s, range);
  return true;
}

bool GraphReader::numbered_constant() {
  const size_t start = (lex_.skip(), lex_.offset());
  if (!lex_.eat('#') || lex_.digits() != std::to_string(numbered_.size()))
    return error(start, "#" + std::to_string(numbered_.size()) + " expected: constants are numbered"
                                                                 " in order");
  const Constant *c = nullptr;
  if (!expect('=') || !constant(c))
    return false;
  numbered_.push_back(c);
  return true;
}

// --- operators ---------------------------------------------------------------------------------

bool GraphReader::operand(Value *&out) {
  if (lex_.peek() == '%') {
    NameRef ref;
    if (!value_ref(ref))
      return false;
    Value **found = slot(ref, false);
    if (!found || !*found)
      return error(ref.offset, "use of an undefined value");
    out = *found;
    return true;
  }
  out = nullptr;
  return lex_.eat_word("none") || error_here("operand expected: %name or none");
}

bool GraphReader::op_operands() {
  if (lex_.eat(')'))
    return true;
  do {
    if (lex_.eat('[')) {
      op_.grouped = true;
      size_t n = 0;
      if (!lex_.eat(']')) {
        do {
          if (!operand(op_.operands.emplace_back()))
            return false;
          ++n;
        } while (lex_.eat(','));
        if (!expect(']'))
          return false;
      }
      op_.groups.push_back(n);
    } else {
      if (!operand(op_.operands.emplace_back()))
        return false;
      op_.groups.push_back(1);
    }
  } while (lex_.eat(','));
  return expect(')');
}

bool GraphReader::attributes() {
  if (!lex_.eat('{') || lex_.eat('}'))
    return !failed_;
  do {
    const size_t at = (lex_.skip(), lex_.offset());
    const std::string_view key = lex_.word();
    const int slot_index = op_.def->attr_index(key);
    if (slot_index < 0) {
      std::string known;
      for (const AttrSpec &s : op_.def->attrs)
        known += (known.empty() ? "" : ", ") + std::string(s.name);
      return error(at, std::string(op_.def->name) + " has no attribute '" + std::string(key) + "'",
                   known.empty() ? "it has none" : "it has " + known);
    }
    const AttrSpec &spec = op_.def->attrs[static_cast<size_t>(slot_index)];
    Attr value;
    if (!expect('='))
      return false;
    const size_t value_at = (lex_.skip(), lex_.offset());
    if (!attr(spec.type, value))
      return false;
    value = coerce_attr(ctx_, spec.type, value);
    if (Status s = check_attr(*op_.def, static_cast<size_t>(slot_index), value); !s)
      return error(value_at, std::move(s.error()));
    op_.attrs.push_back({spec.name, value});
  } while (lex_.eat(','));
  return expect('}');
}

bool GraphReader::op_start() {
  op_.clear();
  if (lex_.peek() == '%') {
    do {
      if (!value_ref(op_.results.emplace_back()))
        return false;
    } while (lex_.eat(','));
    if (!expect('='))
      return false;
  }
  lex_.skip();
  op_.offset = lex_.offset();
  const std::string_view op_name = lex_.word();
  if (op_name == "return") {
    op_.def = &Registry::global().def(core_op::ret);
    if (lex_.peek() == '%' || lex_.peek_word() == "none")
      do {
        if (!operand(op_.operands.emplace_back()))
          return false;
      } while (lex_.eat(','));
    return true;
  }
  op_.def = Registry::global().find(op_name);
  if (!op_.def)
    return error(op_.offset,
                 op_name.empty() ? "operator expected"
                                 : "unknown operator '" + std::string(op_name) + "'",
                 op_name.empty() ? "" : "an operator outside of the tables is written as "
                                        "core.unregistered(…) {target = \"name\", …}");
  if (op_.def->opcode == core_op::constant && lex_.peek() != '(') {
    if (!constant(op_.constant))
      return false;
    op_.attrs.push_back({"value", Attr::of_constant(op_.constant)});
    return true;
  }
  return expect('(') && op_operands() && attributes();
}

bool GraphReader::location(LocId &loc) {
  loc = {};
  if (lex_.peek() != 'l' || !lex_.eat_word("loc"))
    return true;
  if (!expect('('))
    return false;
  std::vector<StringId> nodes;
  std::string path, type_name, line;
  if (lex_.peek() == '"')
    do {
      if (!string(text_))
        return false;
      nodes.push_back(ctx_.intern(text_));
    } while (lex_.eat(','));
  if (lex_.eat_word("in") && !string(path))
    return false;
  if (lex_.eat_word("type") && !string(type_name))
    return false;
  if (lex_.eat_word("at") && !string(line))
    return false;
  Locations &locations = graph_->locations();
  loc = locations.add(nodes.empty() ? StringId{} : nodes[0], path, line, type_name);
  for (size_t i = 1; i < nodes.size(); ++i)
    loc = locations.merge(loc, locations.add(nodes[i], {}, {}));
  return expect(')');
}

bool GraphReader::result_types(std::vector<Type> &types) {
  types.clear();
  types_given_ = op_.constant != nullptr;
  if (op_.constant) { // its type is the constant's
    types.push_back(op_.constant->type);
    return true;
  }
  if (!lex_.eat(':'))
    return true;
  types_given_ = true;
  if (lex_.eat('('))
    return expect(')');
  do {
    if (!type(types.emplace_back()))
      return false;
  } while (lex_.eat(','));
  return true;
}

// Types, location, then the operator itself.
bool GraphReader::finish() {
  LocId loc;
  if (!result_types(types_) || !location(loc))
    return false;
  const OpDef &def = *op_.def;
  std::array<SymInt, 64> segments;
  if (op_.grouped && def.variadic_operands() >= 2) {
    if (op_.groups.size() != def.operands.size())
      return error(op_.offset, "takes " + std::to_string(def.operands.size()) +
                                   " operands or lists by its table, given " +
                                   std::to_string(op_.groups.size()));
    for (size_t i = 0; i < op_.groups.size(); ++i)
      segments[i] = static_cast<i64>(op_.groups[i]);
    op_.attrs.push_back(
        {"segments", ctx_.ints_attr(std::span<const SymInt>(segments.data(), op_.groups.size()))});
  }
  std::array<Attr, kMaxAttrs> full;
  const std::span<Attr> attrs(full.data(), def.attrs.size());
  if (Status s = complete_attrs(ctx_, def, op_.attrs, attrs); !s)
    return error(op_.offset, std::move(s.error()));
  if (Status s = check_operands(def, op_.operands, attrs); !s)
    return error(op_.offset, std::move(s.error()));
  Op *op = nullptr;
  if (!types_given_ && !(def.results.empty() && op_.results.empty())) {
    Result<Op *> made =
        create_inferred(*graph_, def.opcode, op_.operands, attrs, loc, op_.regions);
    if (!made)
      return error(op_.offset, std::move(made.error()));
    op = *made;
  } else {
    if (!op_.results.empty() && types_.size() != op_.results.size())
      return error(op_.offset, std::to_string(op_.results.size()) + " results but " +
                                   std::to_string(types_.size()) + " types");
    op = graph_->create(def.opcode, op_.operands, attrs, types_, loc, op_.regions);
  }
  graph_->append(*region_, op);
  if (!op_.results.empty() && op->num_results() != op_.results.size())
    return error(op_.offset, "has " + std::to_string(op->num_results()) + " results, " +
                                 std::to_string(op_.results.size()) + " names are given");
  for (size_t i = 0; i < op_.results.size(); ++i)
    if (!define(op_.results[i], op->result(static_cast<u32>(i))))
      return false;
  return true;
}

bool GraphReader::open_region() {
  // "do" was read.
  Region *region = graph_->create_region();
  op_.regions.push_back(region);
  if (op_.regions.size() > 0xFFFF)
    return error(op_.offset, "too many regions");
  frames_.push_back({std::move(op_), region_, scope_.size()});
  op_ = PendingOp();
  region_ = region;
  if (!expect('('))
    return false;
  if (!lex_.eat(')')) {
    do {
      NameRef ref;
      Type t;
      if (!value_ref(ref) || !expect(':') || !type(t) ||
          !define(ref, graph_->add_argument(*region, t)))
        return false;
    } while (lex_.eat(','));
    if (!expect(')'))
      return false;
  }
  return expect('{');
}

// The operator that owns the region goes on: another region, or its end.
bool GraphReader::close_region() {
  Frame &frame = frames_.back();
  for (size_t i = frame.scope_start; i < scope_.size(); ++i)
    *slot(scope_[i], true) = nullptr;
  scope_.resize(frame.scope_start);
  op_ = std::move(frame.op);
  region_ = frame.region;
  frames_.pop_back();
  return lex_.eat_word("do") ? open_region() : finish();
}

bool GraphReader::body() {
  for (;;) {
    if (lex_.eat('}')) {
      if (frames_.empty())
        return true;
      if (!close_region())
        return false;
      continue;
    }
    if (lex_.at_end())
      return error_here("'}' expected");
    if (!op_start())
      return false;
    if (lex_.peek() == 'd' && lex_.eat_word("do")) {
      if (!open_region())
        return false;
    } else if (!finish()) {
      return false;
    }
  }
}

bool GraphReader::graph() {
  std::string graph_name;
  if (!lex_.eat_word("graph"))
    return error_here("'graph' expected");
  if (!expect('@') || !name(graph_name) || !expect('('))
    return false;
  graph_ = std::make_unique<Graph>(ctx_, std::move(graph_name));
  region_ = &graph_->body();
  if (!inputs() || !outputs() || !expect('{'))
    return false;
  for (;;) {
    const std::string_view w = lex_.peek_word();
    if (w == "sym") {
      lex_.word();
      if (!symbol())
        return false;
    } else if (w == "const") {
      lex_.word();
      if (!numbered_constant())
        return false;
    } else {
      break;
    }
  }
  return body() && check_outputs() &&
         (lex_.at_end() || error_here("text after the end of the graph"));
}

} // namespace

Result<std::unique_ptr<Graph>> parse(Context &ctx, std::string_view text,
                                     const ParseOptions &options) {
  register_core_dialect();
  return GraphReader(ctx, text, options).run();
}

} // namespace chute::ir
