// Names, types and symbols: what the tables behind a graph's nodes say.

#include "pt2/import.h"

#include "aten/ops.h"
#include "ir/builder.h"
#include "ir/sym_table.h"
#include "pt2/dtype.h"
#include "pt2/srepr.h"

#include <bit>
#include <cstring>

namespace chute::pt2 {

using ir::Attr;
using ir::AttrKind;
using ir::ElementType;

std::string_view Importer::plain(std::string_view raw) {
  if (raw.find('\\') == raw.npos)
    return raw;
  return strings_.emplace_back(unescape(raw).value_or(std::string(raw)));
}

Importer::Name &Importer::declare(ir::StringId id) {
  if (id.id >= names_.size())
    names_.resize(std::max<size_t>(id.id + 1, names_.size() * 2));
  Name &n = names_[id.id];
  if (n.scope != scope_) {
    if (depth_ > 0)
      saved_.emplace_back(id.id, n);
    n = Name{};
    n.scope = scope_;
  }
  return n;
}

Importer::Name *Importer::find(std::string_view name) {
  const ir::StringId id = ctx_.intern(name);
  return id.id < names_.size() && names_[id.id].scope == scope_ ? &names_[id.id] : nullptr;
}

ir::Value *Importer::value(std::string_view name) { return value(ctx_.intern(name)); }

ir::Value *Importer::value(ir::StringId id) {
  Name *n = id.id < names_.size() && names_[id.id].scope == scope_ ? &names_[id.id] : nullptr;
  if (n && n->value)
    return n->value;
  if (n && n->input >= 0) {
    ir::Value *v = materialize(n->input);
    if (v)
      names_[id.id].value = v;
    return v;
  }
  const std::string_view name = ctx_.string(id);
  bad("pt2.value.undefined", "value '" + std::string(name.substr(0, 200)) +
                                 (n ? "' is used before it is defined" : "' is not defined"));
  return nullptr;
}

bool Importer::bind(std::string_view name, ir::Value *value) {
  const ir::StringId id = ctx_.intern(name);
  Name &n = declare(id);
  if (n.value || n.input >= 0)
    return bad("pt2.value.redefined",
               "value '" + std::string(name.substr(0, 200)) + "' is defined twice");
  n.value = value;
  return true;
}

bool Importer::sym_expression(std::string_view srepr, ir::SymInt &out) {
  const ir::StringId id = ctx_.intern(srepr);
  if (const auto it = expressions_.find(id.id); it != expressions_.end()) {
    out = it->second;
    return true;
  }
  const std::optional<ir::SymInt> e = parse_srepr(srepr, ctx_.sym());
  if (!e)
    return bad("pt2.value.expression", "the symbolic expression '" +
                                           std::string(srepr.substr(0, 120)) + "' can not be read");
  expressions_.emplace(id.id, *e);
  out = *e;
  return true;
}

bool Importer::type_of_meta(Meta &known) {
  const std::string_view json = doc_.slice(known.text);
  scratch_.clear();
  RawTensorMeta meta;
  if (!decoder_.tensor_meta(json, scratch_, meta))
    return bad_decode(json);
  const std::optional<ElementType> element = element_of_code(meta.dtype);
  if (!element)
    return bad("pt2.value.dtype", "unknown element type code " + std::to_string(meta.dtype));
  if (meta.layout >= 1 && meta.layout <= 6)
    return fail(ErrorKind::Unsupported, "pt2.value.layout",
                "sparse and opaque tensor layouts are not supported",
                "make the tensor dense before exporting");
  boost::container::small_vector<ir::SymInt, 8> shape;
  for (const Item &dim : meta.sizes) {
    ir::SymInt d;
    if (dim.tag == ArgTag::Int) {
      if (dim.i < 0)
        return bad("pt2.value.shape", "a tensor has the negative size " + std::to_string(dim.i));
      d = dim.i;
    } else if (!sym_expression(dim.string(), d)) {
      return false;
    }
    shape.push_back(d);
  }
  known.type = ctx_.tensor_type(*element, std::span<const ir::SymInt>(shape.data(), shape.size()));
  return true;
}

bool Importer::sym_values(const std::vector<Member> &members, ArgTag kind) {
  for (const Member &m : members) {
    const std::string_view json = doc_.slice(m.value);
    scratch_.clear();
    Item item;
    if (!decoder_.sym_value(json, scratch_, item))
      return bad_decode(json);
    const ir::StringId id = ctx_.intern(plain(m.key));
    declare(id);
    Attr a;
    switch (item.tag) {
    case ArgTag::Int: a = Attr::of_int(item.i); break;
    case ArgTag::Float: a = Attr::of_float(item.f); break;
    case ArgTag::Bool: a = Attr::of_bool(item.b); break;
    case ArgTag::String: {
      if (kind == ArgTag::SymFloat) // has no form as an attribute: an operator computes it
        continue;
      ir::SymInt e;
      if (!sym_expression(item.string(), e))
        return false;
      a = Attr::of_int(e);
      break;
    }
    default: return bad_json(m.value.offset, "a symbolic value is empty");
    }
    syms_.insert_or_assign(id.id, a);
  }
  return true;
}

bool Importer::values(const GraphText &text) {
  for (const GraphText::TensorValue &v : text.tensor_values) {
    Meta &meta = metas_[v.meta];
    if (!meta.type && !type_of_meta(meta)) {
      error_.object = doc_.at(meta.text.offset) + " tensor_values";
      return false;
    }
    declare(v.name).type = meta.type;
  }
  return sym_values(text.sym_int_values, ArgTag::SymInt) &&
         sym_values(text.sym_bool_values, ArgTag::SymBool) &&
         sym_values(text.sym_float_values, ArgTag::SymFloat);
}

bool Importer::sym_attr(const Item &item, Attr &out) {
  switch (item.tag) {
  case ArgTag::Int: out = Attr::of_int(item.i); return true;
  case ArgTag::Float: out = Attr::of_float(item.f); return true;
  case ArgTag::Bool: out = Attr::of_bool(item.b); return true;
  default: break;
  }
  const ir::StringId id = ctx_.intern(item.string());
  if (const auto it = syms_.find(id.id); it != syms_.end()) {
    out = it->second;
    return true;
  }
  out = Attr::none();
  if (item.tag == ArgTag::SymFloat && find(item.string()))
    return true;
  return bad("pt2.value.undefined",
             "symbolic value '" + std::string(item.string().substr(0, 200)) + "' is not defined");
}

ir::Value *Importer::append(ir::Op *op) {
  graph_.append(*region_, op);
  return op->result();
}

ir::Value *Importer::size_value(Attr attr, ir::StringId name) {
  const ir::Type type = attr.kind() == AttrKind::Bool ? ctx_.bool_type() : ctx_.int_type();
  if (attr.kind() == AttrKind::Bool)
    attr = Attr::of_int(attr.as_bool() ? 1 : 0);
  ir::Op *op = graph_.create(ir::core_op::size, {}, {&attr, 1}, {&type, 1}, loc_);
  graph_.set_name(op->result(), name);
  return append(op);
}

ir::Value *Importer::scalar(Attr attr, ElementType element) {
  if (attr.kind() == AttrKind::Int && attr.as_int().is_symbolic()) {
    const ir::OpDef &def = ir::Registry::global().def(aten::op::scalar_tensor);
    boost::container::small_vector<Attr, 4> attrs(def.attrs.size());
    for (size_t i = 0; i < attrs.size(); ++i)
      attrs[i] = def.attrs[i].default_value;
    attrs[static_cast<size_t>(def.attr_index("s"))] = attr;
    if (const int slot = def.attr_index("dtype"); slot >= 0)
      attrs[static_cast<size_t>(slot)] = Attr::of_element(element);
    const ir::Type type = ctx_.tensor_type(element, {});
    return append(
        graph_.create(aten::op::scalar_tensor, {}, {attrs.data(), attrs.size()}, {&type, 1}, loc_));
  }
  ir::Builder builder(graph_, *region_);
  builder.set_loc(loc_);
  if (attr.kind() == AttrKind::Complex) {
    const float parts[2] = {static_cast<float>(attr.as_complex()[0]),
                            static_cast<float>(attr.as_complex()[1])};
    const auto exact = attr.as_complex();
    const std::span<const std::byte> bytes = element == ElementType::C128
                                                 ? std::as_bytes(exact)
                                                 : std::as_bytes(std::span<const float>(parts));
    if (element != ElementType::C128)
      element = ElementType::C64;
    return builder.constant(graph_.add_copy(ctx_.tensor_type(element, {}), bytes));
  }
  // Beyond 2^53 a double would round.
  const bool wide =
      attr.kind() == AttrKind::Int && (element == ElementType::I64 || element == ElementType::U64);
  const u64 key = wide ? attr.payload() : std::bit_cast<u64>(attr.scalar_as_double());
  ir::Value *&known = scalars_[static_cast<size_t>(element)][key];
  if (known)
    return known;
  if (wide) {
    const i64 v = attr.as_int().value();
    known = builder.constant(
        graph_.add_copy(ctx_.tensor_type(element, {}), std::as_bytes(std::span(&v, 1))));
  } else {
    known = builder.scalar(element, attr.scalar_as_double());
  }
  return known;
}

} // namespace chute::pt2
