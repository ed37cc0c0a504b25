#include "ir/graph.h"
#include "support/check.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace chute::ir {

int OpDef::attr_index(std::string_view attr) const {
  // Names are literals on both sides: mostly the very same one.
  for (size_t i = 0; i < attrs.size(); ++i) {
    const std::string_view name = attrs[i].name;
    if (name.size() == attr.size() && (name.data() == attr.data() || name == attr))
      return static_cast<int>(i);
  }
  return -1;
}

int OpDef::variadic_operands() const {
  int n = 0;
  for (const OperandSpec &o : operands)
    n += o.arity == OperandArity::Variadic || o.arity == OperandArity::VariadicOptional;
  return n;
}

Op::Segment Op::variadic_segment(u32 spec) const {
  const OpDef &d = def();
  if (Registry::facts(opcode_).variadic >= 2) {
    const auto counts = attr(num_attrs() - 1).as_ints();
    u32 first = 0;
    for (u32 i = 0; i < spec; ++i)
      first += static_cast<u32>(counts[i].value());
    return {first, static_cast<u32>(counts[spec].value())};
  }
  const u32 variadic_count = num_operands_ + 1 - static_cast<u32>(d.operands.size());
  u32 first = 0;
  for (u32 i = 0;; ++i) {
    const OperandArity arity = d.operands[i].arity;
    const bool variadic =
        arity == OperandArity::Variadic || arity == OperandArity::VariadicOptional;
    const u32 count = variadic ? variadic_count : 1;
    if (i == spec)
      return {first, count};
    first += count;
  }
}

struct Registry::Names {
  boost::unordered_flat_map<std::string_view, const OpDef *> by_name;
};

Registry::Registry() : names_(new Names), context_(new Context) {}
Registry::~Registry() {
  delete names_;
  delete context_;
}

Registry &Registry::global() {
  static Registry registry;
  return registry;
}

void Registry::add(std::span<const OpDef> defs) {
  for (const OpDef &d : defs) {
    CHUTE_CHECK(index(d.opcode) < kMaxOpCode && !rows_[index(d.opcode)], "opcode taken");
    CHUTE_CHECK(d.attrs.size() < 64 && d.operands.size() < 64, "operator table row too wide");
    const bool fresh = names_->by_name.emplace(d.name, &d).second;
    CHUTE_CHECK(fresh, "operator name taken");
    rows_[index(d.opcode)] = &d;
    facts_[index(d.opcode)] = {d.traits, static_cast<u8>(d.variadic_operands())};
  }
}

const OpDef *Registry::find(std::string_view name) const {
  const auto it = names_->by_name.find(name);
  return it == names_->by_name.end() ? nullptr : it->second;
}

std::vector<const OpDef *> Registry::all() const {
  std::vector<const OpDef *> out;
  for (const OpDef *d : rows_)
    if (d)
      out.push_back(d);
  return out;
}

namespace {

Status infer_constant(const Op &op, Graph &, std::vector<Type> &out) {
  out.push_back(op.attr(0).as_constant()->type);
  return {};
}
Status infer_state(const Op &op, Graph &, std::vector<Type> &out) {
  out.push_back(op.attr(1).as_constant()->type);
  return {};
}
Status infer_size(const Op &, Graph &graph, std::vector<Type> &out) {
  out.push_back(graph.context().int_type());
  return {};
}

constexpr AttrSpec kConstantAttrs[] = {{"value", AttrType::Constant}};
constexpr AttrSpec kStateAttrs[] = {{"name", AttrType::String}, {"value", AttrType::Constant}};
constexpr AttrSpec kUnregisteredAttrs[] = {
    {"target", AttrType::String}, {"arg_names", AttrType::Strings}, {"args", AttrType::Any}};
constexpr AttrSpec kSizeAttrs[] = {{"value", AttrType::Int}};
constexpr OperandSpec kValues[] = {{"values", OperandArity::VariadicOptional}};
constexpr ResultSpec kOneResult[] = {{"result", false}};
constexpr ResultSpec kAnyResults[] = {{"results", true}};

const OpDef kCoreDefs[] = {
    {"core.constant",
     core_op::constant,
     trait::kPure | trait::kConstant,
     {},
     kConstantAttrs,
     kOneResult,
     infer_constant,
     nullptr},
    {"core.state",
     core_op::state,
     trait::kRandom,
     {},
     kStateAttrs,
     kOneResult,
     infer_state,
     nullptr},
    {"core.return",
     core_op::ret,
     trait::kTerminator | trait::kEffect,
     kValues,
     {},
     {},
     nullptr,
     nullptr},
    {"core.unregistered", core_op::unregistered,
     trait::kUnregistered | trait::kEffect | trait::kRegions, kValues, kUnregisteredAttrs,
     kAnyResults, nullptr, nullptr},
    {"core.size", core_op::size, trait::kPure, {}, kSizeAttrs, kOneResult, infer_size, nullptr},
};

} // namespace

void register_core_dialect() {
  static const bool done = [] {
    Registry::global().add(kCoreDefs);
    return true;
  }();
  static_cast<void>(done);
}

} // namespace chute::ir
