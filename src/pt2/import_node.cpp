// One node: its target's row, its arguments, its results.

#include "pt2/import.h"

#include "aten/ops.h"
#include "aten/schema.h"
#include "ir/sym_table.h"

#include <bit>
#include <utility>

namespace chute::pt2 {

using ir::Attr;
using ir::AttrKind;
using ir::AttrSpec;
using ir::AttrType;
using ir::ElementType;
using ir::OperandArity;

namespace {

bool is_list(OperandArity a) {
  return a == OperandArity::Variadic || a == OperandArity::VariadicOptional;
}

/// Default lists are interned with the registry; attributes compare by their own context's address.
Attr reintern(ir::Context &ctx, Attr a) {
  switch (a.kind()) {
  case AttrKind::String: return ctx.string_attr(a.as_string());
  case AttrKind::Ints: return ctx.ints_attr(a.as_ints());
  case AttrKind::Floats: return ctx.floats_attr(a.as_floats());
  case AttrKind::Bools: return ctx.bools_attr(a.as_bools());
  default: return a;
  }
}

} // namespace

Target &Importer::target(std::string_view text) {
  if (const auto it = targets_.find(text); it != targets_.end())
    return *it->second;
  auto t = std::make_unique<Target>();
  constexpr std::string_view kOps = "torch.ops.";
  t->name = text.starts_with(kOps) ? text.substr(kOps.size()) : text;
  t->def = ir::Registry::global().find(t->name);
  if (t->name == "higher_order.wrap_with_set_grad_enabled") {
    t->kind = Target::Kind::Inline;
  } else if (t->name == "higher_order.wrap_with_autocast") {
    t->kind = Target::Kind::Autocast;
  } else if (t->def && t->def->has(ir::trait::kRegions)) {
    t->kind = Target::Kind::ControlFlow;
  } else if (t->def && !t->name.starts_with("core.")) {
    t->kind = Target::Kind::Registered;
  } else {
    t->def = nullptr;
  }
  if (t->def) {
    for (size_t i = 0; i < t->def->attrs.size(); ++i) {
      const AttrSpec &a = t->def->attrs[i];
      t->defaults.push_back(reintern(ctx_, a.default_value));
      if (!a.has_default && !a.nullable && a.name != "segments")
        t->required_attrs |= u64{1} << i;
    }
    const int training =
        std::max(t->def->attr_index("training"), t->def->attr_index("use_input_stats"));
    for (u32 i = 0; training >= 0 && i < t->def->operands.size(); ++i)
      if (t->def->operands[i].name.starts_with("running_"))
        t->statistics.push_back(i);
    t->training_attr = t->statistics.empty() ? -1 : training;
  }
  const std::string_view key = ctx_.string(ctx_.intern(text));
  return *targets_.emplace(key, std::move(t)).first->second;
}

i32 Importer::place(Target &t, size_t position, std::string_view name) {
  if (position < t.slots.size() && t.slots[position].name == name)
    return t.slots[position].place;
  i32 found = Target::kUnknown;
  std::string_view stable;
  if (const int slot = t.def->attr_index(name); slot >= 0) {
    found = slot;
    stable = t.def->attrs[static_cast<size_t>(slot)].name;
  } else {
    for (size_t i = 0; i < t.def->operands.size(); ++i)
      if (t.def->operands[i].name == name) {
        found = Target::operand_place(i);
        stable = t.def->operands[i].name;
      }
    if (found == Target::kUnknown && aten::is_ignored_argument(name)) {
      found = Target::kIgnored;
      stable = ctx_.string(ctx_.intern(name));
    }
  }
  if (found != Target::kUnknown && position < 64) {
    if (position >= t.slots.size())
      t.slots.resize(position + 1);
    t.slots[position] = {stable, found};
  }
  return found;
}

// --- operands
// --------------------------------------------------------------------------------------

/// Appends one tensor operand. A number is appended as null and noted in `scalars`.
Importer::Outcome Importer::operand(const Decoded &d, const Item &item, Values &out,
                                    std::vector<std::pair<size_t, Attr>> &scalars) {
  switch (item.tag) {
  case ArgTag::Tensor:
  case ArgTag::CustomObj: {
    ir::Value *v = value(item.string());
    if (!v)
      return Outcome::Failed;
    out.push_back(v);
    return Outcome::Done;
  }
  case ArgTag::None: out.push_back(nullptr); return Outcome::Done;
  case ArgTag::SymFloat:
    if (ir::Value *v = float_tensor(item)) {
      scalars.emplace_back(out.size(), Attr::none());
      out.push_back(v);
      return Outcome::Done;
    }
    [[fallthrough]];
  case ArgTag::Int:
  case ArgTag::Float:
  case ArgTag::Bool:
  case ArgTag::Complex:
  case ArgTag::SymInt:
  case ArgTag::SymBool: {
    Attr a;
    if (item.tag == ArgTag::Complex)
      a = ctx_.complex_attr(d.items[item.first].f, d.items[item.first + 1].f);
    else if (!sym_attr(item, a))
      return Outcome::Failed;
    if (a.is_none())
      return Outcome::Fallback;
    scalars.emplace_back(out.size(), a);
    out.push_back(nullptr);
    return Outcome::Done;
  }
  default: bad("pt2.node.argument", "a tensor argument has the wrong kind"); return Outcome::Failed;
  }
}

/// A Python number does not raise the element type within its category (bool, integer, float,
/// complex): it takes the tensors' type, or the default of a higher category.
bool Importer::fill_scalars(Values &operands, const std::vector<std::pair<size_t, Attr>> &scalars) {
  const auto category = [](ElementType e) {
    return ir::is_complex(e) ? 3 : ir::is_float(e) ? 2 : e == ElementType::Bool ? 0 : 1;
  };
  // A number that is computed is a tensor already: None in the place of its value.
  std::vector<std::pair<size_t, ir::Value *>> computed;
  for (const auto &[at, attr] : scalars)
    if (attr.is_none())
      computed.emplace_back(at, std::exchange(operands[at], nullptr));
  ElementType common = ElementType::None;
  for (const ir::Value *v : operands)
    if (v && v->type().is_tensor() &&
        (common == ElementType::None || category(v->type().element()) > category(common)))
      common = v->type().element();
  for (const auto &[at, v] : computed)
    operands[at] =
        cast(v, common != ElementType::None && category(common) >= 2 ? common : ElementType::F32);
  for (const auto &[at, attr] : scalars) {
    if (attr.is_none())
      continue;
    constexpr ElementType kDefault[] = {ElementType::Bool, ElementType::I64, ElementType::F32,
                                        ElementType::C64};
    const int own = attr.kind() == AttrKind::Complex ? 3
                    : attr.kind() == AttrKind::Float ? 2
                    : attr.kind() == AttrKind::Int   ? 1
                                                     : 0;
    const bool keeps = common != ElementType::None && category(common) >= own;
    ElementType e = keeps ? common : kDefault[own];
    if (ir::is_complex(e) && attr.kind() != AttrKind::Complex)
      e = e == ElementType::C128 ? ElementType::F64 : ElementType::F32;
    operands[at] = scalar(attr, e);
  }
  return true;
}

// --- results
// ---------------------------------------------------------------------------------------

bool Importer::result_types(const Decoded &d, const DecodedNode &n) {
  types_.clear();
  result_names_.clear();
  const auto add = [&](const Item &item) {
    ir::Type type = ctx_.none_type();
    ir::StringId name;
    switch (item.tag) {
    case ArgTag::None: break;
    case ArgTag::Tensor: {
      name = ctx_.intern(item.string());
      const Name *known =
          name.id < names_.size() && names_[name.id].scope == scope_ ? &names_[name.id] : nullptr;
      if (!known || !known->type)
        return bad("pt2.value.no_type", "result '" + std::string(item.string().substr(0, 200)) +
                                            "' has no recorded type");
      type = known->type;
      break;
    }
    case ArgTag::SymInt:
      name = ctx_.intern(item.string());
      type = ctx_.int_type();
      break;
    case ArgTag::SymFloat:
      name = ctx_.intern(item.string());
      type = ctx_.float_type();
      break;
    case ArgTag::SymBool:
      name = ctx_.intern(item.string());
      type = ctx_.bool_type();
      break;
    case ArgTag::CustomObj:
      name = ctx_.intern(item.string());
      type = ctx_.opaque_type();
      break;
    case ArgTag::Int: type = ctx_.int_type(); break;
    case ArgTag::Float: type = ctx_.float_type(); break;
    case ArgTag::Bool: type = ctx_.bool_type(); break;
    default: return bad("pt2.node.results", "a result has an unknown form");
    }
    types_.push_back(type);
    result_names_.push_back(name);
    return true;
  };
  for (u32 i = 0; i < n.num_outputs; ++i) {
    const Item &item = d.outputs[n.first_output + i];
    if (item.tag != ArgTag::Tensors) {
      if (!add(item))
        return false;
      continue;
    }
    for (u32 k = 0; k < item.count; ++k)
      if (!add(d.items[item.first + k]))
        return false;
  }
  return true;
}

/// Appends the operator and binds its results' names.
bool Importer::finish(ir::Op *op, const Target &t) {
  graph_.append(*region_, op);
  for (u32 i = 0; i < op->num_results(); ++i) {
    ir::Value *v = op->result(i);
    const ir::StringId name = result_names_[i];
    if (!name)
      continue;
    Name &known = declare(name);
    if (known.value || known.input >= 0)
      return bad("pt2.value.redefined",
                 "value '" + std::string(ctx_.string(name).substr(0, 200)) + "' is defined twice");
    known.value = v;
    ir::StringId shown = name;
    if (!v->type().is_tensor())
      // An Int that defines a symbol is named after it.
      if (const auto it = syms_.find(name.id); it != syms_.end() &&
                                               it->second.kind() == AttrKind::Int &&
                                               it->second.as_int().is_symbolic())
        if (const auto symbol = ctx_.sym().symbol_name(it->second.as_int()); !symbol.empty())
          shown = ctx_.intern(symbol);
    graph_.set_name(v, shown);
  }
  track_aliases(op, t);
  return true;
}

/// Follows parameters and buffers through views, to those that are written.
void Importer::track_aliases(ir::Op *op, const Target &t) {
  if (!t.def || op->num_operands() == 0 || aliases_.empty())
    return;
  const ir::trait::Set traits = t.def->traits;
  const auto alias = [&](u32 operand) -> u32 {
    const ir::Value *v = op->operand(operand);
    return v && v->id() < aliases_.size() ? aliases_[v->id()] : 0;
  };
  if (traits & (ir::trait::kView | ir::trait::kInPlace)) {
    if (const u32 found = alias(0)) {
      // detach_ and the like are in place in name only.
      inputs_[found - 1].written |=
          (traits & (ir::trait::kInPlace | ir::trait::kNoOp)) == ir::trait::kInPlace;
      for (const ir::Value &r : op->results())
        set_alias(r, found - 1);
    }
  }
  // Batch norms write their statistics in training without saying so in their signature; those of
  // the functional dialects return them instead.
  if (training_ && t.training_attr >= 0 && op->attr(static_cast<u32>(t.training_attr)).as_bool())
    for (const u32 spec : t.statistics)
      if (const auto s = op->segment(spec); s.count == 1 && op->operand(s.first))
        if (const u32 found = alias(s.first))
          inputs_[found - 1].written = true;
}

void Importer::set_alias(const ir::Value &value, u32 input) {
  if (value.id() >= aliases_.size())
    aliases_.resize(std::max<size_t>(value.id() + 1, aliases_.size() * 2));
  aliases_[value.id()] = input + 1;
}

// --- operators
// -------------------------------------------------------------------------------------

/// Sorts a node's arguments into the operator's table.
Importer::Outcome Importer::arrange(Target &t, const Decoded &d, const DecodedNode &n,
                                    Arranged &out) {
  const ir::OpDef &def = *t.def;
  out.attrs.assign(t.defaults.begin(), t.defaults.end());
  boost::container::small_vector<std::span<const Item>, 8> given(def.operands.size());
  u64 seen_attrs = 0, seen_operands = 0;
  for (u32 i = 0; i < n.num_inputs; ++i) {
    const NamedItem &in = d.inputs[n.first_input + i];
    const i32 where = place(t, i, in.name);
    if (where == Target::kIgnored)
      continue;
    if (where == Target::kUnknown) {
      bad("pt2.node.argument",
          t.name + " has no argument '" + std::string(in.name.substr(0, 80)) + "'");
      return Outcome::Failed;
    }
    u64 &seen = where >= 0 ? seen_attrs : seen_operands;
    const u64 bit = u64{1} << (where >= 0 ? static_cast<size_t>(where) : Target::spec_of(where));
    if (seen & bit) {
      bad("pt2.node.argument", "argument '" + std::string(in.name) + "' is given twice");
      return Outcome::Failed;
    }
    seen |= bit;
    if (where >= 0) {
      const Outcome o = attr(d, in.value, def.attrs[static_cast<size_t>(where)],
                             out.attrs[static_cast<size_t>(where)]);
      if (o != Outcome::Done)
        return o;
      continue;
    }
    const size_t spec = Target::spec_of(where);
    if (!is_list(def.operands[spec].arity)) {
      given[spec] = std::span(&in.value, 1);
    } else if (in.value.tag == ArgTag::Tensors) {
      given[spec] = std::span(d.items).subspan(in.value.first, in.value.count);
    } else if (in.value.tag != ArgTag::None &&
               !((in.value.tag == ArgTag::Ints || in.value.tag == ArgTag::Floats) &&
                 in.value.count == 0)) {
      bad("pt2.node.argument", "argument '" + std::string(in.name) + "' is no list of tensors");
      return Outcome::Failed;
    }
  }
  if (const u64 missing = t.required_attrs & ~seen_attrs) {
    const auto slot = static_cast<size_t>(std::countr_zero(missing));
    bad("pt2.node.argument", "argument '" + std::string(def.attrs[slot].name) + "' is missing");
    return Outcome::Failed;
  }
  boost::container::small_vector<ir::SymInt, 8> segments;
  for (size_t s = 0; s < def.operands.size(); ++s) {
    const OperandArity arity = def.operands[s].arity;
    if (arity == OperandArity::Optional && given[s].empty())
      out.operands.push_back(nullptr);
    if (arity == OperandArity::One && given[s].empty()) {
      bad("pt2.node.argument", "argument '" + std::string(def.operands[s].name) + "' is missing");
      return Outcome::Failed;
    }
    for (const Item &item : given[s]) {
      if (item.tag == ArgTag::None && arity != OperandArity::Optional &&
          arity != OperandArity::VariadicOptional) {
        bad("pt2.node.argument", "argument '" + std::string(def.operands[s].name) + "' is None");
        return Outcome::Failed;
      }
      out.operands.push_back(&item);
    }
    segments.emplace_back(static_cast<i64>(is_list(arity) ? given[s].size() : 1));
  }
  if (def.variadic_operands() >= 2)
    out.attrs.back() = ctx_.ints_attr({segments.data(), segments.size()});
  return Outcome::Done;
}

Importer::Outcome Importer::registered(Target &t, const Decoded &d, const DecodedNode &n) {
  const ir::OpDef &def = *t.def;
  Arranged arranged;
  if (const Outcome o = arrange(t, d, n, arranged); o != Outcome::Done)
    return o;
  Values operands;
  std::vector<std::pair<size_t, Attr>> scalars; // in `operands`
  for (const Item *item : arranged.operands) {
    if (!item)
      operands.push_back(nullptr);
    else if (const Outcome o = operand(d, *item, operands, scalars); o != Outcome::Done)
      return o;
  }
  if (!scalars.empty())
    fill_scalars(operands, scalars);
  if (!result_types(d, n))
    return Outcome::Failed;
  bool variadic = false;
  for (const ir::ResultSpec &r : def.results)
    variadic |= r.variadic;
  if (!variadic && types_.size() != def.results.size()) {
    bad("pt2.node.results", t.name + " has " + std::to_string(def.results.size()) +
                                " results, the file gives " + std::to_string(types_.size()));
    return Outcome::Failed;
  }
  ir::Op *op = graph_.create(def.opcode, {operands.data(), operands.size()},
                             {arranged.attrs.data(), arranged.attrs.size()}, types_, loc_);
  if (autocast_ != ElementType::None)
    apply_autocast(op);
  return finish(op, t) ? Outcome::Done : Outcome::Failed;
}

/// Graphs become regions, the rest must be the row's operands in order.
Importer::Outcome Importer::control_flow(Target &t, const Decoded &d, const DecodedNode &n) {
  const ir::OpDef &def = *t.def;
  const auto items = std::span(d.inputs).subspan(n.first_input, n.num_inputs);
  size_t spec = 0;
  for (const NamedItem &in : items) { // decided before any region is made
    if (in.value.tag == ArgTag::Graph)
      continue;
    const bool list = in.value.tag == ArgTag::Tensors || in.value.tag == ArgTag::Ints;
    if (spec >= def.operands.size() || list != is_list(def.operands[spec].arity) ||
        (!list && in.value.tag != ArgTag::Tensor && in.value.tag != ArgTag::SymBool))
      return Outcome::Fallback;
    ++spec;
  }
  if (spec != def.operands.size())
    return Outcome::Fallback;
  Values operands;
  std::vector<ir::Region *> regions;
  std::vector<ir::SymInt> segments;
  for (const NamedItem &in : items) {
    if (in.value.tag == ArgTag::Graph) {
      ir::Region *r = region(in.value.string());
      if (!r)
        return Outcome::Failed;
      regions.push_back(r);
      continue;
    }
    const bool list = in.value.tag == ArgTag::Tensors || in.value.tag == ArgTag::Ints;
    const u32 count = list ? in.value.count : 1;
    for (u32 k = 0; k < count; ++k) {
      ir::Value *v = flow_operand(list ? d.items[in.value.first + k] : in.value);
      if (!v)
        return Outcome::Failed;
      operands.push_back(v);
    }
    segments.emplace_back(static_cast<i64>(count));
  }
  boost::container::small_vector<Attr, 4> attrs(t.defaults.begin(), t.defaults.end());
  if (def.variadic_operands() >= 2)
    attrs.back() = ctx_.ints_attr(segments);
  if (!result_types(d, n))
    return Outcome::Failed;
  ir::Op *op = graph_.create(def.opcode, {operands.data(), operands.size()},
                             {attrs.data(), attrs.size()}, types_, loc_, regions);
  return finish(op, t) ? Outcome::Done : Outcome::Failed;
}

bool Importer::unregistered(Target &t, const Decoded &d, const DecodedNode &n) {
  Values operands;
  std::vector<ir::Region *> regions;
  std::vector<Attr> args(n.num_inputs);
  std::vector<std::string_view> names;
  for (u32 i = 0; i < n.num_inputs; ++i) {
    const NamedItem &in = d.inputs[n.first_input + i];
    names.push_back(in.name);
    if (!any_attr(d, in.value, operands, regions, args[i]))
      return false;
  }
  if (regions.size() > std::numeric_limits<u16>::max())
    return bad("pt2.node.argument", "the operator has too many graphs");
  if (!result_types(d, n))
    return false;
  const Attr attrs[3] = {ctx_.string_attr(t.name), ctx_.strings_attr(names), ctx_.list_attr(args)};
  ir::Op *op = graph_.create(ir::core_op::unregistered, {operands.data(), operands.size()}, attrs,
                             types_, loc_, regions);
  return finish(op, t);
}

/// Whether the node only computes sizes whose values are recorded as expressions. A node that reads
/// a number out of a tensor defines its symbol and stays.
bool Importer::only_sizes(const Decoded &d, const DecodedNode &n, const Target &t) {
  if (n.num_outputs == 0)
    return false;
  for (u32 i = 0; i < n.num_outputs; ++i) {
    const Item &out = d.outputs[n.first_output + i];
    if (out.tag != ArgTag::SymInt && out.tag != ArgTag::SymBool && out.tag != ArgTag::SymFloat)
      return false;
    if (!syms_.contains(ctx_.intern(out.string()).id))
      return false;
  }
  if (t.kind != Target::Kind::Registered && t.kind != Target::Kind::Unregistered)
    return false;
  if (t.name.starts_with("aten.sym_"))
    return true;
  for (u32 i = 0; i < n.num_inputs; ++i) {
    const ArgTag tag = d.inputs[n.first_input + i].value.tag;
    if (tag != ArgTag::Int && tag != ArgTag::Float && tag != ArgTag::Bool &&
        tag != ArgTag::SymInt && tag != ArgTag::SymFloat && tag != ArgTag::SymBool &&
        tag != ArgTag::Ints)
      return false;
  }
  return true;
}

} // namespace chute::pt2
