#pragma once

#include "ir/builder.h"
#include "ir/graph.h"
#include "support/result.h"

#include <span>

/// The checks of an operator against its table row, in one place for Builder, parser and verifier.
namespace chute::ir {

/// Most attributes a row may have (Registry::add checks it).
inline constexpr size_t kMaxAttrs = 64;

/// Whether a field of that type takes a value of that kind (None apart).
bool attr_accepts(AttrType type, AttrKind kind);

/// Widening that every source relies on: an integer literal where a float is declared, one integer
/// where a list is declared, and so on. Values that need none come back unchanged.
Attr coerce_attr(Context &ctx, AttrType type, Attr value);

/// `ir.attr.type` when the value does not fit slot `slot` of the row.
Status check_attr(const OpDef &def, size_t slot, Attr value);

/// Attributes in the table's order: those given, coerced, and defaults for the rest. `out` has
/// def.attrs.size() elements. Errors: `ir.attr.unknown`, `ir.attr.duplicate`, `ir.attr.type`,
/// `ir.attr.missing`.
Status complete_attrs(Context &ctx, const OpDef &def, std::span<const NamedAttr> given,
                      std::span<Attr> out);

/// Number and presence of operands. Errors: `ir.operand.count`, `ir.operand.segments`,
/// `ir.operand.missing`. `attrs` is complete.
Status check_operands(const OpDef &def, std::span<Value *const> operands,
                      std::span<const Attr> attrs);
/// The same for an operator that exists.
Status check_operands(const Op &op);

/// A Diagnostic with the operator's name, value name, module path and source line filled in.
Diagnostic op_diagnostic(const Graph &graph, const Op &op, ErrorKind kind, std::string code,
                         std::string message, std::string hint = {});

/// A detached operator whose result types come from the table's inference. `attrs` is complete and
/// the operands were checked. On error nothing is left behind and `regions` stay the caller's.
Result<Op *> create_inferred(Graph &graph, OpCode code, std::span<Value *const> operands,
                             std::span<const Attr> attrs, LocId loc,
                             std::span<Region *const> regions = {});

} // namespace chute::ir
