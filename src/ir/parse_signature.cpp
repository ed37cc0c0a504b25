#include "ir/parse_graph.h"
#include "ir/sym_table.h"

namespace chute::ir {

bool GraphReader::name(std::string &out) {
  if (const std::string_view w = lex_.word(); !w.empty()) {
    out = w;
    return true;
  }
  return string(out);
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
      return error(declared.offset, "output declared as " + print(ctx_, declared.type) +
                                        " but returned as " + print(ctx_, v->type()));
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
    return error(start, "#" + std::to_string(numbered_.size()) +
                            " expected: constants are numbered"
                            " in order");
  const Constant *c = nullptr;
  if (!expect('=') || !constant(c))
    return false;
  numbered_.push_back(c);
  return true;
}

} // namespace chute::ir
