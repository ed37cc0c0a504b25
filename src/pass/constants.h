#pragma once

#include "ir/builder.h"
#include "pass/rewriter.h"

#include <optional>
#include <span>
#include <vector>

/// Constants and types in another arrangement: what legalizations and layout passes of every target
/// need.
namespace chute::pass {

using Dims = std::vector<i64>;
using SymDims = std::vector<ir::SymInt>;

/// The constant that a value is, or null.
const ir::Constant *constant_of(const ir::Value *v);
/// The only element of a constant that holds one value throughout (rank 0, one element, a splat of
/// few); nullopt otherwise.
std::optional<double> splat_of(const ir::Value *v);
/// Elements of a small integer constant in row-major order; nullopt when `v` is no such constant.
std::optional<Dims> int_constant(const ir::Value *v);

/// The constant with its axes permuted: a view of the same bytes.
const ir::Constant *permuted(ir::Graph &graph, const ir::Constant &c, std::span<const i64> perm);
/// The constant with another shape: a view when dense, else a dense copy.
const ir::Constant *reshaped(ir::Graph &graph, const ir::Constant &c,
                             std::span<const ir::SymInt> shape);

/// Elements begin, begin + step, … below end of one axis: a view of the same bytes.
const ir::Constant *sliced(ir::Graph &graph, const ir::Constant &c, i64 axis, i64 begin, i64 end,
                           i64 step);

/// A kernel [I, O, H, W] with zeros between its taps: every `dilation[0]`-th row and
/// `dilation[1]`-th column of the result holds what was next to each other. Dense.
const ir::Constant *spread(ir::Graph &graph, const ir::Constant &kernel, const Dims &dilation);

/// The static dimensions of a tensor; only with a static shape.
Dims static_dims(ir::Type t);
inline Dims static_dims(const ir::Value *v) { return static_dims(v->type()); }
bool is_identity(std::span<const i64> perm);
Dims inverse(std::span<const i64> perm);

/// Row-major element strides of a static shape.
Dims strides_of(const Dims &shape);

/// The type with its dimensions (and a per-channel axis) in the order of `perm`.
ir::Type permuted_type(ir::Context &ctx, ir::Type t, std::span<const i64> perm);

/// Whether permuting a tensor of that shape only moves dimensions of size 1: the bytes stay.
bool moves_only_ones(std::span<const ir::SymInt> shape, std::span<const i64> perm);

/// The same operator over other operands, inserted before `op`.
ir::Op *recreate(Rewriter &rw, ir::Op &op, std::span<ir::Value *const> operands,
                 std::span<const ir::Type> types);

/// Whether the shape is static and holds `n` elements.
bool has_elements(std::span<const ir::SymInt> shape, i64 n);

} // namespace chute::pass
