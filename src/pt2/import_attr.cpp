// Arguments as attributes: literals by the kinds of the operator's table, everything by its own
// kind.

#include "pt2/import.h"

#include "pt2/dtype.h"

namespace chute::pt2 {

using ir::Attr;
using ir::AttrKind;
using ir::AttrSpec;
using ir::AttrType;
using ir::ElementType;

// ------------------------------------------------------------------------------------

/// Done, or Failed when the kind does not fit, or Fallback when the value exists at run time only.
Importer::Outcome Importer::attr(const Decoded &d, const Item &item, const AttrSpec &spec,
                                 Attr &out) {
  const auto wrong = [&] {
    bad("pt2.node.argument", "argument '" + std::string(spec.name) + "' has the wrong kind");
    return Outcome::Failed;
  };
  if (item.tag == ArgTag::None) {
    if (!spec.nullable && spec.type != AttrType::Any)
      return wrong();
    out = Attr::none();
    return Outcome::Done;
  }
  const auto is_number = [](ArgTag t) {
    return t == ArgTag::Int || t == ArgTag::Float || t == ArgTag::Bool || t == ArgTag::SymInt ||
           t == ArgTag::SymFloat || t == ArgTag::SymBool;
  };
  // An empty list of unknown element type arrives as an empty tensor list.
  const bool empty = item.tag == ArgTag::Tensors && item.count == 0;
  switch (spec.type) {
  case AttrType::Int:
  case AttrType::Float:
  case AttrType::Bool:
  case AttrType::Scalar: {
    if (item.tag == ArgTag::Complex && spec.type == AttrType::Scalar) {
      out = ctx_.complex_attr(d.items[item.first].f, d.items[item.first + 1].f);
      return Outcome::Done;
    }
    if (item.tag == ArgTag::ScalarType &&
        spec.type == AttrType::Int) { // an int? dtype in old schemas
      out = Attr::of_int(item.i);
      return Outcome::Done;
    }
    if (!is_number(item.tag))
      return wrong();
    if (!sym_attr(item, out))
      return Outcome::Failed;
    if (out.is_none())
      return Outcome::Fallback;
    const bool literal = out.kind() != AttrKind::Int || out.as_int().is_static();
    if (spec.type == AttrType::Int) {
      if (out.kind() == AttrKind::Bool)
        out = Attr::of_int(out.as_bool() ? 1 : 0);
      else if (out.kind() == AttrKind::Float)
        return wrong();
    } else if (spec.type == AttrType::Float) {
      if (!literal)
        return Outcome::Fallback;
      out = Attr::of_float(out.scalar_as_double());
    } else if (spec.type == AttrType::Bool) {
      if (!literal)
        return Outcome::Fallback;
      if (out.kind() == AttrKind::Float)
        return wrong();
      out = Attr::of_bool(out.scalar_as_double() != 0);
    }
    return Outcome::Done;
  }
  case AttrType::String:
    if (item.tag != ArgTag::String && item.tag != ArgTag::Device && item.tag != ArgTag::Operator)
      return wrong();
    out = ctx_.string_attr(item.string());
    return Outcome::Done;
  case AttrType::Element: {
    if (item.tag != ArgTag::ScalarType)
      return wrong();
    const std::optional<ElementType> e = element_of_code(item.i);
    if (!e) {
      bad("pt2.value.dtype", "unknown element type code " + std::to_string(item.i));
      return Outcome::Failed;
    }
    out = Attr::of_element(*e);
    return Outcome::Done;
  }
  case AttrType::Ints:
  case AttrType::OptInts:
  case AttrType::Floats:
  case AttrType::Bools:
  case AttrType::Scalars: {
    const bool list =
        item.tag == ArgTag::Ints || item.tag == ArgTag::Floats || item.tag == ArgTag::Bools;
    if (!list && !empty && !is_number(item.tag))
      return wrong();
    const std::span<const Item> elements = list ? std::span(d.items).subspan(item.first, item.count)
                                           : empty ? std::span<const Item>()
                                                   : std::span(&item, 1);
    const bool floats = spec.type == AttrType::Floats ||
                        (spec.type == AttrType::Scalars && item.tag == ArgTag::Floats);
    boost::container::small_vector<ir::SymInt, 8> ints;
    boost::container::small_vector<double, 8> reals;
    boost::container::small_vector<bool, 8> bools;
    for (const Item &e : elements) {
      Attr a;
      if (!sym_attr(e, a))
        return Outcome::Failed;
      if (a.is_none())
        return Outcome::Fallback;
      const bool literal = a.kind() != AttrKind::Int || a.as_int().is_static();
      if (floats || spec.type == AttrType::Bools) {
        if (!literal)
          return Outcome::Fallback;
        reals.push_back(a.scalar_as_double());
        bools.push_back(a.scalar_as_double() != 0);
      } else if (a.kind() == AttrKind::Float) {
        return wrong();
      } else {
        ints.push_back(a.kind() == AttrKind::Bool ? ir::SymInt(a.as_bool()) : a.as_int());
      }
    }
    if (floats)
      out = ctx_.floats_attr({reals.data(), reals.size()});
    else if (spec.type == AttrType::Bools)
      out = ctx_.bools_attr({bools.data(), bools.size()});
    else
      out = ctx_.ints_attr({ints.data(), ints.size()});
    return Outcome::Done;
  }
  case AttrType::Strings: {
    if (item.tag != ArgTag::Strings && !empty)
      return wrong();
    std::vector<std::string_view> strings;
    for (u32 i = 0; i < item.count; ++i)
      strings.push_back(d.items[item.first + i].string());
    out = ctx_.strings_attr(strings);
    return Outcome::Done;
  }
  case AttrType::Any: {
    Values operands;
    std::vector<ir::Region *> regions;
    if (!any_attr(d, item, operands, regions, out))
      return Outcome::Failed;
    return operands.empty() && regions.empty() ? Outcome::Done : Outcome::Fallback;
  }
  default: return wrong();
  }
}

/// Any argument as an attribute; tensors become operands, graphs regions.
bool Importer::any_attr(const Decoded &d, const Item &item, Values &operands,
                        std::vector<ir::Region *> &regions, Attr &out, int depth) {
  if (depth > 32)
    return bad("pt2.node.argument", "arguments are nested too deeply");
  const auto add_operand = [&](std::string_view name) {
    ir::Value *v = value(name);
    if (!v)
      return false;
    out = Attr::of_operand(static_cast<u32>(operands.size()));
    operands.push_back(v);
    return true;
  };
  switch (item.tag) {
  case ArgTag::None: out = Attr::none(); return true;
  case ArgTag::Tensor:
  case ArgTag::CustomObj: return add_operand(item.string());
  case ArgTag::Int:
  case ArgTag::Float:
  case ArgTag::Bool:
  case ArgTag::SymInt:
  case ArgTag::SymFloat:
  case ArgTag::SymBool:
    if (!sym_attr(item, out))
      return false;
    return !out.is_none() || add_operand(item.string());
  case ArgTag::String:
  case ArgTag::Device:
  case ArgTag::Operator: out = ctx_.string_attr(item.string()); return true;
  case ArgTag::ScalarType: {
    const std::optional<ElementType> e = element_of_code(item.i);
    out = e ? Attr::of_element(*e) : Attr::of_int(item.i);
    return true;
  }
  case ArgTag::Layout:
  case ArgTag::MemoryFormat: out = Attr::of_int(item.i); return true;
  case ArgTag::Complex:
    out = ctx_.complex_attr(d.items[item.first].f, d.items[item.first + 1].f);
    return true;
  case ArgTag::Graph: {
    ir::Region *r = region(item.string());
    if (!r)
      return false;
    out = Attr::of_region(static_cast<u32>(regions.size()));
    regions.push_back(r);
    return true;
  }
  case ArgTag::Unknown:
    return fail(ErrorKind::Unsupported, "pt2.node.argument",
                "an argument has the unknown form '" + std::string(item.string().substr(0, 80)) +
                    "', which newer files may have");
  default: break;
  }
  std::vector<Attr> list(item.count);
  bool all_ints = true, all_floats = true, all_bools = true, all_strings = true;
  for (u32 i = 0; i < item.count; ++i) {
    if (!any_attr(d, d.items[item.first + i], operands, regions, list[i], depth + 1))
      return false;
    all_ints &= list[i].kind() == AttrKind::Int;
    all_floats &= list[i].kind() == AttrKind::Float;
    all_bools &= list[i].kind() == AttrKind::Bool;
    all_strings &= list[i].kind() == AttrKind::String;
  }
  if (item.tag == ArgTag::Ints && all_ints) {
    std::vector<ir::SymInt> v;
    for (const Attr &a : list)
      v.push_back(a.as_int());
    out = ctx_.ints_attr(v);
  } else if (item.tag == ArgTag::Floats && all_floats) {
    std::vector<double> v;
    for (const Attr &a : list)
      v.push_back(a.as_float());
    out = ctx_.floats_attr(v);
  } else if (item.tag == ArgTag::Bools && all_bools) {
    boost::container::small_vector<bool, 8> v;
    for (const Attr &a : list)
      v.push_back(a.as_bool());
    out = ctx_.bools_attr({v.data(), v.size()});
  } else if (item.tag == ArgTag::Strings && all_strings) {
    std::vector<std::string_view> v;
    for (const Attr &a : list)
      v.push_back(a.as_string());
    out = ctx_.strings_attr(v);
  } else {
    out = ctx_.list_attr(list);
  }
  return true;
}

} // namespace chute::pt2
