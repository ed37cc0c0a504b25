#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <cmath>

// scaled_dot_product_attention as PyTorch's math path computes it: both factors of q k^T are scaled
// by the root of the scale, masks act on the scores, rows that a mask empties give 0.
namespace chute::aten {

namespace {

/// k and v of shape [.., heads, S, E] repeated to q's heads (grouped queries).
V repeat_heads(Emit &e, V x, SymInt heads) {
  const int rank = x->type().rank();
  const SymInt own = x->type().dim(rank - 3);
  if (own == heads)
    return x;
  const auto times = e.sym().exact_div(heads, own);
  if (!times)
    return e.reject("the number of query heads is no multiple of the key heads"), x;
  Shape shape = e.shape_of(x);
  shape.insert(shape.begin() + rank - 2, *times);
  V y = e.expand(e.unsqueeze(x, rank - 2), shape);
  shape.erase(shape.begin() + rank - 2);
  shape[size_t(rank - 3)] = heads;
  return e.view(y, shape);
}

V attention(Emit &e, V q, V k, V v, V mask) {
  q = e.up(q), k = e.up(k), v = e.up(v);
  const int rank = q->type().rank();
  if (e.root().def().attr_index("dropout_p") >= 0 && e.number("dropout_p") != 0)
    return e.reject("attention dropout of a model in training mode");
  if (e.root().def().attr_index("enable_gqa") >= 0 && e.flag("enable_gqa")) {
    const SymInt heads = q->type().dim(rank - 3);
    k = repeat_heads(e, k, heads);
    v = repeat_heads(e, v, heads);
  }
  const SymInt width = q->type().dim(rank - 1);
  if (!e.given("scale") && width.is_symbolic())
    return e.reject("a head size that is not static");
  const double scale = e.given("scale") ? e.number("scale") : 1 / std::sqrt(double(width.value()));
  // A negative scale has no real root: then the query takes all of it.
  const double left = scale >= 0 ? std::sqrt(scale) : scale;
  const double right = scale >= 0 ? std::sqrt(scale) : 1;
  const int k_rank = k->type().rank();
  V scores = e.matmul(e.mul(q, left), e.mul(e.transpose(k, k_rank - 2, k_rank - 1), right));
  const int last = scores->type().rank() - 1;
  V keep = nullptr; // rows that have something to attend to
  if (mask && mask->type().element() == ElementType::Bool) {
    scores = e.where(mask, scores, -INFINITY);
    keep = e.any(mask, {mask->type().rank() - 1}, true);
  } else if (mask) {
    keep = e.gt(e.amax(mask, {mask->type().rank() - 1}, true), -INFINITY);
    scores = e.add(scores, mask);
  }
  if (e.root().def().attr_index("is_causal") >= 0 && e.flag("is_causal")) {
    const SymInt rows = scores->type().dim(last - 1), columns = scores->type().dim(last);
    V below = e.ge(e.unsqueeze(e.arange(0, rows), 1), e.unsqueeze(e.arange(0, columns), 0));
    const ElementType t = scores->type().element();
    scores = e.add(scores, e.where(below, e.scalar(0, t), e.scalar(-INFINITY, t)));
  }
  V weights = e.softmax(scores, last);
  if (keep)
    weights = e.where(keep, weights, 0.0);
  return e.matmul(weights, v);
}

} // namespace

void add_attention_rules(pass::PatternSet &set) {
  set.add("attention", {op::scaled_dot_product_attention},
          rule<[](Emit &e) { return attention(e, e.in(0), e.in(1), e.in(2), e.in(3)); }>);
  set.add("attention-math", {op::u_scaled_dot_product_attention_math}, rule<[](Emit &e) -> Values {
            if (e.used(1) || e.in(4))
              return e.reject("attention weights are used"), Values{};
            return {attention(e, e.in(0), e.in(1), e.in(2), e.in(3)), nullptr};
          }>);
  set.add("attention-cpu", {op::u_scaled_dot_product_flash_attention_for_cpu},
          rule<[](Emit &e) -> Values {
            if (e.used(1))
              return e.reject("logsumexp of attention is used"), Values{};
            return {attention(e, e.in(0), e.in(1), e.in(2), e.in(3)), nullptr};
          }>);
}

} // namespace chute::aten
