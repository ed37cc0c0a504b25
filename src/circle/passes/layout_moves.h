#pragma once

#include "circle/passes/match.h"

/// Operators that do the same on operands in another order of dimensions. Internal to the passes
/// about transposes.
///
/// "Moved by perm" means: what the new operator gives, transposed by `perm`, is what the old one
/// gives, once the operands that carry the layout are given transposed by inverse(perm).
namespace chute::circle {

/// Whether the operator can be moved by some permutations at all: elementwise, concatenation,
/// padding, slices, SPLIT, softmax, reductions that keep dimensions; with axes and the like
/// constant.
bool can_move(const ir::Op &op);

/// Whether `perm` is one of them (softmax stays on the last dimension). Only with can_move().
bool can_move(const ir::Op &op, std::span<const i64> perm);

/// Whether the order of that operand's dimensions is the operator's: no constant, no single
/// element, no list of axes. Only with can_move().
bool carries_layout(const ir::Op &op, u32 operand);

/// The moved operator, before `op`, with `op`'s attributes. `operands` holds one value per operand:
/// moved ones where they carry the layout; the others are ignored, and what they say about
/// dimensions is permuted.
ir::Op *recreate_moved(pass::Rewriter &rw, ir::Op &op, std::span<Value *const> operands,
                       const Dims &perm);

/// Replaces `op` by `moved`'s results transposed by `perm`.
void replace_transposed(ir::Op &op, pass::Rewriter &rw, ir::Op *moved, std::span<const i64> perm);

/// A constant permuted as its operator is moved, with ones put before its dimensions first.
Value *moved_constant(pass::Rewriter &rw, ir::Op &before, const Value *v, size_t rank,
                      std::span<const i64> inverse);

} // namespace chute::circle
