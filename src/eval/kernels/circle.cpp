// What the kernels of the Circle dialect share: channels-last layouts, SAME padding, fused
// activations.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/shared.h"
#include "eval/strided.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace chute::eval {

bool is_circle(const KernelContext &ctx) {
  const auto code = ir::index(ctx.op().opcode());
  return code >= ir::kCircleBase && code < ir::kTosaBase;
}

Status activate(KernelContext &ctx) {
  const std::string_view name = ctx.text("fused_activation_function");
  if (name.empty() || name == "NONE")
    return {};
  double low = -HUGE_VAL;
  double high = HUGE_VAL;
  const bool tanh = name == "TANH";
  if (name == "RELU" || name == "RELU6")
    low = 0;
  else if (name == "RELU_N1_TO_1")
    low = -1;
  else
    EVAL_REQUIRE(tanh, "this fused activation is not evaluated");
  if (name == "RELU6")
    high = 6;
  if (name == "RELU_N1_TO_1")
    high = 1;
  const Tensor x = ctx.out();
  EVAL_REQUIRE(computable(x.element()), "this element type has no arithmetic");
  Tensor y = Tensor::allocate(x.element(), x.shape());
  const Tensor *in[] = {&x};
  // Integers up to 2^53 pass through double unchanged.
  map_elements<double>(in, y, [=](const double *const *a, double *o, i64 n) {
    for (i64 i = 0; i < n; ++i) {
      const double v = a[0][i];
      o[i] = tanh ? std::tanh(v) : v < low ? low : high < v ? high : v;
    }
  });
  ctx.set(0, std::move(y));
  return {};
}

std::vector<i64> values_of(const Tensor &t) {
  std::vector<i64> v;
  if (!ir::is_integer(t.element()))
    return v;
  v.resize(static_cast<size_t>(t.num_elements()));
  load_run(t.element(), t.data(), t.num_elements(), v.data());
  return v;
}

Tensor to_nchw(const Tensor &t) {
  std::vector<i64> dims(static_cast<size_t>(t.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  if (dims.size() > 2)
    std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  return permute(t, dims);
}

Tensor to_nhwc(const Tensor &t) {
  std::vector<i64> dims(static_cast<size_t>(t.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  if (dims.size() > 2)
    std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return permute(t, dims);
}

void same_padding(i64 in, i64 out, i64 kernel, i64 stride, i64 dilation, bool same, i64 &begin,
                  i64 &end) {
  const i64 total =
      same ? std::max<i64>(0, (out - 1) * stride + dilation * (kernel - 1) + 1 - in) : 0;
  begin = total / 2; // the odd one goes to the end
  end = total - begin;
}

} // namespace chute::eval
