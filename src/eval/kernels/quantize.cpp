// Affine quantization: quantized_decomposed.* and fake_quantize_* per tensor and per channel.
// q = clamp(round(x * (1 / scale)) + zero_point, min, max), rounding to nearest even, in f32:
// PyTorch multiplies by the reciprocal, which decides ties differently from a division.

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "support/parallel.h"
#include "eval/strided.h"
#include "quant/mx.h"

#include <algorithm>
#include <cmath>

namespace chute::eval {

namespace {

/// Parameters of each channel along `axis` (one channel: per tensor).
struct QuantSpec {
  std::vector<float> scale;
  std::vector<float> zero_point;
  int axis = 0;
  float min = 0;
  float max = 0;
};

/// Calls f(value, scale, zero point) for every element in f32 and stores its result in `out`.
template <class F>
void map_channels(const Tensor &x, const QuantSpec &q, Tensor &out, F f) {
  const auto channels = static_cast<i64>(q.scale.size());
  const i64 inner =
      channels > 1 ? num_elements(std::span(x.shape()).subspan(static_cast<size_t>(q.axis) + 1))
                   : x.num_elements();
  const auto from = static_cast<i64>(x.item_bytes());
  const auto to = static_cast<i64>(out.item_bytes());
  constexpr i64 kBlock = 1024;
  parallel_for(x.num_elements(), 16 * kBlock, [&](i64 begin, i64 end) {
    float v[kBlock];
    for (i64 i = begin; i < end; i += kBlock) {
      const i64 n = std::min(kBlock, end - i);
      load_run(x.element(), x.data() + i * from, n, v);
      for (i64 j = 0; j < n; ++j) {
        const auto c = static_cast<size_t>((i + j) / inner % channels);
        v[j] = f(v[j], q.scale[c], q.zero_point[c]);
      }
      store_run(out.element(), v, n, out.mutable_data() + i * to);
    }
  });
}

float quantized(float x, float scale, float zero_point, float low, float high) {
  const float q = std::nearbyint(x * (1.0f / scale)) + zero_point;
  return std::clamp(q, low, high);
}

Status read_spec(KernelContext &ctx, const Tensor &x, const Tensor *scale, const Tensor *zero_point,
                 QuantSpec &q) {
  const auto load = [](const Tensor *t, std::vector<float> &v) {
    if (!t || !computable(t->element()))
      return false;
    v.resize(static_cast<size_t>(t->num_elements()));
    load_run(t->element(), t->data(), t->num_elements(), v.data());
    return !v.empty();
  };
  EVAL_REQUIRE(load(scale, q.scale), "the scale is missing");
  if (zero_point)
    EVAL_REQUIRE(load(zero_point, q.zero_point), "the zero point has no numbers");
  else
    q.zero_point.assign(q.scale.size(), 0);
  EVAL_REQUIRE(q.zero_point.size() == q.scale.size() && computable(x.element()),
               "scale and zero point differ in length");
  if (q.scale.size() > 1) {
    q.axis = wrap_dim(ctx.integer("axis"), x.rank());
    EVAL_REQUIRE(q.axis >= 0 && x.rank() > 0 && x.dim(q.axis) == static_cast<i64>(q.scale.size()),
                 "there is not one scale for each index of the axis");
  }
  if (ctx.op().def().attr_index("quant_min") >= 0) {
    q.min = static_cast<float>(ctx.integer("quant_min"));
    q.max = static_cast<float>(ctx.integer("quant_max"));
  } else { // the overloads .tensor2 take the bounds as operands
    EVAL_REQUIRE(ctx.has(3) && ctx.has(4) && ctx.in(3).num_elements() == 1 &&
                     ctx.in(4).num_elements() == 1,
                 "quant_min or quant_max is missing");
    q.min = static_cast<float>(ctx.in(3).at(0));
    q.max = static_cast<float>(ctx.in(4).at(0));
  }
  EVAL_REQUIRE(q.min <= q.max, "quant_min is larger than quant_max");
  return {};
}

Tensor number(const KernelContext &ctx, std::string_view name) {
  return Tensor::scalar(ElementType::F32, ctx.real(name));
}

enum class Action : u8 { Quantize, Dequantize, Fake };

Status apply(KernelContext &ctx, Action action, const QuantSpec &q) {
  const Tensor &x = ctx.in(0);
  Tensor out = Tensor::allocate(ctx.type().element, x.shape());
  switch (action) {
  case Action::Quantize:
    map_channels(x, q, out,
                 [&](float v, float s, float z) { return quantized(v, s, z, q.min, q.max); });
    break;
  case Action::Dequantize:
    map_channels(x, q, out, [](float v, float s, float z) { return (v - z) * s; });
    break;
  case Action::Fake:
    map_channels(x, q, out, [&](float v, float s, float z) {
      return (quantized(v, s, z, q.min, q.max) - z) * s;
    });
    break;
  }
  // The cachemask forms also say which elements were not clamped.
  if (ctx.num_results() > 1) {
    Tensor mask = Tensor::allocate(ElementType::Bool, x.shape());
    map_channels(x, q, mask, [&](float v, float s, float z) {
      const float r = std::nearbyint(v * (1.0f / s)) + z;
      return r >= q.min && r <= q.max ? 1.0f : 0.0f;
    });
    ctx.set(1, std::move(mask));
  }
  ctx.set(0, std::move(out));
  return {};
}

/// scale and zero_point as attributes.
template <Action action>
Status k_numbers(KernelContext &ctx) {
  const Tensor scale = number(ctx, "scale");
  const Tensor zero = number(ctx, "zero_point");
  QuantSpec q;
  if (Status s = read_spec(ctx, ctx.in(0), &scale, &zero, q); !s)
    return s;
  return apply(ctx, action, q);
}
/// scale and zero_point as operands.
template <Action action>
Status k_tensors(KernelContext &ctx) {
  QuantSpec q;
  if (Status s = read_spec(ctx, ctx.in(0), ctx.maybe(1), ctx.maybe(2), q); !s)
    return s;
  return apply(ctx, action, q);
}
/// The switch fake_quant_enabled is the fourth operand.
Status k_switched(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.in(3).num_elements() == 1, "fake_quant_enabled is not one number");
  if (ctx.in(3).at(0) != 0)
    return k_tensors<Action::Fake>(ctx);
  ctx.set(0, ctx.in(0));
  Tensor mask = Tensor::allocate(ElementType::Bool, ctx.in(0).shape());
  std::fill_n(mask.mutable_data(), mask.num_bytes(), std::byte{1});
  ctx.set(1, std::move(mask));
  return {};
}

/// Real numbers rounded to a microscaling format. Its integers are no tensors of their own here:
/// quantize_mx rounds and dequantize_mx hands on.
Status k_mx(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::optional<quant::MxFormat> format = quant::mx_format(ctx.text("elem_format"));
  EVAL_REQUIRE(format, "the element format is unknown");
  EVAL_REQUIRE(ctx.text("shared_exp_method") == "max" && ctx.text("round") == "nearest",
               "only shared_exp_method 'max' and round 'nearest' are defined");
  const int axis = wrap_dim(ctx.integer("axis"), x.rank());
  EVAL_REQUIRE(axis >= 0 && axis < x.rank() && x.element() == ElementType::F32,
               "blocks lie along a dimension of f32 numbers");
  Tensor out = Tensor::allocate(ElementType::F32, x.shape());
  std::copy_n(x.data(), x.num_bytes(), out.mutable_data());
  quant::mx_round(
      {reinterpret_cast<float *>(out.mutable_data()), static_cast<size_t>(out.num_elements())},
      out.shape(), axis, *format);
  ctx.set(0, std::move(out));
  return {};
}
Status k_same(KernelContext &ctx) {
  ctx.set(0, ctx.in(0));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"circle_custom.mx_fake_quantize.default", k_mx},
    {"circle_custom.quantize_mx.default", k_mx},
    {"circle_custom.dequantize_mx.default", k_same},
    {"aten.fake_quantize_per_tensor_affine.default", k_numbers<Action::Fake>},
    {"aten.fake_quantize_per_tensor_affine_cachemask.default", k_numbers<Action::Fake>},
    {"aten.fake_quantize_per_tensor_affine.tensor_qparams", k_tensors<Action::Fake>},
    {"aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default", k_switched},
    {"aten._fake_quantize_learnable_per_tensor_affine.default", k_tensors<Action::Fake>},
    {"aten.fake_quantize_per_channel_affine.default", k_tensors<Action::Fake>},
    {"aten.fake_quantize_per_channel_affine_cachemask.default", k_tensors<Action::Fake>},
    {"quantized_decomposed.quantize_per_tensor.default", k_numbers<Action::Quantize>},
    {"quantized_decomposed.quantize_per_tensor.tensor", k_tensors<Action::Quantize>},
    {"quantized_decomposed.quantize_per_tensor.tensor2", k_tensors<Action::Quantize>},
    {"quantized_decomposed.quantize_per_channel.default", k_tensors<Action::Quantize>},
    {"quantized_decomposed.dequantize_per_tensor.default", k_numbers<Action::Dequantize>},
    {"quantized_decomposed.dequantize_per_tensor.tensor", k_tensors<Action::Dequantize>},
    {"quantized_decomposed.dequantize_per_tensor.tensor2", k_tensors<Action::Dequantize>},
    {"quantized_decomposed.dequantize_per_channel.default", k_tensors<Action::Dequantize>},
};

} // namespace

std::span<const KernelEntry> quantize_kernels() { return kEntries; }

} // namespace chute::eval
