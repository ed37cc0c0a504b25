// Softmax and normalizations. Statistics in double; each result is rounded once.

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/rows.h"
#include "eval/kernels/shared.h"
#include "support/parallel.h"
#include "eval/strided.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chute::eval {

namespace {

enum class Softmax : u8 { Plain, Log, Safe };

Status softmax(KernelContext &ctx, Softmax kind) {
  const ElementType element = ctx.type().element;
  EVAL_REQUIRE(ir::is_float(element) && computable(ctx.in(0).element()),
               "the softmax of integers is not defined");
  const Tensor x = cast(ctx.in(0), element);
  const bool circle = is_circle(ctx); // always the last dim
  const int dim = wrap_dim(circle ? -1 : ctx.integer("dim"), x.rank());
  EVAL_REQUIRE(dim >= 0, "dim out of range");
  const double beta = circle ? ctx.real_or("beta", 1) : 1;
  const Rows rows = rows_along(x, x.rank() ? std::vector<i64>{dim} : std::vector<i64>{});
  Tensor out = Tensor::allocate(element, rows.data.shape());
  const auto item = static_cast<i64>(x.item_bytes());
  parallel_for(rows.count, row_grain(rows.length * 4), [&](i64 begin, i64 end) {
    std::vector<double> v(static_cast<size_t>(rows.length));
    std::vector<double> e(v.size());
    for (i64 r = begin; r < end; ++r) {
      load_run(element, rows.data.data() + r * rows.length * item, rows.length, v.data());
      if (beta != 1)
        for (double &a : v)
          a *= beta;
      double top = -std::numeric_limits<double>::infinity();
      for (double a : v)
        top = std::isnan(a) || a > top ? a : top;
      for (size_t i = 0; i < v.size(); ++i)
        e[i] = std::exp(v[i] - top);
      const double sum = sum_of(e.data(), rows.length);
      // A row of -inf has no softmax (NaN); the safe form gives zeros.
      const bool masked = kind == Softmax::Safe && std::isinf(top) && top < 0;
      const double log_sum = std::log(sum);
      for (size_t i = 0; i < v.size(); ++i)
        e[i] = masked ? 0 : kind == Softmax::Log ? v[i] - top - log_sum : e[i] / sum;
      store_run(element, e.data(), rows.length, out.mutable_data() + r * rows.length * item);
    }
  });
  ctx.set(0, from_rows(rows, out));
  return {};
}
template <Softmax kind>
Status k_softmax(KernelContext &ctx) {
  return softmax(ctx, kind);
}

std::vector<double> as_doubles(const Tensor *t) {
  std::vector<double> v;
  if (t) {
    v.resize(static_cast<size_t>(t->num_elements()));
    load_run(t->element(), t->data(), t->num_elements(), v.data());
  }
  return v;
}

/// Normalizes rows of `length` elements: (x - mean) * rstd, with weight and bias of index
/// affine(row, i). `centered` false (rms_norm) keeps the mean at zero.
template <class Affine>
void normalize_rows(const Tensor &x, i64 count, i64 length, double eps, bool centered,
                    const std::vector<double> &weight, const std::vector<double> &bias,
                    Affine affine, Tensor &out, double *means, double *rstds) {
  const auto item = static_cast<i64>(x.item_bytes());
  const auto out_item = static_cast<i64>(out.item_bytes());
  parallel_for(count, row_grain(length), [&](i64 begin, i64 end) {
    std::vector<double> v(static_cast<size_t>(length));
    std::vector<double> square(v.size());
    for (i64 r = begin; r < end; ++r) {
      load_run(x.element(), x.data() + r * length * item, length, v.data());
      const auto n = static_cast<double>(length);
      const double mean = centered ? sum_of(v.data(), length) / n : 0;
      for (size_t i = 0; i < v.size(); ++i)
        square[i] = (v[i] - mean) * (v[i] - mean);
      const double rstd = 1 / std::sqrt(sum_of(square.data(), length) / n + eps);
      for (i64 i = 0; i < length; ++i) {
        const auto k = static_cast<size_t>(i);
        const auto a = static_cast<size_t>(affine(r, i));
        double y = (v[k] - mean) * rstd;
        if (!weight.empty())
          y *= weight[a];
        if (!bias.empty())
          y += bias[a];
        v[k] = y;
      }
      store_run(out.element(), v.data(), length, out.mutable_data() + r * length * out_item);
      if (means)
        means[r] = mean;
      if (rstds)
        rstds[r] = rstd;
    }
  });
}

/// Checks the operands that all norms share.
bool norm_operands(const Tensor &x, const Tensor *weight, const Tensor *bias, i64 size) {
  const auto fits = [&](const Tensor *t) {
    return !t || (computable(t->element()) && t->num_elements() == size);
  };
  return ir::is_float(x.element()) && fits(weight) && fits(bias);
}

/// Sets a result from doubles, if the operator has it.
void set_statistic(KernelContext &ctx, u32 result, const std::vector<double> &v) {
  if (result >= ctx.num_results() || ctx.type(result).element == ElementType::None ||
      num_elements(ctx.type(result).shape) != static_cast<i64>(v.size()))
    return;
  Tensor &out = ctx.out(result);
  store_run(out.element(), v.data(), out.num_elements(), out.mutable_data());
}

Status layer_norm(KernelContext &ctx, bool centered, const Tensor *bias, double eps) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() > 0, "needs at least one dim");
  const std::vector<i64> shape =
      is_circle(ctx) ? std::vector<i64>{x.dim(x.rank() - 1)} : ctx.integers("normalized_shape");
  const Tensor *weight = ctx.maybe(1);
  EVAL_REQUIRE(shape.size() <= x.shape().size() &&
                   std::equal(shape.rbegin(), shape.rend(), x.shape().rbegin()),
               "normalized_shape is not the end of the operand's shape");
  const i64 length = num_elements(shape);
  EVAL_REQUIRE(norm_operands(x, weight, bias, length), "weight or bias do not fit");
  const i64 count = length ? x.num_elements() / length : 0;
  Tensor out = Tensor::allocate(ctx.type().element, x.shape());
  std::vector<double> means(static_cast<size_t>(count));
  std::vector<double> rstds(static_cast<size_t>(count));
  normalize_rows(
      x, count, length, eps, centered, as_doubles(weight), as_doubles(bias),
      [](i64, i64 i) { return i; }, out, means.data(), rstds.data());
  ctx.set(0, std::move(out));
  if (centered)
    set_statistic(ctx, 1, means);
  set_statistic(ctx, centered ? 2 : 1, rstds);
  return {};
}
Status k_layer_norm(KernelContext &ctx) {
  return layer_norm(ctx, true, ctx.maybe(2), ctx.real("eps"));
}
/// Without eps: the smallest step above 1 of the operand's type (of f32 for the narrow floats,
/// which are normalized in f32).
Status k_rms_norm(KernelContext &ctx) {
  const double machine = ctx.in(0).element() == ElementType::F64
                             ? std::numeric_limits<double>::epsilon()
                             : static_cast<double>(std::numeric_limits<float>::epsilon());
  return layer_norm(ctx, false, nullptr, ctx.real_or("eps", machine));
}

Status k_circle_rms_norm(KernelContext &ctx) {
  return layer_norm(ctx, false, nullptr, ctx.real("epsilon"));
}

Status group_norm(KernelContext &ctx, i64 groups, double eps) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() >= 2 && groups > 0 && x.dim(1) % groups == 0,
               "groups does not divide the channels");
  const i64 channels = x.dim(1);
  EVAL_REQUIRE(norm_operands(x, ctx.maybe(1), ctx.maybe(2), channels), "weight or bias do not fit");
  const i64 count = x.dim(0) * groups;
  const i64 length = count ? x.num_elements() / count : 0;
  const i64 per_channel = std::max<i64>(1, length / std::max<i64>(1, channels / groups));
  Tensor out = Tensor::allocate(x.element(), x.shape());
  std::vector<double> means(static_cast<size_t>(count));
  std::vector<double> rstds(static_cast<size_t>(count));
  normalize_rows(
      x, count, length, eps, true, as_doubles(ctx.maybe(1)), as_doubles(ctx.maybe(2)),
      [=](i64 r, i64 i) { return r % groups * (channels / groups) + i / per_channel; }, out,
      means.data(), rstds.data());
  ctx.set(0, std::move(out));
  set_statistic(ctx, 1, means);
  set_statistic(ctx, 2, rstds);
  return {};
}
Status k_group_norm(KernelContext &ctx) {
  return group_norm(ctx, ctx.integer("num_groups"), ctx.real("eps"));
}
Status k_native_group_norm(KernelContext &ctx) {
  return group_norm(ctx, ctx.integer("group"), ctx.real("eps"));
}

/// One mean and reciprocal deviation per channel (dim 1), from the operands or from the batch.
Status batch_norm(KernelContext &ctx, const Tensor *mean, const Tensor *var, double eps,
                  bool training) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() >= 2, "needs a channel dim");
  const i64 channels = x.dim(1);
  EVAL_REQUIRE(norm_operands(x, ctx.maybe(1), ctx.maybe(2), channels) &&
                   norm_operands(x, mean, var, channels) && (training || (mean && var)),
               "weight, bias or statistics do not fit");
  const std::vector<double> weight = as_doubles(ctx.maybe(1));
  const std::vector<double> bias = as_doubles(ctx.maybe(2));
  std::vector<double> means = as_doubles(mean);
  std::vector<double> rstds = as_doubles(var);
  if (training) {
    means.assign(static_cast<size_t>(channels), 0);
    rstds.assign(static_cast<size_t>(channels), 0);
    std::vector<i64> dims{0};
    for (i64 d = 2; d < x.rank(); ++d)
      dims.push_back(d);
    const Rows rows = rows_along(x, dims);
    const std::vector<double> v = as_doubles(&rows.data);
    for (i64 c = 0; c < channels; ++c) {
      const double *row = v.data() + c * rows.length;
      const auto n = static_cast<double>(rows.length);
      const double m = sum_of(row, rows.length) / n;
      double square = 0;
      for (i64 i = 0; i < rows.length; ++i)
        square += (row[i] - m) * (row[i] - m);
      means[static_cast<size_t>(c)] = m;
      rstds[static_cast<size_t>(c)] = square / n;
    }
  }
  for (double &v : rstds)
    v = 1 / std::sqrt(v + eps);
  const i64 plane = num_elements(std::span(x.shape()).subspan(2));
  Tensor out = Tensor::allocate(x.element(), x.shape());
  const auto item = static_cast<i64>(x.item_bytes());
  parallel_for(x.dim(0) * channels, row_grain(plane), [&](i64 begin, i64 end) {
    std::vector<double> v(static_cast<size_t>(plane));
    for (i64 p = begin; p < end; ++p) {
      const auto c = static_cast<size_t>(p % channels);
      load_run(x.element(), x.data() + p * plane * item, plane, v.data());
      for (double &a : v) {
        a = (a - means[c]) * rstds[c];
        if (!weight.empty())
          a *= weight[c];
        if (!bias.empty())
          a += bias[c];
      }
      store_run(x.element(), v.data(), plane, out.mutable_data() + p * plane * item);
    }
  });
  ctx.set(0, std::move(out));
  if (training) {
    set_statistic(ctx, 1, means);
    set_statistic(ctx, 2, rstds);
  } else {
    // PyTorch leaves the saved statistics empty in inference.
    for (u32 i = 1; i < std::min<u32>(ctx.num_results(), 3); ++i)
      if (ctx.type(i).known() && ctx.type(i).element != ElementType::None)
        ctx.set(i, Tensor::zeros(ctx.type(i).element, ctx.type(i).shape));
  }
  return {};
}
Status k_batch_norm(KernelContext &ctx) {
  return batch_norm(ctx, ctx.maybe(3), ctx.maybe(4), ctx.real("eps"), ctx.boolean("training"));
}
Status k_batch_norm_inference(KernelContext &ctx) {
  return batch_norm(ctx, ctx.maybe(3), ctx.maybe(4), ctx.real("eps"), false);
}
Status k_batch_norm_no_stats(KernelContext &ctx) {
  return batch_norm(ctx, nullptr, nullptr, ctx.real("eps"), true);
}
/// Every plane of every sample normalized by itself, then the channel's weight and bias.
Status k_instance_norm(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  if (!ctx.boolean("use_input_stats"))
    return batch_norm(ctx, ctx.maybe(3), ctx.maybe(4), ctx.real("eps"), false);
  EVAL_REQUIRE(x.rank() >= 2, "needs a channel dim");
  return group_norm(ctx, x.dim(1), ctx.real("eps"));
}

constexpr KernelEntry kEntries[] = {
    {"aten._softmax.default", k_softmax<Softmax::Plain>},
    {"aten.softmax.int", k_softmax<Softmax::Plain>},
    {"aten._safe_softmax.default", k_softmax<Softmax::Safe>},
    {"aten._log_softmax.default", k_softmax<Softmax::Log>},
    {"aten.log_softmax.int", k_softmax<Softmax::Log>},
    {"circle.softmax", k_softmax<Softmax::Plain>},
    {"circle.log_softmax", k_softmax<Softmax::Log>},
    {"circle.rms_norm", k_circle_rms_norm},
    {"aten.layer_norm.default", k_layer_norm},
    {"aten.native_layer_norm.default", k_layer_norm},
    {"aten.rms_norm.default", k_rms_norm},
    {"aten._fused_rms_norm.default", k_rms_norm},
    {"aten.group_norm.default", k_group_norm},
    {"aten.native_group_norm.default", k_native_group_norm},
    {"aten.batch_norm.default", k_batch_norm},
    {"aten._native_batch_norm_legit_no_training.default", k_batch_norm_inference},
    {"aten._native_batch_norm_legit.no_stats", k_batch_norm_no_stats},
    {"aten.instance_norm.default", k_instance_norm},
};

} // namespace

std::span<const KernelEntry> norm_kernels() { return kEntries; }

} // namespace chute::eval
