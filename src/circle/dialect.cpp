#include "circle/infer.h"
#include "circle/ops.h"
#include "ir/context.h"
#include "schema/circle_generated.h"
#include "support/check.h"

#include <array>
#include <charconv>
#include <deque>
#include <string>

namespace chute::circle {

namespace {

using ir::Attr;
using ir::AttrSpec;
using ir::AttrType;
using ir::OperandArity;
using ir::trait::kEffect;
using ir::trait::kPure;
using ir::trait::kRandom;
constexpr ir::trait::Set kMap = kPure | ir::trait::kElementwise;
constexpr ir::trait::Set kMapCommutative = kMap | ir::trait::kCommutative;
constexpr ir::trait::Set kCompare = kMap | ir::trait::kComparison;
constexpr ir::trait::Set kCompareCommutative = kCompare | ir::trait::kCommutative;
constexpr ir::trait::Set kMove = kPure | ir::trait::kMovement;
constexpr ir::trait::Set kReduce = kPure | ir::trait::kReduction;
constexpr ir::trait::Set kControl = kEffect | ir::trait::kRegions;

enum class OptionsIndex : u16 {
#define CIRCLE_OPTIONS(name, union_number, member, fields) name,
#include "circle/table/options.inc"
  None,
  Custom,
};

struct Row {
  ir::OpCode opcode;
  std::string_view id;
  i32 wire_code;
  ir::trait::Set traits;
  ir::InferFn infer;
  OptionsIndex options;
  std::string_view signature;
};
constexpr Row kRows[] = {
#define CIRCLE_OP(id, wire, traits, infer, options, signature)                                     \
  {op::id, #id, wire, traits, infer, OptionsIndex::options, signature},
#include "circle/table/all.inc"
};

struct OptionsRow {
  std::string_view name;
  u8 union_number;
  u8 member;
  std::string_view fields;
};
constexpr OptionsRow kOptionsRows[] = {
#define CIRCLE_OPTIONS(name, union_number, member, fields) {#name, union_number, member, fields},
#include "circle/table/options.inc"
};

/// What the table describes, in the form that the registry and the reader and writer use.
struct Tables {
  std::deque<EnumDef> enums;
  std::vector<OptionsDef> options;
  std::array<ir::OpDef, kNumOps> defs;
  std::array<WireDef, kNumOps> wires;
  std::array<std::vector<ir::OperandSpec>, kNumOps> operands;
  std::array<std::vector<AttrSpec>, kNumOps> attrs;
  std::array<std::vector<ir::ResultSpec>, kNumOps> results;
  std::array<std::string, kNumOps> names;
  // Wire codes from kLowestCode on.
  static constexpr i32 kLowestCode = -128;
  std::array<i16, 512> by_code;
};

template <class E, size_t N>
EnumDef enum_def(std::string_view name, const E (&values)[N], const char *(*name_of)(E)) {
  EnumDef d{name, sizeof(E), {}, {}};
  for (E v : values) {
    d.names.emplace_back(name_of(v));
    d.values.push_back(static_cast<i64>(v));
  }
  return d;
}

void make_enums(std::deque<EnumDef> &out) {
#define CIRCLE_ENUM(E) out.push_back(enum_def(#E, ::circle::EnumValues##E(), ::circle::EnumName##E))
  CIRCLE_ENUM(ActivationFunctionType);
  CIRCLE_ENUM(CombinerType);
  CIRCLE_ENUM(CustomOptionsFormat);
  CIRCLE_ENUM(FullyConnectedOptionsWeightsFormat);
  CIRCLE_ENUM(LSHProjectionType);
  CIRCLE_ENUM(LSTMKernelType);
  CIRCLE_ENUM(MirrorPadMode);
  CIRCLE_ENUM(Padding);
  CIRCLE_ENUM(ReduceWindowFunction);
  CIRCLE_ENUM(RngAlgorithm);
  CIRCLE_ENUM(RoPEMode);
  CIRCLE_ENUM(StablehloComparisonDirection);
  CIRCLE_ENUM(StablehloComparisonType);
#undef CIRCLE_ENUM
}

FieldType field_type(std::string_view text) {
  constexpr std::pair<std::string_view, FieldType> kNames[] = {
      {"int", FieldType::Int},
      {"uint", FieldType::UInt},
      {"long", FieldType::Long},
      {"bool", FieldType::Bool},
      {"float", FieldType::Float},
      {"string", FieldType::String},
      {"TensorType", FieldType::TensorType},
      {"[int]", FieldType::Ints},
      {"[uint]", FieldType::UInts},
      {"[long]", FieldType::Longs},
      {"[float]", FieldType::Floats},
      {"[bool]", FieldType::Bools},
      {"[ubyte]", FieldType::Bytes},
      {"subgraph", FieldType::Subgraph},
      {"subgraphs", FieldType::Subgraphs}};
  for (const auto &[name, type] : kNames)
    if (name == text)
      return type;
  return FieldType::Enum;
}

std::string_view take(std::string_view &text, std::string_view separator) {
  const size_t end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text = end == text.npos ? std::string_view() : text.substr(end + separator.size());
  return head;
}

/// "0 padding:Padding!; 4 dilation_w_factor:int=1"
std::vector<Field> parse_fields(std::string_view text, const std::deque<EnumDef> &enums) {
  std::vector<Field> fields;
  i8 attr = 0;
  while (!text.empty()) {
    std::string_view part = take(text, "; ");
    Field f;
    std::from_chars(part.data(), part.data() + part.size(), f.slot);
    take(part, " ");
    f.name = take(part, ":");
    f.required = part.ends_with('!');
    if (f.required)
      part.remove_suffix(1);
    const std::string_view type = take(part, "=");
    f.type = field_type(type);
    if (!part.empty()) {
      if (part == "true")
        f.wire_default = 1;
      else if (part == "INT32")
        f.wire_default = static_cast<i64>(::circle::TensorType_INT32);
      else
        std::from_chars(part.data(), part.data() + part.size(), f.wire_default);
    }
    if (f.type == FieldType::Enum) {
      for (const EnumDef &e : enums)
        if (e.name == type)
          f.enumeration = &e;
      CHUTE_CHECK(f.enumeration, "enumeration of an options table");
    }
    if (f.type != FieldType::Subgraph && f.type != FieldType::Subgraphs)
      f.attr = attr++;
    fields.push_back(f);
  }
  return fields;
}

AttrType attr_type(FieldType type) {
  switch (type) {
  case FieldType::Int:
  case FieldType::UInt:
  case FieldType::Long: return AttrType::Int;
  case FieldType::Bool: return AttrType::Bool;
  case FieldType::Float: return AttrType::Float;
  case FieldType::TensorType: return AttrType::Element;
  case FieldType::Ints:
  case FieldType::UInts:
  case FieldType::Longs: return AttrType::Ints;
  case FieldType::Floats: return AttrType::Floats;
  case FieldType::Bools: return AttrType::Bools;
  default: return AttrType::String;
  }
}

Attr default_attr(const Field &f, ir::Context &ctx) {
  switch (attr_type(f.type)) {
  case AttrType::Int: return Attr::of_int(f.wire_default);
  case AttrType::Bool: return Attr::of_bool(f.wire_default != 0);
  case AttrType::Float: return Attr::of_float(static_cast<double>(f.wire_default));
  case AttrType::Element:
    return Attr::of_element(f.wire_default == 0 ? ir::ElementType::F32 : ir::ElementType::I32);
  case AttrType::Ints: return ctx.ints_attr(std::span<const ir::SymInt>());
  case AttrType::Floats: return ctx.floats_attr({});
  case AttrType::Bools: return ctx.bools_attr({});
  default:
    if (f.type == FieldType::Enum)
      for (size_t i = 0; i < f.enumeration->values.size(); ++i)
        if (f.enumeration->values[i] == f.wire_default)
          return ctx.string_attr(f.enumeration->names[i]);
    return ctx.string_attr({});
  }
}

/// "(x, filter, bias?) -> output": operands and results; fills what the wire adds.
void parse_signature(std::string_view text, std::vector<ir::OperandSpec> &operands,
                     std::vector<ir::ResultSpec> &results, WireDef &wire) {
  wire.stateful = text.starts_with("stateful ");
  if (wire.stateful)
    take(text, " ");
  text.remove_prefix(1);
  std::string_view args = take(text, ") -> ");
  while (!args.empty()) {
    std::string_view name = take(args, ", ");
    OperandArity arity = OperandArity::One;
    bool written = true;
    if (name.ends_with("*?"))
      arity = OperandArity::VariadicOptional;
    else if (name.ends_with('*'))
      arity = OperandArity::Variadic;
    else if (name.ends_with('?') || name.ends_with('~')) {
      arity = OperandArity::Optional;
      written = name.ends_with('?');
    }
    operands.push_back({name.substr(0, name.find_first_of("*?~")), arity});
    if (written)
      wire.always_written = static_cast<u16>(operands.size());
  }
  while (!text.empty()) {
    const std::string_view name = take(text, ", ");
    results.push_back({name.substr(0, name.find('*')), name.ends_with('*')});
  }
}

void make_row(Tables &t, size_t i, ir::Context &ctx) {
  const Row &row = kRows[i];
  WireDef &wire = t.wires[i];
  wire.code = row.wire_code;
  t.by_code[static_cast<size_t>(row.wire_code - Tables::kLowestCode)] = static_cast<i16>(i);
  parse_signature(row.signature, t.operands[i], t.results[i], wire);
  std::vector<AttrSpec> &attrs = t.attrs[i];
  if (row.options < OptionsIndex::None) {
    wire.options = &t.options[static_cast<size_t>(row.options)];
    for (const Field &f : wire.options->fields) {
      wire.num_regions += f.type == FieldType::Subgraph;
      wire.any_regions |= f.type == FieldType::Subgraphs;
      if (f.attr >= 0)
        attrs.push_back({f.name, attr_type(f.type), false, !f.required, default_attr(f, ctx)});
    }
  }
  if (wire.stateful) {
    attrs.push_back({"intermediates", AttrType::Any, true, true, Attr::none()});
    attrs.push_back({"mutating_variable_inputs", AttrType::Bools, true, true, Attr::none()});
  }
  if (row.options == OptionsIndex::Custom) {
    attrs.push_back({"custom_code", AttrType::String, false, false, {}});
    attrs.push_back({"custom_options", AttrType::String, false, true, ctx.string_attr({})});
  }
  wire.version_attr = static_cast<i16>(attrs.size());
  attrs.push_back({"version", AttrType::Int, false, true, Attr::of_int(1)});
  std::string &name = t.names[i];
  name = "circle.";
  for (char c : row.id)
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  t.defs[i] = {name,  row.opcode,   row.traits, t.operands[i],
               attrs, t.results[i], row.infer,  nullptr};
}

const Tables &tables() {
  static const Tables *instance = [] {
    auto *t = new Tables; // lives as long as the registry, which never dies
    ir::Context &ctx = ir::Registry::global().context();
    make_enums(t->enums);
    for (const OptionsRow &r : kOptionsRows)
      t->options.push_back({r.name, r.union_number, r.member, parse_fields(r.fields, t->enums)});
    t->by_code.fill(-1);
    for (size_t i = 0; i < kNumOps; ++i)
      make_row(*t, i, ctx);
    return t;
  }();
  return *instance;
}

} // namespace

void register_dialect() {
  ir::register_core_dialect();
  static const bool done = [] {
    ir::Registry::global().add(tables().defs);
    return true;
  }();
  static_cast<void>(done);
}

const WireDef &wire(ir::OpCode code) {
  CHUTE_CHECK(is_circle(code), "an operator of the Circle dialect");
  return tables().wires[ir::index(code) - ir::kCircleBase];
}

std::optional<ir::OpCode> from_wire(i32 code) {
  const Tables &t = tables();
  const i64 at = static_cast<i64>(code) - Tables::kLowestCode;
  if (at < 0 || at >= static_cast<i64>(t.by_code.size()) || t.by_code[static_cast<size_t>(at)] < 0)
    return std::nullopt;
  return ir::OpCode{static_cast<u16>(ir::kCircleBase + t.by_code[static_cast<size_t>(at)])};
}

std::span<const OptionsDef> all_options() { return tables().options; }

} // namespace chute::circle
