#include "aten/infer/args.h"

/// Recurrent layers over [time, batch, features] ([batch, time, features] with batch_first, no
/// batch without that dimension).
namespace chute::aten::rule {

using ir::Type;

namespace {

/// The sequence output: the hidden width of `hidden`, twice when bidirectional.
Status layer(InferArgs &a, Type hidden, std::span<const Type> states) {
  const Type x = a.tensor(0);
  if (!a.check((x.rank() == 2 || x.rank() == 3) && hidden && hidden.rank() >= 2, kShapeError,
               "input must be a sequence and the state a stack of layers"))
    return a.failed();
  Dims shape = dims_of(x);
  shape.back() = a.sym().mul(hidden.shape().back(), a.flag("bidirectional") ? 2 : 1);
  a.add(x.element(), shape);
  for (Type s : states)
    a.add(s);
  return a.done();
}

} // namespace

Status rnn_layer(InferArgs &a) {
  const Type hidden = a.tensor(1);
  return layer(a, hidden, std::span(&hidden, 1));
}

Status lstm_layer(InferArgs &a) {
  const auto states = a.list(1);
  if (!a.check(states.size() == 2, kOperandError, "needs a hidden and a cell state"))
    return a.failed();
  return layer(a, states[0], std::span<const Type>(states.data(), states.size()));
}

Status rnn_cell(InferArgs &a) { return a.done(a.tensor(1)); }

Status lstm_cell(InferArgs &a) {
  const auto states = a.list(1);
  if (!a.check(states.size() == 2, kOperandError, "needs a hidden and a cell state"))
    return a.failed();
  a.add(states[0]);
  return a.done(states[1]);
}

} // namespace chute::aten::rule
