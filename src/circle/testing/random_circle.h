#pragma once

#include "circle/testing/random_idioms.h"

namespace chute::circle::testing {

/// Random valid Circle programs for property tests of the optimizer: operators of the table with
/// operands that fit, and among them the very neighbours that rewrites look for, next to ones that
/// only look alike. Header-only: nothing of it is in the libraries.

class RandomCircle : CircleIdioms {
public:
  RandomCircle(ir::Context &ctx, u64 seed) : CircleIdioms(ctx, seed) {}

  /// A function of the seed alone. Every value that nothing uses becomes an output.
  std::unique_ptr<ir::Graph> make(size_t steps) {
    graph_ = std::make_unique<ir::Graph>(ctx_, "random");
    ir::Builder builder(*graph_, graph_->body());
    b_ = &builder;
    for (int i = 0; i < 2; ++i)
      argument(f32(shape()));
    argument(f32({1, pick(4, 6), pick(4, 6), pick(1, 3)}));
    argument(f32({pick(2, 4), pick(2, 4)}));
    argument(tensor(ir::ElementType::I32, shape()));
    argument(quantized(shape()));
    argument(tensor(ir::ElementType::Bool, shape()));
    for (size_t i = 0; i < steps; ++i)
      step();
    finish();
    return std::move(graph_);
  }

private:
  // --- steps -------------------------------------------------------------------------------------
  void step() {
    switch (pick(0, 31)) {
    case 0:
    case 1: unary(any_f32()); break;
    case 2: binary(); break;
    case 3: views(); break;
    case 4: transposes(); break;
    case 5: sandwich(); break;
    case 6: slices(); break;
    case 7: parts(); break;
    case 8: joins(); break;
    case 9: reductions(); break;
    case 10: scales(); break;
    case 11: roots(); break;
    case 12: integers(); break;
    case 13: layers(); break;
    case 14: pads(); break;
    case 15: neutral(); break;
    case 16: steps_of_inputs(); break;
    case 17: convolution(); break;
    case 18: clamps(); break;
    case 19: broadcasts(); break;
    case 20: matmul(); break;
    case 21: quantized_step(); break;
    case 22: logic(); break;
    case 23: rank_trip(); break;
    case 24: idle(); break;
    case 25: softmax(); break;
    case 26: norms(); break;
    case 27: activations(); break;
    case 28: ones(); break;
    case 29:
    case 30: idiom(); break;
    default: views(); break;
    }
  }

  void binary() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    ir::Value *y = chance(2) ? matching(x) : scalar(number());
    act(one_of<ir::OpCode>({op::ADD, op::SUB, op::MUL}), x, y);
  }
  void views() {
    ir::Value *x = any();
    if (!x)
      return;
    const Shape s = dims(x);
    const auto rank = static_cast<i64>(s.size());
    switch (pick(0, 4)) {
    case 0: op(op::EXPAND_DIMS, {x, ints({pick(-rank - 1, rank)}, chance(2))}); break;
    case 1: op(op::SQUEEZE, {x}, {{"squeeze_dims", ints_attr({})}}); break;
    case 2:
      op(op::PACK, std::vector<ir::Value *>{x},
         {{"values_count", ir::Attr::of_int(1)}, {"axis", ir::Attr::of_int(pick(0, rank))}});
      break;
    case 3:
      for (i64 d = 0; d < rank; ++d)
        if (s[static_cast<size_t>(d)] == 1)
          op(op::UNPACK, {x}, {{"num", ir::Attr::of_int(1)}, {"axis", ir::Attr::of_int(d)}});
      break;
    default: reshape(x, regrouped(s));
    }
  }
  void transposes() {
    ir::Value *x = any();
    if (!x || x->type().rank() < 2)
      return;
    const Shape p = permutation(static_cast<size_t>(x->type().rank()));
    ir::Value *t = transpose(x, p);
    if (!t)
      return;
    if (chance(3)) {
      // Back to the order of x behind a reshape that adds a one, or a look-alike of it.
      Shape s = dims(t), back(s.size() + 1, 0);
      s.push_back(1);
      ir::Value *v = reshape(t, s);
      for (size_t i = 0; i < p.size(); ++i)
        back[static_cast<size_t>(p[i])] = static_cast<i64>(i);
      back[p.size()] = static_cast<i64>(p.size());
      if (chance(3))
        std::swap(back[0], back[1]);
      if (v)
        transpose(v, back);
      return;
    }
    if (!t || t->type().rank() < 2)
      return;
    Shape q = permutation(static_cast<size_t>(t->type().rank()));
    if (chance(2) && q.size() == p.size())
      for (size_t i = 0; i < p.size(); ++i)
        q[static_cast<size_t>(p[i])] = static_cast<i64>(i);
    transpose(t, q);
  }
  /// reshape, elementwise, reshape back.
  void sandwich() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    const Shape s = dims(x);
    ir::Value *v = reshape(x, regrouped(s));
    for (i64 n = pick(1, 3); v && n > 0; --n)
      v = chance(2)   ? unary(v)
          : chance(2) ? act(op::MUL, v, scalar(number()))
                      : act(op::ADD, v, floats(dims(v), [&] { return number(); }));
    if (v)
      reshape(v, chance(4) ? regrouped(s) : s);
  }
  ir::Value *strided(ir::Value *x, const Shape &b, const Shape &e, const Shape &s) {
    return op(op::STRIDED_SLICE, {x, ints(b), ints(e), ints(s)});
  }
  void slices() {
    ir::Value *x = any();
    for (int n = 0; x && n < 2; ++n) {
      Shape b, e, s;
      for (i64 d : dims(x)) {
        const bool whole = chance(2);
        b.push_back(whole ? 0 : pick(-d, d - 1));
        e.push_back(whole ? one_of<i64>({d, 2147483647}) : pick(1, d));
        s.push_back(whole || chance(2) ? 1 : 2);
        if (!whole && (b.back() < 0 ? b.back() + d : b.back()) >= e.back())
          e.back() = (b.back() < 0 ? b.back() + d : b.back()) + 1;
      }
      if (chance(3)) {
        Shape size;
        for (size_t i = 0; i < b.size(); ++i) {
          b[i] = 0;
          size.push_back(chance(2) ? -1 : dims(x)[i]);
        }
        x = op(op::SLICE, {x, ints(b), ints(size)});
      } else {
        x = strided(x, b, e, s);
      }
    }
  }
  void parts() {
    ir::Value *x = any();
    if (!x || x->type().rank() == 0)
      return;
    const Shape s = dims(x);
    const auto axis = static_cast<size_t>(pick(0, static_cast<i64>(s.size()) - 1));
    const i64 d = s[axis];
    const i64 cut = d % 2 == 0 && chance(2) ? d / 2 : pick(1, std::max<i64>(1, d - 1));
    const i64 at = static_cast<i64>(axis) - (chance(2) ? static_cast<i64>(s.size()) : 0);
    switch (pick(0, 3)) {
    case 0:
      for (i64 begin : {i64{0}, cut}) {
        Shape b(s.size(), 0), e = s;
        b[axis] = begin;
        e[axis] = begin ? d : cut;
        if (b[axis] < e[axis])
          strided(x, b, e, Shape(s.size(), 1));
      }
      break;
    case 1:
      op(op::SPLIT, {ints({at}, true), x}, {{"num_splits", ir::Attr::of_int(chance(2) ? 1 : d)}});
      break;
    case 2:
      if (d % 2 == 0)
        op(op::SPLIT_V, {x, ints({d / 2, d / 2}), ints({at}, true)},
           {{"num_splits", ir::Attr::of_int(2)}});
      break;
    default:
      if (d > cut)
        op(op::SPLIT_V, {x, ints({cut, d - cut}), ints({at}, true)},
           {{"num_splits", ir::Attr::of_int(2)}});
    }
  }
  void joins() {
    ir::Value *x = any();
    ir::Value *y = x ? matching(x) : nullptr;
    if (!y)
      return;
    const i64 axis = pick(0, x->type().rank() - 1);
    const auto cat = [&](const std::vector<ir::Value *> &v, i64 a) {
      return op(op::CONCATENATION, v, {{"axis", ir::Attr::of_int(a)}});
    };
    if (chance(4))
      cat({x}, axis);
    if (ir::Value *c = cat({x, y}, axis))
      cat({c, y}, chance(4) ? pick(0, x->type().rank() - 1) : axis);
  }
  Shape some_axes(size_t rank) {
    Shape axes;
    for (size_t d = 0; d < rank; ++d)
      if (chance(2))
        axes.push_back(static_cast<i64>(d) - (chance(2) ? static_cast<i64>(rank) : 0));
    if (axes.empty())
      axes.push_back(0);
    return axes;
  }
  void reductions() {
    ir::Value *x = any_f32();
    if (!x || x->type().rank() == 0)
      return;
    const ir::OpCode code = one_of<ir::OpCode>({op::MEAN, op::SUM, op::REDUCE_MAX, op::REDUCE_MIN});
    const bool keep = chance(2);
    if (chance(3) && x->type().rank() > 1)
      x = transpose(x, permutation(static_cast<size_t>(x->type().rank())));
    for (int n = 0; x && n < 2 && x->type().rank() > 0; ++n)
      x = op(code, {x, ints(some_axes(static_cast<size_t>(x->type().rank())))},
             {{"keep_dims", ir::Attr::of_bool(keep)}});
  }
  void scales() {
    ir::Value *x = any_f32();
    const double a = one_of({0.5, 3.0, -1.25}), c = one_of({2.0, 0.75, -5.0});
    if (!x)
      return;
    if (chance(3)) {
      op(op::DIV, {scalar(c), op(op::MUL, {positive(x), scalar(a)})});
      return;
    }
    if (ir::Value *v = act(chance(2) ? op::MUL : op::DIV, x, scalar(a)))
      act(chance(2) ? op::MUL : op::DIV, v, scalar(c));
  }
  void roots() {
    ir::Value *x = any_f32();
    ir::Value *y = x ? positive(matching(x)) : nullptr;
    if (y)
      act(op::DIV, chance(2) ? x : scalar(1.0), op(op::SQRT, {y}));
  }
  void integers() {
    ir::Value *x =
        value([](const ir::Value *v) { return v->type().element() == ir::ElementType::I32; });
    if (!x)
      return;
    x = op(op::ADD, {x, ints({pick(-5, 5)}, true)});
    if (x)
      op(op::ADD, {ints({pick(-5, 5)}, chance(2)), x});
    if (x && chance(2))
      op(op::SUB, {x, op(op::NEG, {x})});
  }
  void layers() {
    ir::Value *x = value([](const ir::Value *v) { return is_f32(v) && v->type().rank() >= 2; });
    if (!x)
      return;
    const i64 in = dims(x).back(), units = pick(1, 4);
    const auto weights = [&] { return floats({units, in}, [&] { return number(); }); };
    const auto bias = [&] {
      return chance(2) ? floats({units}, [&] { return number(); }) : nullptr;
    };
    const auto layer = [&](ir::Value *v) {
      return v ? op(op::FULLY_CONNECTED, {v, weights(), bias()},
                    {{"keep_num_dims", ir::Attr::of_bool(true)}})
               : nullptr;
    };
    const auto vector = [&](i64 n) { return floats({n}, [&] { return number(); }); };
    switch (pick(0, 4)) {
    case 0: layer(act(one_of<ir::OpCode>({op::MUL, op::ADD, op::SUB}), x, vector(in))); break;
    case 1: {
      const bool biased = chance(2);
      const auto one = [&] {
        return op(op::FULLY_CONNECTED, {x, weights(), biased ? vector(units) : nullptr},
                  {{"keep_num_dims", ir::Attr::of_bool(true)}});
      };
      ir::Value *a = one(), *c = one();
      if (a && c)
        act(op::ADD, a, c);
      break;
    }
    case 2:
      if (ir::Value *y = layer(x))
        unary(act(one_of<ir::OpCode>({op::MUL, op::ADD, op::SUB}), y, vector(units)));
      break;
    case 3:
      if (ir::Value *y = layer(x))
        op(one_of<ir::OpCode>({op::RELU, op::RELU6}), {y});
      break;
    default: layer(layer(x));
    }
  }
  void pads() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    Shape p;
    const bool none = chance(3);
    for (i64 i = 0; i < 2 * x->type().rank(); ++i)
      p.push_back(none ? 0 : pick(0, 1));
    if (chance(2))
      op(op::PAD, {x, pairs(p)});
    else
      op(op::PADV2, {x, pairs(p), b_->scalar(ir::ElementType::F32, one_of({0.0, 0.0, 1.0}))});
  }
  void neutral() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    ir::Value *zero = scalar(0), *one = scalar(1);
    switch (pick(0, 6)) {
    case 0: act(op::ADD, chance(2) ? x : zero, zero); break;
    case 1: act(op::SUB, x, zero); break;
    case 2: act(op::MUL, one, x); break;
    case 3: act(op::DIV, x, one); break;
    case 4: op(op::ADD, {x, floats({1, 1, 1, 1, 1}, [] { return 0.0; })}); break;
    case 5: act(op::ADD, zero, x); break;
    default:
      op(op::CAST, {x},
         {{"in_data_type", ir::Attr::of_element(ir::ElementType::F32)},
          {"out_data_type", ir::Attr::of_element(ir::ElementType::F32)}});
    }
  }
  void steps_of_inputs() {
    ir::Value *x = input_f32();
    x = op(one_of<ir::OpCode>({op::FLOOR, op::CEIL, op::ROUND, op::SIGN}), {x});
    if (x)
      op(one_of<ir::OpCode>({op::FLOOR, op::CEIL, op::ROUND, op::RELU, op::SIGN}), {x});
  }
  void convolution() {
    ir::Value *x = value([](const ir::Value *v) {
      return is_f32(v) && v->type().rank() == 4 && v->type().dim(1).value() >= 3 &&
             v->type().dim(2).value() >= 3;
    });
    if (!x)
      return;
    const i64 c = dims(x)[3], k = one_of<i64>({1, 2, 3}), s = pick(1, 2);
    const bool depthwise = chance(3);
    const i64 out = depthwise ? c : pick(1, 3);
    if (chance(2)) {
      const i64 before = chance(3) ? pick(0, 1) : (k - 1) / 2,
                after = chance(3) ? pick(0, 1) : k / 2;
      if (chance(3)) {
        ir::Value *n = op(op::PAD, {transpose(x, {0, 3, 1, 2}),
                                    pairs({0, 0, 0, 0, before, after, before, after})});
        x = n ? transpose(n, {0, 2, 3, 1}) : nullptr;
      } else {
        x = op(op::PAD, {x, pairs({0, 0, before, after, before, after, 0, 0})});
      }
    }
    if (!x)
      return;
    const auto number_like = [&] { return number(); };
    ir::Value *w = floats(depthwise ? Shape{1, k, k, out} : Shape{out, k, k, c}, number_like);
    ir::Value *bias = chance(3) ? nullptr : floats({out}, number_like);
    std::vector<ir::NamedAttr> attrs{{"padding", ctx_.string_attr(chance(4) ? "SAME" : "VALID")},
                                     {"stride_w", ir::Attr::of_int(s)},
                                     {"stride_h", ir::Attr::of_int(s)}};
    if (depthwise)
      attrs.push_back({"depth_multiplier", ir::Attr::of_int(1)});
    ir::Value *y = op(depthwise ? op::DEPTHWISE_CONV_2D : op::CONV_2D,
                      std::vector<ir::Value *>{x, w, bias}, attrs);
    if (y && chance(2))
      y = act(one_of<ir::OpCode>({op::MUL, op::ADD}), y, floats({out}, number_like));
    if (y && chance(2))
      op(one_of<ir::OpCode>({op::RELU, op::RELU6}), {y});
  }
  void clamps() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    switch (pick(0, 3)) {
    case 0: op(op::MINIMUM, {op(op::MAXIMUM, {x, scalar(0)}), scalar(one_of({6.0, 5.0}))}); break;
    case 1: op(op::MAXIMUM, {scalar(0), op(op::MINIMUM, {scalar(6), x})}); break;
    case 2:
      op(op::MINIMUM, {op(op::MINIMUM, {x, b_->scalar(ir::ElementType::F32, number())}),
                       b_->scalar(ir::ElementType::F32, number())});
      break;
    default: op(op::MAXIMUM, {x, scalar(0)});
    }
  }
  void broadcasts() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    Shape to = dims(x);
    for (i64 &d : to)
      if (d == 1 && chance(2))
        d = 3;
    if (chance(2))
      to.insert(to.begin(), pick(1, 2));
    ir::Value *v = chance(3) ? reshape(x,
                                       [&] {
                                         Shape s = dims(x);
                                         s.insert(s.begin(), 1);
                                         return s;
                                       }())
                             : x;
    ir::Value *w = v ? op(op::BROADCAST_TO, {v, ints(to)}) : nullptr;
    if (w)
      op(op::MUL, {w, floats(to, [&] { return number(); })});
    if (v && v != x)
      op(op::ADD, {v, floats(dims(v), [&] { return number(); })});
  }
  void matmul() {
    ir::Value *x = value([](const ir::Value *v) { return is_f32(v) && v->type().rank() >= 2; });
    if (!x)
      return;
    Shape p(static_cast<size_t>(x->type().rank()));
    std::iota(p.begin(), p.end(), 0);
    std::swap(p[p.size() - 1], p[p.size() - 2]);
    if (ir::Value *t = transpose(x, p))
      op(op::BATCH_MATMUL,
         chance(2) ? std::vector<ir::Value *>{x, t} : std::vector<ir::Value *>{t, x});
  }
  void quantized_step() {
    ir::Value *x =
        value([](const ir::Value *v) { return v->type().quant() && v->type().rank() > 0; });
    if (!x)
      return;
    const ir::Type type = x->type();
    const auto stored = [&](i8 v) {
      const std::byte b{static_cast<unsigned char>(v)};
      return b_->constant(graph_->add_copy(quantized({1}), std::span(&b, 1)));
    };
    const auto typed = [&](ir::OpCode code, std::initializer_list<ir::Value *> operands) {
      keep(b_->create_typed(code, std::span(operands.begin(), operands.size()), {},
                            std::span(&type, 1))
               ->result());
    };
    switch (pick(0, 4)) {
    case 0: typed(op::ADD, {x, stored(one_of<i8>({3, 4}))}); break; // 3 stands for zero
    case 1: typed(op::MUL, {x, stored(one_of<i8>({5, 1}))}); break; // 5 stands for one
    case 2: typed(op::QUANTIZE, {x}); break;
    case 3: typed(op::RELU, {x}); break;
    default: reshape(x, regrouped(dims(x)));
    }
  }
  void logic() {
    ir::Value *c =
        value([](const ir::Value *v) { return v->type().element() == ir::ElementType::Bool; });
    if (!c)
      return;
    if (chance(2)) {
      if (ir::Value *n = op(op::LOGICAL_NOT, {c}))
        op(op::LOGICAL_NOT, {n});
    } else {
      op(chance(2) ? op::LOGICAL_AND : op::LOGICAL_OR, {c, c});
    }
    if (ir::Value *x = any_f32()) {
      op(chance(2) ? op::MINIMUM : op::MAXIMUM, {x, x});
      if (ir::Value *n = op(op::NEG, {x}); n && chance(2))
        op(op::NEG, {n});
      if (ir::Value *y = matching(x))
        if (ir::Value *n = op(op::NEG, {y}))
          act(chance(2) ? op::ADD : op::SUB, chance(2) ? x : y, n);
    }
  }
  /// Ones put in, work that knows its dimensions, ones taken out.
  void rank_trip() {
    ir::Value *x = any_f32();
    if (!x || x->type().rank() < 2)
      return;
    Shape s = dims(x);
    const i64 at = pick(0, static_cast<i64>(s.size()));
    s.insert(s.begin() + at, 1);
    ir::Value *v = reshape(x, s);
    for (i64 n = pick(1, 3); v && n > 0; --n) {
      const auto rank = static_cast<size_t>(v->type().rank());
      switch (pick(0, 4)) {
      case 0: v = transpose(v, permutation(rank)); break;
      case 1: v = op(op::SOFTMAX, {v}, {{"beta", ir::Attr::of_float(1.0)}}); break;
      case 2: {
        ir::Value *m = op(op::MEAN, {v, ints({static_cast<i64>(rank) - 1})},
                          {{"keep_dims", ir::Attr::of_bool(true)}});
        v = m ? op(op::SUB, {v, m}) : nullptr;
        break;
      }
      case 3: v = act(op::MUL, v, floats({dims(v).back()}, [&] { return number(); })); break;
      default: v = unary(v);
      }
    }
    if (!v)
      return;
    Shape back;
    for (i64 d : dims(v))
      if (d != 1 || chance(3))
        back.push_back(d);
    if (!back.empty())
      reshape(v, back);
  }
  void idle() {
    ir::Value *x = any_f32();
    if (!x || x->type().rank() == 0)
      return;
    if (chance(2))
      op(op::TILE, {x, ints(Shape(static_cast<size_t>(x->type().rank()), 1))});
    else
      op(op::REVERSE_V2, {x, ints({pick(0, x->type().rank() - 1)})});
  }
  void softmax() {
    ir::Value *x = any_f32();
    if (x && x->type().rank() > 0)
      op(op::SOFTMAX, {x}, {{"beta", ir::Attr::of_float(1.0)}});
  }
  ir::Value *mul(ir::Value *x, ir::Value *y) {
    return !x || !y ? nullptr : chance(2) ? op(op::MUL, {x, y}) : op(op::MUL, {y, x});
  }
  ir::Value *add(ir::Value *x, ir::Value *y) {
    return !x || !y ? nullptr : chance(2) ? op(op::ADD, {x, y}) : op(op::ADD, {y, x});
  }
  ir::Value *reduce(ir::OpCode code, ir::Value *x, const Shape &axes) {
    return x ? op(code, {x, ints(axes)}, {{"keep_dims", ir::Attr::of_bool(true)}}) : nullptr;
  }
  void norms() {
    ir::Value *x = value([](const ir::Value *v) {
      return is_f32(v) && v->type().rank() >= 3 && v->type().rank() <= 4;
    });
    if (!x)
      return;
    const i64 last = x->type().rank() - 1;
    const auto vector = [&] { return floats({dims(x).back()}, [&] { return number(); }); };
    const auto rsqrt = [&](ir::Value *v) {
      v = add(v, b_->scalar(ir::ElementType::F32, 0.25));
      return v ? op(op::RSQRT, {v}) : nullptr;
    };
    if (chance(2) || last != 3) {
      ir::Value *square = chance(2) ? op(op::SQUARE, {x}) : op(op::MUL, {x, x});
      ir::Value *r = rsqrt(reduce(op::MEAN, square, {chance(2) ? -1 : chance(4) ? 0 : last}));
      if (chance(2))
        mul(mul(x, r), vector());
      else
        mul(x, mul(vector(), r));
      return;
    }
    ir::Value *mean = reduce(op::MEAN, x, {1, 2});
    ir::Value *c = mean ? op(op::SUB, {x, mean}) : nullptr;
    if (!c)
      return;
    ir::Value *r = rsqrt(reduce(op::MEAN, op(op::MUL, {c, c}), {chance(4) ? 3 : 1, 2}));
    add(mul(mul(c, r), vector()), vector());
  }
  void activations() {
    ir::Value *x = any_f32();
    if (!x || x->type().rank() == 0)
      return;
    const auto c = [&](double v) { return b_->scalar(ir::ElementType::F32, v); };
    switch (pick(0, 3)) {
    case 0: {
      ir::Value *cube = mul(x, mul(x, x));
      ir::Value *t = mul(add(x, mul(cube, c(0.044715))), c(chance(4) ? 0.8 : 0.7978845608));
      t = t ? add(op(op::TANH, {t}), c(1)) : nullptr;
      chance(2) ? mul(mul(x, c(0.5)), t) : mul(c(0.5), mul(x, t));
      break;
    }
    case 1: op(op::MAXIMUM, {x, mul(x, c(one_of({0.125, 0.5, 1.5})))}); break;
    case 2: {
      ir::Value *alpha = floats({dims(x).back()}, [&] { return number(); });
      ir::Value *half = op(op::SUB, {x, op(op::ABS, {x})});
      add(op(op::RELU, {x}), mul(c(0.5), mul(alpha, half)));
      break;
    }
    default: {
      ir::Value *top = reduce(op::REDUCE_MAX, x, {chance(4) ? 0 : -1});
      ir::Value *e = top ? op(op::EXP, {op(op::SUB, {x, top})}) : nullptr;
      if (e)
        op(op::DIV, {e, reduce(op::SUM, e, {-1})});
    }
    }
  }
  void ones() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    Shape axes;
    const Shape s = dims(x);
    for (size_t d = 0; d < s.size(); ++d)
      if (s[d] == 1)
        axes.push_back(static_cast<i64>(d));
    if (!axes.empty())
      op(one_of<ir::OpCode>({op::SUM, op::MEAN, op::REDUCE_MAX}), {x, ints(axes)},
         {{"keep_dims", ir::Attr::of_bool(chance(2))}});
  }
};

} // namespace chute::circle::testing
