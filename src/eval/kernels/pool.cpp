// Pooling over one to three spatial dims: max (with indices), average, adaptive. Every output
// element is computed on its own from its window.

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/shared.h"
#include "support/parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chute::eval {

namespace {

/// The window of one output index along one dim: inputs start, start + step, … (count of them), and
/// the extent it would have counting the padding.
struct Window {
  i64 start;
  i64 count;
  i64 step;
  i64 padded;
};

struct PoolPlan {
  Tensor x; ///< [planes, spatial…]
  i64 planes = 0;
  Shape in; ///< spatial extents
  Shape out;
  std::vector<std::vector<Window>> windows; ///< by dim, by output index
  Shape result;                             ///< the declared layout: leading dims, then `out`
};

/// Output extent of a strided window (PyTorch's pooling_output_shape): with ceil_mode the last
/// window may reach beyond the padded input, but must start inside the input or its left padding.
i64 pooled_size(i64 in, i64 kernel, i64 stride, i64 pad, i64 dilation, bool ceil_mode) {
  const i64 span = in + 2 * pad - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  i64 out = (span >= 0 ? span / stride : -1) + 1;
  if (ceil_mode && (out - 1) * stride >= in + pad)
    --out;
  return out;
}

Status plan_shape(KernelContext &ctx, size_t rank, PoolPlan &plan) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(static_cast<size_t>(x.rank()) >= rank + 1 && computable(x.element()),
               "the operand has too few dims");
  const size_t lead = static_cast<size_t>(x.rank()) - rank;
  plan.result.assign(x.shape().begin(), x.shape().begin() + static_cast<i64>(lead));
  plan.in.assign(x.shape().begin() + static_cast<i64>(lead), x.shape().end());
  plan.planes = num_elements(plan.result);
  plan.x = x;
  return {};
}

Status plan_windows(KernelContext &ctx, size_t rank, PoolPlan &plan) {
  if (Status s = plan_shape(ctx, rank, plan); !s)
    return s;
  const auto list = [&](std::string_view name, i64 fallback) {
    std::vector<i64> v = ctx.integers(name);
    if (v.empty())
      v.push_back(fallback);
    if (v.size() == 1)
      v.resize(rank, v[0]);
    return v;
  };
  const std::vector<i64> kernel = list("kernel_size", 0);
  std::vector<i64> stride = ctx.integers("stride");
  if (stride.empty())
    stride = kernel;
  if (stride.size() == 1)
    stride.resize(rank, stride[0]);
  const std::vector<i64> padding = list("padding", 0);
  const std::vector<i64> dilation = list("dilation", 1);
  const bool ceil_mode = ctx.boolean("ceil_mode");
  EVAL_REQUIRE(kernel.size() == rank && stride.size() == rank && padding.size() == rank &&
                   dilation.size() == rank,
               "a list has another length than the spatial dims");
  for (size_t d = 0; d < rank; ++d) {
    constexpr i64 kLimit = i64{1} << 31;
    EVAL_REQUIRE(kernel[d] > 0 && stride[d] > 0 && dilation[d] > 0 && padding[d] >= 0 &&
                     kernel[d] < kLimit && stride[d] < kLimit && dilation[d] < kLimit &&
                     padding[d] <= kernel[d] / 2 && plan.in[d] < kLimit,
                 "kernel, stride, padding or dilation out of range");
    const i64 out =
        pooled_size(plan.in[d], kernel[d], stride[d], padding[d], dilation[d], ceil_mode);
    EVAL_REQUIRE(out > 0, "the result is empty");
    plan.out.push_back(out);
    std::vector<Window> &windows = plan.windows.emplace_back();
    for (i64 o = 0; o < out; ++o) {
      i64 start = o * stride[d] - padding[d];
      const i64 end = std::min(start + dilation[d] * (kernel[d] - 1) + 1, plan.in[d] + padding[d]);
      const i64 padded = end - start;
      while (start < 0)
        start += dilation[d];
      const i64 last = std::min(end, plan.in[d]);
      const i64 count = last > start ? (last - start + dilation[d] - 1) / dilation[d] : 0;
      windows.push_back({start, count, dilation[d], padded});
    }
  }
  plan.result.insert(plan.result.end(), plan.out.begin(), plan.out.end());
  return {};
}

/// Windows of adaptive pooling: output o covers [floor(o * in / out), ceil((o + 1) * in / out)).
Status plan_adaptive(KernelContext &ctx, size_t rank, PoolPlan &plan) {
  if (Status s = plan_shape(ctx, rank, plan); !s)
    return s;
  const std::vector<i64> size = ctx.integers("output_size");
  EVAL_REQUIRE(size.size() == rank, "output_size has another length than the spatial dims");
  for (size_t d = 0; d < rank; ++d) {
    EVAL_REQUIRE(size[d] >= 0 && size[d] < (i64{1} << 31) && plan.in[d] < (i64{1} << 31),
                 "output_size out of range");
    plan.out.push_back(size[d]);
    std::vector<Window> &windows = plan.windows.emplace_back();
    for (i64 o = 0; o < size[d]; ++o) {
      const i64 start = o * plan.in[d] / size[d];
      const i64 end = ((o + 1) * plan.in[d] + size[d] - 1) / size[d];
      windows.push_back({start, end - start, 1, end - start});
    }
  }
  plan.result.insert(plan.result.end(), plan.out.begin(), plan.out.end());
  return {};
}

/// Calls f(plane values, output index in the plane, windows) for every output, planes in parallel.
template <class C, class F>
void for_each_output(const PoolPlan &plan, F &&f) {
  const size_t rank = plan.in.size();
  const i64 in_size = num_elements(plan.in);
  const i64 out_size = num_elements(plan.out);
  const auto item = static_cast<i64>(plan.x.item_bytes());
  parallel_for(plan.planes, 4096 / std::max<i64>(in_size, 1) + 1, [&](i64 begin, i64 end) {
    std::vector<C> plane(static_cast<size_t>(in_size));
    for (i64 p = begin; p < end; ++p) {
      load_run(plan.x.element(), plan.x.data() + p * in_size * item, in_size, plane.data());
      for (i64 o = 0; o < out_size; ++o) {
        Window w[3] = {{0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}}; // missing dims: one element
        i64 rest = o;
        for (size_t d = rank; d-- > 0;) {
          w[3 - rank + d] = plan.windows[d][static_cast<size_t>(rest % plan.out[d])];
          rest /= plan.out[d];
        }
        f(plane.data(), p * out_size + o, w);
      }
    }
  });
}

Status max_pool(KernelContext &ctx, const PoolPlan &plan) {
  Tensor out = Tensor::allocate(plan.x.element(), plan.result);
  Tensor index = Tensor::allocate(ElementType::I64, plan.result);
  const size_t rank = plan.in.size();
  const i64 columns = plan.in[rank - 1];
  const i64 rows = rank > 1 ? plan.in[rank - 2] : 1;
  const auto item = static_cast<i64>(out.item_bytes());
  with_compute(compute_of(out.element()), [&](auto zero) {
    using C = decltype(zero);
    for_each_output<C>(plan, [&](const C *v, i64 o, const Window *w) {
      using Limits = std::numeric_limits<C>;
      C best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      i64 where = (w[0].start * rows + w[1].start) * columns + w[2].start;
      for (i64 a = 0; a < w[0].count; ++a)
        for (i64 b = 0; b < w[1].count; ++b)
          for (i64 c = 0; c < w[2].count; ++c) {
            const i64 at =
                ((w[0].start + a * w[0].step) * rows + w[1].start + b * w[1].step) * columns +
                w[2].start + c * w[2].step;
            if (v[at] > best || v[at] != v[at]) {
              best = v[at];
              where = at;
            }
          }
      store_run(out.element(), &best, 1, out.mutable_data() + o * item);
      index.mutable_as<i64>()[o] = where;
    });
  });
  ctx.set(0, std::move(out));
  if (ctx.num_results() > 1)
    ctx.set(1, std::move(index));
  return {};
}

Status average_pool(KernelContext &ctx, const PoolPlan &plan, bool count_padding, i64 divisor) {
  EVAL_REQUIRE(ir::is_float(plan.x.element()), "the average of integers is not defined");
  Tensor out = Tensor::allocate(plan.x.element(), plan.result);
  const size_t rank = plan.in.size();
  const i64 columns = plan.in[rank - 1];
  const i64 rows = rank > 1 ? plan.in[rank - 2] : 1;
  const auto item = static_cast<i64>(out.item_bytes());
  for_each_output<double>(plan, [&](const double *v, i64 o, const Window *w) {
    double sum = 0;
    for (i64 a = 0; a < w[0].count; ++a)
      for (i64 b = 0; b < w[1].count; ++b)
        for (i64 c = 0; c < w[2].count; ++c)
          sum += v[((w[0].start + a) * rows + w[1].start + b) * columns + w[2].start + c];
    const i64 n = divisor         ? divisor
                  : count_padding ? w[0].padded * w[1].padded * w[2].padded
                                  : w[0].count * w[1].count * w[2].count;
    const double mean = sum / static_cast<double>(n);
    store_run(out.element(), &mean, 1, out.mutable_data() + o * item);
  });
  ctx.set(0, std::move(out));
  return {};
}

template <size_t rank>
Status k_max_pool(KernelContext &ctx) {
  PoolPlan plan;
  if (Status s = plan_windows(ctx, rank, plan); !s)
    return s;
  return max_pool(ctx, plan);
}
template <size_t rank>
Status k_avg_pool(KernelContext &ctx) {
  PoolPlan plan;
  if (Status s = plan_windows(ctx, rank, plan); !s)
    return s;
  const i64 divisor = ctx.integer_or("divisor_override", 0);
  EVAL_REQUIRE(ctx.is_none("divisor_override") || divisor != 0, "the divisor is zero");
  return average_pool(ctx, plan, ctx.boolean("count_include_pad"), divisor);
}
template <size_t rank>
Status k_adaptive_avg(KernelContext &ctx) {
  PoolPlan plan;
  if (Status s = plan_adaptive(ctx, rank, plan); !s)
    return s;
  return average_pool(ctx, plan, false, 0);
}
template <size_t rank>
Status k_adaptive_max(KernelContext &ctx) {
  PoolPlan plan;
  if (Status s = plan_adaptive(ctx, rank, plan); !s)
    return s;
  return max_pool(ctx, plan);
}

/// Circle: NHWC, SAME or VALID, averages over the elements that exist.
template <bool average>
Status k_circle_pool(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.in(0).rank() == 4 && computable(ctx.in(0).element()),
               "the operand is not of rank 4");
  const std::string_view mode = ctx.text("padding");
  EVAL_REQUIRE(mode == "SAME" || mode == "VALID", "unknown padding");
  PoolPlan plan;
  plan.x = to_nchw(ctx.in(0));
  plan.planes = plan.x.dim(0) * plan.x.dim(1);
  plan.in = {plan.x.dim(2), plan.x.dim(3)};
  const i64 kernel[2] = {ctx.integer("filter_height"), ctx.integer("filter_width")};
  const i64 stride[2] = {ctx.integer("stride_h"), ctx.integer("stride_w")};
  for (size_t d = 0; d < 2; ++d) {
    EVAL_REQUIRE(kernel[d] > 0 && stride[d] > 0 && kernel[d] < (i64{1} << 31) &&
                     stride[d] < (i64{1} << 31),
                 "filter or stride out of range");
    const i64 n = plan.in[d];
    const i64 out = mode == "SAME"  ? (n + stride[d] - 1) / stride[d]
                    : n < kernel[d] ? 0
                                    : (n - kernel[d]) / stride[d] + 1;
    EVAL_REQUIRE(out > 0, "the result is empty");
    i64 begin = 0;
    i64 end = 0;
    same_padding(n, out, kernel[d], stride[d], 1, mode == "SAME", begin, end);
    std::vector<Window> &windows = plan.windows.emplace_back();
    for (i64 o = 0; o < out; ++o) {
      const i64 first = std::max<i64>(o * stride[d] - begin, 0);
      const i64 last = std::min(o * stride[d] - begin + kernel[d], n);
      windows.push_back({first, last - first, 1, kernel[d]});
    }
    plan.out.push_back(out);
  }
  plan.result = {plan.x.dim(0), plan.x.dim(1), plan.out[0], plan.out[1]};
  if (Status s = average ? average_pool(ctx, plan, false, 0) : max_pool(ctx, plan); !s)
    return s;
  ctx.set(0, to_nhwc(ctx.out()));
  return activate(ctx);
}

constexpr KernelEntry kEntries[] = {
    {"circle.average_pool_2d", k_circle_pool<true>},
    {"circle.max_pool_2d", k_circle_pool<false>},
    {"aten.max_pool1d.default", k_max_pool<1>},
    {"aten.max_pool1d_with_indices.default", k_max_pool<1>},
    {"aten.max_pool2d.default", k_max_pool<2>},
    {"aten.max_pool2d_with_indices.default", k_max_pool<2>},
    {"aten.max_pool3d.default", k_max_pool<3>},
    {"aten.max_pool3d_with_indices.default", k_max_pool<3>},
    {"aten.avg_pool1d.default", k_avg_pool<1>},
    {"aten.avg_pool2d.default", k_avg_pool<2>},
    {"aten.avg_pool3d.default", k_avg_pool<3>},
    {"aten.adaptive_avg_pool1d.default", k_adaptive_avg<1>},
    {"aten.adaptive_avg_pool2d.default", k_adaptive_avg<2>},
    {"aten._adaptive_avg_pool2d.default", k_adaptive_avg<2>},
    {"aten.adaptive_avg_pool3d.default", k_adaptive_avg<3>},
    {"aten._adaptive_avg_pool3d.default", k_adaptive_avg<3>},
    {"aten.adaptive_max_pool1d.default", k_adaptive_max<1>},
    {"aten.adaptive_max_pool2d.default", k_adaptive_max<2>},
    {"aten.adaptive_max_pool3d.default", k_adaptive_max<3>},
};

} // namespace

std::span<const KernelEntry> pool_kernels() { return kEntries; }

} // namespace chute::eval
