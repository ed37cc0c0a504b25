#pragma once

#include "circle/ops.h"
#include "ir/builder.h"
#include "ir/context.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace chute::circle::testing {

/// What a maker of random Circle programs builds with: chance, types, constants, values so far.
class CircleMaker {
protected:
  CircleMaker(ir::Context &ctx, u64 seed) : ctx_(ctx), random_(seed) {}
  using Shape = std::vector<i64>;

  // --- chance ------------------------------------------------------------------------------------
  i64 pick(i64 low, i64 high) {
    return high <= low ? low : low + static_cast<i64>(random_() % static_cast<u64>(high - low + 1));
  }
  bool chance(i64 one_in) { return pick(1, one_in) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> from) {
    return from.begin()[random_() % from.size()];
  }
  Shape shape() {
    Shape s(static_cast<size_t>(pick(1, 4)));
    for (i64 &d : s)
      d = one_of<i64>({1, 1, 2, 3, 4});
    return s;
  }
  double number() { return static_cast<double>(pick(-8, 8)) / 4; }

  // --- types and constants -----------------------------------------------------------------------
  ir::Type tensor(ir::ElementType e, const Shape &s, const ir::Quantization *q = nullptr) {
    return ctx_.tensor_type(e, std::vector<ir::SymInt>(s.begin(), s.end()), q);
  }
  ir::Type f32(const Shape &s) { return tensor(ir::ElementType::F32, s); }
  ir::Type quantized(const Shape &s) {
    static const float scale[] = {0.5f};
    static const i64 zero[] = {3};
    ir::Quantization q;
    q.scales = scale;
    q.zero_points = zero;
    return tensor(ir::ElementType::I8, s, ctx_.quantization(q));
  }
  static Shape dims(const ir::Value *v) {
    Shape s;
    for (ir::SymInt d : v->type().shape())
      s.push_back(d.value());
    return s;
  }
  static i64 count(const Shape &s) {
    return std::accumulate(s.begin(), s.end(), i64{1}, std::multiplies<>());
  }
  ir::Value *floats(const Shape &s, const std::function<double()> &f) {
    std::vector<float> v(static_cast<size_t>(count(s)));
    for (float &x : v)
      x = static_cast<float>(f());
    return b_->constant(graph_->add_copy(f32(s), std::as_bytes(std::span<const float>(v))));
  }
  ir::Value *scalar(double v) {
    return chance(2) ? b_->scalar(ir::ElementType::F32, v) : floats({1}, [&] { return v; });
  }
  ir::Value *ints(const Shape &v, bool scalar = false) {
    const std::vector<i32> n(v.begin(), v.end());
    return b_->constant_i32(n, scalar);
  }
  ir::Value *pairs(const Shape &v) {
    const std::vector<i32> n(v.begin(), v.end());
    return b_->constant(
        graph_->add_copy(tensor(ir::ElementType::I32, {static_cast<i64>(v.size() / 2), 2}),
                         std::as_bytes(std::span<const i32>(n))));
  }
  ir::Attr ints_attr(const Shape &v) {
    return ctx_.ints_attr(std::vector<ir::SymInt>(v.begin(), v.end()));
  }

  // --- values ------------------------------------------------------------------------------------
  void argument(ir::Type t) { values_.push_back(graph_->add_argument(graph_->body(), t)); }
  ir::Value *keep(ir::Value *v) {
    if (v)
      values_.push_back(v);
    return v;
  }
  /// A value for which `fits`; null when a few tries find none.
  template <class Fits>
  ir::Value *value(Fits &&fits) {
    for (int i = 0; i < 12; ++i)
      if (ir::Value *v = values_[random_() % values_.size()]; fits(v))
        return v;
    return nullptr;
  }
  static bool is_f32(const ir::Value *v) { return v->type().element() == ir::ElementType::F32; }
  ir::Value *any() {
    return value([](const ir::Value *) { return true; });
  }
  ir::Value *any_f32() { return value(is_f32); }
  /// Values that come from inputs by operators which round nothing, for rules about steps.
  ir::Value *input_f32() {
    for (ir::Value *v : graph_->body().args())
      if (is_f32(v) && chance(3))
        return v;
    return graph_->body().arg(0);
  }

  ir::Value *op(ir::OpCode code, std::initializer_list<ir::Value *> operands,
                std::initializer_list<ir::NamedAttr> attrs = {}) {
    return op(code, std::vector<ir::Value *>(operands), std::vector<ir::NamedAttr>(attrs));
  }
  ir::Value *op(ir::OpCode code, const std::vector<ir::Value *> &operands,
                const std::vector<ir::NamedAttr> &attrs = {}) {
    for (const ir::Value *v : operands)
      if (v && v->type().rank() > 6)
        return nullptr;
    auto made = b_->try_create(code, operands, attrs);
    if (!made)
      return nullptr;
    for (ir::Value &r : (*made)->results())
      if (r.type().has_static_shape() && r.type().num_elements() <= 4096)
        values_.push_back(&r);
    return (*made)->result();
  }
  ir::Value *act(ir::OpCode code, ir::Value *x, ir::Value *y) {
    if (!x || !y)
      return nullptr;
    const std::string_view a = chance(8) ? one_of<std::string_view>({"RELU", "RELU6"}) : "NONE";
    return op(code, {x, y}, {{"fused_activation_function", ctx_.string_attr(a)}});
  }

  ir::Value *reshape(ir::Value *x, const Shape &to) {
    return op(op::RESHAPE, {x, ints(to)}, {{"new_shape", ints_attr(to)}});
  }
  /// The dimensions of `s` regrouped, or with ones put in and taken out.
  Shape regrouped(const Shape &s) {
    Shape out;
    switch (pick(0, 3)) {
    case 0: return {count(s)};
    case 1:
      for (i64 d : s)
        if (d != 1 || chance(2))
          out.push_back(d);
      return out.empty() ? Shape{1} : out;
    case 2:
      out = s;
      out.insert(out.begin() + pick(0, static_cast<i64>(out.size())), 1);
      return out;
    default:
      for (i64 n = count(s), d = 2; n > 1; d = 2) {
        while (n % d)
          ++d;
        out.push_back(d);
        n /= d;
      }
      while (out.size() > 3) {
        out[out.size() - 2] *= out.back();
        out.pop_back();
      }
      return out.empty() ? Shape{1, 1} : out;
    }
  }
  Shape permutation(size_t rank) {
    Shape p(rank);
    std::iota(p.begin(), p.end(), 0);
    std::shuffle(p.begin(), p.end(), random_);
    return p;
  }
  ir::Value *transpose(ir::Value *x, const Shape &perm) {
    return op(op::TRANSPOSE, {x, ints(perm)});
  }
  ir::Value *unary(ir::Value *x) {
    return x ? op(one_of<ir::OpCode>(
                      {op::RELU, op::RELU6, op::ABS, op::NEG, op::TANH, op::LOGISTIC, op::SQUARE}),
                  {x})
             : nullptr;
  }
  ir::Value *positive(ir::Value *x) {
    return x ? op(op::ADD, {op(op::ABS, {x}), scalar(0.5)}) : nullptr;
  }
  ir::Value *matching(const ir::Value *x) {
    return value([&](const ir::Value *v) { return v->type() == x->type(); });
  }

  void finish() {
    std::vector<ir::Value *> outputs;
    for (ir::Value *v : values_)
      if (v->producer() && (!v->has_uses() || chance(12)))
        outputs.push_back(v);
    b_->ret(outputs);
    for (size_t i = 0; i < graph_->body().num_args(); ++i) {
      ir::InputInfo in;
      in.name = "x" + std::to_string(i);
      in.value = graph_->body().arg(static_cast<u32>(i));
      graph_->inputs().push_back(in);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      ir::OutputInfo out;
      out.name = "y" + std::to_string(i);
      out.operand = static_cast<i32>(i);
      graph_->outputs().push_back(out);
    }
  }

  ir::Context &ctx_;
  std::mt19937_64 random_;
  std::unique_ptr<ir::Graph> graph_;
  ir::Builder *b_ = nullptr;
  std::vector<ir::Value *> values_;
};

} // namespace chute::circle::testing
