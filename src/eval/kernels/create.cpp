// Operators that make tensors from numbers, and those that read sizes: full, arange, eye, tril,
// item.

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "support/parallel.h"
#include "eval/strided.h"
#include "ir/element_convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace chute::eval {

namespace {

void fill(Tensor &out, const std::byte *element) {
  copy_strided(out.item_bytes(), out.shape(), element, Shape(static_cast<size_t>(out.rank()), 0),
               out.mutable_data(), dense_strides(out.shape()));
}
Status fill_scalar(KernelContext &ctx, const Scalar &s) {
  std::byte element[16] = {};
  const ElementType t = ctx.type().element;
  if (s.is_int && !ir::is_float(t) && !ir::is_complex(t))
    ir::store_element_int(t, s.integer, element);
  else
    ir::store_element(t, s.real, element);
  fill(ctx.out(), element);
  return {};
}
Status k_full(KernelContext &ctx) { return fill_scalar(ctx, ctx.scalar("fill_value")); }
Status k_fill(KernelContext &ctx) { return fill_scalar(ctx, ctx.scalar("value")); }
Status k_fill_tensor(KernelContext &ctx) {
  const Tensor &v = ctx.in(1);
  EVAL_REQUIRE(v.num_elements() == 1 && computable(v.element()), "the value is not one number");
  const Tensor element = cast(v, ctx.type().element);
  fill(ctx.out(), element.data());
  return {};
}
/// Also for empty: torch promises nothing about its content.
Status k_zeros(KernelContext &ctx) { return fill_scalar(ctx, {true, 0, 0}); }
Status k_ones(KernelContext &ctx) { return fill_scalar(ctx, {true, 1, 1}); }
Status k_scalar_tensor(KernelContext &ctx) { return fill_scalar(ctx, ctx.scalar("s")); }

Status sequence(KernelContext &ctx, const Scalar &start, const Scalar &end, const Scalar &step) {
  const ElementType t = ctx.type().element;
  EVAL_REQUIRE(computable(t) && step.real != 0 && std::isfinite(start.real) &&
                   std::isfinite(end.real) && std::isfinite(step.real),
               "start, end or step out of range");
  const bool integral = start.is_int && end.is_int && step.is_int;
  i64 count = 0;
  if (integral) {
    // Unsigned distance: start and end may lie anywhere.
    const bool up = step.integer > 0;
    if (up ? end.integer > start.integer : end.integer < start.integer) {
      const u64 distance = up ? static_cast<u64>(end.integer) - static_cast<u64>(start.integer)
                              : static_cast<u64>(start.integer) - static_cast<u64>(end.integer);
      const u64 stride = up ? static_cast<u64>(step.integer) : 0 - static_cast<u64>(step.integer);
      count = static_cast<i64>((distance - 1) / stride + 1);
    }
  } else {
    const double n = std::ceil((end.real - start.real) / step.real);
    EVAL_REQUIRE(n < 9e15, "the range is too long");
    count = n > 0 ? static_cast<i64>(n) : 0;
  }
  EVAL_REQUIRE(count >= 0 && (!ctx.type().known() || ctx.type().shape == Shape{count}),
               "the range has another length than the result");
  Tensor out = Tensor::allocate(t, {count});
  const auto item = static_cast<i64>(out.item_bytes());
  // A cell holds start + i * step; PyTorch does the arithmetic in f64 for every float type.
  parallel_for(count, 8192, [&](i64 begin, i64 stop) {
    for (i64 i = begin; i < stop; ++i) {
      std::byte *cell = out.mutable_data() + i * item;
      if (!ir::is_float(t)) {
        const u64 first = static_cast<u64>(start.integer);
        ir::store_element_int(
            t, static_cast<i64>(first + static_cast<u64>(i) * static_cast<u64>(step.integer)),
            cell);
      } else {
        ir::store_element(t, start.real + static_cast<double>(i) * step.real, cell);
      }
    }
  });
  ctx.set(0, std::move(out));
  return {};
}
constexpr Scalar kZero{true, 0, 0};
constexpr Scalar kOne{true, 1, 1};
Status k_arange(KernelContext &ctx) { return sequence(ctx, kZero, ctx.scalar("end"), kOne); }
Status k_arange_start(KernelContext &ctx) {
  return sequence(ctx, ctx.scalar("start"), ctx.scalar("end"), kOne);
}
Status k_arange_step(KernelContext &ctx) {
  return sequence(ctx, ctx.scalar("start"), ctx.scalar("end"), ctx.scalar("step"));
}

/// Both ends are exact: the second half counts down from the end, as torch does.
Status spaced(KernelContext &ctx, bool logarithmic) {
  const double start = ctx.real("start");
  const double end = ctx.real("end");
  const i64 steps = ctx.integer("steps");
  const ElementType t = ctx.type().element;
  EVAL_REQUIRE(steps >= 0 && computable(t), "steps out of range");
  Tensor out = Tensor::allocate(t, {steps});
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  const double base = logarithmic ? ctx.real("base") : 0;
  for (i64 i = 0; i < steps; ++i) {
    double v = i < steps / 2 || steps == 1 ? start + step * static_cast<double>(i)
                                           : end - step * static_cast<double>(steps - 1 - i);
    if (logarithmic)
      v = std::pow(base, v);
    ir::store_element(t, v, out.mutable_data() + i * static_cast<i64>(out.item_bytes()));
  }
  ctx.set(0, std::move(out));
  return {};
}
Status k_linspace(KernelContext &ctx) { return spaced(ctx, false); }
Status k_logspace(KernelContext &ctx) { return spaced(ctx, true); }

Status k_eye(KernelContext &ctx) {
  const i64 n = ctx.integer("n");
  const i64 m = ctx.integer_or("m", n);
  EVAL_REQUIRE(n >= 0 && m >= 0, "a size is negative");
  Tensor out = Tensor::zeros(ctx.type().element, {n, m});
  for (i64 i = 0; i < std::min(n, m); ++i)
    ir::store_element_int(out.element(), 1,
                          out.mutable_data() + (i * m + i) * static_cast<i64>(out.item_bytes()));
  ctx.set(0, std::move(out));
  return {};
}

/// Keeps the part of each matrix on one side of a diagonal.
Status triangle(KernelContext &ctx, bool lower) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() >= 2, "needs a matrix");
  const i64 diagonal = ctx.integer("diagonal");
  Tensor out = Tensor::zeros(x.element(), x.shape());
  const i64 rows = x.dim(x.rank() - 2);
  const i64 columns = x.dim(x.rank() - 1);
  const auto item = static_cast<i64>(x.item_bytes());
  if (x.num_elements() == 0) {
    ctx.set(0, std::move(out));
    return {};
  }
  parallel_for(x.num_elements() / columns, 8192 / columns + 1, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      const i64 row = r % rows;
      // Columns c with c - row <= diagonal (lower) or >= diagonal (upper).
      const i64 edge = std::clamp<i64>(row + diagonal + (lower ? 1 : 0), 0, columns);
      const i64 first = lower ? 0 : edge;
      const i64 last = lower ? edge : columns;
      if (last > first)
        std::memcpy(out.mutable_data() + (r * columns + first) * item,
                    x.data() + (r * columns + first) * item,
                    static_cast<size_t>((last - first) * item));
    }
  });
  ctx.set(0, std::move(out));
  return {};
}
Status k_tril(KernelContext &ctx) { return triangle(ctx, true); }
Status k_triu(KernelContext &ctx) { return triangle(ctx, false); }
Status triangle_indices(KernelContext &ctx, bool lower) {
  const i64 rows = ctx.integer("row");
  const i64 columns = ctx.integer("col");
  const i64 offset = ctx.integer("offset");
  EVAL_REQUIRE(rows >= 0 && columns >= 0, "a size is negative");
  std::vector<i64> at[2];
  for (i64 r = 0; r < rows; ++r) {
    const i64 edge = std::clamp<i64>(r + offset + (lower ? 1 : 0), 0, columns);
    for (i64 c = lower ? 0 : edge; c < (lower ? edge : columns); ++c) {
      at[0].push_back(r);
      at[1].push_back(c);
    }
  }
  at[0].insert(at[0].end(), at[1].begin(), at[1].end());
  const Tensor out = Tensor::of(ElementType::I64, {2, static_cast<i64>(at[1].size())},
                                std::span<const i64>(at[0]));
  ctx.set(0, cast(out, ctx.type().element));
  return {};
}
Status k_tril_indices(KernelContext &ctx) { return triangle_indices(ctx, true); }
Status k_triu_indices(KernelContext &ctx) { return triangle_indices(ctx, false); }

Status k_diag(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const i64 k = ctx.integer("diagonal");
  EVAL_REQUIRE((x.rank() == 1 || x.rank() == 2) && std::abs(k) < (i64{1} << 31),
               "needs a vector or a matrix");
  const i64 row = std::max<i64>(0, -k);
  const i64 column = std::max<i64>(0, k);
  if (x.rank() == 2) {
    const i64 n = std::max<i64>(0, std::min(x.dim(0) - row, x.dim(1) - column));
    ctx.set(0, gather_strided(x, {n}, n ? row * x.dim(1) + column : 0, Shape{x.dim(1) + 1}));
    return {};
  }
  const i64 n = x.dim(0) + std::abs(k);
  Tensor out = Tensor::zeros(x.element(), {n, n});
  copy_strided(x.item_bytes(), x.shape(), x.data(), Shape{1},
               out.mutable_data() + (row * n + column) * static_cast<i64>(x.item_bytes()),
               Shape{n + 1});
  ctx.set(0, std::move(out));
  return {};
}
Status k_diag_embed(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() >= 1, "needs a vector");
  const int a = wrap_dim(ctx.integer("dim1"), x.rank() + 1);
  const int b = wrap_dim(ctx.integer("dim2"), x.rank() + 1);
  const i64 k = ctx.integer("offset");
  EVAL_REQUIRE(a >= 0 && b >= 0 && a != b && std::abs(k) < (i64{1} << 31), "dims out of range");
  const i64 length = x.dim(x.rank() - 1);
  const i64 n = length + std::abs(k);
  Shape shape;
  int next = 0;
  for (int d = 0; d < x.rank() + 1; ++d)
    shape.push_back(d == a || d == b ? n : x.dim(next++));
  Tensor out = Tensor::zeros(x.element(), shape);
  const Shape dense = dense_strides(shape);
  Shape strides;
  for (int d = 0; d < x.rank() + 1; ++d)
    if (d != a && d != b)
      strides.push_back(dense[static_cast<size_t>(d)]);
  const i64 sa = dense[static_cast<size_t>(a)];
  const i64 sb = dense[static_cast<size_t>(b)];
  strides.push_back(sa + sb);
  const i64 offset = std::max<i64>(0, -k) * sa + std::max<i64>(0, k) * sb;
  copy_strided(x.item_bytes(), x.shape(), x.data(), dense_strides(x.shape()),
               out.mutable_data() + offset * static_cast<i64>(x.item_bytes()), strides);
  ctx.set(0, std::move(out));
  return {};
}

Status meshgrid(KernelContext &ctx, bool xy) {
  const auto tensors = ctx.list(0);
  for (u32 i = 0; i < ctx.num_results(); ++i) {
    const Tensor &x = *tensors[i];
    EVAL_REQUIRE(x.rank() <= 1 && ctx.type(i).shape.size() == tensors.size(), "needs vectors");
    // With xy indexing the first two dims trade places.
    const size_t dim = xy && i < 2 && tensors.size() > 1 ? 1 - i : i;
    Shape strides(tensors.size(), 0);
    strides[dim] = 1;
    EVAL_REQUIRE(ctx.type(i).shape[dim] == x.num_elements(), "a vector does not fit the result");
    ctx.set(i, gather_strided(x, ctx.type(i).shape, 0, strides));
  }
  return {};
}
Status k_meshgrid(KernelContext &ctx) { return meshgrid(ctx, false); }
Status k_meshgrid_indexing(KernelContext &ctx) {
  return meshgrid(ctx, ctx.text("indexing") == "xy");
}

// --- numbers as values
// -----------------------------------------------------------------------------
Status k_item(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.num_elements() == 1 && computable(x.element()), "the tensor is not one number");
  ctx.set(0, cast(x.reshaped({}), ctx.type().element));
  return {};
}
Status k_size(KernelContext &ctx) {
  const int dim = wrap_dim(ctx.integer("dim"), ctx.in(0).rank());
  EVAL_REQUIRE(dim >= 0 && ctx.in(0).rank() > 0, "dim out of range");
  ctx.set(0, Tensor::scalar_int(ElementType::I64, ctx.in(0).dim(dim)));
  return {};
}
Status k_numel(KernelContext &ctx) {
  ctx.set(0, Tensor::scalar_int(ElementType::I64, ctx.in(0).num_elements()));
  return {};
}
Status k_shape_as_tensor(KernelContext &ctx) {
  const Shape &s = ctx.in(0).shape();
  ctx.set(0, Tensor::of(ElementType::I64, {static_cast<i64>(s.size())}, std::span<const i64>(s)));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"aten.full.default", k_full},
    {"aten.full_like.default", k_full},
    {"aten.new_full.default", k_full},
    {"aten.fill.Scalar", k_fill},
    {"aten.fill.Tensor", k_fill_tensor},
    {"aten.zeros.default", k_zeros},
    {"aten.zeros_like.default", k_zeros},
    {"aten.new_zeros.default", k_zeros},
    {"aten.zero.default", k_zeros},
    {"aten.empty.memory_format", k_zeros},
    {"aten.empty_like.default", k_zeros},
    {"aten.empty_strided.default", k_zeros},
    {"aten.new_empty.default", k_zeros},
    {"aten.new_empty_strided.default", k_zeros},
    {"aten.ones.default", k_ones},
    {"aten.ones_like.default", k_ones},
    {"aten.new_ones.default", k_ones},
    {"aten.scalar_tensor.default", k_scalar_tensor},
    {"aten.arange.default", k_arange},
    {"aten.arange.start", k_arange_start},
    {"aten.arange.start_step", k_arange_step},
    {"aten.linspace.default", k_linspace},
    {"aten.logspace.default", k_logspace},
    {"aten.eye.default", k_eye},
    {"aten.eye.m", k_eye},
    {"aten.tril.default", k_tril},
    {"aten.triu.default", k_triu},
    {"aten.tril_indices.default", k_tril_indices},
    {"aten.triu_indices.default", k_triu_indices},
    {"aten.diag.default", k_diag},
    {"aten.diag_embed.default", k_diag_embed},
    {"aten.meshgrid.default", k_meshgrid},
    {"aten.meshgrid.indexing", k_meshgrid_indexing},
    {"aten.item.default", k_item},
    {"aten._local_scalar_dense.default", k_item},
    {"aten.is_nonzero.default", k_item},
    {"aten.size.int", k_size},
    {"aten.sym_size.int", k_size},
    {"aten.numel.default", k_numel},
    {"aten.sym_numel.default", k_numel},
    {"aten._shape_as_tensor.default", k_shape_as_tensor},
};

} // namespace

std::span<const KernelEntry> create_kernels() { return kEntries; }

} // namespace chute::eval
