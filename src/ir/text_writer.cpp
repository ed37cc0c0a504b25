#include "ir/text_writer.h"

#include "ir/element_convert.h"
#include "ir/sym_table.h"
#include "support/float_formats.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace chute::ir {

bool is_value_keyword(std::string_view word) {
  static constexpr std::array<std::string_view, 23> kWords{
      "true",    "false", "none",    "inf",  "nan",     "ints",   "floats",  "bools",
      "strings", "list",  "complex", "type", "operand", "region", "element", "sym",
      "dense",   "splat", "iota",    "rand", "hex",     "elided", "nodata"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end() ||
         parse_element_type(word).has_value();
}

template <class T, class Bits>
void TextWriter::number_of(T v, Bits canonical_nan) {
  if (std::isnan(v)) {
    const auto bits = std::bit_cast<Bits>(v);
    put("nan");
    if (bits != canonical_nan) {
      put("(0x");
      hex(bits);
      put(')');
    }
    return;
  }
  if (std::isinf(v))
    return put(v > 0 ? "inf" : "-inf");
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof(digits), v).ptr;
  const std::string_view text(digits, static_cast<size_t>(end - digits));
  put(text);
  if (text.find_first_of(".e") == std::string_view::npos)
    put(".0");
}

void TextWriter::number(double v) { number_of<double, u64>(v, 0x7FF8000000000000u); }
void TextWriter::number(float v) { number_of<float, u32>(v, 0x7FC00000u); }

void TextWriter::hex(u64 v) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof(digits), v, 16).ptr;
  text_.append(digits, static_cast<size_t>(end - digits));
}

void TextWriter::bytes_hex(const std::byte *data, size_t n) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const size_t start = text_.size();
  text_.resize(start + 2 * n);
  for (size_t i = 0; i < n; ++i) {
    const auto b = static_cast<u8>(data[i]);
    text_[start + 2 * i] = kDigits[b >> 4];
    text_[start + 2 * i + 1] = kDigits[b & 15];
  }
}

void TextWriter::quoted(std::string_view s) {
  static constexpr char kDigits[] = "0123456789abcdef";
  put('"');
  for (char c : s) {
    const auto b = static_cast<u8>(c);
    if (c == '"' || c == '\\') {
      put('\\');
      put(c);
    } else if (c == '\n') {
      put("\\n");
    } else if (b < 0x20 || b == 0x7F) {
      put("\\x");
      put(kDigits[b >> 4]);
      put(kDigits[b & 15]);
    } else {
      put(c);
    }
  }
  put('"');
}

void ValueWriter::int_value(SymInt v) {
  if (v.is_static())
    out_.integer(v.value());
  else
    out_.put(ctx_.sym().print(v));
}

void ValueWriter::quantization(const Quantization &q) {
  if (q.kind == QuantKind::MX) {
    out_.put(" mx(axis=");
    out_.integer(q.axis);
    out_.put(", block=");
    out_.integer(q.block_size);
    out_.put(')');
    return;
  }
  out_.put(" quant(");
  if (q.kind != QuantKind::PerTensor) {
    out_.put("axis=");
    out_.integer(q.axis);
    out_.put(", ");
  }
  if (q.kind == QuantKind::Block) {
    out_.put("block=");
    out_.integer(q.block_size);
    out_.put(", ");
  }
  const bool paired = q.zero_points.size() == q.scales.size();
  const bool bare = q.kind == QuantKind::PerTensor && paired && q.scales.size() == 1;
  if (!bare)
    out_.put('[');
  for (size_t i = 0; i < q.scales.size(); ++i) {
    if (i)
      out_.put(", ");
    out_.number(q.scales[i]);
    if (paired && q.zero_points[i] != 0) {
      out_.put(':');
      out_.integer(q.zero_points[i]);
    }
  }
  if (!bare)
    out_.put(']');
  if (!paired) { // parameters that no reader makes, but that a faulty pass could
    out_.put(", zeros=[");
    for (size_t i = 0; i < q.zero_points.size(); ++i) {
      if (i)
        out_.put(", ");
      out_.integer(q.zero_points[i]);
    }
    out_.put(']');
  }
  out_.put(')');
}

void ValueWriter::type(Type t) {
  if (!t)
    return out_.put("<no type>");
  if (t.id() < types_.size() && !types_[t.id()].empty())
    return out_.put(types_[t.id()]);
  TextWriter text;
  ValueWriter inner(ctx_, text, options_);
  switch (t.kind()) {
  case TypeKind::None: text.put("none"); break;
  case TypeKind::Int: text.put("int"); break;
  case TypeKind::Float: text.put("float"); break;
  case TypeKind::Bool: text.put("bool"); break;
  case TypeKind::Opaque: text.put("opaque"); break;
  case TypeKind::Tensor:
    text.put(element_type_name(t.element()));
    text.put('[');
    for (int i = 0; i < t.rank(); ++i) {
      if (i)
        text.put(',');
      inner.int_value(t.dim(i));
    }
    text.put(']');
    if (t.quant())
      inner.quantization(*t.quant());
    break;
  }
  if (types_.size() <= t.id())
    types_.resize(t.id() + 1);
  types_[t.id()] = text.take();
  out_.put(types_[t.id()]);
}

void ValueWriter::scalar(Attr a) {
  switch (a.kind()) {
  case AttrKind::None: return out_.put("none");
  case AttrKind::Int: {
    if (a.as_int().is_static())
      return int_value(a.as_int());
    const std::string text = ctx_.sym().print(a.as_int());
    const auto start = text.begin() + (text.starts_with('-') ? 1 : 0);
    const auto stop = std::find_if_not(start, text.end(), is_word_char);
    if (!is_value_keyword(std::string_view(start, stop)))
      return out_.put(text);
    out_.put("sym(");
    out_.put(text);
    return out_.put(')');
  }
  case AttrKind::Float: return out_.number(a.as_float());
  case AttrKind::Bool: return out_.put(a.as_bool() ? "true" : "false");
  case AttrKind::String: return out_.quoted(a.as_string());
  case AttrKind::Element:
    if (a.as_element() != ElementType::None)
      return out_.put(element_type_name(a.as_element()));
    return out_.put("element(none)");
  case AttrKind::Type:
    out_.put("type(");
    type(a.as_type());
    return out_.put(')');
  case AttrKind::Constant: return constant(*a.as_constant());
  case AttrKind::Complex:
    out_.put("complex(");
    out_.number(a.as_complex()[0]);
    out_.put(", ");
    out_.number(a.as_complex()[1]);
    return out_.put(')');
  case AttrKind::Operand:
  case AttrKind::Region:
    out_.put(a.kind() == AttrKind::Operand ? "operand(" : "region(");
    out_.integer(a.as_index());
    return out_.put(')');
  case AttrKind::Ints:
  case AttrKind::Floats:
  case AttrKind::Bools:
  case AttrKind::Strings:
  case AttrKind::List: return; // lists are written by attr()
  }
}

namespace {

/// What a list without a prefix reads as in a field of that type.
AttrKind plain_list_kind(AttrType slot, Attr a) {
  switch (slot) {
  case AttrType::Ints: return AttrKind::Ints;
  case AttrType::Floats: return AttrKind::Floats;
  case AttrType::Bools: return AttrKind::Bools;
  case AttrType::Strings: return AttrKind::Strings;
  case AttrType::Scalars:
    return a.kind() == AttrKind::Floats && !a.as_floats().empty() ? AttrKind::Floats
                                                                  : AttrKind::Ints;
  case AttrType::OptInts: {
    if (a.kind() != AttrKind::List)
      return AttrKind::Ints;
    const auto items = a.as_list();
    const bool has_none =
        std::any_of(items.begin(), items.end(), [](Attr i) { return i.is_none(); });
    return has_none ? AttrKind::List : AttrKind::Ints;
  }
  default: return AttrKind::List;
  }
}

} // namespace

void ValueWriter::leaf_list(Attr a, AttrType slot) {
  const auto items = [&](auto span, std::string_view prefix, auto &&one) {
    if (plain_list_kind(slot, a) != a.kind())
      out_.put(prefix);
    out_.put('[');
    for (size_t i = 0; i < span.size(); ++i) {
      if (i)
        out_.put(", ");
      one(span[i]);
    }
    out_.put(']');
  };
  switch (a.kind()) {
  case AttrKind::Ints:
    return items(a.as_ints(), "ints", [&](SymInt v) { scalar(Attr::of_int(v)); });
  case AttrKind::Floats: return items(a.as_floats(), "floats", [&](double v) { out_.number(v); });
  case AttrKind::Bools:
    return items(a.as_bools(), "bools", [&](bool v) { out_.put(v ? "true" : "false"); });
  case AttrKind::Strings:
    return items(a.as_strings(), "strings", [&](std::string_view v) { out_.quoted(v); });
  default: return scalar(a);
  }
}

void ValueWriter::attr(Attr a, AttrType slot) {
  if (a.kind() != AttrKind::List)
    return leaf_list(a, slot);
  struct Level {
    std::span<const Attr> items;
    size_t next = 0;
  };
  std::vector<Level> stack;
  const auto open = [&](Attr list, AttrType in) {
    if (plain_list_kind(in, list) != AttrKind::List)
      out_.put("list");
    out_.put('[');
    stack.push_back({list.as_list()});
  };
  open(a, slot);
  while (!stack.empty()) {
    Level &level = stack.back();
    if (level.next == level.items.size()) {
      out_.put(']');
      stack.pop_back();
      continue;
    }
    if (level.next)
      out_.put(", ");
    const Attr item = level.items[level.next++];
    if (item.kind() == AttrKind::List)
      open(item, AttrType::Any);
    else
      leaf_list(item, AttrType::Any);
  }
}

void ValueWriter::set_number(const Constant &c, u32 number) {
  if (numbers_.size() <= c.id)
    numbers_.resize(c.id + 1, 0);
  numbers_[c.id] = number + 1;
}

void ValueWriter::constant(const Constant &c) {
  if (c.id < numbers_.size() && numbers_[c.id]) {
    out_.put('#');
    return out_.integer(numbers_[c.id] - 1);
  }
  constant_body(c);
  out_.put(" : ");
  type(c.type);
}

void ValueWriter::element(ElementType t, const std::byte *at) {
  const auto size = static_cast<size_t>(element_bytes(t));
  // A value is written by number if the number gives the same bytes back, else by its bits.
  std::byte back[16] = {};
  const auto same = [&] { return std::memcmp(back, at, size) == 0; };
  if (t == ElementType::Bool) {
    if (const auto b = static_cast<u8>(*at); b <= 1)
      return out_.put(b ? "true" : "false");
  } else if (t == ElementType::U64) {
    return out_.integer(static_cast<u64>(load_element_int(t, at)));
  } else if (is_integer(t)) {
    const i64 v = load_element_int(t, at);
    const int bits = element_bits(t);
    const bool fits = is_signed(t)
                          ? bits == 64 || (v >= -(i64{1} << (bits - 1)) && v < i64{1} << (bits - 1))
                          : v >= 0 && (bits == 64 || v < i64{1} << bits);
    if (fits)
      return out_.integer(v);
  } else if (is_float(t)) {
    const double v = load_element(t, at);
    store_element(t, v, back);
    if (same()) {
      if (t == ElementType::F64 || std::isnan(v))
        return out_.number(v);
      return out_.number(static_cast<float>(v));
    }
  } else if (t == ElementType::C64 || t == ElementType::C128) {
    double parts[2];
    for (size_t i = 0; i < 2; ++i) {
      const auto part = t == ElementType::C64 ? ElementType::F32 : ElementType::F64;
      parts[i] = load_element(part, at + i * size / 2);
      store_element(part, parts[i], back + i * size / 2);
    }
    if (same()) {
      out_.put("complex(");
      out_.number(parts[0]);
      out_.put(", ");
      out_.number(parts[1]);
      return out_.put(')');
    }
  }
  out_.put("raw(\"");
  out_.bytes_hex(at, size);
  out_.put("\")");
}

void ValueWriter::constant_body(const Constant &c) {
  const ElementType t = c.type.element();
  const size_t size = static_cast<size_t>(element_bytes(t));
  const auto shape = c.type.shape();
  const i64 n = c.num_elements();
  if (!c.has_data)
    return out_.put("nodata");
  if (size == 0)
    return out_.put("hex<\"\">");
  if (c.dense_bytes() > options_.elide_bytes) {
    const ContentHash &h = c.hash();
    out_.put("elided<\"");
    out_.hex(h.high);
    out_.put('.');
    out_.hex(h.low);
    out_.put("\", ");
    out_.integer(c.dense_bytes());
    return out_.put('>');
  }
  if (n == 0)
    return out_.put("dense<[]>");
  const bool splat = !c.is_dense() &&
                     std::all_of(c.strides.begin(), c.strides.end(), [](i64 s) { return s == 0; });
  if (splat) {
    out_.put("splat<");
    element(t, c.data);
    return out_.put('>');
  }
  std::vector<std::byte> copy;
  const std::byte *data = c.data;
  if (!c.is_dense()) {
    copy.resize(c.dense_bytes());
    c.copy_dense(copy.data());
    data = copy.data();
  }
  if (static_cast<u64>(n) > options_.dense_elements) {
    out_.put("hex<\"");
    out_.bytes_hex(data, c.dense_bytes());
    return out_.put("\">");
  }
  out_.put("dense<");
  // Brackets open and close where the row-major index enters and leaves a dimension.
  std::vector<i64> counter(shape.size(), 0);
  out_.put(std::string(shape.size(), '['));
  for (i64 i = 0; i < n; ++i) {
    element(t, data + static_cast<size_t>(i) * size);
    size_t d = shape.size();
    size_t closed = 0;
    while (d > 0 && ++counter[d - 1] == shape[d - 1].value()) {
      counter[--d] = 0;
      out_.put(']');
      ++closed;
    }
    if (i + 1 < n) {
      out_.put(", ");
      out_.put(std::string(closed, '['));
    }
  }
  out_.put('>');
}

} // namespace chute::ir
