// Scans and sorts along one dim: cumsum, cumprod, cummax, sort, topk, kthvalue, median.

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/rows.h"
#include "eval/kernels/shared.h"
#include "support/parallel.h"
#include "eval/strided.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace chute::eval {

namespace {

Status one_dim(KernelContext &ctx, i64 dim, std::vector<i64> &dims) {
  const int d = wrap_dim(dim, ctx.in(0).rank());
  EVAL_REQUIRE(d >= 0, "dim out of range");
  EVAL_REQUIRE(computable(ctx.in(0).element()), "this element type has no order or arithmetic");
  dims.clear();
  if (ctx.in(0).rank())
    dims.push_back(d);
  return {};
}

enum class Scan : u8 { Sum, Prod, LogSumExp };

/// Running values in double for floats (as torch accumulates), modulo 2^64 for integers.
template <Scan kind>
Status k_scan(KernelContext &ctx) {
  std::vector<i64> dims;
  const i64 dim = is_circle(ctx) ? ctx.in(1).int_at(0) : ctx.integer("dim");
  EVAL_REQUIRE(!ctx.boolean("exclusive") && !ctx.boolean("reverse"),
               "exclusive and reverse sums are not evaluated");
  if (Status s = one_dim(ctx, dim, dims); !s)
    return s;
  const Rows rows = rows_along(cast(ctx.in(0), ctx.type().element), dims);
  Tensor out = Tensor::allocate(rows.data.element(), rows.data.shape());
  const auto item = static_cast<i64>(out.item_bytes());
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    parallel_for(rows.count, row_grain(rows.length), [&](i64 begin, i64 end) {
      std::vector<T> row(static_cast<size_t>(rows.length));
      for (i64 r = begin; r < end; ++r) {
        const i64 at = r * rows.length * item;
        load_run(out.element(), rows.data.data() + at, rows.length, row.data());
        for (size_t i = 1; i < row.size(); ++i) {
          if constexpr (kind == Scan::Sum)
            row[i] += row[i - 1];
          else if constexpr (kind == Scan::Prod)
            row[i] *= row[i - 1];
          else {
            const double a = static_cast<double>(row[i - 1]);
            const double b = static_cast<double>(row[i]);
            const double top = std::max(a, b);
            if (!(std::isinf(top) && a == b))
              row[i] = static_cast<T>(top + std::log1p(std::exp(-std::fabs(a - b))));
          }
        }
        store_run(out.element(), row.data(), rows.length, out.mutable_data() + at);
      }
    });
  };
  if (ir::is_float(out.element()))
    run(double{});
  else
    run(u64{});
  ctx.set(0, from_rows(rows, out));
  return {};
}

template <bool largest>
Status k_cummax(KernelContext &ctx) {
  std::vector<i64> dims;
  if (Status s = one_dim(ctx, ctx.integer("dim"), dims); !s)
    return s;
  const Tensor &x = ctx.in(0);
  const Rows rows = rows_along(x, dims);
  Tensor values = Tensor::allocate(x.element(), rows.data.shape());
  Tensor indices = Tensor::allocate(ElementType::I64, rows.data.shape());
  const auto item = static_cast<i64>(x.item_bytes());
  with_compute(compute_of(x.element()), [&](auto zero) {
    using C = decltype(zero);
    parallel_for(rows.count, row_grain(rows.length), [&](i64 begin, i64 end) {
      std::vector<C> row(static_cast<size_t>(rows.length));
      for (i64 r = begin; r < end; ++r) {
        load_run(x.element(), rows.data.data() + r * rows.length * item, rows.length, row.data());
        i64 best = 0;
        i64 *index = indices.mutable_as<i64>() + r * rows.length;
        for (i64 i = 0; i < rows.length; ++i) {
          const C v = row[static_cast<size_t>(i)];
          const C top = row[static_cast<size_t>(best)];
          // Later equals win; NaN wins over all and stays.
          if (v != v || (top == top && (largest ? v >= top : v <= top)))
            best = i;
          index[i] = best;
        }
        std::vector<C> result(row.size());
        for (size_t i = 0; i < row.size(); ++i)
          result[i] = row[static_cast<size_t>(index[i])];
        store_run(x.element(), result.data(), rows.length,
                  values.mutable_data() + r * rows.length * item);
      }
    });
  });
  ctx.set(0, from_rows(rows, values));
  ctx.set(1, from_rows(rows, indices));
  return {};
}

/// NaN is larger than everything.
template <class C>
bool before(C a, C b, bool descending) {
  const bool nan_a = a != a;
  const bool nan_b = b != b;
  if (nan_a || nan_b)
    return descending ? nan_a && !nan_b : nan_b && !nan_a;
  return descending ? b < a : a < b;
}

struct Order {
  Tensor values;  // [count, keep]
  Tensor indices; // the same, I64
};

/// The `keep` first elements of every row from position `skip` on, in stable order.
Order sort_rows(const Rows &rows, bool descending, i64 keep, i64 skip = 0) {
  const ElementType element = rows.data.element();
  Order out{Tensor::allocate(element, {rows.count, keep}),
            Tensor::allocate(ElementType::I64, {rows.count, keep})};
  const auto item = static_cast<i64>(rows.data.item_bytes());
  with_compute(compute_of(element), [&](auto zero) {
    using C = decltype(zero);
    parallel_for(rows.count, row_grain(rows.length * 8), [&](i64 begin, i64 end) {
      std::vector<C> row(static_cast<size_t>(rows.length));
      std::vector<i64> index(row.size());
      std::vector<C> sorted(static_cast<size_t>(keep));
      for (i64 r = begin; r < end; ++r) {
        load_run(element, rows.data.data() + r * rows.length * item, rows.length, row.data());
        std::iota(index.begin(), index.end(), 0);
        const auto less = [&](i64 a, i64 b) {
          const C va = row[static_cast<size_t>(a)];
          const C vb = row[static_cast<size_t>(b)];
          if (before(va, vb, descending))
            return true;
          return !before(vb, va, descending) && a < b; // by position among equals: stable
        };
        const i64 need = skip + keep;
        if (need < rows.length / 4)
          std::partial_sort(index.begin(), index.begin() + need, index.end(), less);
        else
          std::sort(index.begin(), index.end(), less);
        for (i64 i = 0; i < keep; ++i) {
          const i64 from = index[static_cast<size_t>(skip + i)];
          out.indices.mutable_as<i64>()[r * keep + i] = from;
          sorted[static_cast<size_t>(i)] = row[static_cast<size_t>(from)];
        }
        store_run(element, sorted.data(), keep, out.values.mutable_data() + r * keep * item);
      }
    });
  });
  return out;
}

/// Reduces to the element at position `skip` of each sorted row.
Status pick(KernelContext &ctx, const Rows &rows, const std::vector<i64> &dims, i64 skip) {
  EVAL_REQUIRE(skip >= 0 && skip < rows.length, "k is out of range");
  const Order o = sort_rows(rows, false, 1, skip);
  const Shape shape = reduced_shape(ctx.in(0).shape(), dims, ctx.boolean("keepdim"));
  ctx.set(0, o.values.reshaped(shape));
  if (ctx.num_results() > 1)
    ctx.set(1, o.indices.reshaped(shape));
  return {};
}

Status sorted(KernelContext &ctx, i64 dim, bool descending, int value, int index) {
  std::vector<i64> dims;
  if (Status s = one_dim(ctx, dim, dims); !s)
    return s;
  const Rows rows = rows_along(ctx.in(0), dims);
  const Order o = sort_rows(rows, descending, rows.length);
  if (value >= 0)
    ctx.set(static_cast<u32>(value), from_rows(rows, o.values));
  if (index >= 0)
    ctx.set(static_cast<u32>(index), from_rows(rows, o.indices));
  return {};
}
Status k_sort(KernelContext &ctx) {
  return sorted(ctx, ctx.integer("dim"), ctx.boolean("descending"), 0, 1);
}
Status k_argsort(KernelContext &ctx) {
  return sorted(ctx, ctx.integer("dim"), ctx.boolean("descending"), -1, 0);
}
Status k_msort(KernelContext &ctx) { return sorted(ctx, 0, false, 0, -1); }
Status k_topk(KernelContext &ctx) {
  const bool circle = is_circle(ctx);
  std::vector<i64> dims;
  if (Status s = one_dim(ctx, circle ? -1 : ctx.integer("dim"), dims); !s)
    return s;
  const Rows rows = rows_along(ctx.in(0), dims);
  EVAL_REQUIRE(!circle || ctx.in(1).num_elements() == 1, "k is not one number");
  const i64 k = circle ? ctx.in(1).int_at(0) : ctx.integer("k");
  EVAL_REQUIRE(k >= 0 && k <= rows.length, "k is larger than the dim");
  const Order o = sort_rows(rows, circle || ctx.boolean("largest"), k);
  ctx.set(0, from_rows(rows, o.values, k));
  ctx.set(1, cast(from_rows(rows, o.indices, k), ctx.type(1).element));
  return {};
}
Status k_kthvalue(KernelContext &ctx) {
  std::vector<i64> dims;
  if (Status s = one_dim(ctx, ctx.integer("dim"), dims); !s)
    return s;
  return pick(ctx, rows_along(ctx.in(0), dims), dims, ctx.integer("k") - 1);
}
/// The lower median; a NaN in the row is the median.
Status k_median(KernelContext &ctx) {
  std::vector<i64> dims = ctx.integers("dim");
  EVAL_REQUIRE(wrap_dims(dims, ctx.in(0).rank()) && computable(ctx.in(0).element()),
               "dim out of range");
  Rows rows = rows_along(ctx.in(0), dims);
  EVAL_REQUIRE(rows.length > 0, "there is no median of nothing");
  const Order last = sort_rows(rows, true, 1);
  const Order middle = sort_rows(rows, false, 1, (rows.length - 1) / 2);
  const auto item = static_cast<i64>(rows.data.item_bytes());
  Tensor values = middle.values;
  Tensor indices = middle.indices;
  for (i64 r = 0; r < rows.count; ++r)
    if (std::isnan(last.values.at(r))) {
      std::copy_n(last.values.data() + r * item, item, values.mutable_data() + r * item);
      indices.mutable_as<i64>()[r] = last.indices.as<i64>()[r];
    }
  const Shape shape = reduced_shape(ctx.in(0).shape(), dims, ctx.boolean("keepdim"));
  ctx.set(0, values.reshaped(shape));
  if (ctx.num_results() > 1)
    ctx.set(1, indices.reshaped(shape));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"aten.cumsum.default", k_scan<Scan::Sum>},
    {"aten.cumprod.default", k_scan<Scan::Prod>},
    {"aten.logcumsumexp.default", k_scan<Scan::LogSumExp>},
    {"aten.cummax.default", k_cummax<true>},
    {"aten.cummin.default", k_cummax<false>},
    {"aten.sort.default", k_sort},
    {"aten.sort.stable", k_sort},
    {"aten.argsort.default", k_argsort},
    {"aten.argsort.stable", k_argsort},
    {"aten.msort.default", k_msort},
    {"aten.topk.default", k_topk},
    {"aten.kthvalue.default", k_kthvalue},
    {"circle.cumsum", k_scan<Scan::Sum>},
    {"circle.topk_v2", k_topk},
    {"aten.median.default", k_median},
    {"aten.median.dim", k_median},
};

} // namespace

std::span<const KernelEntry> scan_kernels() { return kEntries; }

} // namespace chute::eval
