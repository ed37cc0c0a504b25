#pragma once

#include "circle/ops.h"
#include "ir/graph.h"

#include <vector>

/// What Circle operators do to stored (quantized) integers. Internal to circle/quantize.
namespace chute::circle {

enum class Role : u8 {
  None,       ///< no integer form: stays on reals
  Move,       ///< moves elements: stored integers pass as they are
  Order,      ///< picks elements by their order (MAXIMUM, MAX_POOL_2D): likewise
  Negate,     ///< NEG, ABS: likewise for symmetric storage
  Arithmetic, ///< computes; every operand and the result have parameters of their own
  Weighted,   ///< contraction with weights (maybe one scale per channel) and a bias
  Index,      ///< the result is a position, equal on reals and on stored integers
};

struct RoleInfo {
  Role role = Role::None;
  /// Move, Order, Negate, Index: bit i set when operand i holds elements; kAllOperands for lists.
  u32 data = 1;
  // Weighted: operand positions, and the weight's dimension that runs over output channels.
  u8 input = 0;
  u8 weight = 1;
  u8 bias = 2;
  i8 channel = 0;
};
inline constexpr u32 kAllOperands = ~0u;

/// By operator code, but for operators of Move and Order with a fused activation: Arithmetic.
RoleInfo role_of(const ir::Op &op);

inline bool is_data(const RoleInfo &r, u32 operand) {
  return r.data == kAllOperands || (operand < 32 && (r.data >> operand & 1u) != 0);
}

/// The parameters of the results when `op` (Move) moves a tensor with parameters `q`: per-channel
/// ones follow TRANSPOSE, slices, splits along another dimension, and reshapes that leave their
/// dimension whole. Null when no parameters say the same about the results.
const ir::Quantization *moved_quantization(ir::Context &ctx, const ir::Op &op, u32 operand,
                                           const ir::Quantization *q);

/// The results of `op` (TRANSPOSE, a slice, a split or a reshape) when it moves the stored constant
/// `c` and they have parameters `q`: views where there are some. Asked while the operand is still
/// the real value. Empty for other operators.
std::vector<const ir::Constant *> moved_constants(ir::Graph &graph, const ir::Op &op,
                                                  const ir::Constant &c, const ir::Quantization *q);

} // namespace chute::circle
