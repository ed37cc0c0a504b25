// Scaled dot product attention as PyTorch's math path defines it: softmax(q k^T * scale + mask) v.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/matmul.h"
#include "eval/kernels/rows.h"
#include "support/parallel.h"
#include "eval/strided.h"

#include <cmath>
#include <limits>

namespace chute::eval {

namespace {

/// Repeats heads (dim -3) of key or value so that each group of query heads has its own.
bool repeat_heads(Tensor &t, i64 heads) {
  if (t.rank() < 3)
    return false;
  Shape shape = t.shape();
  const size_t d = shape.size() - 3;
  if (shape[d] == 0 || heads % shape[d])
    return false;
  Shape strides = dense_strides(shape);
  Shape result = shape;
  result[d] = heads;
  shape.insert(shape.begin() + static_cast<i64>(d) + 1, heads / t.shape()[d]);
  strides.insert(strides.begin() + static_cast<i64>(d) + 1, 0);
  t = gather_strided(t, shape, 0, strides).reshaped(result);
  return true;
}

Status attention(KernelContext &ctx, const Tensor *mask) {
  const Tensor &q = ctx.in(0);
  Tensor k = ctx.in(1);
  Tensor v = ctx.in(2);
  EVAL_REQUIRE(q.rank() >= 2 && k.rank() >= 2 && v.rank() >= 2 && ir::is_float(q.element()),
               "query, key or value do not fit");
  if (ctx.boolean("enable_gqa")) {
    const i64 heads = q.rank() >= 3 ? q.dim(q.rank() - 3) : 1;
    EVAL_REQUIRE(repeat_heads(k, heads) && repeat_heads(v, heads),
                 "the number of key heads does not divide the number of query heads");
  }
  const ElementType wide = product_element(q.element());
  const double scale =
      ctx.real_or("scale", 1 / std::sqrt(static_cast<double>(q.dim(q.rank() - 1))));
  Tensor scores;
  EVAL_REQUIRE(matmul(q, k, true, wide, scores), "query and key do not fit");
  const i64 rows = scores.dim(scores.rank() - 2);
  const i64 columns = scores.dim(scores.rank() - 1);
  const bool causal = ctx.boolean("is_causal");
  Tensor bias;
  if (mask) {
    // Booleans say where to look, numbers are added.
    EVAL_REQUIRE(computable(mask->element()) && broadcasts_to(mask->shape(), scores.shape()),
                 "the mask does not broadcast to the scores");
    bias = Tensor::allocate(ElementType::F64, scores.shape());
    const Tensor *in[] = {mask};
    const bool flags = mask->element() == ElementType::Bool;
    map_elements<double>(in, bias, [=](const double *const *a, double *o, i64 n) {
      for (i64 i = 0; i < n; ++i)
        o[i] = !flags ? a[0][i] : a[0][i] != 0 ? 0 : -std::numeric_limits<double>::infinity();
    });
  }
  Tensor weights = Tensor::allocate(wide, scores.shape());
  const auto item = static_cast<i64>(scores.item_bytes());
  parallel_for(columns ? scores.num_elements() / columns : 0, row_grain(columns * 4),
               [&](i64 begin, i64 end) {
                 std::vector<double> e(static_cast<size_t>(columns));
                 for (i64 r = begin; r < end; ++r) {
                   load_run(wide, scores.data() + r * columns * item, columns, e.data());
                   double top = -std::numeric_limits<double>::infinity();
                   for (i64 c = 0; c < columns; ++c) {
                     double &s = e[static_cast<size_t>(c)];
                     s *= scale;
                     if (bias.defined())
                       s += bias.as<double>()[r * columns + c];
                     if (causal && c > r % rows)
                       s = -std::numeric_limits<double>::infinity();
                     top = std::isnan(s) || s > top ? s : top;
                   }
                   // A row that may look nowhere gives zeros.
                   const bool none = std::isinf(top) && top < 0;
                   for (double &s : e)
                     s = none ? 0 : std::exp(s - top);
                   const double sum = none ? 1 : sum_of(e.data(), columns);
                   for (double &s : e)
                     s /= sum;
                   store_run(wide, e.data(), columns, weights.mutable_data() + r * columns * item);
                 }
               });
  Tensor out;
  EVAL_REQUIRE(matmul(weights, v, false, ctx.type().element, out), "scores and value do not fit");
  ctx.set(0, std::move(out));
  return {};
}
Status k_attention(KernelContext &ctx) { return attention(ctx, ctx.maybe(3)); }

constexpr KernelEntry kEntries[] = {
    {"aten.scaled_dot_product_attention.default", k_attention},
};

} // namespace

std::span<const KernelEntry> attention_kernels() { return kEntries; }

} // namespace chute::eval
