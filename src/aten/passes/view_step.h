#pragma once

#include "ir/builder.h"
#include "ir/graph.h"

#include <optional>
#include <vector>

/// How a view reads its parent, in a form that can be undone: the inverse writes a changed view
/// back.
namespace chute::aten {

struct ViewStep {
  enum class Kind : u8 {
    Same,      ///< alias, detach, a conversion that changes nothing
    Slice,     ///< start, end, step along dim
    Select,    ///< index (in start) along dim
    Permute,   ///< order[i] is the parent's dimension at i
    Reshape,   ///< the same elements in another shape
    Expand,    ///< repeats dimensions of size 1
    Diagonal,  ///< start is the offset, over dim and other_dim
    AsStrided, ///< size and stride over the flat parent, start is the offset
    Bits,      ///< view(dtype)
    Copy,      ///< no alias: the result is a tensor of its own
    Opaque,    ///< an alias that chute can not write through
  };
  Kind kind = Kind::Copy;
  int dim = 0;
  int other_dim = 0;
  ir::SymInt start = 0;
  ir::SymInt end = 0;
  ir::SymInt step = 1;
  std::vector<int> order;
  std::vector<ir::SymInt> strides; ///< AsStrided
};

/// Element strides of a tensor over its storage; `known` is false where symbolic sizes hide them.
struct Strides {
  bool known = false;
  std::vector<ir::SymInt> of;
};

/// Dense row-major strides.
Strides dense_strides(ir::Context &ctx, ir::Type type);
bool is_dense(ir::Context &ctx, ir::Type type, const Strides &strides);

/// What result `index` of `op` is to its first operand, whose strides decide whether reshape,
/// flatten and contiguous share memory with it. `out` gets the result's strides.
ViewStep view_step(ir::Context &ctx, const ir::Op &op, u32 index, const Strides &parent,
                   Strides &out);

/// The view of `parent`, of type `type`, inserted by `b`.
ir::Value *apply_step(ir::Builder &b, const ViewStep &s, ir::Value *parent, ir::Type type);

/// `parent` with `value` written where the view lies; null where no inverse exists.
ir::Value *write_back(ir::Builder &b, const ViewStep &s, ir::Value *parent, ir::Value *value);

/// Order of dimensions after moving `source` to `destination`, the others keeping theirs.
std::vector<int> movedim_order(int rank, const std::vector<i64> &source,
                               const std::vector<i64> &destination);

} // namespace chute::aten
