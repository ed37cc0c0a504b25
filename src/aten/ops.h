#pragma once

#include "ir/op_def.h"

#include <string_view>

/// The `aten` dialect. One row of aten/table/*.def per operator overload:
///
///   ATEN_OP(identifier, traits, inference, "aten.add.Tensor", "(Tensor self, …) -> Tensor")
///
/// `identifier` names the constant in aten::op. `schema` is the operator's signature as PyTorch
/// prints it, the source of operand and attribute names, types and defaults. Tensors become
/// operands, everything else an attribute of the same name. Arguments without meaning for a
/// compiled program (device, layout, memory format, generator, pin_memory, non_blocking) have no
/// field.
namespace chute::aten {

enum class OpIndex : u16 {
#define ATEN_OP(id, traits, infer, name, schema) id,
#include "aten/table/all.inc"
  Count,
};

namespace op {
#define ATEN_OP(id, traits, infer, name, schema)                                                   \
  inline constexpr ir::OpCode id{static_cast<u16>(ir::kAtenBase + static_cast<u16>(OpIndex::id))};
#include "aten/table/all.inc"
} // namespace op

static_assert(ir::kAtenBase + static_cast<u16>(OpIndex::Count) <= ir::kCircleBase);

/// Registers core and aten operators. Idempotent; call before any graph is built.
void register_dialect();

/// Arguments that a reader drops without a word when the table has no field of that name.
bool is_ignored_argument(std::string_view name);

} // namespace chute::aten
