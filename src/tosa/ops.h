#pragma once

#include "ir/op_def.h"

#include <span>
#include <string_view>
#include <vector>

/// The `tosa` dialect: one row of tosa/table/*.def per operator of TOSA 1.0 and 1.1,
///
///   TOSA_OP(identifier, wire code, version, traits, inference, attributes, signature)
///
/// `identifier` is the specification's name (`tosa::op::CONV2D`), in lower case the IR name
/// ("tosa.conv2d"). The signature names operands and results as they lie on the wire:
///
///   name    a tensor                     name#    a shape (the wire's SHAPE type)
///   name*   any number of tensors        name#*   any number of shapes
///
/// A shape is an i64 tensor of rank 1, most often a core.constant; the writer makes CONST_SHAPE of
/// a constant that is used as one, and CONST of a constant that is used as a tensor. CONST and
/// CONST_SHAPE therefore have no row. Zero points, the shift of MUL, the pad value and the table of
/// TABLE are operands, as the specification has them.
///
/// Attributes stand in the order of the attribute table's slots: "axis:int, nan_mode:NanMode".
/// Kinds: int, bool, ints ([int32]), element (DType), text (string), bytes ([ubyte]), number (the
/// bounds of CLAMP: bytes of one element on the wire), region (a graph name on the wire, the
/// operator's next region here) and the enumerations by name, as strings ("PROPAGATE").
/// `nan_mode` is PROPAGATE, booleans are false unless given; the rest has to be given.
///
/// CAST and RESCALE have no inference of their element type: whoever makes one gives it.
namespace chute::tosa {

enum class OpIndex : u16 {
#define TOSA_OP(id, wire, version, traits, infer, attrs, signature) id,
#include "tosa/table/all.inc"
  Count,
};

namespace op {
#define TOSA_OP(id, wire, version, traits, infer, attrs, signature)                                \
  inline constexpr ir::OpCode id{static_cast<u16>(ir::kTosaBase + static_cast<u16>(OpIndex::id))};
#include "tosa/table/all.inc"
} // namespace op

inline constexpr size_t kNumOps = static_cast<size_t>(OpIndex::Count);
static_assert(ir::kTosaBase + kNumOps <= ir::kMaxOpCode);

/// Wire codes of the two operators that are core.constant here.
inline constexpr u32 kConstCode = 67;
inline constexpr u32 kConstShapeCode = 75;

/// Registers core and TOSA operators. Idempotent; call before any graph is built.
void register_dialect();

constexpr bool is_tosa(ir::OpCode code) {
  return ir::index(code) >= ir::kTosaBase && ir::index(code) < ir::kTosaBase + kNumOps;
}

// --- the wire side of the table ------------------------------------------------------------------

enum class FieldType : u8 { Int, Bool, Ints, Element, Text, Bytes, Number, Region, Enum };

/// An enumeration of the schema.
struct EnumDef {
  std::string_view name;
  std::vector<std::pair<std::string_view, u32>> values;
};

/// One field of an attribute table; its slot is its position. `attr` is its position among the
/// operator's attributes, -1 for a region.
struct Field {
  std::string_view name;
  FieldType type = FieldType::Int;
  i8 attr = -1;
  const EnumDef *enumeration = nullptr;
};

/// What the IR's own table does not say about an operator.
struct WireDef {
  std::string_view id; ///< the specification's name
  u32 code = 0;        ///< Op; also the member of the union Attribute
  u8 minor = 0;        ///< version 1.<minor> introduced it
  u8 num_regions = 0;
  bool shape_result = false;
  std::vector<Field> fields;
  std::vector<bool> shape_operand; ///< per operand of the table

  /// Whether the i-th operand of an operator is a shape (the last entry covers a variadic one).
  bool takes_shape(size_t i) const {
    return !shape_operand.empty() &&
           shape_operand[i < shape_operand.size() ? i : shape_operand.size() - 1];
  }
};

/// Only for operators of this dialect.
const WireDef &wire(ir::OpCode code);
/// The operator of a wire code; nothing when the code has no row.
std::optional<ir::OpCode> from_wire(u32 code);

} // namespace chute::tosa
