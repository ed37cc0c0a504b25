// QUANTIZE and DEQUANTIZE of the Circle dialect. The evaluator hands real numbers in and quantizes
// real results itself (eval/quantized.h), so both are copies; what is left to do is to refuse a
// tensor without parameters.

#include "eval/convert.h"
#include "eval/kernels/families.h"

#include <algorithm>
#include <cmath>

namespace chute::eval {

namespace {

Status k_quantize(KernelContext &ctx) {
  EVAL_REQUIRE(ir::is_float(ctx.in(0).element()), "the operand has no quantization parameters");
  EVAL_REQUIRE(ir::is_float(ctx.type().element), "the result has no quantization parameters");
  ctx.set(0, cast(ctx.in(0), ctx.type().element));
  return {};
}

/// TFLite's FakeQuant: the range is nudged so that zero is a step of it.
Status k_fake_quant(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const i64 bits = ctx.integer("num_bits");
  const double low = ctx.real("min");
  const double high = ctx.real("max");
  EVAL_REQUIRE(bits >= 2 && bits <= 16 && low <= 0 && high >= 0 && low < high &&
                   ir::is_float(x.element()),
               "num_bits, min or max out of range");
  const double qmin = ctx.boolean("narrow_range") ? 1 : 0;
  const double qmax = static_cast<double>((i64{1} << bits) - 1);
  const double scale = (high - low) / (qmax - qmin);
  const double zero = std::clamp(std::round(qmin - low / scale), qmin, qmax);
  std::vector<double> v(static_cast<size_t>(x.num_elements()));
  load_run(x.element(), x.data(), x.num_elements(), v.data());
  for (double &a : v)
    a = (std::clamp(
             std::round(std::clamp(a, (qmin - zero) * scale, (qmax - zero) * scale) / scale + zero),
             qmin, qmax) -
         zero) *
        scale;
  Tensor out = Tensor::allocate(ctx.type().element, x.shape());
  store_run(out.element(), v.data(), out.num_elements(), out.mutable_data());
  ctx.set(0, std::move(out));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"circle.quantize", k_quantize},
    {"circle.dequantize", k_quantize},
    {"circle.fake_quant", k_fake_quant},
};

} // namespace

std::span<const KernelEntry> circle_quantize_kernels() { return kEntries; }

} // namespace chute::eval
