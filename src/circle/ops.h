#pragma once

#include "ir/op_def.h"

#include <span>
#include <string_view>
#include <vector>

/// The `circle` dialect: one row of circle/table/*.def per builtin operator of the schema,
///
///   CIRCLE_OP(identifier, wire code, traits, inference, options table, signature)
///
/// `identifier` is the schema's name (`circle::op::CONV_2D`); in lower case it is the IR name
/// ("circle.conv_2d"). The signature names operands and results as they lie on the wire:
///
///   name    required                     name*    any number
///   name?   absent: -1 on the wire       name*?   any number, each may be absent
///   name~   absent: left out at the end, or -1 before a present one
///
/// so a shape, a permutation, a list of axes is an operand (an i32 tensor, most often a
/// core.constant), never an attribute. A leading `stateful` marks cells with variable operands.
///
/// Attributes are the fields of the options table (circle/table/options.inc) under the schema's
/// names: enumerations are strings ("SAME", "RELU6"), element types are Element, subgraph
/// references are no attributes but regions in the order of the fields. After them come
///   stateful operators   `intermediates` (list of Types or None), `mutating_variable_inputs`
///   circle.custom        `custom_code`, `custom_options` (the bytes, as a String)
///   every operator       `version` (1), the version of its operator code.
///
/// Result types: inference gives element type and shape. Movement operators hand on their first
/// operand's per-tensor quantization (TRANSPOSE per-channel too); for everything else
/// the quantization of a quantized result is the maker's to set (Graph::set_type), and is no part
/// of an operator's contract.
namespace chute::circle {

enum class OpIndex : u16 {
#define CIRCLE_OP(id, wire, traits, infer, options, signature) id,
#include "circle/table/all.inc"
  Count,
};

namespace op {
#define CIRCLE_OP(id, wire, traits, infer, options, signature)                                     \
  inline constexpr ir::OpCode id{static_cast<u16>(ir::kCircleBase + static_cast<u16>(OpIndex::id))};
#include "circle/table/all.inc"
} // namespace op

inline constexpr size_t kNumOps = static_cast<size_t>(OpIndex::Count);
static_assert(ir::kCircleBase + kNumOps <= ir::kTosaBase);

/// Registers core and Circle operators. Idempotent; call before any graph is built.
void register_dialect();

constexpr bool is_circle(ir::OpCode code) {
  return ir::index(code) >= ir::kCircleBase && ir::index(code) < ir::kCircleBase + kNumOps;
}

// --- the wire side of the table ------------------------------------------------------------------

enum class FieldType : u8 {
  Int,
  UInt,
  Long,
  Bool,
  Float,
  String,
  TensorType,
  Enum,
  Ints,
  UInts,
  Longs,
  Floats,
  Bools,
  Bytes,     ///< [ubyte], a String attribute
  Subgraph,  ///< the operator's next region
  Subgraphs, ///< all remaining regions
};

/// An enumeration of the schema. `bytes` is the wire width, 1 or 4.
struct EnumDef {
  std::string_view name;
  u8 bytes = 1;
  std::vector<std::string_view> names;
  std::vector<i64> values;
};

/// One field of an options table. `attr` is its position among the operator's attributes, -1 for
/// subgraph references. `wire_default` is what an absent field means (a float default is exact
/// here).
struct Field {
  std::string_view name;
  u8 slot = 0;
  FieldType type = FieldType::Int;
  i8 attr = -1;
  bool required = false; ///< whoever builds the operator has to state it
  i64 wire_default = 0;
  const EnumDef *enumeration = nullptr;
};

/// An options table: member `member` of the union BuiltinOptions (`union_number` 1) or
/// BuiltinOptions2 (2).
struct OptionsDef {
  std::string_view name;
  u8 union_number = 1;
  u8 member = 0;
  std::vector<Field> fields;
};

/// What the IR's own table does not say about an operator.
struct WireDef {
  i32 code = 0; ///< BuiltinOperator
  const OptionsDef *options = nullptr;
  u16 always_written = 0; ///< leading operands that are written even when absent (as -1)
  u16 num_regions = 0;    ///< at least this many
  bool any_regions = false;
  bool stateful = false;
  i16 version_attr = 0; ///< position of `version`; the extra attributes lie just before it
};

const WireDef &wire(ir::OpCode code);
/// The operator of a wire code; nullopt when the schema has none.
std::optional<ir::OpCode> from_wire(i32 code);
/// Every options table, in the schema's order.
std::span<const OptionsDef> all_options();

} // namespace chute::circle
