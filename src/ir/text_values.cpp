#include "ir/text_values.h"

#include "ir/op_check.h"
#include "ir/sym_table.h"

#include <boost/container/small_vector.hpp>
#include <optional>

namespace chute::ir {

bool ValueReader::error(size_t offset, std::string message, std::string hint) {
  Diagnostic d;
  d.kind = ErrorKind::BadInput;
  d.code = "ir.parse";
  d.message = std::move(message);
  d.hint = std::move(hint);
  return error(offset, std::move(d));
}

bool ValueReader::error(size_t offset, Diagnostic d) {
  if (failed_)
    return false;
  failed_ = true;
  size_t line = 1;
  size_t start = 0;
  const std::string_view text = lex_.text();
  for (size_t i = 0; i < offset && i < text.size(); ++i)
    if (text[i] == '\n') {
      ++line;
      start = i + 1;
    }
  std::string at(options_.file);
  if (!at.empty())
    at += ':';
  at += std::to_string(line) + ":" + std::to_string(offset - start + 1);
  if (!d.object.empty())
    d.message = d.object + ": " + d.message;
  d.object = std::move(at);
  d.kind = ErrorKind::BadInput;
  error_ = std::move(d);
  return false;
}

bool ValueReader::expect(char c) {
  return lex_.eat(c) || error_here(std::string("'") + c + "' expected");
}

bool ValueReader::string(std::string &out) {
  const size_t start = (lex_.skip(), lex_.offset());
  switch (lex_.quoted(out)) {
  case TextLexer::Quoted::Ok: return true;
  case TextLexer::Quoted::Bad: return error(start, "string without end or with a bad escape");
  case TextLexer::Quoted::Absent: break;
  }
  return error(start, "string expected");
}

bool ValueReader::integer(i64 &out) {
  TextLexer::Number n;
  const size_t start = (lex_.skip(), lex_.offset());
  return (lex_.number(n) && n.to_i64(out)) || error(start, "64-bit integer expected");
}

bool ValueReader::sym_int(SymInt &out) {
  TextLexer::Number n;
  const size_t start = (lex_.skip(), lex_.offset());
  i64 v = 0;
  if (lex_.number(n) && n.to_i64(v)) {
    const char next = lex_.peek();
    if (next != '*' && next != '+' && next != '-') {
      out = ctx_.sym().literal(v);
      return true;
    }
  }
  lex_.rewind(start);
  const auto e = ctx_.sym().parse(lex_.expression());
  if (!e)
    return error(start, "integer or symbolic expression expected");
  out = *e;
  return true;
}

bool ValueReader::scale(float &scale, i64 &zero_point) {
  TextLexer::Number n;
  const size_t start = (lex_.skip(), lex_.offset());
  if (!lex_.number(n) || !n.to_float(scale))
    return error(start, "scale expected");
  zero_point = 0;
  return !lex_.eat(':') || integer(zero_point);
}

// After `quant(` or `mx(`: keys, then for quant one scale or a list of them.
bool ValueReader::quantization(bool mx, Quantization &q, std::vector<float> &scales,
                               std::vector<i64> &zero_points) {
  const auto key = [&](i32 &to) {
    const size_t start = lex_.offset();
    i64 v = 0;
    if (!expect('=') || !integer(v))
      return false;
    if (v != static_cast<i32>(v))
      return error(start, "axis or block size does not fit 32 bits");
    to = static_cast<i32>(v);
    return true;
  };
  q.kind = mx ? QuantKind::MX : QuantKind::PerTensor;
  while (lex_.peek() == 'a' || lex_.peek() == 'b') {
    if (lex_.eat_word("axis")) {
      if (!mx && q.kind == QuantKind::PerTensor)
        q.kind = QuantKind::PerChannel;
      if (!key(q.axis))
        return false;
    } else if (lex_.eat_word("block")) {
      if (!mx)
        q.kind = QuantKind::Block;
      if (!key(q.block_size))
        return false;
    } else {
      return error_here("axis= or block= expected");
    }
    if (mx && lex_.peek() == ')')
      break;
    if (!expect(','))
      return false;
  }
  if (mx)
    return expect(')');
  if (lex_.eat('[')) {
    if (!lex_.eat(']')) {
      do {
        if (!scale(scales.emplace_back(), zero_points.emplace_back()))
          return false;
      } while (lex_.eat(','));
      if (!expect(']'))
        return false;
    }
  } else if (!scale(scales.emplace_back(), zero_points.emplace_back())) {
    return false;
  }
  if (lex_.eat(',')) {
    if (!lex_.eat_word("zeros"))
      return error_here("zeros= expected");
    zero_points.clear();
    if (!expect('=') || !expect('['))
      return false;
    if (!lex_.eat(']')) {
      do {
        if (!integer(zero_points.emplace_back()))
          return false;
      } while (lex_.eat(','));
      if (!expect(']'))
        return false;
    }
  }
  q.scales = scales;
  q.zero_points = zero_points;
  return expect(')');
}

bool ValueReader::type(Type &out) {
  const size_t start = (lex_.skip(), lex_.offset());
  const std::string_view name = lex_.word();
  if (lex_.peek() != '[') {
    if (name == "none")
      out = ctx_.none_type();
    else if (name == "int")
      out = ctx_.int_type();
    else if (name == "float")
      out = ctx_.float_type();
    else if (name == "bool")
      out = ctx_.bool_type();
    else if (name == "opaque")
      out = ctx_.opaque_type();
    else
      return error(start, "type expected", "for example f32[1,3], i8[4] quant(0.5:3), int, none");
    return true;
  }
  const auto element = parse_element_type(name);
  if (!element)
    return error(start, "no element type '" + std::string(name) + "'");
  lex_.eat('[');
  boost::container::small_vector<SymInt, 8> shape;
  if (!lex_.eat(']')) {
    do {
      const size_t at = (lex_.skip(), lex_.offset());
      SymInt dim;
      if (!sym_int(dim))
        return false;
      if (dim.is_static() && dim.value() < 0)
        return error(at, "negative dimension");
      shape.push_back(dim);
    } while (lex_.eat(','));
    if (!expect(']'))
      return false;
  }
  const Quantization *interned = nullptr;
  if (const char next = lex_.peek(); next == 'q' || next == 'm') {
    const size_t before = lex_.offset();
    const std::string_view word = lex_.word();
    if ((word == "quant" || word == "mx") && lex_.eat('(')) {
      Quantization q;
      std::vector<float> scales;
      std::vector<i64> zero_points;
      if (!quantization(word == "mx", q, scales, zero_points))
        return false;
      interned = ctx_.quantization(q);
    } else {
      lex_.rewind(before);
    }
  }
  out = ctx_.tensor_type(*element, std::span<const SymInt>(shape.data(), shape.size()), interned);
  return true;
}

// A word where a value stands: a keyword, an element type, or the start of an expression.
bool ValueReader::word_value(std::string_view word, size_t start, Attr &out) {
  if (word == "true" || word == "false") {
    out = Attr::of_bool(word == "true");
    return true;
  }
  if (word == "none") {
    out = Attr::none();
    return true;
  }
  if (word == "complex" || word == "type" || word == "operand" || word == "region" ||
      word == "element" || word == "sym") {
    if (!expect('('))
      return false;
    if (word == "complex") {
      double parts[2];
      for (int i = 0; i < 2; ++i) {
        TextLexer::Number n;
        const size_t at = (lex_.skip(), lex_.offset());
        if (!lex_.number(n) || !n.to_double(parts[i]))
          return error(at, "number expected");
        if (i == 0 && !expect(','))
          return false;
      }
      out = ctx_.complex_attr(parts[0], parts[1]);
    } else if (word == "type") {
      Type t;
      if (!type(t))
        return false;
      out = Attr::of_type(t);
    } else if (word == "element") {
      if (!lex_.eat_word("none"))
        return error_here("none expected: other element types stand without element()");
      out = Attr::of_element(ElementType::None);
    } else if (word == "sym") {
      SymInt v;
      if (!sym_int(v))
        return false;
      out = Attr::of_int(v);
    } else {
      i64 index = 0;
      if (!integer(index))
        return false;
      if (index < 0 || index != static_cast<u32>(index))
        return error(start, "index out of range");
      out = word == "operand" ? Attr::of_operand(static_cast<u32>(index))
                              : Attr::of_region(static_cast<u32>(index));
    }
    return expect(')');
  }
  if (const auto element = parse_element_type(word)) {
    out = Attr::of_element(*element);
    return true;
  }
  lex_.rewind(start);
  SymInt v;
  if (!sym_int(v))
    return false;
  out = Attr::of_int(v);
  return true;
}

bool ValueReader::scalar(AttrType slot, Attr &out) {
  const char c = lex_.peek();
  const size_t start = lex_.offset();
  if (c == '"') {
    std::string text;
    if (!string(text))
      return false;
    out = ctx_.string_attr(text);
    return true;
  }
  if (c == '#' || at_constant()) {
    const Constant *value = nullptr;
    if (!constant(value))
      return false;
    out = Attr::of_constant(value);
    return true;
  }
  TextLexer::Number n;
  if (lex_.number(n)) {
    if (n.is_float) {
      double v = 0;
      if (!n.to_double(v))
        return error(start, "number out of range");
      out = Attr::of_float(v);
      return true;
    }
    lex_.rewind(start);
    SymInt v;
    if (!sym_int(v))
      return false;
    out = Attr::of_int(v);
    return true;
  }
  const std::string_view word = lex_.word();
  if (!word.empty())
    return word_value(word, start, out);
  if (c == '-' || c == '(') {
    SymInt v;
    if (!sym_int(v))
      return false;
    out = Attr::of_int(v);
    return true;
  }
  static_cast<void>(slot);
  return error(start, "attribute value expected");
}

bool ValueReader::list(AttrKind kind, size_t offset, std::span<const Attr> items, Attr &out) {
  const auto wrong = [&](const Attr &item) {
    return error(offset, "element " + std::to_string(&item - items.data()) +
                             " of the list has the wrong kind");
  };
  switch (kind) {
  case AttrKind::Ints: {
    boost::container::small_vector<SymInt, 16> v;
    for (const Attr &i : items) {
      if (i.kind() != AttrKind::Int)
        return wrong(i);
      v.push_back(i.as_int());
    }
    out = ctx_.ints_attr(std::span<const SymInt>(v.data(), v.size()));
    return true;
  }
  case AttrKind::Floats: {
    boost::container::small_vector<double, 16> v;
    for (const Attr &i : items) {
      if (i.kind() != AttrKind::Float && (i.kind() != AttrKind::Int || i.as_int().is_symbolic()))
        return wrong(i);
      v.push_back(i.scalar_as_double());
    }
    out = ctx_.floats_attr(std::span<const double>(v.data(), v.size()));
    return true;
  }
  case AttrKind::Bools: {
    boost::container::small_vector<bool, 16> v;
    for (const Attr &i : items) {
      if (i.kind() != AttrKind::Bool)
        return wrong(i);
      v.push_back(i.as_bool());
    }
    out = ctx_.bools_attr(std::span<const bool>(v.data(), v.size()));
    return true;
  }
  case AttrKind::Strings: {
    std::vector<std::string_view> v;
    for (const Attr &i : items) {
      if (i.kind() != AttrKind::String)
        return wrong(i);
      v.push_back(i.as_string());
    }
    out = ctx_.strings_attr(v);
    return true;
  }
  default: out = ctx_.list_attr(items); return true;
  }
}

namespace {

std::optional<AttrKind> list_prefix(std::string_view word) {
  if (word == "ints")
    return AttrKind::Ints;
  if (word == "floats")
    return AttrKind::Floats;
  if (word == "bools")
    return AttrKind::Bools;
  if (word == "strings")
    return AttrKind::Strings;
  if (word == "list")
    return AttrKind::List;
  return std::nullopt;
}

/// The kind of a list without a prefix, by the field it stands in and what is in it.
AttrKind list_kind(AttrType slot, std::span<const Attr> items) {
  switch (slot) {
  case AttrType::Ints: return AttrKind::Ints;
  case AttrType::Floats: return AttrKind::Floats;
  case AttrType::Bools: return AttrKind::Bools;
  case AttrType::Strings: return AttrKind::Strings;
  case AttrType::Scalars:
    for (Attr a : items)
      if (a.kind() == AttrKind::Float)
        return AttrKind::Floats;
    return AttrKind::Ints;
  case AttrType::OptInts:
    for (Attr a : items)
      if (a.is_none())
        return AttrKind::List;
    return AttrKind::Ints;
  default: return AttrKind::List;
  }
}

} // namespace

bool ValueReader::attr(AttrType slot, Attr &out) {
  struct Level {
    std::optional<AttrKind> kind;
    AttrType slot;
    size_t offset;
    size_t first_item;
  };
  boost::container::small_vector<Level, 4> levels;
  boost::container::small_vector<Attr, 16> items;
  for (;;) {
    Attr value;
    bool closing = false;
    std::optional<AttrKind> kind;
    if (const char c = lex_.peek(); c == 'i' || c == 'f' || c == 'b' || c == 's' || c == 'l') {
      const size_t before = lex_.offset();
      kind = list_prefix(lex_.word());
      if (!kind || lex_.peek() != '[') {
        kind.reset();
        lex_.rewind(before);
      }
    }
    const size_t offset = lex_.offset();
    if (lex_.eat('[')) {
      levels.push_back({kind, levels.empty() ? slot : AttrType::Any, offset, items.size()});
      closing = lex_.eat(']');
      if (!closing)
        continue;
    } else if (!scalar(levels.empty() ? slot : AttrType::Any, value)) {
      return false;
    }
    // A value is complete, or a list that has none in it; close as many lists as end here.
    for (;;) {
      if (!closing) {
        if (levels.empty()) {
          out = value;
          return true;
        }
        items.push_back(value);
        if (lex_.eat(','))
          break;
        if (!lex_.eat(']'))
          return error_here("',' or ']' expected");
      }
      closing = false;
      const Level top = levels.back();
      levels.pop_back();
      const std::span<const Attr> own(items.data() + top.first_item, items.size() - top.first_item);
      if (!list(top.kind ? *top.kind : list_kind(top.slot, own), top.offset, own, value))
        return false;
      items.resize(top.first_item);
    }
  }
}

} // namespace chute::ir
