#include "aten/schema.h"

#include "aten/ops.h"
#include "ir/context.h"
#include "support/check.h"

#include <array>
#include <cstdlib>
#include <limits>
#include <string>

namespace chute::aten {

namespace {

using ir::Attr;
using ir::AttrSpec;
using ir::AttrType;
using ir::OperandArity;

/// "Tensor(a!)[2]?" split into its base and its marks.
struct ParsedType {
  std::string base;
  bool list = false;
  bool optional = false;         // the whole argument may be None
  bool optional_element = false; // Tensor?[]
  int list_size = 0;             // int[2]: a single number stands for two
};

ParsedType parse_type(std::string_view text) {
  ParsedType t;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(')
      ++depth;
    else if (c == ')')
      --depth;
    else if (depth > 0)
      continue;
    else if (c == '[') {
      t.list = true;
      t.optional_element = t.optional;
      t.optional = false;
      while (text[++i] != ']')
        t.list_size = t.list_size * 10 + (text[i] - '0');
    } else if (c == '?')
      t.optional = true;
    else
      t.base += c;
  }
  return t;
}

AttrType attr_type(const ParsedType &t, std::string_view text) {
  const std::string &b = t.base;
  if (t.list) {
    if (b == "int" || b == "SymInt")
      return t.optional_element ? AttrType::OptInts : AttrType::Ints;
    if (b == "float")
      return AttrType::Floats;
    if (b == "bool")
      return AttrType::Bools;
    if (b == "Scalar")
      return AttrType::Scalars;
    if (b == "str" || b == "Dimname")
      return AttrType::Strings;
  } else {
    if (b == "int" || b == "SymInt")
      return AttrType::Int;
    if (b == "float")
      return AttrType::Float;
    if (b == "bool" || b == "SymBool")
      return AttrType::Bool;
    if (b == "Scalar")
      return AttrType::Scalar;
    if (b == "str")
      return AttrType::String;
    if (b == "ScalarType")
      return AttrType::Element;
    if (b == "Any" || b == "t")
      return AttrType::Any;
  }
  CHUTE_CHECK(false, std::string(text).c_str());
  return AttrType::Any;
}

Attr parse_default(std::string_view text, const ParsedType &t, AttrType type, ir::Context &ctx) {
  if (text == "None")
    return Attr::none();
  if (text == "True" || text == "False") {
    const bool value = text == "True";
    if (type == AttrType::Bools) {
      std::array<bool, 8> many;
      many.fill(value);
      return ctx.bools_attr(std::span<const bool>(many.data(), static_cast<size_t>(t.list_size)));
    }
    return Attr::of_bool(value);
  }
  if (text[0] == '"' || text[0] == '\'')
    return ctx.string_attr(text.substr(1, text.size() - 2));
  if (type == AttrType::Element) {
    if (text == "long" || text == "4") // 4 is torch.int64's number, as some signatures print it
      return Attr::of_element(ir::ElementType::I64);
    return Attr::of_element(ir::ElementType::F32);
  }
  if (type == AttrType::String)
    return ctx.string_attr(text);
  if (text == "Mean") // the Reduction enum of torch losses: none 0, mean 1, sum 2
    return Attr::of_int(1);
  std::vector<ir::SymInt> ints;
  std::vector<double> floats;
  std::string_view body = text;
  const bool list = text[0] == '[';
  if (list)
    body = text.substr(1, text.size() - 2);
  while (!body.empty()) {
    const size_t comma = body.find(',');
    std::string item(body.substr(0, comma));
    while (!item.empty() && item[0] == ' ')
      item.erase(0, 1);
    if (item == "inf")
      floats.push_back(std::numeric_limits<double>::infinity());
    else
      floats.push_back(std::strtod(item.c_str(), nullptr));
    ints.emplace_back(static_cast<i64>(std::strtoll(item.c_str(), nullptr, 10)));
    body = comma == std::string_view::npos ? std::string_view() : body.substr(comma + 1);
  }
  const bool is_integer = text.find_first_of(".einf") == std::string_view::npos;
  switch (type) {
  case AttrType::Int: return Attr::of_int(ints[0]);
  case AttrType::Float: return Attr::of_float(floats[0]);
  case AttrType::Scalar: return is_integer ? Attr::of_int(ints[0]) : Attr::of_float(floats[0]);
  case AttrType::Floats: return ctx.floats_attr(floats);
  default:
    if (!list && t.list_size > 1)
      ints.assign(static_cast<size_t>(t.list_size), ints[0]);
    return ctx.ints_attr(ints);
  }
}

/// Splits at `separator` outside of brackets, parentheses and quotes.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0 && !quoted)) {
      std::string_view part = text.substr(start, i - start);
      while (!part.empty() && part.front() == ' ')
        part.remove_prefix(1);
      if (!part.empty())
        parts.push_back(part);
      start = i + 1;
      continue;
    }
    const char c = text[i];
    if (c == '"' || c == '\'')
      quoted = !quoted;
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
  }
  return parts;
}

size_t closing(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (depth == 0)
      return i;
  }
  CHUTE_CHECK(false, "unbalanced schema");
  return 0;
}

} // namespace

Schema parse_schema(std::string_view text, ir::Context &ctx) {
  Schema s;
  const size_t end = closing(text);
  int variadic = 0;
  for (std::string_view arg : split(text.substr(1, end - 1))) {
    if (arg == "*")
      continue;
    const size_t equals = arg.find('=');
    const std::string_view head = arg.substr(0, equals);
    const size_t space = head.rfind(' ');
    const ParsedType type = parse_type(head.substr(0, space));
    const std::string_view name = head.substr(space + 1);
    if (type.base == "Tensor") {
      OperandArity arity = type.optional ? OperandArity::Optional : OperandArity::One;
      if (type.list)
        arity = type.optional_element ? OperandArity::VariadicOptional : OperandArity::Variadic;
      variadic += type.list;
      s.operands.push_back({name, arity});
      continue;
    }
    if (type.base == "Device" || type.base == "Layout" || type.base == "MemoryFormat" ||
        type.base == "Generator" || name == "pin_memory" || name == "non_blocking")
      continue;
    AttrSpec a;
    a.name = name;
    a.type = attr_type(type, text);
    a.nullable = type.optional;
    if (equals != std::string_view::npos) {
      a.has_default = true;
      a.default_value = parse_default(arg.substr(equals + 1), type, a.type, ctx);
    }
    s.attrs.push_back(a);
  }
  if (variadic >= 2)
    s.attrs.push_back({"segments", AttrType::Ints, false, false, {}});
  std::string_view results = text.substr(text.find("->", end) + 2);
  while (!results.empty() && results.front() == ' ')
    results.remove_prefix(1);
  if (results.front() == '(')
    results = results.substr(1, closing(results) - 1);
  for (std::string_view r : split(results)) {
    const size_t space = r.rfind(' ');
    const bool named = space != std::string_view::npos && r.find(')', space) == r.npos;
    const ParsedType type = parse_type(named ? r.substr(0, space) : r);
    s.results.push_back({named ? r.substr(space + 1) : std::string_view("result"), type.list});
  }
  return s;
}

bool is_ignored_argument(std::string_view name) {
  constexpr std::array<std::string_view, 7> kIgnored{
      "device", "layout", "memory_format", "pin_memory", "non_blocking", "generator", "names"};
  for (std::string_view ignored : kIgnored)
    if (name == ignored)
      return true;
  return false;
}

} // namespace chute::aten
