#include "ir/parse_graph.h"

#include <array>

namespace chute::ir {

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
                 op_name.empty() ? ""
                                 : "an operator outside of the tables is written as "
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
    Result<Op *> made = create_inferred(*graph_, def.opcode, op_.operands, attrs, loc, op_.regions);
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

Result<std::unique_ptr<Graph>> parse(Context &ctx, std::string_view text,
                                     const ParseOptions &options) {
  register_core_dialect();
  return GraphReader(ctx, text, options).run();
}

} // namespace chute::ir
