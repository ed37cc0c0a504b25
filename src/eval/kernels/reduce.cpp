// Reductions: sums, products, extrema, norms, variances, any/all, argmax. Floats accumulate in
// double and are rounded once, integers modulo 2^64.

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/rows.h"
#include "eval/kernels/shared.h"
#include "support/parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chute::eval {

namespace {

constexpr i64 kPiece = 4096;

/// Calls f(values, n) for each piece of row `row` in order, converted to T (double, i64 or u64).
template <class T, class F>
void for_each_piece(const Rows &rows, i64 row, F &&f) {
  T buffer[kPiece];
  const auto item = static_cast<i64>(rows.data.item_bytes());
  for (i64 i = 0; i < rows.length; i += kPiece) {
    const i64 n = std::min(kPiece, rows.length - i);
    load_run(rows.data.element(), rows.data.data() + (row * rows.length + i) * item, n, buffer);
    f(buffer, n);
  }
}

double row_sum(const Rows &rows, i64 row) {
  double sum = 0;
  for_each_piece<double>(rows, row, [&](const double *v, i64 n) { sum += sum_of(v, n); });
  return sum;
}

/// Sum of (v - mean)^2, from the mean: no cancellation.
double row_square_sum(const Rows &rows, i64 row, double mean) {
  double sum = 0;
  for_each_piece<double>(rows, row, [&](double *v, i64 n) {
    for (i64 i = 0; i < n; ++i)
      v[i] = (v[i] - mean) * (v[i] - mean);
    sum += sum_of(v, n);
  });
  return sum;
}

/// Dims of the reduction from `dim`: absent, None, an empty list and no attribute mean all.
Status reduction_dims(KernelContext &ctx, std::vector<i64> &dims) {
  if (is_circle(ctx)) {
    dims = values_of(ctx.in(1));
    EVAL_REQUIRE(!dims.empty(), "there are no axes");
  } else {
    dims = ctx.integers("dim");
  }
  EVAL_REQUIRE(wrap_dims(dims, ctx.in(0).rank()), "dim out of range");
  return {};
}

bool keeps_dims(const KernelContext &ctx) {
  return ctx.boolean(is_circle(ctx) ? "keep_dims" : "keepdim");
}

/// Runs f(row) -> T over all rows and stores the results with the declared type.
template <class T, class F>
Status reduce_rows(KernelContext &ctx, u32 result, const Rows &rows, const std::vector<i64> &dims,
                   F &&f) {
  const bool keep = keeps_dims(ctx);
  Tensor out =
      Tensor::allocate(ctx.type(result).element, reduced_shape(ctx.in(0).shape(), dims, keep));
  const auto item = static_cast<i64>(out.item_bytes());
  parallel_for(rows.count, row_grain(rows.length), [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      const T v = f(r);
      store_run(out.element(), &v, 1, out.mutable_data() + r * item);
    }
  });
  ctx.set(result, std::move(out));
  return {};
}

enum class Fold : u8 { Sum, Mean, Prod, NanSum, NanMean, Any, All, CountNonzero };

Status fold(KernelContext &ctx, Fold kind) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(computable(x.element()) && computable(ctx.type().element),
               "this element type has no arithmetic");
  std::vector<i64> dims;
  if (Status s = reduction_dims(ctx, dims); !s)
    return s;
  // A dtype argument converts first.
  const bool predicate = kind == Fold::Any || kind == Fold::All || kind == Fold::CountNonzero;
  const Rows rows = rows_along(predicate ? x : cast(x, ctx.type().element), dims);
  const bool real = ir::is_float(rows.data.element());
  if (predicate)
    return reduce_rows<i64>(ctx, 0, rows, dims, [&](i64 row) {
      i64 nonzero = 0;
      for_each_piece<double>(rows, row, [&](const double *v, i64 n) {
        for (i64 i = 0; i < n; ++i)
          nonzero += v[i] != 0;
      });
      return kind == Fold::Any   ? nonzero != 0
             : kind == Fold::All ? nonzero == rows.length
                                 : nonzero;
    });
  if (!real) {
    EVAL_REQUIRE(kind == Fold::Sum || kind == Fold::Prod || kind == Fold::NanSum,
                 "the mean of integers is not defined");
    return reduce_rows<u64>(ctx, 0, rows, dims, [&](i64 row) {
      u64 sum = kind == Fold::Prod;
      for_each_piece<u64>(rows, row, [&](const u64 *v, i64 n) {
        for (i64 i = 0; i < n; ++i)
          sum = kind == Fold::Prod ? sum * v[i] : sum + v[i];
      });
      return sum;
    });
  }
  return reduce_rows<double>(ctx, 0, rows, dims, [&](i64 row) {
    switch (kind) {
    case Fold::Sum: return row_sum(rows, row);
    case Fold::Mean: return row_sum(rows, row) / static_cast<double>(rows.length);
    case Fold::Prod: {
      double product = 1;
      for_each_piece<double>(rows, row, [&](const double *v, i64 n) {
        for (i64 i = 0; i < n; ++i)
          product *= v[i];
      });
      return product;
    }
    default: {
      double sum = 0;
      i64 count = 0;
      for_each_piece<double>(rows, row, [&](const double *v, i64 n) {
        for (i64 i = 0; i < n; ++i)
          if (!std::isnan(v[i])) {
            sum += v[i];
            ++count;
          }
      });
      return kind == Fold::NanSum ? sum : sum / static_cast<double>(count);
    }
    }
  });
}
template <Fold kind>
Status fold_kernel(KernelContext &ctx) {
  return fold(ctx, kind);
}

/// Position of the largest (smallest) element of a row, NaN before all, the first of equals.
template <class C>
i64 best_index(const C *v, i64 n, bool largest) {
  i64 best = 0;
  for (i64 i = 1; i < n; ++i) {
    if (v[best] != v[best])
      return best;
    if (v[i] != v[i] || (largest ? v[i] > v[best] : v[i] < v[best]))
      best = i;
  }
  return best;
}

/// `value` and `index`: which result gets what, or -1.
Status extremum(KernelContext &ctx, bool largest, int value, int index,
                const std::vector<i64> &dims) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(computable(x.element()), "this element type has no order");
  const Rows rows = rows_along(x, dims);
  EVAL_REQUIRE(rows.length > 0 || rows.count == 0, "there is no extremum of nothing");
  const Shape shape = reduced_shape(x.shape(), dims, keeps_dims(ctx));
  Tensor values = Tensor::allocate(x.element(), shape);
  Tensor indices = Tensor::allocate(ElementType::I64, shape);
  const auto item = static_cast<i64>(x.item_bytes());
  with_compute(compute_of(x.element()), [&](auto zero) {
    using C = decltype(zero);
    parallel_for(rows.count, row_grain(rows.length), [&](i64 begin, i64 end) {
      std::vector<C> row(static_cast<size_t>(rows.length));
      for (i64 r = begin; r < end; ++r) {
        load_run(x.element(), rows.data.data() + r * rows.length * item, rows.length, row.data());
        const i64 best = best_index(row.data(), rows.length, largest);
        indices.mutable_as<i64>()[r] = best;
        store_run(x.element(), &row[static_cast<size_t>(best)], 1,
                  values.mutable_data() + r * item);
      }
    });
  });
  if (value >= 0)
    ctx.set(static_cast<u32>(value), values);
  if (index >= 0)
    ctx.set(static_cast<u32>(index), cast(indices, ctx.type(static_cast<u32>(index)).element));
  return {};
}
template <bool largest>
Status k_extreme_value(KernelContext &ctx) {
  std::vector<i64> dims;
  if (Status s = reduction_dims(ctx, dims); !s)
    return s;
  return extremum(ctx, largest, 0, -1, dims);
}
template <bool largest>
Status k_extreme_pair(KernelContext &ctx) {
  std::vector<i64> dims;
  if (Status s = reduction_dims(ctx, dims); !s)
    return s;
  return extremum(ctx, largest, 0, 1, dims);
}
template <bool largest>
Status k_extreme_index(KernelContext &ctx) {
  std::vector<i64> dims;
  if (Status s = reduction_dims(ctx, dims); !s)
    return s;
  return extremum(ctx, largest, -1, 0, dims);
}
Status k_aminmax(KernelContext &ctx) {
  std::vector<i64> dims;
  if (Status s = reduction_dims(ctx, dims); !s)
    return s;
  if (Status s = extremum(ctx, false, 0, -1, dims); !s)
    return s;
  return extremum(ctx, true, 1, -1, dims);
}

/// var, std and their pairs with the mean: `root` takes the square root, `mean` adds a result.
Status variance(KernelContext &ctx, bool root, bool mean) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(ir::is_float(x.element()), "the variance of integers is not defined");
  std::vector<i64> dims;
  if (Status s = reduction_dims(ctx, dims); !s)
    return s;
  double correction = 1;
  if (ctx.op().def().attr_index("unbiased") >= 0)
    correction = ctx.boolean("unbiased") ? 1 : 0;
  else
    correction = ctx.real_or("correction", 1);
  const Rows rows = rows_along(x, dims);
  const auto n = static_cast<double>(rows.length);
  if (mean)
    if (Status s = reduce_rows<double>(ctx, 1, rows, dims,
                                       [&](i64 row) { return row_sum(rows, row) / n; });
        !s)
      return s;
  return reduce_rows<double>(ctx, 0, rows, dims, [&](i64 row) {
    const double square = row_square_sum(rows, row, row_sum(rows, row) / n);
    const double v = square / std::max(0.0, n - correction);
    return root ? std::sqrt(v) : v;
  });
}
Status k_var(KernelContext &ctx) { return variance(ctx, false, false); }
Status k_std(KernelContext &ctx) { return variance(ctx, true, false); }
Status k_var_mean(KernelContext &ctx) { return variance(ctx, false, true); }
Status k_std_mean(KernelContext &ctx) { return variance(ctx, true, true); }

/// Vector p-norm: infinities and 0 by their limits.
Status norm(KernelContext &ctx, double p) {
  EVAL_REQUIRE(ir::is_float(ctx.type().element) && computable(ctx.in(0).element()),
               "this element type has no norm");
  std::vector<i64> dims;
  if (Status s = reduction_dims(ctx, dims); !s)
    return s;
  const Rows rows = rows_along(cast(ctx.in(0), ctx.type().element), dims);
  return reduce_rows<double>(ctx, 0, rows, dims, [&](i64 row) {
    double acc = std::isinf(p) && p < 0 ? std::numeric_limits<double>::infinity() : 0;
    for_each_piece<double>(rows, row, [&](double *v, i64 n) {
      if (std::isinf(p)) {
        for (i64 i = 0; i < n; ++i) {
          const double a = std::fabs(v[i]);
          if (std::isnan(a) || (p > 0 ? a > acc : a < acc))
            acc = a;
          if (std::isnan(acc))
            return;
        }
        return;
      }
      for (i64 i = 0; i < n; ++i)
        v[i] = p == 0   ? v[i] != 0
               : p == 1 ? std::fabs(v[i])
               : p == 2 ? v[i] * v[i]
                        : std::pow(std::fabs(v[i]), p);
      acc += sum_of(v, n);
    });
    return std::isinf(p) || p == 0 || p == 1 ? acc : p == 2 ? std::sqrt(acc) : std::pow(acc, 1 / p);
  });
}
Status k_norm(KernelContext &ctx) { return norm(ctx, ctx.real_or("p", 2)); }
Status k_vector_norm(KernelContext &ctx) { return norm(ctx, ctx.real_or("ord", 2)); }
Status k_linalg_norm(KernelContext &ctx) {
  // With an order and no dims it is a matrix norm, another operator.
  EVAL_REQUIRE(ctx.is_none("ord") || ctx.integers("dim").size() == 1 || ctx.in(0).rank() == 1,
               "matrix norms are not evaluated");
  return norm(ctx, ctx.real_or("ord", 2));
}

Status k_logsumexp(KernelContext &ctx) {
  std::vector<i64> dims;
  if (Status s = reduction_dims(ctx, dims); !s)
    return s;
  const Rows rows = rows_along(cast(ctx.in(0), ctx.type().element), dims);
  return reduce_rows<double>(ctx, 0, rows, dims, [&](i64 row) {
    double top = -std::numeric_limits<double>::infinity();
    for_each_piece<double>(rows, row, [&](const double *v, i64 n) {
      for (i64 i = 0; i < n; ++i)
        if (std::isnan(v[i]) || v[i] > top)
          top = v[i];
    });
    if (std::isinf(top) || std::isnan(top))
      return top;
    double sum = 0;
    for_each_piece<double>(rows, row, [&](double *v, i64 n) {
      for (i64 i = 0; i < n; ++i)
        v[i] = std::exp(v[i] - top);
      sum += sum_of(v, n);
    });
    return top + std::log(sum);
  });
}
Status k_trace(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() == 2 && computable(x.element()), "needs a matrix");
  const bool real = ir::is_float(x.element());
  double sum = 0;
  u64 whole = 0;
  for (i64 i = 0; i < std::min(x.dim(0), x.dim(1)); ++i) {
    if (real)
      sum += x.at(i * x.dim(1) + i);
    else
      whole += static_cast<u64>(x.int_at(i * x.dim(1) + i));
  }
  ctx.set(0, real ? Tensor::scalar(ctx.type().element, sum)
                  : Tensor::scalar_int(ctx.type().element, static_cast<i64>(whole)));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"aten.sum.default", fold_kernel<Fold::Sum>},
    {"aten.sum.dim_IntList", fold_kernel<Fold::Sum>},
    {"aten.mean.default", fold_kernel<Fold::Mean>},
    {"aten.mean.dim", fold_kernel<Fold::Mean>},
    {"aten.prod.default", fold_kernel<Fold::Prod>},
    {"aten.prod.dim_int", fold_kernel<Fold::Prod>},
    {"aten.nansum.default", fold_kernel<Fold::NanSum>},
    {"aten.nanmean.default", fold_kernel<Fold::NanMean>},
    {"aten.any.default", fold_kernel<Fold::Any>},
    {"aten.any.dim", fold_kernel<Fold::Any>},
    {"aten.any.dims", fold_kernel<Fold::Any>},
    {"aten.all.default", fold_kernel<Fold::All>},
    {"aten.all.dim", fold_kernel<Fold::All>},
    {"aten.all.dims", fold_kernel<Fold::All>},
    {"aten.count_nonzero.default", fold_kernel<Fold::CountNonzero>},
    {"aten.amax.default", k_extreme_value<true>},
    {"aten.amin.default", k_extreme_value<false>},
    {"aten.max.default", k_extreme_value<true>},
    {"aten.min.default", k_extreme_value<false>},
    {"aten.max.dim", k_extreme_pair<true>},
    {"aten.min.dim", k_extreme_pair<false>},
    {"aten.argmax.default", k_extreme_index<true>},
    {"aten.argmin.default", k_extreme_index<false>},
    {"aten.aminmax.default", k_aminmax},
    {"aten.var.default", k_var},
    {"aten.var.dim", k_var},
    {"aten.var.correction", k_var},
    {"aten.std.default", k_std},
    {"aten.std.dim", k_std},
    {"aten.std.correction", k_std},
    {"aten.var_mean.default", k_var_mean},
    {"aten.var_mean.dim", k_var_mean},
    {"aten.var_mean.correction", k_var_mean},
    {"aten.std_mean.default", k_std_mean},
    {"aten.std_mean.correction", k_std_mean},
    {"aten.norm.Scalar", k_norm},
    {"aten.norm.ScalarOpt_dim", k_norm},
    {"aten.norm.ScalarOpt_dim_dtype", k_norm},
    {"aten.linalg_vector_norm.default", k_vector_norm},
    {"aten.linalg_norm.default", k_linalg_norm},
    {"aten.logsumexp.default", k_logsumexp},
    {"aten.trace.default", k_trace},
    {"circle.sum", fold_kernel<Fold::Sum>},
    {"circle.mean", fold_kernel<Fold::Mean>},
    {"circle.reduce_prod", fold_kernel<Fold::Prod>},
    {"circle.reduce_any", fold_kernel<Fold::Any>},
    {"circle.reduce_all", fold_kernel<Fold::All>},
    {"circle.reduce_max", k_extreme_value<true>},
    {"circle.reduce_min", k_extreme_value<false>},
    {"circle.arg_max", k_extreme_index<true>},
    {"circle.arg_min", k_extreme_index<false>},
};

} // namespace

std::span<const KernelEntry> reduce_kernels() { return kEntries; }

} // namespace chute::eval
