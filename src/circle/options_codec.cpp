#include "circle/options_codec.h"

#include "circle/element.h"
#include "support/check.h"

#include <limits>
#include <string>

namespace chute::circle {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::uoffset_t;
using flatbuffers::voffset_t;
using ir::Attr;

voffset_t vtable_slot(const Field &f) { return static_cast<voffset_t>(4 + 2 * f.slot); }

tl::unexpected<Diagnostic> bad_field(const OptionsDef &def, const Field &f, std::string why) {
  return fail(ErrorKind::BadInput, "circle.operator.option",
              "field '" + std::string(f.name) + "' " + std::move(why), std::string(def.name));
}

bool is_child(FieldType t) {
  return t == FieldType::String || t == FieldType::Bytes || t == FieldType::Ints ||
         t == FieldType::UInts || t == FieldType::Longs || t == FieldType::Floats ||
         t == FieldType::Bools || t == FieldType::Subgraphs;
}

/// A list of integers as 32 or 64 bits wide; a symbolic element is the wire's "unknown", -1.
template <class T>
bool narrow(std::span<const ir::SymInt> values, std::vector<T> &out) {
  for (ir::SymInt v : values) {
    const i64 x = v.is_symbolic() ? -1 : v.value();
    if (static_cast<i64>(static_cast<T>(x)) != x)
      return false;
    out.push_back(static_cast<T>(x));
  }
  return true;
}

template <class T>
Result<uoffset_t> integers(FlatBufferBuilder &fbb, const OptionsDef &def, const Field &f, Attr a) {
  std::vector<T> values;
  if (!narrow<T>(a.as_ints(), values))
    return bad_field(def, f, "holds a number that does not fit");
  return fbb.CreateVector(values).o;
}

Result<uoffset_t> encode_child(FlatBufferBuilder &fbb, const OptionsDef &def, const Field &f,
                               const ir::Op &op, std::span<const i32> subgraphs) {
  if (f.type == FieldType::Subgraphs)
    return fbb.CreateVector(subgraphs.data(), subgraphs.size()).o;
  const Attr a = op.attr(static_cast<u32>(f.attr));
  switch (f.type) {
  case FieldType::String: return fbb.CreateString(a.as_string().data(), a.as_string().size()).o;
  case FieldType::Bytes:
    return fbb
        .CreateVector(reinterpret_cast<const u8 *>(a.as_string().data()), a.as_string().size())
        .o;
  case FieldType::Ints: return integers<i32>(fbb, def, f, a);
  case FieldType::UInts: return integers<u32>(fbb, def, f, a);
  case FieldType::Longs: return integers<i64>(fbb, def, f, a);
  case FieldType::Floats: {
    std::vector<float> values;
    for (double v : a.as_floats())
      values.push_back(static_cast<float>(v));
    return fbb.CreateVector(values).o;
  }
  default: {
    std::vector<u8> values;
    for (bool v : a.as_bools())
      values.push_back(v);
    return fbb.CreateVector(values).o;
  }
  }
}

Status encode_scalar(FlatBufferBuilder &fbb, const OptionsDef &def, const Field &f, Attr a) {
  const voffset_t slot = vtable_slot(f);
  switch (f.type) {
  case FieldType::Bool:
    fbb.AddElement<u8>(slot, a.as_bool(), static_cast<u8>(f.wire_default));
    return {};
  case FieldType::Float:
    fbb.AddElement<float>(slot, static_cast<float>(a.as_float()),
                          static_cast<float>(f.wire_default));
    return {};
  case FieldType::TensorType: {
    const auto wire = to_wire_type(a.as_element());
    if (!wire)
      return bad_field(def, f,
                       "is " + std::string(ir::element_type_name(a.as_element())) +
                           ", a type that Circle does not have");
    fbb.AddElement<i8>(slot, *wire, static_cast<i8>(f.wire_default));
    return {};
  }
  case FieldType::Enum: {
    const EnumDef &e = *f.enumeration;
    for (size_t i = 0; i < e.names.size(); ++i)
      if (e.names[i] == a.as_string()) {
        if (e.bytes == 1)
          fbb.AddElement<i8>(slot, static_cast<i8>(e.values[i]), static_cast<i8>(f.wire_default));
        else
          fbb.AddElement<i32>(slot, static_cast<i32>(e.values[i]),
                              static_cast<i32>(f.wire_default));
        return {};
      }
    return bad_field(def, f,
                     "is no " + std::string(e.name) + ": '" + std::string(a.as_string()) + "'");
  }
  default: break;
  }
  if (a.as_int().is_symbolic())
    return bad_field(def, f, "is a symbolic integer");
  const i64 v = a.as_int().value();
  if (f.type == FieldType::Long) {
    fbb.AddElement<i64>(slot, v, f.wire_default);
  } else if (f.type == FieldType::UInt) {
    if (v < 0 || v > std::numeric_limits<u32>::max())
      return bad_field(def, f, "does not fit: " + std::to_string(v));
    fbb.AddElement<u32>(slot, static_cast<u32>(v), static_cast<u32>(f.wire_default));
  } else {
    if (v != static_cast<i32>(v))
      return bad_field(def, f, "does not fit: " + std::to_string(v));
    fbb.AddElement<i32>(slot, static_cast<i32>(v), static_cast<i32>(f.wire_default));
  }
  return {};
}

} // namespace

Result<flatbuffers::Offset<void>> encode_options(FlatBufferBuilder &fbb, const OptionsDef &def,
                                                 const ir::Op &op, std::span<const i32> subgraphs) {
  uoffset_t children[32] = {};
  CHUTE_CHECK(def.fields.size() <= std::size(children), "options table too wide");
  size_t next_subgraph = 0;
  for (size_t i = 0; i < def.fields.size(); ++i) {
    const Field &f = def.fields[i];
    if (!is_child(f.type))
      continue;
    auto child = encode_child(fbb, def, f, op, subgraphs.subspan(next_subgraph));
    if (!child)
      return tl::unexpected(child.error());
    children[i] = *child;
  }
  const uoffset_t start = fbb.StartTable();
  for (size_t i = 0; i < def.fields.size(); ++i) {
    const Field &f = def.fields[i];
    if (is_child(f.type)) {
      fbb.AddOffset(vtable_slot(f), flatbuffers::Offset<void>(children[i]));
    } else if (f.type == FieldType::Subgraph) {
      CHUTE_CHECK(next_subgraph < subgraphs.size(), "one region per subgraph reference");
      fbb.AddElement<i32>(vtable_slot(f), subgraphs[next_subgraph++], 0);
    } else if (Status s = encode_scalar(fbb, def, f, op.attr(static_cast<u32>(f.attr))); !s) {
      return tl::unexpected(s.error());
    }
  }
  return flatbuffers::Offset<void>(fbb.EndTable(start));
}

namespace {

template <class T>
std::vector<ir::SymInt> read_integers(const flatbuffers::Vector<T> *v) {
  std::vector<ir::SymInt> out;
  if (v)
    for (T x : *v)
      out.emplace_back(static_cast<i64>(x));
  return out;
}

template <class T>
const flatbuffers::Vector<T> *vector_of(const flatbuffers::Table *table, const Field &f) {
  return table ? table->GetPointer<const flatbuffers::Vector<T> *>(vtable_slot(f)) : nullptr;
}

template <class T>
i64 scalar_of(const flatbuffers::Table *table, const Field &f) {
  const auto fallback = static_cast<T>(f.wire_default);
  return static_cast<i64>(table ? table->GetField<T>(vtable_slot(f), fallback) : fallback);
}

/// The name of an enumerator; a number that the schema does not name is an error.
Result<Attr> decode_enum(const OptionsDef &def, const Field &f, i64 value, ir::Context &ctx) {
  const EnumDef &e = *f.enumeration;
  for (size_t i = 0; i < e.values.size(); ++i)
    if (e.values[i] == value)
      return ctx.string_attr(e.names[i]);
  return bad_field(def, f, "is no " + std::string(e.name) + ": " + std::to_string(value));
}

Result<Attr> decode_field(const OptionsDef &def, const Field &f, const flatbuffers::Table *table,
                          ir::Context &ctx) {
  switch (f.type) {
  case FieldType::Int: return Attr::of_int(scalar_of<i32>(table, f));
  case FieldType::UInt: return Attr::of_int(scalar_of<u32>(table, f));
  case FieldType::Long: {
    const i64 v = scalar_of<i64>(table, f);
    if (ir::SymInt::from_raw(v).is_symbolic())
      return bad_field(def, f, "is out of range");
    return Attr::of_int(v);
  }
  case FieldType::Bool: return Attr::of_bool(scalar_of<u8>(table, f) != 0);
  case FieldType::Float: {
    const auto fallback = static_cast<float>(f.wire_default);
    return Attr::of_float(
        static_cast<double>(table ? table->GetField<float>(vtable_slot(f), fallback) : fallback));
  }
  case FieldType::TensorType: {
    const i64 wire = scalar_of<i8>(table, f);
    const auto element = from_wire_type(static_cast<i8>(wire));
    if (!element)
      return bad_field(def, f, "is no TensorType: " + std::to_string(wire));
    return Attr::of_element(*element);
  }
  case FieldType::Enum:
    return decode_enum(
        def, f, f.enumeration->bytes == 1 ? scalar_of<i8>(table, f) : scalar_of<i32>(table, f),
        ctx);
  case FieldType::Ints: return ctx.ints_attr(read_integers(vector_of<i32>(table, f)));
  case FieldType::UInts: return ctx.ints_attr(read_integers(vector_of<u32>(table, f)));
  case FieldType::Longs: {
    const auto values = read_integers(vector_of<i64>(table, f));
    for (ir::SymInt v : values)
      if (v.is_symbolic())
        return bad_field(def, f, "is out of range");
    return ctx.ints_attr(values);
  }
  case FieldType::Floats: {
    std::vector<double> values;
    if (const auto *v = vector_of<float>(table, f))
      for (float x : *v)
        values.push_back(static_cast<double>(x));
    return ctx.floats_attr(values);
  }
  case FieldType::Bools: {
    const auto *v = vector_of<u8>(table, f);
    std::unique_ptr<bool[]> values(new bool[v ? v->size() : 0]);
    for (uoffset_t i = 0; v && i < v->size(); ++i)
      values[i] = v->Get(i) != 0;
    return ctx.bools_attr(std::span<const bool>(values.get(), v ? v->size() : 0));
  }
  default: {
    // A string and a byte vector differ by a terminator only.
    const auto *v = vector_of<u8>(table, f);
    return ctx.string_attr(
        v ? std::string_view(reinterpret_cast<const char *>(v->data()), v->size())
          : std::string_view());
  }
  }
}

} // namespace

Status decode_options(const OptionsDef &def, const flatbuffers::Table *table, ir::Context &ctx,
                      std::vector<ir::Attr> &attrs, std::vector<i32> &subgraphs) {
  for (const Field &f : def.fields) {
    if (f.type == FieldType::Subgraph) {
      subgraphs.push_back(static_cast<i32>(scalar_of<i32>(table, f)));
      continue;
    }
    if (f.type == FieldType::Subgraphs) {
      if (const auto *v = vector_of<i32>(table, f))
        subgraphs.insert(subgraphs.end(), v->begin(), v->end());
      continue;
    }
    auto attr = decode_field(def, f, table, ctx);
    if (!attr)
      return tl::unexpected(attr.error());
    attrs.push_back(*attr);
  }
  return {};
}

} // namespace chute::circle
