#include "circle/ops.h"
#include "eval/convert.h"
#include "eval/evaluator.h"
#include "eval/gemm.h"
#include "eval/kernels/shared.h"
#include "eval/quantized.h"
#include "ir/op_def.h"
#include "pass/constants.h"
#include "ptq/linear_algebra.h"
#include "ptq/rounder.h"
#include "quant/params.h"
#include "support/parallel.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace chute::ptq {

namespace op = circle::op;
using pass::constant_of;

namespace {

constexpr i64 kRows = 8192;

/// The rows that weights [out, depth] meet: those of the operand for FULLY_CONNECTED, patches in
/// the filter's order for CONV_2D.
class RowSource {
public:
  RowSource(const ir::Op &o, const eval::Tensor &w) : op_(o), w_(w) {
    convolution_ = o.opcode() == op::CONV_2D;
    depth_ = w.num_elements() / std::max<i64>(w.dim(0), 1);
  }
  i64 depth() const { return depth_; }
  i64 count(const eval::Tensor &x, const eval::Tensor &out) const {
    return convolution_ ? out.num_elements() / std::max<i64>(w_.dim(0), 1)
                        : x.num_elements() / std::max<i64>(depth_, 1);
  }
  /// Row `r` of a real operand.
  void row(const eval::Tensor &x, const eval::Tensor &out, i64 r, double *to) const {
    const float *f = x.as<float>();
    if (!convolution_) {
      std::copy_n(f + r * depth_, depth_, to);
      return;
    }
    const i64 stride[2] = {number("stride_h"), number("stride_w")};
    const i64 dilation[2] = {number("dilation_h_factor"), number("dilation_w_factor")};
    const i64 position[2] = {r / out.dim(2) % out.dim(1), r % out.dim(2)};
    const i64 batch = r / out.dim(2) / out.dim(1);
    i64 first[2];
    for (int d = 0; d < 2; ++d) {
      i64 before = 0;
      i64 after = 0;
      eval::same_padding(x.dim(d + 1), out.dim(d + 1), w_.dim(d + 1), stride[d], dilation[d],
                         op_.attr("padding").as_string() == "SAME", before, after);
      first[d] = position[d] * stride[d] - before;
    }
    const i64 channels = x.dim(3);
    for (i64 i = 0; i < w_.dim(1); ++i)
      for (i64 j = 0; j < w_.dim(2); ++j, to += channels) {
        const i64 y = first[0] + i * dilation[0];
        const i64 z = first[1] + j * dilation[1];
        if (y < 0 || y >= x.dim(1) || z < 0 || z >= x.dim(2))
          std::fill_n(to, channels, 0.0);
        else
          std::copy_n(f + ((batch * x.dim(1) + y) * x.dim(2) + z) * channels, channels, to);
      }
  }

private:
  i64 number(std::string_view name) const { return op_.attr(name).as_int().value(); }

  const ir::Op &op_;
  const eval::Tensor &w_;
  bool convolution_ = false;
  i64 depth_ = 0;
};

class Gptq final : public WeightRounder {
public:
  Gptq(const ir::Graph &reference, std::vector<Sample> samples, i64 deepest)
      : samples_(std::move(samples)),
        deepest_(deepest),
        ops_(reference.num_op_ids()),
        pending_(reference.num_value_ids()) {
    for (const ir::Op &o : reference.body()) {
      ops_[o.id()] = &o;
      for (const ir::Use &u : o.operand_uses())
        if (u.value())
          ++pending_[u.value()->id()];
    }
  }

  Status begin(const ir::Graph &quantized) override {
    quantized_ = &quantized;
    for (u32 i = 0; i < quantized.body().num_args(); ++i) {
      const ir::Value &arg = *quantized.body().arg(i);
      std::vector<eval::Tensor> stored;
      for (const Sample &s : samples_) {
        stored.push_back(s[i]);
        if (arg.type().is_tensor() && arg.type().quant()) {
          auto q = eval::quantize(s[i], arg.type().element(), *arg.type().quant());
          if (!q)
            return tl::unexpected(q.error());
          stored.back() = std::move(*q);
        }
      }
      set(arg, std::move(stored));
    }
    return {};
  }

  Result<eval::Tensor> adjust(const ir::Op &o, const Roles &roles) override {
    const ir::Op &reference = *ops_[o.id()];
    const ir::Value *weight = reference.operand(static_cast<u32>(roles.weight));
    const ir::Value &x = *reference.operand(static_cast<u32>(roles.data));
    if ((o.opcode() != op::FULLY_CONNECTED && o.opcode() != op::CONV_2D) || constant_of(&x))
      return eval::Tensor();
    eval::Tensor w = eval::Tensor::of_constant(*constant_of(weight));
    const RowSource rows(o, w);
    const i64 depth = rows.depth();
    // A grouped convolution meets other rows in each group.
    if (depth == 0 || depth > deepest_ || w.dim(0) == 0 ||
        (o.opcode() == op::CONV_2D && w.dim(3) != x.type().dim(3).value()))
      return eval::Tensor();
    const ir::Value &q = *o.operand(static_cast<u32>(roles.data));
    const auto *stored = value(q);
    if (!stored)
      return tl::unexpected(error_);

    eval::Shape out_shape;
    for (const ir::SymInt d : o.result()->type().shape())
      out_shape.push_back(d.value());
    const eval::Tensor out = eval::Tensor::allocate(ir::ElementType::Bool, out_shape);
    gram_ = Square(depth);
    for (size_t s = 0; s < samples_.size(); ++s) {
      auto seen = q.type().quant() ? eval::dequantize((*stored)[s], *q.type().quant())
                                   : Result<eval::Tensor>((*stored)[s]);
      if (!seen)
        return tl::unexpected(seen.error());
      const i64 count = rows.count(*seen, out);
      const i64 step =
          std::max<i64>(1, (count * static_cast<i64>(samples_.size()) + kRows - 1) / kRows);
      accumulate(rows, *seen, out, count, step);
    }
    double mean = 0;
    for (i64 i = 0; i < depth; ++i)
      mean += gram_.at(i, i) / static_cast<double>(depth);
    if (!(mean > 0) || !std::isfinite(mean))
      return eval::Tensor();
    for (i64 i = 0; i < depth; ++i)
      gram_.at(i, i) += 0.01 * mean;
    return cholesky(gram_) ? w : eval::Tensor();
  }

  Result<eval::Tensor> round(const eval::Tensor &w, ir::ElementType element,
                             const ir::Quantization &q) override {
    const i64 units = w.dim(0);
    const i64 depth = gram_.n;
    Square u;
    if (!inverse_factor(gram_, u))
      return eval::quantize(w, element, q);
    eval::Tensor out = eval::Tensor::allocate(element, w.shape());
    const quant::Range range = quant::range_of(element).value_or(quant::Range{});
    std::vector<i64> stored(static_cast<size_t>(units * depth));
    parallel_for(units, 16, [&](i64 begin, i64 end) {
      std::vector<double> v(static_cast<size_t>(depth));
      for (i64 r = begin; r < end; ++r) {
        const size_t c = q.scales.size() == 1 ? 0 : static_cast<size_t>(r);
        const auto scale = static_cast<double>(q.scales[c]);
        const auto zero = static_cast<double>(q.zero_points[c]);
        std::copy_n(w.as<float>() + r * depth, depth, v.begin());
        for (i64 j = 0; j < depth; ++j) {
          const double s =
              std::clamp(std::round(v[static_cast<size_t>(j)] / scale) + zero,
                         static_cast<double>(range.min), static_cast<double>(range.max));
          stored[static_cast<size_t>(r * depth + j)] = static_cast<i64>(s);
          const double error = (v[static_cast<size_t>(j)] - (s - zero) * scale) / u.at(j, j);
          const double *row = u.row(j);
          for (i64 k = j + 1; k < depth; ++k)
            v[static_cast<size_t>(k)] -= error * row[k];
        }
      }
    });
    eval::store_run(element, stored.data(), out.num_elements(), out.mutable_data());
    return out;
  }

  Status done(const ir::Op &o) override {
    if (o.id() >= ops_.size() || !ops_[o.id()] || o.opcode() == ir::core_op::ret)
      return {};
    const ir::Op &reference = *ops_[o.id()];
    if (reference.has(ir::trait::kConstant))
      return {};
    if (!run(o))
      return tl::unexpected(error_);
    for (const ir::Use &use : reference.operand_uses())
      if (use.value() && --pending_[use.value()->id()] == 0)
        release(use.value()->id());
    return {};
  }

private:
  void set(const ir::Value &v, std::vector<eval::Tensor> t) {
    if (v.id() >= stored_.size())
      stored_.resize(v.id() + 1);
    stored_[v.id()] = std::move(t);
  }

  void release(u32 id) {
    if (id < stored_.size())
      stored_[id].clear();
    const auto forms = std::move(forms_[id]);
    for (const u32 form : forms)
      stored_[form].clear();
    forms_.erase(id);
  }

  /// The value in the quantized graph, for all samples. Conversions are computed when they are
  /// first needed; null with `error_` set when that fails.
  const std::vector<eval::Tensor> *value(const ir::Value &v) {
    if (v.id() < stored_.size() && !stored_[v.id()].empty())
      return &stored_[v.id()];
    const ir::Op *producer = v.producer();
    if (!producer || (producer->opcode() != op::QUANTIZE && producer->opcode() != op::DEQUANTIZE)) {
      error_ = fail(ErrorKind::Failure, "quantize.gptq", "a value is needed before it is computed",
                    name_of(*quantized_, v))
                   .value();
      return nullptr;
    }
    if (!run(*producer))
      return nullptr;
    forms_[producer->operand(0)->id()].push_back(v.id());
    return &stored_[v.id()];
  }

  bool run(const ir::Op &o) {
    std::vector<std::vector<eval::Tensor>> results(o.num_results());
    std::vector<std::vector<eval::Tensor>> operands;
    for (const ir::Use &u : o.operand_uses()) {
      const ir::Value *v = u.value();
      std::vector<eval::Tensor> &all = operands.emplace_back();
      if (!v)
        continue;
      if (const ir::Constant *c = constant_of(v)) {
        all.assign(1, eval::Tensor::of_constant(*c));
        continue;
      }
      const auto *computed = value(*v);
      if (!computed)
        return false;
      all = *computed;
    }
    for (size_t s = 0; s < samples_.size(); ++s) {
      std::vector<const eval::Tensor *> in;
      for (const std::vector<eval::Tensor> &all : operands)
        in.push_back(all.empty() ? nullptr : &all[all.size() == 1 ? 0 : s]);
      auto out = eval::evaluate_op(*quantized_, o, in);
      if (!out) {
        error_ = out.error();
        return false;
      }
      for (u32 i = 0; i < o.num_results(); ++i)
        results[i].push_back((*out)[i]);
    }
    for (u32 i = 0; i < o.num_results(); ++i)
      set(*o.result(i), std::move(results[i]));
    return true;
  }

  /// Adds X^T X of every step-th row to gram_.
  void accumulate(const RowSource &rows, const eval::Tensor &x, const eval::Tensor &out, i64 count,
                  i64 step) {
    const i64 depth = rows.depth();
    constexpr i64 kTile = 256;
    std::vector<double> tile(static_cast<size_t>(kTile * depth));
    std::vector<double> turned(tile.size());
    for (i64 first = 0; first < count; first += kTile * step) {
      i64 n = 0;
      for (i64 r = first; r < count && n < kTile; r += step, ++n)
        rows.row(x, out, r, tile.data() + n * depth);
      for (i64 i = 0; i < n; ++i)
        for (i64 k = 0; k < depth; ++k)
          turned[static_cast<size_t>(k * n + i)] = tile[static_cast<size_t>(i * depth + k)];
      eval::gemm(turned.data(), n, tile.data(), depth, false, gram_.v.data(), depth, depth, depth,
                 n, true);
    }
  }

  const ir::Graph *quantized_ = nullptr;
  std::vector<Sample> samples_;
  const i64 deepest_;
  std::vector<const ir::Op *> ops_;               // of the reference, by Op::id
  std::vector<u32> pending_;                      // uses to come, by Value::id
  std::vector<std::vector<eval::Tensor>> stored_; // by Value::id, by sample
  std::map<u32, std::vector<u32>> forms_;         // conversions of a value that were computed
  Square gram_;
  Diagnostic error_;
};

} // namespace

Status check_gptq(const ir::Graph &graph) {
  constexpr const char *kWayOut = "leave out --weights gptq";
  for (const ir::Op &o : graph.body()) {
    if (o.num_regions() || o.opcode() == ir::core_op::state)
      return fail(ErrorKind::Unsupported, "quantize.gptq",
                  "it cannot be executed by itself, which GPTQ needs", std::string(o.name()),
                  kWayOut);
    for (const ir::Value &v : o.results())
      if (v.type().is_tensor() && !v.type().has_static_shape())
        return fail(ErrorKind::Unsupported, "quantize.gptq",
                    "its shape is dynamic, and GPTQ needs static ones", name_of(graph, v), kWayOut);
  }
  return {};
}

std::unique_ptr<WeightRounder> make_gptq(const ir::Graph &reference, std::vector<Sample> samples,
                                         i64 deepest) {
  return std::make_unique<Gptq>(reference, std::move(samples), deepest);
}

} // namespace chute::ptq
