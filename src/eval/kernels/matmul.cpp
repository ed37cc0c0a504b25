// Matrix products: matmul, mm, bmm, linear, addmm, dot and their relatives, on fixed tiles.

#include "eval/kernels/matmul.h"

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/gemm.h"
#include "eval/kernels/elementwise.h"
#include "eval/kernels/families.h"
#include "support/parallel.h"
#include "eval/strided.h"

#include <algorithm>

namespace chute::eval {

namespace {

constexpr i64 kTileRows = 128;
constexpr i64 kTileColumns = 256;

/// Offset, in matrices, of batch `i` of the broadcast `shape` in an operand with `batch` dims.
i64 batch_offset(i64 i, std::span<const i64> shape, std::span<const i64> batch) {
  i64 offset = 0;
  i64 stride = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const i64 at = i % shape[shape.size() - 1 - d];
    i /= shape[shape.size() - 1 - d];
    if (d >= batch.size())
      continue;
    const i64 extent = batch[batch.size() - 1 - d];
    if (extent != 1)
      offset += at * stride;
    stride *= extent;
  }
  return offset;
}

template <class C>
void multiply(const Tensor &a, const Tensor &b, bool transposed, std::span<const i64> batch,
              std::span<const i64> a_batch, std::span<const i64> b_batch, i64 m, i64 n, i64 k,
              Tensor &out) {
  const i64 row_tiles = (m + kTileRows - 1) / kTileRows;
  const i64 column_tiles = (n + kTileColumns - 1) / kTileColumns;
  const i64 tiles = row_tiles * column_tiles;
  const i64 grain = 100'000 / std::max<i64>(1, std::min(m, kTileRows) * std::min(n, kTileColumns) *
                                                   std::max<i64>(k, 1)) +
                    1;
  parallel_for(num_elements(batch) * tiles, grain, [&](i64 begin, i64 end) {
    for (i64 t = begin; t < end; ++t) {
      const i64 i = t / tiles;
      const i64 r = t % tiles / column_tiles * kTileRows;
      const i64 c = t % column_tiles * kTileColumns;
      const C *pa = a.as<C>() + batch_offset(i, batch, a_batch) * m * k + r * k;
      const C *pb = b.as<C>() + batch_offset(i, batch, b_batch) * k * n;
      gemm<C>(pa, k, pb + (transposed ? c * k : c), transposed ? k : n, transposed,
              out.mutable_as<C>() + i * m * n + r * n + c, n, std::min(kTileRows, m - r),
              std::min(kTileColumns, n - c), k, false);
    }
  });
}

} // namespace

ElementType product_element(ElementType t) {
  if (!computable(t))
    return ElementType::None;
  switch (compute_of(t)) {
  case Compute::F32: return ElementType::F32;
  case Compute::F64: return ElementType::F64;
  default: return ElementType::U64;
  }
}

bool matmul(const Tensor &a, const Tensor &b, bool b_transposed, ElementType element, Tensor &out) {
  const ElementType compute = product_element(element);
  if (compute == ElementType::None || a.rank() == 0 || b.rank() == 0 || !computable(a.element()) ||
      !computable(b.element()))
    return false;
  Shape sa = a.shape();
  Shape sb = b.shape();
  const bool row = sa.size() == 1;
  const bool column = sb.size() == 1;
  if (row)
    sa.insert(sa.begin(), 1);
  if (column)
    sb.insert(b_transposed ? sb.begin() : sb.end(), 1);
  const i64 m = sa[sa.size() - 2];
  const i64 k = sa.back();
  const i64 n = b_transposed ? sb[sb.size() - 2] : sb.back();
  if ((b_transposed ? sb.back() : sb[sb.size() - 2]) != k)
    return false;
  std::span<const i64> a_batch(sa.data(), sa.size() - 2);
  std::span<const i64> b_batch(sb.data(), sb.size() - 2);
  Shape batch;
  if (!broadcast_shape(a_batch, b_batch, batch))
    return false;
  i64 rows = m;
  if (num_elements(b_batch) == 1 && b_batch.size() <= a_batch.size()) {
    // One right-hand matrix: all rows of the left side form one tall matrix.
    rows = num_elements(a_batch) * m;
    a_batch = {};
    b_batch = {};
  }
  Shape shape = batch;
  if (!row)
    shape.push_back(m);
  if (!column)
    shape.push_back(n);
  const Tensor ca = cast(a, compute);
  const Tensor cb = cast(b, compute);
  Tensor product = Tensor::allocate(compute, std::move(shape));
  if (a_batch.empty() && b_batch.empty())
    batch.clear();
  if (product.num_elements()) {
    switch (compute) {
    case ElementType::F32:
      multiply<float>(ca, cb, b_transposed, batch, a_batch, b_batch, rows, n, k, product);
      break;
    case ElementType::F64:
      multiply<double>(ca, cb, b_transposed, batch, a_batch, b_batch, rows, n, k, product);
      break;
    default: multiply<u64>(ca, cb, b_transposed, batch, a_batch, b_batch, rows, n, k, product);
    }
  }
  out = cast(product, element);
  return true;
}

namespace {

/// out = beta * base + alpha * product, both rounded to the result only once at the end.
Status combine(KernelContext &ctx, const Tensor *base, const Tensor &product, double beta,
               double alpha) {
  Tensor &out = ctx.out();
  const Tensor nothing = Tensor::scalar(ElementType::F64, 0);
  // beta = 0 drops the base, NaN and all, as BLAS does.
  const Tensor *in[] = {base && beta != 0 ? base : &nothing, &product};
  const bool fits = with_compute(compute_of(out.element()), [&](auto zero) {
    using C = decltype(zero);
    const C b = static_cast<C>(beta);
    const C a = static_cast<C>(alpha);
    return map_elements<C>(in, out, [=](const C *const *x, C *o, i64 n) {
      for (i64 i = 0; i < n; ++i) {
        if constexpr (std::is_integral_v<C>)
          o[i] = static_cast<C>(static_cast<u64>(b) * static_cast<u64>(x[0][i]) +
                                static_cast<u64>(a) * static_cast<u64>(x[1][i]));
        else
          o[i] = b * x[0][i] + a * x[1][i];
      }
    });
  });
  EVAL_REQUIRE(fits, "the operands do not broadcast to the result");
  return {};
}

Status product(KernelContext &ctx, const Tensor &a, const Tensor &b) {
  Tensor out;
  EVAL_REQUIRE(matmul(a, b, false, ctx.type().element, out), "the operands' shapes do not fit");
  ctx.set(0, std::move(out));
  return {};
}
Status k_matmul(KernelContext &ctx) { return product(ctx, ctx.in(0), ctx.in(1)); }

/// Sums in the wide type until the end, so that f16 and bf16 round once.
Status add_product(KernelContext &ctx) {
  const ElementType wide = product_element(ctx.type().element);
  Tensor p;
  EVAL_REQUIRE(wide != ElementType::None && matmul(ctx.in(1), ctx.in(2), false, wide, p),
               "the operands' shapes do not fit");
  return combine(ctx, &ctx.in(0), p, ctx.real_or("beta", 1), ctx.real_or("alpha", 1));
}
Status k_addbmm(KernelContext &ctx) {
  const Tensor &a = ctx.in(1);
  const Tensor &b = ctx.in(2);
  EVAL_REQUIRE(a.rank() == 3 && b.rank() == 3 && a.dim(0) == b.dim(0), "needs equal batches");
  const ElementType wide = product_element(ctx.type().element);
  // The sum over the batch is one product: [m, B*k] by [B*k, n].
  const std::vector<i64> order{1, 0, 2};
  const Tensor left = permute(a, order).reshaped({a.dim(1), a.dim(0) * a.dim(2)});
  const Tensor right = b.reshaped({b.dim(0) * b.dim(1), b.dim(2)});
  Tensor p;
  EVAL_REQUIRE(wide != ElementType::None && matmul(left, right, false, wide, p),
               "the operands' shapes do not fit");
  return combine(ctx, &ctx.in(0), p, ctx.real("beta"), ctx.real("alpha"));
}
Status k_linear(KernelContext &ctx) {
  const Tensor &w = ctx.in(1);
  const ElementType wide = product_element(ctx.type().element);
  Tensor p;
  EVAL_REQUIRE(wide != ElementType::None, "this element type has no products");
  const bool fits = w.rank() == 1 ? matmul(ctx.in(0), w, false, wide, p)
                                  : w.rank() == 2 && matmul(ctx.in(0), w, true, wide, p);
  EVAL_REQUIRE(fits, "the operands' shapes do not fit");
  if (!ctx.has(2)) {
    ctx.set(0, cast(p, ctx.type().element));
    return {};
  }
  return combine(ctx, &ctx.in(2), p, 1, 1);
}
Status outer(KernelContext &ctx, const Tensor &a, const Tensor &b, const Tensor *base, double beta,
             double alpha) {
  EVAL_REQUIRE(a.rank() == 1 && b.rank() == 1, "needs two vectors");
  Tensor p;
  EVAL_REQUIRE(matmul(a.reshaped({a.dim(0), 1}), b.reshaped({1, b.dim(0)}), false,
                      product_element(ctx.type().element), p),
               "this element type has no products");
  return combine(ctx, base, p, beta, alpha);
}
Status k_outer(KernelContext &ctx) { return outer(ctx, ctx.in(0), ctx.in(1), nullptr, 0, 1); }
Status k_addr(KernelContext &ctx) {
  return outer(ctx, ctx.in(1), ctx.in(2), &ctx.in(0), ctx.real("beta"), ctx.real("alpha"));
}
Status k_inner(KernelContext &ctx) {
  const Tensor &a = ctx.in(0);
  const Tensor &b = ctx.in(1);
  if (a.rank() == 0 || b.rank() == 0) {
    const Tensor one = Tensor::scalar(ctx.type().element, 1);
    Tensor &out = ctx.out();
    const Tensor *in[] = {&a, &b};
    const bool fits = with_compute(compute_of(out.element()), [&](auto zero) {
      using C = decltype(zero);
      return map_elements<C>(in, out, [](const C *const *x, C *o, i64 n) {
        for (i64 i = 0; i < n; ++i)
          o[i] = static_cast<C>(x[0][i] * x[1][i]);
      });
    });
    EVAL_REQUIRE(fits, "the operands do not broadcast to the result");
    return {};
  }
  // [..., k] by [..., k]: rows of one against rows of the other.
  Tensor out;
  EVAL_REQUIRE(a.dim(a.rank() - 1) == b.dim(b.rank() - 1), "the last dims differ");
  const i64 k = a.dim(a.rank() - 1);
  EVAL_REQUIRE(k > 0 &&
                   matmul(a.reshaped({a.num_elements() / k, k}),
                          b.reshaped({b.num_elements() / k, k}), true, ctx.type().element, out) &&
                   num_elements(ctx.type().shape) == out.num_elements(),
               "the operands' shapes do not fit");
  ctx.set(0, out.reshaped(ctx.type().shape));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"aten.matmul.default", k_matmul},     {"aten.mm.default", k_matmul},
    {"aten.bmm.default", k_matmul},        {"aten.mv.default", k_matmul},
    {"aten.dot.default", k_matmul},        {"aten.vdot.default", k_matmul},
    {"aten.linear.default", k_linear},     {"aten.addmm.default", add_product},
    {"aten.baddbmm.default", add_product}, {"aten.addmv.default", add_product},
    {"aten.addbmm.default", k_addbmm},     {"aten.addr.default", k_addr},
    {"aten.outer.default", k_outer},       {"aten.inner.default", k_inner},
};

} // namespace

std::span<const KernelEntry> matmul_kernels() { return kEntries; }

} // namespace chute::eval
