#pragma once

#include "circle/testing/circle_maker.h"

namespace chute::circle::testing {

/// Random valid Circle programs for what `-O2` adds: regions of operators that work in any order of
/// dimensions, with transposes in and around them; equal values that are built differently;
/// branches whose order decides how much lives at one time. Header-only.
class RandomRegions : CircleMaker {
public:
  RandomRegions(ir::Context &ctx, u64 seed) : CircleMaker(ctx, seed) {}

  std::unique_ptr<ir::Graph> make(size_t steps) {
    graph_ = std::make_unique<ir::Graph>(ctx_, "regions");
    ir::Builder builder(*graph_, graph_->body());
    b_ = &builder;
    const Shape s{pick(2, 4), pick(2, 4), pick(2, 4), pick(2, 4)};
    for (int i = 0; i < 2; ++i)
      argument(f32(s));
    argument(f32({pick(2, 4), pick(2, 4), pick(2, 4)}));
    argument(f32({pick(2, 4), pick(2, 4)}));
    for (int i = 0; i < 3; ++i)
      argument(tensor(ir::ElementType::I32, {s[0], s[1]}));
    // A few orders of dimensions, so that they meet again.
    for (size_t rank = 2; rank <= 4; ++rank)
      for (int i = 0; i < 2; ++i)
        orders_[rank].push_back(permutation(rank));
    for (size_t i = 0; i < steps; ++i)
      step();
    finish();
    return std::move(graph_);
  }

private:
  void step() {
    switch (pick(0, 15)) {
    case 0:
    case 1:
    case 2: turn(any_f32()); break;
    case 3: pair(); break;
    case 4: constant_operand(); break;
    case 5: pad(); break;
    case 6: slice(); break;
    case 7: join(); break;
    case 8: split(); break;
    case 9: softmax(); break;
    case 10: reduce(); break;
    case 11: compare(); break;
    case 12: integers(); break;
    case 13: views(); break;
    case 14: branches(); break;
    default: unary(any_f32());
    }
  }

  ir::Value *turn(ir::Value *x) {
    if (!x || x->type().rank() < 2 || x->type().rank() > 4)
      return nullptr;
    const auto &orders = orders_[static_cast<size_t>(x->type().rank())];
    Shape p = orders[static_cast<size_t>(pick(0, 1))];
    if (chance(2)) { // back again
      Shape inverse(p.size());
      for (size_t i = 0; i < p.size(); ++i)
        inverse[static_cast<size_t>(p[i])] = static_cast<i64>(i);
      p = inverse;
    }
    return transpose(x, p);
  }
  void pair() {
    ir::Value *x = any_f32(), *y = x ? matching(x) : nullptr;
    if (y && chance(2)) {
      x = unary(chance(2) ? turn(x) : x);
      y = x ? matching(x) : nullptr;
    }
    act(one_of<ir::OpCode>({op::ADD, op::SUB, op::MUL, op::MAXIMUM}), x, y);
  }
  void constant_operand() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    Shape s = dims(x);
    if (chance(2))
      s.erase(s.begin());
    for (i64 &d : s)
      d = chance(3) ? 1 : d;
    act(one_of<ir::OpCode>({op::ADD, op::MUL}), x, floats(s, [&] { return number(); }));
  }
  void pad() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    Shape p;
    for (i64 i = 0; i < 2 * x->type().rank(); ++i)
      p.push_back(chance(4));
    op(op::PAD, {x, pairs(p)});
  }
  void slice() {
    ir::Value *x = any_f32();
    if (!x)
      return;
    Shape b, e, step;
    for (i64 d : dims(x)) {
      b.push_back(d > 2 && chance(2));
      e.push_back(d);
      step.push_back(chance(4) ? 2 : 1);
    }
    if (chance(2)) {
      op(op::STRIDED_SLICE, {x, ints(b), ints(e), ints(step)},
         {{"begin_mask", ir::Attr::of_int(pick(0, 15))},
          {"end_mask", ir::Attr::of_int(pick(0, 15))}});
      return;
    }
    Shape size;
    for (size_t i = 0; i < b.size(); ++i)
      size.push_back(chance(3) ? -1 : e[i] - b[i]);
    op(op::SLICE, {x, ints(b), ints(size)});
  }
  void join() {
    ir::Value *x = any_f32(), *y = x ? matching(x) : nullptr;
    if (!y || x->type().rank() == 0)
      return;
    const i64 rank = x->type().rank(), axis = pick(-rank, rank - 1);
    op(op::CONCATENATION, {x, chance(4) ? floats(dims(x), [&] { return number(); }) : y},
       {{"axis", ir::Attr::of_int(axis)}});
  }
  void split() {
    ir::Value *x = any_f32();
    if (!x || x->type().rank() < 2)
      return;
    const i64 axis = pick(0, x->type().rank() - 1), d = dims(x)[static_cast<size_t>(axis)];
    if (d > 4)
      return;
    ir::Value *t = chance(2) ? turn(x) : x;
    if (!t)
      return;
    op(op::SPLIT, {ints({chance(2) ? axis : axis - x->type().rank()}, true), t},
       {{"num_splits", ir::Attr::of_int(dims(t)[static_cast<size_t>(axis)])}});
  }
  void softmax() {
    ir::Value *x = any_f32();
    ir::Value *t = x && chance(2) ? turn(x) : x;
    if (t && t->type().rank() > 1)
      op(op::SOFTMAX, {t}, {{"beta", ir::Attr::of_float(1.0)}});
  }
  void reduce() {
    ir::Value *x = any_f32();
    if (!x || x->type().rank() < 2)
      return;
    ir::Value *t = chance(2) ? turn(x) : x;
    if (!t)
      return;
    const i64 rank = t->type().rank();
    op(one_of<ir::OpCode>({op::MEAN, op::SUM, op::REDUCE_MAX}),
       {t, ints({chance(2) ? pick(0, rank - 1) : pick(-rank, -1)})},
       {{"keep_dims", ir::Attr::of_bool(!chance(4))}});
  }
  void compare() {
    ir::Value *x = any_f32(), *y = x ? matching(x) : nullptr;
    if (!y)
      return;
    const bool equal = chance(2);
    op(equal ? op::GREATER_EQUAL : op::GREATER, {x, y});
    op(chance(4) ? op::LESS
       : equal   ? op::LESS_EQUAL
                 : op::LESS,
       std::vector<ir::Value *>{chance(4) ? x : y, x});
    act(op::MUL, x, x);
    op(op::SQUARE, {x});
  }
  ir::Value *integer() {
    return value([](const ir::Value *v) { return v->type().element() == ir::ElementType::I32; });
  }
  /// Sums and the like of the same integers, grouped twice.
  void integers() {
    std::vector<ir::Value *> leaves{integer()};
    if (!leaves[0])
      return;
    for (i64 n = pick(1, 3); n > 0; --n)
      if (ir::Value *v = matching(leaves[0]))
        leaves.push_back(v);
    const ir::OpCode code = one_of<ir::OpCode>({op::ADD, op::MUL, op::MINIMUM, op::MAXIMUM});
    for (int times = 0; times < 2; ++times) {
      std::shuffle(leaves.begin(), leaves.end(), random_);
      std::vector<ir::Value *> left(leaves.begin(),
                                    leaves.end() - (chance(6) && leaves.size() > 2));
      while (left.size() > 1) {
        const auto at = static_cast<size_t>(pick(0, static_cast<i64>(left.size()) - 2));
        left[at] = op(code, {left[at], left[at + 1]});
        if (!left[at])
          return;
        left.erase(left.begin() + static_cast<i64>(at) + 1);
      }
    }
  }
  /// An operator on a tensor and on a view of it.
  void views() {
    ir::Value *x = any_f32();
    if (!x || x->type().rank() == 0)
      return;
    const Shape s = dims(x);
    ir::Value *v = reshape(x, regrouped(s));
    if (!v)
      return;
    const ir::OpCode code = one_of<ir::OpCode>({op::EXP, op::TANH, op::NEG, op::ABS});
    ir::Value *half = scalar(0.5);
    for (ir::Value *on : {x, v}) {
      op(code, {on});
      act(op::MUL, on, half);
    }
  }
  /// Wide intermediate values that come to little.
  void branches() {
    ir::Value *x = any_f32();
    if (!x || x->type().rank() < 2)
      return;
    std::vector<ir::Value *> wide;
    for (i64 n = pick(2, 4); n > 0; --n)
      if (ir::Value *c = op(op::CONCATENATION, {x, x, x}, {{"axis", ir::Attr::of_int(0)}}))
        wide.push_back(op(one_of<ir::OpCode>({op::EXP, op::TANH, op::SIN, op::ABS}), {c}));
    ir::Value *sum = nullptr;
    for (ir::Value *w : wide) {
      ir::Value *r =
          w ? op(op::SUM, {w, ints({0})}, {{"keep_dims", ir::Attr::of_bool(true)}}) : nullptr;
      sum = sum && r ? op(op::ADD, {sum, r}) : r;
    }
  }

  std::vector<Shape> orders_[5];
};

} // namespace chute::circle::testing
