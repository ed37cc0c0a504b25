#include "ir/context.h"
#include "support/check.h"
#include "tosa/infer.h"
#include "tosa/ops.h"

#include <array>
#include <deque>
#include <string>

namespace chute::tosa {

namespace {

using ir::Attr;
using ir::AttrSpec;
using ir::AttrType;
using ir::OperandArity;
using ir::trait::kEffect;
using ir::trait::kPure;
constexpr ir::trait::Set kMap = kPure | ir::trait::kElementwise;
constexpr ir::trait::Set kMapCommutative = kMap | ir::trait::kCommutative;
constexpr ir::trait::Set kCompare = kMap | ir::trait::kComparison;
constexpr ir::trait::Set kCompareCommutative = kCompare | ir::trait::kCommutative;
constexpr ir::trait::Set kMove = kPure | ir::trait::kMovement;
constexpr ir::trait::Set kReduce = kPure | ir::trait::kReduction;
constexpr ir::trait::Set kControl = kEffect | ir::trait::kRegions;

struct Row {
  ir::OpCode opcode;
  std::string_view id;
  u32 code;
  u8 minor;
  ir::trait::Set traits;
  ir::InferFn infer;
  std::string_view attrs;
  std::string_view signature;
};
constexpr Row kRows[] = {
#define TOSA_OP(id, wire, minor, traits, infer, attrs, signature)                                  \
  {op::id, #id, wire, minor, traits, infer, attrs, signature},
#include "tosa/table/all.inc"
};

struct Tables {
  std::deque<EnumDef> enums;
  std::array<ir::OpDef, kNumOps> defs;
  std::array<WireDef, kNumOps> wires;
  std::array<std::vector<ir::OperandSpec>, kNumOps> operands;
  std::array<std::vector<AttrSpec>, kNumOps> attrs;
  std::array<std::vector<ir::ResultSpec>, kNumOps> results;
  std::array<std::string, kNumOps> names;
  std::array<i16, 128> by_code;
};

std::string_view take(std::string_view &text, std::string_view separator) {
  const size_t end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text = end == text.npos ? std::string_view() : text.substr(end + separator.size());
  return head;
}

FieldType field_type(std::string_view text) {
  constexpr std::pair<std::string_view, FieldType> kNames[] = {
      {"int", FieldType::Int},         {"bool", FieldType::Bool},    {"ints", FieldType::Ints},
      {"element", FieldType::Element}, {"text", FieldType::Text},    {"bytes", FieldType::Bytes},
      {"number", FieldType::Number},   {"region", FieldType::Region}};
  for (const auto &[name, type] : kNames)
    if (name == text)
      return type;
  return FieldType::Enum;
}

AttrType attr_type(FieldType type) {
  switch (type) {
  case FieldType::Int: return AttrType::Int;
  case FieldType::Bool: return AttrType::Bool;
  case FieldType::Ints: return AttrType::Ints;
  case FieldType::Element: return AttrType::Element;
  case FieldType::Number: return AttrType::Scalar;
  default: return AttrType::String;
  }
}

void parse_attrs(Tables &t, size_t i, std::string_view text, ir::Context &ctx) {
  WireDef &wire = t.wires[i];
  while (!text.empty()) {
    std::string_view type = take(text, ", ");
    Field f;
    f.name = take(type, ":");
    f.type = field_type(type);
    if (f.type == FieldType::Region) {
      ++wire.num_regions;
      wire.fields.push_back(f);
      continue;
    }
    AttrSpec spec{f.name, attr_type(f.type), false, false, {}};
    if (f.type == FieldType::Bool) {
      spec.has_default = true;
      spec.default_value = Attr::of_bool(false);
    }
    if (f.type == FieldType::Enum) {
      for (const EnumDef &e : t.enums)
        if (e.name == type)
          f.enumeration = &e;
      CHUTE_CHECK(f.enumeration, "enumeration of an attribute table");
      if (type == "NanPropagationMode") {
        spec.has_default = true;
        spec.default_value = ctx.string_attr("PROPAGATE");
      }
    }
    f.attr = static_cast<i8>(t.attrs[i].size());
    t.attrs[i].push_back(spec);
    wire.fields.push_back(f);
  }
}

void parse_signature(Tables &t, size_t i, std::string_view text) {
  WireDef &wire = t.wires[i];
  text.remove_prefix(1);
  std::string_view args = take(text, ") -> ");
  while (!args.empty()) {
    std::string_view name = take(args, ", ");
    const bool variadic = name.ends_with('*');
    name = variadic ? name.substr(0, name.size() - 1) : name;
    wire.shape_operand.push_back(name.ends_with('#'));
    name = name.substr(0, name.find('#'));
    t.operands[i].push_back({name, variadic ? OperandArity::Variadic : OperandArity::One});
  }
  while (!text.empty()) {
    const std::string_view name = take(text, ", ");
    wire.shape_result |= name.ends_with('#');
    t.results[i].push_back({name.substr(0, name.find_first_of("*#")), name.ends_with('*')});
  }
}

const Tables &tables() {
  static const Tables *instance = [] {
    auto *t = new Tables; // lives as long as the registry, which never dies
    ir::Context &ctx = ir::Registry::global().context();
    t->enums.push_back({"NanPropagationMode", {{"UNKNOWN", 0}, {"PROPAGATE", 1}, {"IGNORE", 2}}});
    t->enums.push_back({"ResizeMode", {{"UNKNOWN", 0}, {"NEAREST", 1}, {"BILINEAR", 2}}});
    t->enums.push_back(
        {"RoundingMode",
         {{"UNKNOWN", 0}, {"SINGLE_ROUND", 1}, {"INEXACT_ROUND", 2}, {"DOUBLE_ROUND", 3}}});
    // The draft of 1.1 gave the block of 32 the number 1; the tools of 2026.8 read 32.
    t->enums.push_back({"BlockSize", {{"UNKNOWN", 0}, {"BLOCK_SIZE_32", 32}}});
    t->by_code.fill(-1);
    for (size_t i = 0; i < kNumOps; ++i) {
      const Row &row = kRows[i];
      WireDef &wire = t->wires[i];
      wire.id = row.id;
      wire.code = row.code;
      wire.minor = row.minor;
      t->by_code[row.code] = static_cast<i16>(i);
      parse_attrs(*t, i, row.attrs, ctx);
      parse_signature(*t, i, row.signature);
      std::string &name = t->names[i];
      name = "tosa.";
      for (char c : row.id)
        name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      t->defs[i] = {name,        row.opcode,    row.traits, t->operands[i],
                    t->attrs[i], t->results[i], row.infer,  nullptr};
    }
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
  CHUTE_CHECK(is_tosa(code), "an operator of the TOSA dialect");
  return tables().wires[ir::index(code) - ir::kTosaBase];
}

std::optional<ir::OpCode> from_wire(u32 code) {
  const Tables &t = tables();
  if (code >= t.by_code.size() || t.by_code[code] < 0)
    return std::nullopt;
  return ir::OpCode{static_cast<u16>(ir::kTosaBase + t.by_code[code])};
}

} // namespace chute::tosa
