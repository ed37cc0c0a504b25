// Recurrent operators of the Circle dialect in float. Their state operands are read where a run
// starts; what they hold afterwards is not kept, so that every run starts from what the file says
// (as everything else in the evaluator, without side effects).

#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/shared.h"
#include "eval/strided.h"

#include <algorithm>
#include <cmath>

namespace chute::eval {

namespace {

using Numbers = std::vector<double>;

Numbers doubles(const Tensor *t) {
  Numbers v;
  if (t) {
    v.resize(static_cast<size_t>(t->num_elements()));
    load_run(t->element(), t->data(), t->num_elements(), v.data());
  }
  return v;
}

enum class Activation : u8 { None, Relu, ReluN1, Relu6, Tanh, Unknown };

Activation activation_of(const KernelContext &ctx) {
  const std::string_view name = ctx.text("fused_activation_function");
  return name == "TANH"           ? Activation::Tanh
         : name == "RELU"         ? Activation::Relu
         : name == "RELU6"        ? Activation::Relu6
         : name == "RELU_N1_TO_1" ? Activation::ReluN1
         : name == "NONE"         ? Activation::None
                                  : Activation::Unknown;
}
double activated(Activation a, double v) {
  switch (a) {
  case Activation::Relu: return std::max(v, 0.0);
  case Activation::Relu6: return std::clamp(v, 0.0, 6.0);
  case Activation::ReluN1: return std::clamp(v, -1.0, 1.0);
  case Activation::Tanh: return std::tanh(v);
  default: return v;
  }
}
double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

/// to[i] += sum of w[i, k] * x[k].
void accumulate(const Numbers &w, const double *x, size_t depth, Numbers &to) {
  if (w.empty())
    return;
  for (size_t i = 0; i < to.size(); ++i)
    for (size_t k = 0; k < depth; ++k)
      to[i] += w[i * depth + k] * x[k];
}

bool is_matrix(const Tensor *t, i64 rows, i64 columns) {
  return !t ||
         (t->rank() == 2 && t->dim(0) == rows && t->dim(1) == columns && computable(t->element()));
}
bool is_vector(const Tensor *t, i64 n) {
  return !t || (t->num_elements() == n && computable(t->element()));
}

/// A sequence [batch, time, depth] or, time major, [time, batch, depth]; without time, one step.
struct Sequence {
  i64 steps = 1;
  i64 batch = 0;
  i64 depth = 0;
  bool time_major = true;
  size_t row(i64 t, i64 b) const {
    return static_cast<size_t>(time_major ? t * batch + b : b * steps + t);
  }
};
bool sequence_of(const Tensor &x, bool time_major, Sequence &s) {
  if (x.rank() != 2 && x.rank() != 3)
    return false;
  const bool single = x.rank() == 2;
  s.time_major = time_major || single;
  s.steps = single ? 1 : x.dim(time_major ? 0 : 1);
  s.batch = single ? x.dim(0) : x.dim(time_major ? 1 : 0);
  s.depth = x.dim(x.rank() - 1);
  return computable(x.element());
}

Tensor result(const KernelContext &ctx, const Tensor &x, i64 units, const Numbers &v) {
  Shape shape = x.shape();
  shape.back() = units;
  Tensor out = Tensor::allocate(ctx.type().element, shape);
  store_run(out.element(), v.data(), out.num_elements(), out.mutable_data());
  return out;
}

/// h = act(w x + r h + b), every step handed out.
Status k_rnn(KernelContext &ctx) { // (x, weights, recurrent weights, bias, hidden state)
  const Tensor &x = ctx.in(0);
  Sequence s;
  const Activation act = activation_of(ctx);
  const int major = ctx.op().def().attr_index("time_major");
  EVAL_REQUIRE(sequence_of(x, major < 0 || ctx.boolean("time_major"), s) &&
                   act != Activation::Unknown && ctx.in(1).rank() == 2,
               "the operands do not fit");
  const i64 units = ctx.in(1).dim(0);
  EVAL_REQUIRE(is_matrix(&ctx.in(1), units, s.depth) && is_matrix(&ctx.in(2), units, units) &&
                   is_vector(&ctx.in(3), units) && is_vector(&ctx.in(4), s.batch * units),
               "weights, bias or state do not fit");
  const Numbers in = doubles(&x);
  const Numbers w = doubles(&ctx.in(1));
  const Numbers r = doubles(&ctx.in(2));
  const Numbers bias = doubles(&ctx.in(3));
  Numbers state = doubles(&ctx.in(4));
  Numbers out(static_cast<size_t>(s.steps * s.batch * units));
  const auto n = static_cast<size_t>(units);
  for (i64 b = 0; b < s.batch; ++b)
    for (i64 t = 0; t < s.steps; ++t) {
      double *h = state.data() + static_cast<size_t>(b) * n;
      Numbers sum = bias;
      accumulate(w, in.data() + s.row(t, b) * static_cast<size_t>(s.depth),
                 static_cast<size_t>(s.depth), sum);
      accumulate(r, h, n, sum);
      for (size_t i = 0; i < n; ++i)
        h[i] = out[s.row(t, b) * n + i] = activated(act, sum[i]);
    }
  ctx.set(0, result(ctx, x, units, out));
  return {};
}

/// TFLite's long short-term memory, with its options: coupled input gate (no input weights),
/// peepholes, projection, layer normalization, clips.
Status k_lstm(KernelContext &ctx) {
  const std::span<const Tensor *const> in = ctx.list(0);
  const auto at = [&](size_t i) { return i < in.size() ? in[i] : nullptr; };
  EVAL_REQUIRE(in.size() >= 20 && at(0) && at(2) && at(3) && at(4) && at(6) && at(7) && at(8) &&
                   at(13) && at(14) && at(15) && at(18) && at(19) && at(2)->rank() == 2 &&
                   at(8)->rank() == 2,
               "a required operand is absent");
  const Tensor &x = *at(0);
  const int major = ctx.op().def().attr_index("time_major");
  Sequence s;
  const Activation act = activation_of(ctx);
  EVAL_REQUIRE(sequence_of(x, major < 0 || ctx.boolean("time_major"), s) &&
                   act != Activation::Unknown,
               "the operand or the activation do not fit");
  const i64 cells = at(2)->dim(0);
  const i64 units = at(8)->dim(1);
  bool fits = is_vector(at(18), s.batch * units) && is_vector(at(19), s.batch * cells) &&
              is_matrix(at(16), units, cells) && is_vector(at(17), units);
  for (size_t g = 0; g < 4; ++g)
    fits = fits && is_matrix(at(1 + g), cells, s.depth) && is_matrix(at(5 + g), cells, units) &&
           is_vector(at(12 + g), cells) && is_vector(at(20 + g), cells);
  for (size_t g = 9; g < 12; ++g)
    fits = fits && is_vector(at(g), cells);
  EVAL_REQUIRE(fits && (at(16) || units == cells), "weights, biases or states do not fit");
  const bool coupled = !at(1);

  const auto c = static_cast<size_t>(cells);
  const auto u = static_cast<size_t>(units);
  const auto d = static_cast<size_t>(s.depth);
  const Numbers data = doubles(&x);
  Numbers w[4], r[4], bias[4], norm[4]; // input, forget, cell, output
  for (size_t g = 0; g < 4; ++g) {
    w[g] = doubles(at(1 + g));
    r[g] = doubles(at(5 + g));
    bias[g] = doubles(at(12 + g));
    norm[g] = doubles(at(20 + g));
  }
  const Numbers peep[3] = {doubles(at(9)), doubles(at(10)), doubles(at(11))};
  const Numbers project = doubles(at(16));
  const Numbers project_bias = doubles(at(17));
  Numbers hidden = doubles(at(18));
  Numbers cell = doubles(at(19));
  const double cell_clip = ctx.real_or("cell_clip", 0);
  const double proj_clip = ctx.real_or("proj_clip", 0);

  const auto gate = [&](size_t g, const double *from, const double *h, const double *state,
                        const Numbers *peephole) {
    Numbers v(c, 0.0);
    if (norm[g].empty() && !bias[g].empty())
      v = bias[g];
    accumulate(w[g], from, d, v);
    accumulate(r[g], h, u, v);
    if (peephole && !peephole->empty())
      for (size_t i = 0; i < c; ++i)
        v[i] += (*peephole)[i] * state[i];
    if (!norm[g].empty()) {
      double mean = 0;
      double square = 0;
      for (const double a : v) {
        mean += a / static_cast<double>(c);
        square += a * a / static_cast<double>(c);
      }
      const double rstd = 1 / std::sqrt(square - mean * mean + 1e-8);
      for (size_t i = 0; i < c; ++i)
        v[i] = (v[i] - mean) * rstd * norm[g][i] + (bias[g].empty() ? 0 : bias[g][i]);
    }
    return v;
  };
  Numbers out(static_cast<size_t>(s.steps * s.batch) * u);
  for (i64 b = 0; b < s.batch; ++b)
    for (i64 t = 0; t < s.steps; ++t) {
      const double *from = data.data() + s.row(t, b) * d;
      double *h = hidden.data() + static_cast<size_t>(b) * u;
      double *state = cell.data() + static_cast<size_t>(b) * c;
      const Numbers forget = gate(1, from, h, state, &peep[1]);
      const Numbers input = coupled ? Numbers() : gate(0, from, h, state, &peep[0]);
      const Numbers update = gate(2, from, h, state, nullptr);
      for (size_t i = 0; i < c; ++i) {
        const double f = sigmoid(forget[i]);
        const double keep = coupled ? 1 - f : sigmoid(input[i]);
        state[i] = f * state[i] + keep * activated(act, update[i]);
        if (cell_clip > 0)
          state[i] = std::clamp(state[i], -cell_clip, cell_clip);
      }
      const Numbers open = gate(3, from, h, state, &peep[2]);
      Numbers y(c);
      for (size_t i = 0; i < c; ++i)
        y[i] = sigmoid(open[i]) * activated(act, state[i]);
      if (!project.empty()) {
        Numbers p = project_bias.empty() ? Numbers(u, 0.0) : project_bias;
        accumulate(project, y.data(), c, p);
        if (proj_clip > 0)
          for (double &a : p)
            a = std::clamp(a, -proj_clip, proj_clip);
        y = std::move(p);
      }
      std::copy(y.begin(), y.end(), h);
      std::copy(y.begin(), y.end(), out.begin() + static_cast<i64>(s.row(t, b) * u));
    }
  ctx.set(0, result(ctx, x, units, out));
  return {};
}
/// The basic kernel of LSTM has other operands and four results.
Status k_lstm_full(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.text("kernel_type") == "FULL" && ctx.num_results() == 1,
               "the basic kernel of LSTM is not evaluated");
  return k_lstm(ctx);
}

constexpr KernelEntry kEntries[] = {
    {"circle.rnn", k_rnn},
    {"circle.unidirectional_sequence_rnn", k_rnn},
    {"circle.lstm", k_lstm_full},
    {"circle.unidirectional_sequence_lstm", k_lstm},
};

} // namespace

std::span<const KernelEntry> circle_sequence_kernels() { return kEntries; }

} // namespace chute::eval
