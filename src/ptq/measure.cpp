#include "ptq/measure.h"

#include "eval/evaluator.h"
#include "eval/quantized.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chute::ptq {

double Comparison::sqnr() const {
  if (!count)
    return std::numeric_limits<double>::quiet_NaN();
  if (noise == 0)
    return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

namespace {

void compare(Comparison &c, float reference, float got) {
  const double error = static_cast<double>(reference) - static_cast<double>(got);
  c.signal += static_cast<double>(reference) * static_cast<double>(reference);
  c.noise += error * error;
  ++c.count;
}

/// The numbers that a tensor of `type` stands for, as f32; undefined for one of integers.
Result<eval::Tensor> real(ir::Type type, const eval::Tensor &t) {
  if (type.is_tensor() && type.quant())
    return eval::dequantize(t, *type.quant());
  return t.element() == ir::ElementType::F32 ? t : eval::Tensor();
}

} // namespace

Status Measurement::add(const ir::Graph &quantized, const Sample &sample, int threads) {
  constexpr u64 kBytes = u64{256} << 20;
  const auto limit = static_cast<i64>(
      std::clamp<u64>(kBytes / 4 / std::max<u64>(values_.size(), 1), 64, u64{1} << 16));
  std::vector<std::vector<float>> kept(values_.size());
  eval::EvalOptions options;
  options.threads = threads;
  const auto step = [&](const eval::Tensor &t) { return (t.num_elements() + limit - 1) / limit; };
  options.on_value = [&](const ir::Value &v, const eval::Tensor &t) {
    if (t.element() != ir::ElementType::F32 || v.id() >= kept.size() || !t.num_elements())
      return;
    std::vector<float> &to = kept[v.id()];
    to.clear();
    for (i64 i = 0; i < t.num_elements(); i += step(t))
      to.push_back(t.as<float>()[i]);
  };
  const auto expected = eval::evaluate(reference_, sample, options);
  if (!expected)
    return tl::unexpected(expected.error());

  Status status;
  options.on_value = [&](const ir::Value &v, const eval::Tensor &t) {
    if (!status || v.id() >= kept.size() || kept[v.id()].empty())
      return;
    const auto got = real(v.type(), t);
    if (!got)
      status = tl::unexpected(got.error());
    else if (got->defined()) {
      const std::vector<float> &want = kept[v.id()];
      for (size_t i = 0; i < want.size(); ++i) {
        const i64 at = static_cast<i64>(i) * step(t);
        if (at < got->num_elements() && !masks_.is_mask(v, want[i]))
          compare(values_[v.id()], want[i], got->as<float>()[at]);
      }
    }
    kept[v.id()] = {};
  };
  // An interface of quantized types takes the sample's numbers by its own parameters.
  Sample inputs = sample;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Type type = quantized.body().arg(static_cast<u32>(i))->type();
    if (!type.is_tensor() || !type.quant())
      continue;
    auto stored = eval::quantize(inputs[i], type.element(), *type.quant());
    if (!stored)
      return tl::unexpected(stored.error());
    inputs[i] = std::move(*stored);
  }
  const auto outputs = eval::evaluate(quantized, inputs, options);
  if (!status)
    return status;
  if (!outputs)
    return tl::unexpected(outputs.error());

  outputs_.resize(expected->size());
  const ir::Op *ret = quantized.return_op();
  for (size_t i = 0; i < expected->size() && i < outputs->size(); ++i) {
    const eval::Tensor &want = (*expected)[i];
    const i32 operand =
        i < quantized.outputs().size() ? quantized.outputs()[i].operand : static_cast<i32>(i);
    if (want.element() != ir::ElementType::F32 || !ret || operand < 0)
      continue;
    const auto got = real(ret->operand(static_cast<u32>(operand))->type(), (*outputs)[i]);
    if (!got)
      return tl::unexpected(got.error());
    if (!got->defined() || got->num_elements() != want.num_elements())
      continue;
    for (i64 k = 0; k < want.num_elements(); ++k)
      if (std::isfinite(want.as<float>()[k]))
        compare(outputs_[i], want.as<float>()[k], got->as<float>()[k]);
  }
  return {};
}

} // namespace chute::ptq
