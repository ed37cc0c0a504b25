#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>
#include <numbers>

// Losses: the elementwise term, then its mean or sum. `reduction`: 0 none, 1 mean, 2 sum.
namespace chute::aten {

namespace {

constexpr i64 kMean = 1, kSum = 2; // anything else: no reduction

/// torch.sum: integers are summed as i64, whatever their own type; the terms have wrapped by then.
V total(Emit &e, V x, const Axes &dims) {
  return e.sum(ir::is_integer(x->type().element()) ? e.cast(x, ElementType::I64) : x, dims, false);
}

V reduced(Emit &e, V terms) {
  const i64 how = e.integer("reduction");
  const Axes all = e.all_dims(terms->type().rank());
  return how == kMean ? e.mean(terms, all, false) : how == kSum ? total(e, terms, all) : terms;
}

V difference(Emit &e) { return e.sub(e.up(e.in(0)), e.up(e.in(1))); }

V huber(Emit &e) {
  V z = e.abs(difference(e));
  const double delta = e.number("delta");
  V far = e.mul(e.sub(z, 0.5 * delta), delta);
  return reduced(e, e.where(e.le(z, delta), e.mul(e.mul(z, z), 0.5), far));
}

V smooth_l1(Emit &e) {
  V z = e.abs(difference(e));
  const double beta = e.number("beta");
  if (beta == 0)
    return reduced(e, z);
  V near = e.mul(e.mul(z, z), 0.5 / beta);
  return reduced(e, e.where(e.lt(z, beta), near, e.sub(z, 0.5 * beta)));
}

/// log(1 + exp(-z)) without overflow.
V softplus_of_negative(Emit &e, V z) {
  return e.add(e.maximum(e.neg(z), 0.0), e.log1p(e.exp(e.neg(e.abs(z)))));
}

/// The logarithms are cut at -100, as PyTorch does.
V binary_cross_entropy(Emit &e) {
  V x = e.up(e.in(0)), t = e.up(e.in(1));
  V hit = e.maximum(e.log(x), -100.0), miss = e.maximum(e.log1p(e.neg(x)), -100.0);
  V terms = e.sub(e.mul(e.sub(t, 1.0), miss), e.mul(t, hit));
  return reduced(e, e.in(2) ? e.mul(terms, e.in(2)) : terms);
}

V binary_cross_entropy_with_logits(Emit &e) {
  V x = e.up(e.in(0)), t = e.up(e.in(1));
  V tail = softplus_of_negative(e, x);
  if (V positive = e.in(3))
    tail = e.mul(tail, e.add(e.mul(e.sub(positive, 1.0), t), 1.0));
  V terms = e.add(e.mul(e.rsub(1, t), x), tail);
  return reduced(e, e.in(2) ? e.mul(terms, e.in(2)) : terms);
}

V kl_div(Emit &e) {
  V x = e.up(e.in(0)), t = e.up(e.in(1));
  if (e.flag("log_target"))
    return reduced(e, e.mul(e.exp(t), e.sub(t, x)));
  V own = e.where(e.eq(t, 0.0), e.scalar_like(0, t), e.mul(t, e.log(t)));
  return reduced(e, e.sub(own, e.mul(t, x)));
}

struct ClassLoss {
  V terms = nullptr; ///< -log p of the target class, weighted; 0 where it is ignored
  V total = nullptr; ///< sum of the weights that count
  V live = nullptr;  ///< which targets count
  V weights = nullptr;
};

int class_dim(V logs) { return logs->type().rank() > 1 ? 1 : 0; }

ClassLoss class_loss(Emit &e, V logs, V target, V weight) {
  const ElementType t = logs->type().element();
  const int dim = class_dim(logs);
  ClassLoss out;
  out.live = e.ne(target, e.scalar(e.attr("ignore_index"), target->type().element()));
  V safe = e.where(out.live, target, e.scalar_like(0, target));
  const bool single = logs->type().rank() == 1;
  V at = single ? e.view(safe, {1}) : e.unsqueeze(safe, dim);
  V picked = e.view(e.op(op::gather, {logs, at}, {{"dim", Attr::of_int(dim)}}), e.shape_of(target));
  V live = e.cast(out.live, t);
  if (weight) {
    const SymInt n = e.mul_sizes(e.shape_of(safe));
    V each = e.index_select(weight, 0, e.view(safe, {n}));
    out.weights = e.mul(live, e.view(e.cast(each, t), e.shape_of(target)));
  } else {
    out.weights = live;
  }
  out.terms = e.where(out.live, e.neg(weight ? e.mul(picked, out.weights) : picked),
                      e.scalar_like(0, picked));
  out.total = e.sum(out.weights, e.all_dims(target->type().rank()), false);
  return out;
}

V reduced_by(Emit &e, V terms, V total) {
  const i64 how = e.integer("reduction");
  if (how != kMean && how != kSum)
    return terms;
  V sum = e.sum(terms, e.all_dims(terms->type().rank()), false);
  return how == kMean ? e.div(sum, total) : sum;
}

V nll_loss(Emit &e) {
  const ClassLoss c = class_loss(e, e.up(e.in(0)), e.in(1), e.in(2));
  return reduced_by(e, c.terms, c.total);
}

Values nll_loss_forward(Emit &e) {
  const ClassLoss c = class_loss(e, e.up(e.in(0)), e.in(1), e.in(2));
  const i64 how = e.integer("reduction");
  V weight = how == kMean || how == kSum ? c.total : e.scalar_like(0, c.total);
  return {reduced_by(e, c.terms, c.total), weight};
}

/// A weight per class, along the class dimension of `like`.
V along_classes(Emit &e, V weight, V like) {
  Shape shape(size_t(like->type().rank()), 1);
  shape[size_t(class_dim(like))] = weight->type().dim(0);
  return e.view(weight, shape);
}

V cross_entropy(Emit &e) {
  V x = e.up(e.in(0)), target = e.in(1), weight = e.in(2);
  const int dim = class_dim(x);
  const double smoothing = e.number("label_smoothing");
  const SymInt classes = x->type().dim(dim);
  if (smoothing != 0 && classes.is_symbolic())
    return e.reject("label smoothing over a number of classes that is not static");
  const double share = smoothing == 0 ? 0 : smoothing / static_cast<double>(classes.value());
  V logs = e.log_softmax(x, dim);
  if (ir::is_float(target->type().element())) {
    V wanted = e.up(target);
    if (smoothing != 0)
      wanted = e.add(e.mul(wanted, 1 - smoothing), share);
    V product = e.mul(logs, wanted);
    if (weight)
      product = e.mul(product, along_classes(e, weight, logs));
    V terms = e.neg(e.sum(product, {dim}, false));
    return reduced(e, terms); // the mean is over positions
  }
  const ClassLoss c = class_loss(e, logs, target, weight);
  V terms = c.terms;
  if (smoothing != 0) {
    V spread = weight ? e.mul(logs, along_classes(e, weight, logs)) : logs;
    spread = e.neg(e.sum(spread, {dim}, false));
    spread = e.where(c.live, spread, e.scalar_like(0, spread));
    terms = e.add(e.mul(terms, 1 - smoothing), e.mul(spread, share));
  }
  return reduced_by(e, terms, c.total);
}

V cosine_embedding(Emit &e) {
  V x = e.up(e.in(0)), y = e.up(e.in(1)), t = e.in(2);
  const auto squares = [&](V v) { // the epsilon is PyTorch's
    return e.add(e.to_float(total(e, e.mul(v, v), {v->type().rank() - 1})), 1e-12);
  };
  V product = e.mul(x, y);
  V cosine =
      e.div(total(e, product, {product->type().rank() - 1}), e.sqrt(e.mul(squares(x), squares(y))));
  V zero = e.scalar_like(0, cosine);
  V together = e.where(e.eq(t, 1.0), e.rsub(1, cosine), zero);
  V apart = e.maximum(e.sub(cosine, e.number("margin")), 0.0);
  return reduced(e, e.add(together, e.where(e.eq(t, -1.0), apart, zero)));
}

V hinge_embedding(Emit &e) {
  V x = e.up(e.in(0)), t = e.in(1);
  V zero = e.scalar_like(0, x);
  // PyTorch takes integers away from a margin of their own type, where they may wrap.
  const double margin = e.number("margin");
  V from = ir::is_integer(x->type().element())
               ? e.scalar(Attr::of_int(static_cast<i64>(margin)), x->type().element())
               : e.scalar_like(margin, x);
  V apart = e.maximum(e.sub(from, x), 0.0);
  return reduced(e, e.add(e.where(e.ne(t, 1.0), apart, zero), e.where(e.ne(t, -1.0), x, zero)));
}

V margin_ranking(Emit &e) {
  V order = e.mul(e.neg(e.up(e.in(2))), difference(e));
  return reduced(e, e.maximum(e.add(e.to_float(order), e.number("margin")), 0.0));
}

V poisson_nll(Emit &e) {
  V given = e.up(e.in(0)), target = e.up(e.in(1));
  V x = e.to_float(given), t = e.to_float(target);
  // The product of two integers wraps before it meets a real.
  V terms = e.flag("log_input") ? e.sub(e.exp(x), e.mul(target, given))
                                : e.sub(x, e.mul(t, e.log(e.add(x, e.number("eps")))));
  if (e.flag("full")) { // Stirling's formula for log t!
    V tail = e.mul(e.log(e.mul(t, 2 * std::numbers::pi)), 0.5);
    V stirling = e.add(e.sub(e.mul(t, e.log(t)), t), tail);
    terms = e.add(terms, e.where(e.gt(t, 1.0), stirling, e.scalar_like(0, t)));
  }
  return reduced(e, terms);
}

V triplet_margin(Emit &e) {
  const double p = e.number("p"), eps = e.number("eps");
  const auto distance = [&](V a, V b) {
    V d = e.add(e.to_float(e.sub(e.up(a), e.up(b))), eps);
    const SymInt last = d->type().rank() - 1;
    return e.op(op::linalg_vector_norm, {d},
                {{"ord", Attr::of_float(p)}, {"dim", e.ctx().ints_attr(Shape{last})}});
  };
  V near = distance(e.in(0), e.in(1)), far = distance(e.in(0), e.in(2));
  if (e.flag("swap"))
    far = e.minimum(far, distance(e.in(1), e.in(2)));
  return reduced(e, e.maximum(e.add(e.sub(near, far), e.number("margin")), 0.0));
}

} // namespace

void add_loss_rules(pass::PatternSet &set) {
  set.add("l1-loss", {op::l1_loss}, rule<[](Emit &e) { return reduced(e, e.abs(difference(e))); }>);
  set.add("mse-loss", {op::mse_loss}, rule<[](Emit &e) {
            V d = difference(e);
            return reduced(e, e.mul(d, d));
          }>);
  set.add("huber-loss", {op::huber_loss}, rule<huber>);
  set.add("smooth-l1-loss", {op::smooth_l1_loss}, rule<smooth_l1>);
  set.add("soft-margin-loss", {op::soft_margin_loss}, rule<[](Emit &e) {
            return reduced(e, softplus_of_negative(e, e.mul(e.up(e.in(0)), e.up(e.in(1)))));
          }>);
  set.add("binary-cross-entropy", {op::binary_cross_entropy}, rule<binary_cross_entropy>);
  set.add("binary-cross-entropy-with-logits", {op::binary_cross_entropy_with_logits},
          rule<binary_cross_entropy_with_logits>);
  set.add("kl-div", {op::kl_div}, rule<kl_div>);
  set.add("nll-loss", {op::nll_loss_nd}, rule<nll_loss>);
  set.add("nll-loss-forward", {op::nll_loss_forward, op::nll_loss2d_forward},
          rule<nll_loss_forward>);
  set.add("cosine-embedding-loss", {op::cosine_embedding_loss}, rule<cosine_embedding>);
  set.add("hinge-embedding-loss", {op::hinge_embedding_loss}, rule<hinge_embedding>);
  set.add("margin-ranking-loss", {op::margin_ranking_loss}, rule<margin_ranking>);
  set.add("poisson-nll-loss", {op::poisson_nll_loss}, rule<poisson_nll>);
  set.add("triplet-margin-loss", {op::triplet_margin_loss}, rule<triplet_margin>);
  set.add("cross-entropy", {op::cross_entropy_loss}, rule<cross_entropy>);
}

} // namespace chute::aten
