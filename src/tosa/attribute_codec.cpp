#include "tosa/attribute_codec.h"

#include "ir/element_convert.h"
#include "support/check.h"
#include "tosa/element.h"

#include <limits>

namespace chute::tosa {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::uoffset_t;
using flatbuffers::voffset_t;
using ir::Attr;
using ir::ElementType;

voffset_t vtable_slot(size_t slot) { return static_cast<voffset_t>(4 + 2 * slot); }

tl::unexpected<Diagnostic> bad_attribute(const ir::Op &op, const Field &f, std::string why) {
  return fail(ErrorKind::Failure, "tosa.write.attribute",
              "attribute '" + std::string(f.name) + "' " + std::move(why), std::string(op.name()));
}

bool is_child(FieldType t) {
  return t == FieldType::Ints || t == FieldType::Text || t == FieldType::Bytes ||
         t == FieldType::Number || t == FieldType::Region;
}

bool fits(ir::SymInt v) {
  return v.is_static() && v.value() >= std::numeric_limits<i32>::min() &&
         v.value() <= std::numeric_limits<i32>::max();
}

Result<uoffset_t> encode_number(FlatBufferBuilder &fbb, const ir::Op &op, const Field &f, Attr a) {
  const ElementType e = op.operand(0)->type().element();
  const int size = ir::element_bytes(e);
  if (size < 1 || size > 8)
    return bad_attribute(op, f, "belongs to a type without numbers");
  std::byte bytes[8] = {};
  if (ir::is_float(e))
    ir::store_element(e, a.scalar_as_double(), bytes);
  else
    ir::store_element_int(
        e, a.kind() == ir::AttrKind::Float ? static_cast<i64>(a.as_float()) : a.as_int().value(),
        bytes);
  fbb.ForceVectorAlignment(static_cast<size_t>(size), 1, 8);
  return fbb.CreateVector(reinterpret_cast<const u8 *>(bytes), static_cast<size_t>(size)).o;
}

Result<uoffset_t> encode_child(FlatBufferBuilder &fbb, const ir::Op &op, const Field &f, Attr a) {
  switch (f.type) {
  case FieldType::Ints: {
    std::vector<i32> values;
    for (ir::SymInt v : a.as_ints()) {
      if (!fits(v))
        return bad_attribute(op, f, "holds a number that does not fit");
      values.push_back(static_cast<i32>(v.value()));
    }
    return fbb.CreateVector(values).o;
  }
  case FieldType::Number: return encode_number(fbb, op, f, a);
  case FieldType::Text: return fbb.CreateString(a.as_string().data(), a.as_string().size()).o;
  default:
    return fbb
        .CreateVector(reinterpret_cast<const u8 *>(a.as_string().data()), a.as_string().size())
        .o;
  }
}

Status encode_scalar(FlatBufferBuilder &fbb, const ir::Op &op, const Field &f, size_t slot,
                     Attr a) {
  switch (f.type) {
  case FieldType::Bool: fbb.AddElement<u8>(vtable_slot(slot), a.as_bool(), 0); return {};
  case FieldType::Int:
    if (!fits(a.as_int()))
      return bad_attribute(op, f, "does not fit");
    fbb.AddElement<i32>(vtable_slot(slot), static_cast<i32>(a.as_int().value()), 0);
    return {};
  case FieldType::Element: {
    const auto type = to_wire_type(a.as_element());
    if (!type)
      return bad_attribute(op, f, "is a type that TOSA does not have");
    fbb.AddElement<u32>(vtable_slot(slot), *type, 0);
    return {};
  }
  default:
    for (const auto &[name, value] : f.enumeration->values)
      if (name == a.as_string()) {
        fbb.AddElement<u32>(vtable_slot(slot), value, 0);
        return {};
      }
    return bad_attribute(op, f, "is no " + std::string(f.enumeration->name));
  }
}

} // namespace

Result<flatbuffers::Offset<void>> encode_attributes(FlatBufferBuilder &fbb, const ir::Op &op,
                                                    std::span<const std::string> regions) {
  const WireDef &def = wire(op.opcode());
  uoffset_t children[16] = {};
  CHUTE_CHECK(def.fields.size() <= std::size(children), "attribute table too wide");
  size_t next_region = 0;
  for (size_t i = 0; i < def.fields.size(); ++i) {
    const Field &f = def.fields[i];
    if (f.type == FieldType::Region) {
      CHUTE_CHECK(next_region < regions.size(), "one region per graph name");
      children[i] = fbb.CreateString(regions[next_region++]).o;
    } else if (is_child(f.type)) {
      auto child = encode_child(fbb, op, f, op.attr(static_cast<u32>(f.attr)));
      if (!child)
        return tl::unexpected(child.error());
      children[i] = *child;
    }
  }
  const uoffset_t start = fbb.StartTable();
  for (size_t i = 0; i < def.fields.size(); ++i) {
    const Field &f = def.fields[i];
    if (is_child(f.type)) {
      fbb.AddOffset(vtable_slot(i), flatbuffers::Offset<void>(children[i]));
    } else if (Status s = encode_scalar(fbb, op, f, i, op.attr(static_cast<u32>(f.attr))); !s) {
      return tl::unexpected(s.error());
    }
  }
  return flatbuffers::Offset<void>(fbb.EndTable(start));
}

namespace {

tl::unexpected<Diagnostic> bad_field(const WireDef &def, const Field &f, std::string why) {
  return fail(ErrorKind::BadInput, "tosa.read.attribute",
              "attribute '" + std::string(f.name) + "' " + std::move(why), std::string(def.id));
}

template <class T>
const flatbuffers::Vector<T> *vector_of(const flatbuffers::Table *table, size_t slot) {
  return table ? table->GetPointer<const flatbuffers::Vector<T> *>(vtable_slot(slot)) : nullptr;
}

std::string_view bytes_of(const flatbuffers::Table *table, size_t slot) {
  const auto *v = vector_of<u8>(table, slot); // a string differs by its terminator only
  return v ? std::string_view(reinterpret_cast<const char *>(v->data()), v->size())
           : std::string_view();
}

Result<Attr> decode_field(const WireDef &def, const Field &f, size_t slot,
                          const flatbuffers::Table *table, ElementType element, ir::Context &ctx) {
  const voffset_t at = vtable_slot(slot);
  switch (f.type) {
  case FieldType::Int:
    return Attr::of_int(static_cast<i64>(table ? table->GetField<i32>(at, 0) : 0));
  case FieldType::Bool: return Attr::of_bool(table && table->GetField<u8>(at, 0) != 0);
  case FieldType::Ints: {
    std::vector<ir::SymInt> values;
    if (const auto *v = vector_of<i32>(table, slot))
      for (i32 x : *v)
        values.emplace_back(static_cast<i64>(x));
    return ctx.ints_attr(values);
  }
  case FieldType::Element: {
    const u32 code = table ? table->GetField<u32>(at, 0) : 0;
    const auto e = from_wire_type(code);
    if (!e)
      return bad_field(def, f, "is no element type: " + std::to_string(code));
    return Attr::of_element(*e);
  }
  case FieldType::Number: {
    const std::string_view bytes = bytes_of(table, slot);
    const int size = ir::element_bytes(element);
    if (size < 1 || bytes.size() != static_cast<size_t>(size))
      return bad_field(def, f,
                       "has " + std::to_string(bytes.size()) + " bytes, not those of one " +
                           std::string(ir::element_type_name(element)));
    const auto *data = reinterpret_cast<const std::byte *>(bytes.data());
    if (ir::is_float(element))
      return Attr::of_float(ir::load_element(element, data));
    const i64 v = ir::load_element_int(element, data);
    if (ir::SymInt::from_raw(v).is_symbolic())
      return bad_field(def, f, "is out of range");
    return Attr::of_int(v);
  }
  case FieldType::Enum: {
    const u32 code = table ? table->GetField<u32>(at, 0) : 0;
    for (const auto &[name, value] : f.enumeration->values)
      if (value == code)
        return ctx.string_attr(name);
    return bad_field(def, f,
                     "is no " + std::string(f.enumeration->name) + ": " + std::to_string(code));
  }
  default: return ctx.string_attr(bytes_of(table, slot));
  }
}

} // namespace

Status decode_attributes(const WireDef &def, const flatbuffers::Table *table, ElementType element,
                         ir::Context &ctx, std::vector<Attr> &attrs,
                         std::vector<std::string> &regions) {
  for (size_t i = 0; i < def.fields.size(); ++i) {
    const Field &f = def.fields[i];
    if (f.type == FieldType::Region) {
      regions.emplace_back(bytes_of(table, i));
      continue;
    }
    auto attr = decode_field(def, f, i, table, element, ctx);
    if (!attr)
      return tl::unexpected(attr.error());
    attrs.push_back(*attr);
  }
  return {};
}

} // namespace chute::tosa
