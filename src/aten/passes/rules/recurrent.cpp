#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>

// Recurrent networks, unrolled over time: the input's share of the gates is one linear over the
// whole sequence, each step adds the state's share.
namespace chute::aten {

namespace {

enum class Cell : u8 { Lstm, Gru, Tanh, Relu };

struct Weights {
  V ih = nullptr, hh = nullptr, bias_ih = nullptr, bias_hh = nullptr;
  V hr = nullptr; ///< of an LSTM whose hidden state is projected to fewer features
};

struct State {
  V h = nullptr, c = nullptr;
};

Values gates(Emit &e, V x, int count) {
  const int last = x->type().rank() - 1;
  const auto each = e.sym().exact_div(x->type().dim(last), count);
  if (!each) {
    e.reject("gates that do not divide");
    return Values(size_t(count), x);
  }
  return e.split(x, Shape(size_t(count), *each), last);
}

/// One step. `from_x` is linear(x, w_ih, b_ih).
State step(Emit &e, Cell cell, V from_x, const State &s, const Weights &w) {
  V from_h = e.linear(s.h, w.hh, w.bias_hh);
  switch (cell) {
  case Cell::Lstm: {
    const Values g = gates(e, e.add(from_x, from_h), 4); // input, forget, cell, output
    V c = e.add(e.mul(e.sigmoid(g[1]), s.c), e.mul(e.sigmoid(g[0]), e.tanh(g[2])));
    V h = e.mul(e.sigmoid(g[3]), e.tanh(c));
    return {w.hr ? e.linear(h, w.hr, nullptr) : h, c};
  }
  case Cell::Gru: {
    const Values a = gates(e, from_x, 3), b = gates(e, from_h, 3); // reset, update, new
    V reset = e.sigmoid(e.add(a[0], b[0])), update = e.sigmoid(e.add(a[1], b[1]));
    V fresh = e.tanh(e.add(a[2], e.mul(reset, b[2])));
    return {e.add(fresh, e.mul(update, e.sub(s.h, fresh))), nullptr};
  }
  case Cell::Tanh: return {e.tanh(e.add(from_x, from_h)), nullptr};
  default: return {e.relu(e.add(from_x, from_h)), nullptr};
  }
}

/// The sequence [T, B, I] through one layer in one direction; outputs in order of time.
State run(Emit &e, Cell cell, V x, State s, const Weights &w, bool backward, Values &outputs) {
  const i64 steps = x->type().dim(0).value();
  V from_x = e.linear(x, w.ih, w.bias_ih);
  outputs.assign(size_t(steps), nullptr);
  for (i64 i = 0; i < steps; ++i) {
    const i64 t = backward ? steps - 1 - i : i;
    s = step(e, cell, e.select(from_x, 0, t), s, w);
    outputs[size_t(t)] = s.h;
  }
  return s;
}

V stack_rows(Emit &e, const Values &rows) {
  Values parts;
  for (V r : rows)
    parts.push_back(e.unsqueeze(r, 0));
  return e.cat(parts, 0);
}

Values recurrent(Emit &e, Cell cell) {
  const bool lstm = cell == Cell::Lstm;
  const Values hx = e.list(1), params = e.list(2);
  const i64 layers = e.integer("num_layers");
  const bool biases = e.flag("has_biases"), first = e.flag("batch_first");
  const size_t directions = e.flag("bidirectional") ? 2 : 1, plain = biases ? 4 : 2;
  if (e.flag("train") && e.number("dropout") != 0)
    return e.reject("dropout of a model in training mode"), Values{};
  const size_t cells = size_t(layers) * directions,
               per = params.size() / std::max<size_t>(cells, 1);
  if (params.size() != cells * per || per < plain || per > plain + (lstm ? 1 : 0))
    return e.reject("a recurrent network with an unknown list of weights"), Values{};
  V x = e.in(0);
  const bool batched = x->type().rank() == 3;
  if (!batched)
    x = e.unsqueeze(x, 1);
  else if (first)
    x = e.transpose(x, 0, 1);
  if (x->type().dim(0).is_symbolic())
    return e.reject("a sequence length that is not static"), Values{};
  V h0 = hx[0], c0 = lstm ? hx[1] : nullptr;
  if (!batched) {
    h0 = e.unsqueeze(h0, 1);
    c0 = lstm ? e.unsqueeze(c0, 1) : nullptr;
  }
  Values h_out, c_out;
  for (size_t layer = 0; layer < size_t(layers); ++layer) {
    Values sides;
    for (size_t d = 0; d < directions; ++d) {
      const size_t at = layer * directions + d;
      Weights w{params[at * per], params[at * per + 1], nullptr, nullptr,
                per > plain ? params[at * per + plain] : nullptr};
      if (biases) {
        w.bias_ih = params[at * per + 2];
        w.bias_hh = params[at * per + 3];
      }
      State s{e.select(h0, 0, i64(at)), lstm ? e.select(c0, 0, i64(at)) : nullptr};
      Values outputs;
      s = run(e, cell, x, s, w, d == 1, outputs);
      h_out.push_back(s.h);
      c_out.push_back(s.c);
      sides.push_back(stack_rows(e, outputs));
    }
    x = e.cat(sides, 2);
  }
  if (!batched)
    x = e.squeeze(x, 1);
  else if (first)
    x = e.transpose(x, 0, 1);
  V h = stack_rows(e, h_out), c = lstm ? stack_rows(e, c_out) : nullptr;
  if (!batched) {
    h = e.squeeze(h, 1);
    c = lstm ? e.squeeze(c, 1) : nullptr;
  }
  return lstm ? Values{x, h, c} : Values{x, h};
}

State cell_step(Emit &e, Cell cell, State s, u32 first_weight) {
  const Weights w{e.in(first_weight), e.in(first_weight + 1), e.in(first_weight + 2),
                  e.in(first_weight + 3)};
  return step(e, cell, e.linear(e.in(0), w.ih, w.bias_ih), s, w);
}

} // namespace

void add_recurrent_rules(pass::PatternSet &set) {
  set.add("lstm", {op::lstm_input}, rule<[](Emit &e) { return recurrent(e, Cell::Lstm); }>);
  set.add("gru", {op::gru_input}, rule<[](Emit &e) { return recurrent(e, Cell::Gru); }>);
  set.add("rnn-tanh", {op::rnn_tanh_input}, rule<[](Emit &e) { return recurrent(e, Cell::Tanh); }>);
  set.add("rnn-relu", {op::rnn_relu_input}, rule<[](Emit &e) { return recurrent(e, Cell::Relu); }>);
  set.add("lstm-cell", {op::lstm_cell}, rule<[](Emit &e) {
            const Values hx = e.list(1);
            const State s = cell_step(e, Cell::Lstm, {hx[0], hx[1]}, 2);
            return Values{s.h, s.c};
          }>);
  set.add("gru-cell", {op::gru_cell},
          rule<[](Emit &e) { return cell_step(e, Cell::Gru, {e.in(1), nullptr}, 2).h; }>);
  set.add("rnn-tanh-cell", {op::rnn_tanh_cell},
          rule<[](Emit &e) { return cell_step(e, Cell::Tanh, {e.in(1), nullptr}, 2).h; }>);
}

} // namespace chute::aten
