#pragma once

#include "circle/testing/circle_maker.h"

namespace chute::circle::testing {

/// What exporters and quantizers leave and rules recognize: parts that are treated alike, stacked
/// and selected heads, requantized values, the logistic function in arithmetic. Each next to
/// programs that only look like it.
class CircleIdioms : protected CircleMaker {
protected:
  using CircleMaker::CircleMaker;

  void idiom() {
    switch (pick(0, 10)) {
    case 0:
    case 1: parallel(); break;
    case 2: stack(); break;
    case 3: heads(); break;
    case 4:
    case 5: requantized(); break;
    case 6: sigmoid(); break;
    case 7: layouts(); break;
    case 8: table(); break;
    case 9: views_of_others(); break;
    default: legacy_gelu();
    }
  }

private:
  std::vector<ir::Value *> split(ir::Value *x, i64 axis, i64 parts) {
    std::vector<ir::Value *> out;
    ir::Value *first =
        op(op::SPLIT, {ints({axis}, true), x}, {{"num_splits", ir::Attr::of_int(parts)}});
    if (first)
      for (ir::Value &v : first->producer()->results())
        out.push_back(&v);
    return out;
  }
  ir::Value *join(const std::vector<ir::Value *> &parts, i64 axis) {
    return op(op::CONCATENATION, parts, {{"axis", ir::Attr::of_int(axis)}});
  }

  /// The same operators on two parts, which are joined.
  void parallel() {
    ir::Value *x = value([](const ir::Value *v) { return is_f32(v) && v->type().rank() > 0; });
    if (!x)
      return;
    const i64 axis = pick(0, x->type().rank() - 1);
    ir::Value *y = chance(2) ? matching(x) : x;
    std::vector<ir::Value *> parts{x, y};
    if (!chance(3)) {
      ir::Value *whole = dims(x)[static_cast<size_t>(axis)] % 2 ? join({x, y}, axis) : x;
      parts = whole ? split(whole, axis, 2) : std::vector<ir::Value *>();
    }
    if (parts.size() != 2)
      return;
    for (i64 steps = pick(1, 3); steps > 0; --steps) {
      const i64 kind = pick(0, 6);
      const auto code = one_of<ir::OpCode>({op::ABS, op::NEG, op::TANH, op::LOGISTIC, op::SQUARE});
      const double n = number();
      ir::Value *shared = kind == 1 ? scalar(n) : nullptr;
      for (ir::Value *&v : parts) {
        if (!v)
          return;
        const i64 last = v->type().rank() - 1;
        switch (kind) {
        case 0: v = op(op::SOFTMAX, {v}, {{"beta", ir::Attr::of_float(1.0)}}); break;
        case 1: v = op(op::MUL, {v, shared}); break;
        case 2:
          if (last > 0)
            v = transpose(v, reversed(last + 1));
          break;
        case 3:
          if (last > 0) {
            const std::vector<ir::Value *> halves = dims(v)[static_cast<size_t>(last)] % 2
                                                        ? std::vector<ir::Value *>{v, v}
                                                        : split(v, last, 2);
            v = halves.size() == 2 ? join({op(op::NEG, {halves[1]}), halves[0]}, last) : nullptr;
          }
          break;
        default: v = op(code, {v});
        }
      }
    }
    if (parts[0] && parts[1])
      join(parts, pick(0, parts[0]->type().rank() - 1));
  }
  static Shape reversed(i64 rank) {
    Shape p(static_cast<size_t>(rank));
    std::iota(p.rbegin(), p.rend(), 0);
    return p;
  }

  /// Operators between transposes and their inverses.
  void layouts() {
    ir::Value *x = value([](const ir::Value *v) { return is_f32(v) && v->type().rank() > 1; });
    if (!x)
      return;
    const auto rank = static_cast<size_t>(x->type().rank());
    const Shape in = permutation(rank);
    Shape out(rank);
    for (size_t i = 0; i < rank; ++i)
      out[static_cast<size_t>(in[i])] = static_cast<i64>(i);
    if (chance(5))
      std::swap(out[0], out[1]);
    ir::Value *y = matching(x);
    ir::Value *v = transpose(x, in), *w = y ? transpose(y, in) : nullptr;
    for (i64 steps = pick(1, 3); v && steps > 0; --steps)
      switch (pick(0, 4)) {
      case 0: v = w ? op(op::SUB, {v, w}) : nullptr; break;
      case 1: v = op(op::MUL, {v, floats({dims(v).back()}, [&] { return number(); })}); break;
      case 2: v = op(op::SOFTMAX, {v}, {{"beta", ir::Attr::of_float(1.0)}}); break;
      case 3: v = join({v, v}, pick(0, static_cast<i64>(rank) - 1)); break;
      default: v = op(op::TANH, {v});
      }
    if (v)
      transpose(v, out);
  }

  void stack() {
    ir::Value *x = any_f32();
    ir::Value *y = x ? matching(x) : nullptr;
    if (!y)
      return;
    const Shape to = regrouped(dims(x));
    ir::Value *a = reshape(x, to), *b = reshape(y, to);
    ir::Value *joined = a && b ? join({a, b}, pick(0, static_cast<i64>(to.size()) - 1)) : nullptr;
    if (joined && chance(2))
      reshape(joined, regrouped(dims(joined)));
  }

  void heads() {
    ir::Value *x = value([](const ir::Value *v) { return is_f32(v) && v->type().rank() > 0; });
    if (!x)
      return;
    Shape s = dims(x);
    if (s.back() % 2) {
      x = join({x, x}, static_cast<i64>(s.size()) - 1);
      if (!x)
        return;
      s = dims(x);
    }
    Shape to = s, part = s;
    to.back() = 2;
    to.push_back(s.back() / 2);
    part.back() = s.back() / 2;
    ir::Value *v = reshape(x, to);
    for (ir::Value *head :
         v ? split(v, static_cast<i64>(s.size()) - 1, 2) : std::vector<ir::Value *>())
      reshape(head, chance(6) ? Shape{count(part)} : part);
  }

  ir::Type stored(const Shape &s, float scale, i64 zero) {
    ir::Quantization q;
    q.scales = std::span(&scale, 1);
    q.zero_points = std::span(&zero, 1);
    return tensor(ir::ElementType::I8, s, ctx_.quantization(q));
  }
  ir::Value *typed(ir::OpCode code, std::initializer_list<ir::Value *> operands, ir::Type type) {
    return keep(b_->create_typed(code, std::span(operands.begin(), operands.size()), {},
                                 std::span(&type, 1))
                    ->result());
  }

  /// A RESHAPE that drops or adds reduced dimensions, or one around a transpose.
  void views_of_others() {
    ir::Value *x = value([](const ir::Value *v) { return is_f32(v) && v->type().rank() > 1; });
    if (!x)
      return;
    Shape s = dims(x);
    const i64 axis = pick(0, x->type().rank() - 1);
    if (chance(2)) {
      const bool keep = chance(2);
      ir::Value *r = op(one_of<ir::OpCode>({op::MEAN, op::SUM, op::REDUCE_MAX}), {x, ints({axis})},
                        {{"keep_dims", ir::Attr::of_bool(keep)}});
      s.erase(s.begin() + axis);
      if (!keep)
        s.insert(s.begin() + (chance(4) ? 0 : axis), 1);
      if (r)
        reshape(r, s);
      return;
    }
    s.insert(s.begin() + axis, 1);
    ir::Value *v = reshape(x, s);
    Shape perm(s.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::ranges::rotate(perm, perm.begin() + pick(1, static_cast<i64>(perm.size()) - 1));
    ir::Value *t = v ? op(op::TRANSPOSE, {v, ints(perm)}) : nullptr;
    if (t)
      reshape(t, {count(s)});
  }

  /// Rows of a table that has a scale for each row, or for each column.
  void table() {
    const Shape s{pick(2, 5), pick(2, 4)};
    const i64 axis = pick(0, 1);
    std::vector<float> scales;
    std::vector<i64> zeros;
    for (i64 i = 0; i < s[static_cast<size_t>(axis)]; ++i) {
      scales.push_back(one_of({0.5f, 0.25f, 1.25f}));
      zeros.push_back(chance(2) ? 0 : pick(0, 9));
    }
    const ir::Quantization q{ir::QuantKind::PerChannel, static_cast<i32>(axis), 0, scales, zeros};
    const auto element = one_of({ir::ElementType::I8, ir::ElementType::U8});
    std::vector<u8> numbers(static_cast<size_t>(count(s)));
    for (u8 &n : numbers)
      n = static_cast<u8>(pick(0, 255));
    ir::Value *t = b_->constant(graph_->add_copy(tensor(element, s, ctx_.quantization(q)),
                                                 std::as_bytes(std::span<const u8>(numbers))));
    ir::Value *reals = op(op::DEQUANTIZE, {t});
    Shape rows(static_cast<size_t>(pick(1, 2)));
    for (i64 &row : rows)
      row = pick(0, 1);
    op(op::GATHER, {reals, ints(rows)}, {{"axis", ir::Attr::of_int(pick(0, 1))}});
  }

  /// Sums lie on the grid of steps of 1/2 that all of these hold, so that layers round alike.
  void requantized() {
    ir::Value *x =
        value([](const ir::Value *v) { return v->type().quant() && v->type().rank() > 0; });
    for (ir::Value *arg : graph_->body().args())
      if (!x && arg->type().quant())
        x = arg;
    if (!x || x->type().element() != ir::ElementType::I8)
      return;
    const Shape s = dims(x);
    const ir::Type own = x->type();
    switch (pick(0, 3)) {
    case 0: { // there and back: nothing, a clamp on one side, or rounding
      ir::Value *v =
          typed(op::QUANTIZE, {x}, stored(s, one_of({0.5f, 0.25f, 1.25f}), pick(-64, 64)));
      typed(op::QUANTIZE, {v}, own);
      break;
    }
    case 1: {
      ir::Value *v = typed(op::QUANTIZE, {x}, own);
      typed(op::QUANTIZE, {v}, stored(s, one_of({0.75f, 1.25f}), pick(-9, 9)));
      break;
    }
    case 2: {
      ir::Value *v =
          typed(op::NEG, {x}, stored(s, own.quant()->scales[0], -1 - own.quant()->zero_points[0]));
      typed(op::QUANTIZE, {v}, stored(s, one_of({0.75f, 1.0f}), pick(-9, 9)));
      break;
    }
    default: {
      if (own.quant()->scales[0] != 0.5f)
        return;
      ir::Value *v = typed(op::ADD, {x, x}, stored(s, 1.0f, pick(-1, 1)));
      typed(op::QUANTIZE, {v}, stored(s, one_of({0.75f, 2.0f}), 0));
    }
    }
  }

  void sigmoid() {
    ir::Value *x = input_f32();
    ir::Value *e = op(op::EXP, {chance(5) ? x : op(op::NEG, {x})});
    ir::Value *one = scalar(1);
    ir::Value *below = op(op::ADD, {e, scalar(chance(5) ? 2 : 1)});
    if (below)
      op(op::DIV, {chance(2) ? x : one, below});
  }

  void legacy_gelu() {
    ir::Value *x = input_f32();
    if (x->type().rank() < 1)
      return;
    const i64 in = dims(x).back(), units = pick(1, 3);
    std::vector<double> numbers;
    for (i64 i = 0; i < in * units + units; ++i)
      numbers.push_back(number());
    const auto layer = [&](double factor) {
      size_t i = 0;
      const auto next = [&] { return numbers[i++] * factor; };
      ir::Value *w = floats({units, in}, next), *b = floats({units}, next);
      return op(op::FULLY_CONNECTED, {x, w, b}, {{"keep_num_dims", ir::Attr::of_bool(true)}});
    };
    ir::Value *y = layer(1), *z = layer(chance(5) ? 0.75 : std::sqrt(0.5));
    if (!y || !z)
      return;
    const ir::NamedAttr attrs[] = {{"custom_code", ctx_.string_attr("Erf")},
                                   {"custom_options", ctx_.string_attr("")}};
    const ir::Type type = z->type();
    ir::Value *erf =
        keep(b_->create_typed(op::CUSTOM, std::span(&z, 1), attrs, std::span(&type, 1))->result());
    if (ir::Value *gate = op(op::ADD, {erf, scalar(1)}))
      op(op::MUL, {y, gate});
  }
};

} // namespace chute::circle::testing
