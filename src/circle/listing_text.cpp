#include "circle/listing_text.h"

#include "circle/element.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace chute::circle {

namespace cs = ::circle;

std::string size_text(u64 bytes) {
  if (bytes < 1000)
    return std::to_string(bytes) + " B";
  constexpr std::string_view kUnits[] = {"kB", "MB", "GB", "TB"};
  double v = static_cast<double>(bytes) * 1e-3;
  size_t unit = 0;
  for (; v >= 999.95 && unit + 1 < std::size(kUnits); ++unit)
    v *= 1e-3;
  char text[40];
  std::snprintf(text, sizeof(text), "%.1f %s", v, kUnits[unit].data());
  return text;
}

std::string plural(u64 n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

void append_type(std::string &out, const cs::Tensor &t) {
  const auto element = from_wire_type(static_cast<i8>(t.type()));
  out += element ? ir::element_type_name(*element) : std::string_view("?");
  out += '[';
  const auto *signature = t.shape_signature();
  for (u32 i = 0; i < size_of(t.shape()); ++i) {
    if (i)
      out += ',';
    if (i < size_of(signature) && signature->Get(i) == -1)
      out += '?';
    else
      out += std::to_string(t.shape()->Get(i));
  }
  out += ']';
}

i64 zero_point(const cs::QuantizationParameters &q, u32 i) {
  i64 out = 0;
  if (i < size_of(q.zero_point()))
    std::memcpy(&out, q.zero_point()->Data() + i * sizeof(i64), sizeof(i64));
  return out;
}

Scheme scheme_of(const cs::Tensor &t) {
  const cs::QuantizationParameters *q = t.quantization();
  if (!q)
    return Scheme::None;
  switch (q->details_type()) {
  case cs::QuantizationDetails_BlockwiseQuantization: return Scheme::Block;
  case cs::QuantizationDetails_MXQuantization: return Scheme::MX;
  case cs::QuantizationDetails_CustomQuantization: return Scheme::Custom;
  default: break;
  }
  const u32 n = size_of(q->scale());
  return n == 0 ? Scheme::None : n == 1 ? Scheme::PerTensor : Scheme::PerChannel;
}

void append_quantization(std::string &out, const cs::Tensor &t) {
  const cs::QuantizationParameters *q = t.quantization();
  switch (scheme_of(t)) {
  case Scheme::None: return;
  case Scheme::PerTensor:
    out += "scale " + number(q->scale()->Get(0));
    if (const i64 z = zero_point(*q, 0))
      out += " zero point " + std::to_string(z);
    return;
  case Scheme::PerChannel: {
    const u32 shown = std::min(q->scale()->size(), u32{4096});
    const auto [low, high] = std::minmax_element(q->scale()->begin(), q->scale()->begin() + shown);
    out += std::to_string(q->scale()->size()) + " scales " + number(*low) + ".." + number(*high) +
           " along dimension " + std::to_string(q->quantized_dimension());
    return;
  }
  case Scheme::Block: {
    const auto *b = q->details_as_BlockwiseQuantization();
    out += "blocks of " + std::to_string(b ? b->block_size() : 0) + ", scales in tensor " +
           std::to_string(b ? b->scales() : -1);
    return;
  }
  default: out += kSchemes[static_cast<size_t>(scheme_of(t))]; return;
  }
}

namespace {

template <class T>
std::string list_text(const flatbuffers::Vector<T> *v) {
  if (!v)
    return {};
  std::string out = "[";
  for (u32 i = 0; i < v->size() && i < 64; ++i) {
    const auto x = static_cast<double>(v->Get(i));
    out += (i ? "," : "") + (std::isfinite(x) ? number(x) : json_quote(number(x)));
  }
  return out + (v->size() > 64 ? ",\"…\"]" : "]");
}

} // namespace

std::string field_text(const flatbuffers::Table &table, const Field &f) {
  const auto slot = static_cast<flatbuffers::voffset_t>(4 + 2 * f.slot);
  const auto integer = [&](i64 v) {
    return v == f.wire_default ? std::string() : std::to_string(v);
  };
  switch (f.type) {
  case FieldType::Int:
  case FieldType::Subgraph:
    return integer(table.GetField<i32>(slot, static_cast<i32>(f.wire_default)));
  case FieldType::UInt: return integer(table.GetField<u32>(slot, static_cast<u32>(f.wire_default)));
  case FieldType::Long: return integer(table.GetField<i64>(slot, f.wire_default));
  case FieldType::Bool: {
    const bool v = table.GetField<u8>(slot, static_cast<u8>(f.wire_default)) != 0;
    return v == (f.wire_default != 0) ? "" : v ? "true" : "false";
  }
  case FieldType::Float: {
    const float v = table.GetField<float>(slot, static_cast<float>(f.wire_default));
    if (v == static_cast<float>(f.wire_default))
      return {};
    return std::isfinite(v) ? number(v) : json_quote(number(v));
  }
  case FieldType::TensorType: {
    const auto wire = table.GetField<i8>(slot, static_cast<i8>(f.wire_default));
    const auto element = from_wire_type(wire);
    return wire == f.wire_default ? std::string()
                                  : json_quote(element ? ir::element_type_name(*element) : "?");
  }
  case FieldType::Enum: {
    const i64 v = f.enumeration->bytes == 1
                      ? table.GetField<i8>(slot, static_cast<i8>(f.wire_default))
                      : table.GetField<i32>(slot, static_cast<i32>(f.wire_default));
    if (v == f.wire_default)
      return {};
    for (size_t i = 0; i < f.enumeration->values.size(); ++i)
      if (f.enumeration->values[i] == v)
        return json_quote(f.enumeration->names[i]);
    return std::to_string(v);
  }
  case FieldType::Ints:
  case FieldType::Subgraphs:
    return list_text(table.GetPointer<const flatbuffers::Vector<i32> *>(slot));
  case FieldType::UInts: return list_text(table.GetPointer<const flatbuffers::Vector<u32> *>(slot));
  case FieldType::Bools: return list_text(table.GetPointer<const flatbuffers::Vector<u8> *>(slot));
  case FieldType::Floats:
    return list_text(table.GetPointer<const flatbuffers::Vector<float> *>(slot));
  case FieldType::Longs: // may lie misaligned
  case FieldType::Bytes: {
    const auto *v = table.GetPointer<const flatbuffers::Vector<u8> *>(slot);
    return v ? json_quote(plural(v->size(), f.type == FieldType::Bytes ? "byte" : "number")) : "";
  }
  case FieldType::String: {
    const auto *v = table.GetPointer<const flatbuffers::String *>(slot);
    return v ? json_quote(v->string_view()) : "";
  }
  }
  return {};
}

} // namespace chute::circle
