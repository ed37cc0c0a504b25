#pragma once

#include "ir/context.h"
#include "ir/sym_table.h"

#include <boost/container/small_vector.hpp>
#include <optional>
#include <span>

/// Arithmetic on shapes whose dimensions may be symbolic. Dimensions count elements.
namespace chute::aten {

using Dims = boost::container::small_vector<ir::SymInt, 6>;
using DimSpan = std::span<const ir::SymInt>;

inline DimSpan span_of(const Dims &d) { return {d.data(), d.size()}; }

/// `dim` counted from the end when negative. nullopt when symbolic or outside [-rank, rank). A rank
/// of 0 counts as 1, as in PyTorch.
std::optional<int> normalize_dim(ir::SymInt dim, int rank);

/// Product of the dimensions.
ir::SymInt numel(ir::Context &ctx, DimSpan shape);

/// Whether a <= b for every value of the symbols inside their ranges (false when unknown).
bool provably_le(const ir::SymTable &sym, ir::SymInt a, ir::SymInt b);

/// min and max that stay plain where the symbols' ranges decide them.
ir::SymInt sym_min(ir::SymTable &sym, ir::SymInt a, ir::SymInt b);
ir::SymInt sym_max(ir::SymTable &sym, ir::SymInt a, ir::SymInt b);

/// Aligns at the last dimension; a dimension is equal to its partner or one of them is 1. nullopt
/// when two dimensions differ, or are different expressions: an exported program has been
/// specialised so that equal sizes have equal expressions.
std::optional<Dims> broadcast(DimSpan a, DimSpan b);

/// The shape of a view of `from` as `sizes`, in which one size may be -1. nullopt when the numbers
/// of elements differ or the missing size is no whole number.
std::optional<Dims> resolve_view(ir::Context &ctx, DimSpan from, DimSpan sizes);

/// Output length of a convolution or pooling window with floor rounding:
/// (in + before + after - dilation * (kernel - 1) - 1) / stride + 1.
ir::SymInt window_output(ir::SymTable &sym, ir::SymInt in, ir::SymInt pad_before,
                         ir::SymInt pad_after, ir::SymInt dilation, ir::SymInt kernel,
                         ir::SymInt stride);

/// The same with `ceil_mode`: rounds up, then drops a last window that starts in the padding after
/// the input (PyTorch's pooling_output_shape).
ir::SymInt window_output_ceil(ir::SymTable &sym, ir::SymInt in, ir::SymInt pad_before,
                              ir::SymInt pad_after, ir::SymInt dilation, ir::SymInt kernel,
                              ir::SymInt stride);

/// Start and length of `x[start:end:step]` over `size` elements: negative bounds count from the
/// end, bounds are clamped, an absent end (or one past every size) is `size`.
struct SliceRange {
  ir::SymInt start;
  ir::SymInt end;
  ir::SymInt length;
};
SliceRange resolve_slice(ir::SymTable &sym, ir::SymInt size, std::optional<ir::SymInt> start,
                         std::optional<ir::SymInt> end, ir::SymInt step);

} // namespace chute::aten
