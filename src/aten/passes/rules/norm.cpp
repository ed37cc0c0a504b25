#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>

// Normalization from means, squares and rsqrt. Batch norm with stored statistics is one
// multiplication and one addition whose factors fold when the statistics are constants.
namespace chute::aten {

namespace {

/// A vector per channel, shaped to broadcast along dimension 1 of a tensor of that rank.
V per_channel(Emit &e, V v, int rank) {
  Shape s(size_t(rank), 1);
  s[size_t(rank > 1 ? 1 : 0)] = v->type().dim(0);
  return e.view(v, s);
}

V batch_norm_stored(Emit &e, V x, V w, V b, V mean, V var, double eps) {
  const int rank = x->type().rank();
  x = e.up(x);
  V factor = e.rsqrt(e.add(e.up(var), eps));
  if (w)
    factor = e.mul(factor, e.up(w));
  V offset = e.mul(e.up(mean), factor);
  offset = b ? e.sub(e.up(b), offset) : e.neg(offset);
  return e.add(e.mul(x, per_channel(e, factor, rank)), per_channel(e, offset, rank));
}

struct Normalized {
  V value;
  V mean;
  V rstd;
};

/// (x - mean) / sqrt(var + eps) over `dims`, in f32 for half types and (empty) integers.
Normalized standardize(Emit &e, V x, const Axes &dims, double eps) {
  x = e.to_float(e.up(x));
  V mean = e.mean(x, dims, true);
  V off = e.sub(x, mean);
  V rstd = e.rsqrt(e.add(e.mean(e.mul(off, off), dims, true), eps));
  return {e.mul(off, rstd), mean, rstd};
}

V affine(Emit &e, V x, V w, V b, int rank) {
  if (w)
    x = e.mul(x, e.up(per_channel(e, w, rank)));
  if (b)
    x = e.add(x, e.up(per_channel(e, b, rank)));
  return x;
}

/// Statistics of the batch itself: a model exported in training mode, or without stored ones.
Normalized batch_norm_own(Emit &e, V x, V w, V b, double eps) {
  Axes dims;
  for (int d = 0; d < x->type().rank(); ++d)
    if (d != 1)
      dims.push_back(d);
  Normalized n = standardize(e, x, dims, eps);
  n.value = affine(e, n.value, w, b, x->type().rank());
  return n;
}

V batch_norm(Emit &e) {
  if (e.flag("training") || !e.in(3) || !e.in(4))
    return batch_norm_own(e, e.in(0), e.in(1), e.in(2), e.number("eps")).value;
  return batch_norm_stored(e, e.in(0), e.in(1), e.in(2), e.in(3), e.in(4), e.number("eps"));
}

Values native_batch_norm_stored(Emit &e) {
  Values out(e.root().num_results(), nullptr);
  for (u32 i = 1; i < out.size(); ++i) {
    if (!e.used(i))
      continue;
    if (i >= 3) { // the functional form's running statistics stay
      out[i] = e.in(i);
      continue;
    }
    // Nothing is saved for a backward pass: PyTorch leaves these empty.
    const Shape shape = e.shape(i);
    if (e.mul_sizes(shape) != SymInt(0))
      return e.reject("saved statistics of a batch norm are used"), Values{};
    out[i] = e.full(shape, 0.0, e.type(i).element());
  }
  out[0] = batch_norm_stored(e, e.in(0), e.in(1), e.in(2), e.in(3), e.in(4), e.number("eps"));
  return out;
}

/// Results: output, batch mean, batch rstd and (functional form) the new running statistics.
Values native_batch_norm(Emit &e) {
  const bool stored = e.root().opcode() != op::u_native_batch_norm_legit_no_stats;
  if (stored && !e.flag("training"))
    return native_batch_norm_stored(e);
  V x = e.in(0);
  const Normalized n = batch_norm_own(e, x, e.in(1), e.in(2), e.number("eps"));
  Values out(e.root().num_results(), nullptr);
  out[0] = n.value;
  const SymInt channels = x->type().dim(1);
  V mean = e.view(n.mean, {channels}), rstd = e.view(n.rstd, {channels});
  if (out.size() > 1)
    out[1] = e.used(1) ? mean : nullptr;
  if (out.size() > 2)
    out[2] = e.used(2) ? rstd : nullptr;
  if (out.size() == 5 && (e.used(3) || e.used(4))) {
    const double m = e.number("momentum");
    SymInt count = 1;
    for (int d = 0; d < x->type().rank(); ++d)
      if (d != 1)
        count = e.sym().mul(count, x->type().dim(d));
    if (count.is_symbolic())
      return e.reject("running statistics over a symbolic batch"), Values{};
    const double bessel = double(count.value()) / std::max(1.0, double(count.value()) - 1);
    V var = e.sub(e.reciprocal(e.mul(rstd, rstd)), e.number("eps"));
    out[3] = e.add(e.mul(e.in(3), 1 - m), e.mul(mean, m));
    out[4] = e.add(e.mul(e.in(4), 1 - m), e.mul(var, m * bessel));
  }
  return out;
}

Normalized layer_norm(Emit &e) {
  V x = e.in(0);
  const int rank = x->type().rank(), n = int(e.sizes("normalized_shape").size());
  Axes dims;
  for (int d = rank - n; d < rank; ++d)
    dims.push_back(d);
  Normalized y = standardize(e, x, dims, e.number("eps"));
  if (V w = e.in(1))
    y.value = e.mul(y.value, e.up(w));
  if (V b = e.in(2))
    y.value = e.add(y.value, e.up(b));
  return y;
}

/// [N, C, …] as [N, G, C/G * …], standardized per group.
Normalized group_norm(Emit &e, V w, V b, SymInt groups) {
  V x = e.in(0);
  const Shape s = e.shape_of(x);
  Shape rest(s.begin() + 1, s.end());
  const auto size = e.sym().exact_div(e.mul_sizes(rest), groups);
  if (!size) {
    e.reject("channels that do not divide into groups");
    return {x, x, x};
  }
  Normalized y = standardize(e, e.view(x, {s[0], groups, *size}), {2}, e.number("eps"));
  y.value = affine(e, e.view(y.value, s), w, b, int(s.size()));
  return y;
}

V instance_norm(Emit &e) {
  V x = e.in(0);
  const int rank = x->type().rank();
  if (!e.flag("use_input_stats") && e.in(3) && e.in(4))
    return batch_norm_stored(e, x, e.in(1), e.in(2), e.in(3), e.in(4), e.number("eps"));
  Axes dims;
  for (int d = 2; d < rank; ++d)
    dims.push_back(d);
  return affine(e, standardize(e, x, dims, e.number("eps")).value, e.in(1), e.in(2), rank);
}

/// PyTorch's eps where none is given: that of the type it computes in.
double rms_eps(Emit &e) {
  if (e.given("eps"))
    return e.number("eps");
  return e.in()->type().element() == ElementType::F64 ? 2.220446049250313e-16
                                                      : 1.1920928955078125e-07;
}

/// The weight and the norms that it is scaled by. Dimension -1 stands for the norm of the whole;
/// other negative ones count from the end.
Values weight_norm(Emit &e) {
  V v = e.in(0), g = e.in(1);
  const int rank = v->type().rank();
  int dim = int(e.integer("dim"));
  if (dim < -1)
    dim += rank;
  Axes dims;
  for (int d = 0; d < rank; ++d)
    if (d != dim)
      dims.push_back(d);
  V norm = dims.empty() ? e.abs(e.up(v)) : e.sqrt(e.sum(e.mul(e.up(v), e.up(v)), dims, true));
  return {e.mul(e.up(v), e.div(e.up(g), norm)), norm};
}

} // namespace

void add_norm_rules(pass::PatternSet &set) {
  set.add("batch-norm", {op::batch_norm}, rule<batch_norm>);
  set.add("batch-norm-stored", {op::u_native_batch_norm_legit_no_training},
          rule<native_batch_norm_stored>);
  set.add("batch-norm-native",
          {op::u_native_batch_norm_legit, op::u_native_batch_norm_legit_no_stats,
           op::u_native_batch_norm_legit_functional},
          rule<native_batch_norm>);
  set.add("layer-norm", {op::layer_norm}, rule<[](Emit &e) { return layer_norm(e).value; }>);
  set.add("layer-norm-native", {op::native_layer_norm}, rule<[](Emit &e) {
            const Normalized y = layer_norm(e);
            return Values{y.value, y.mean, y.rstd};
          }>);
  set.add(
      "group-norm", {op::group_norm},
      rule<[](Emit &e) { return group_norm(e, e.in(1), e.in(2), e.size("num_groups")).value; }>);
  set.add("group-norm-native", {op::native_group_norm}, rule<[](Emit &e) {
            const Normalized y = group_norm(e, e.in(1), e.in(2), e.size("group"));
            return Values{y.value, e.view(y.mean, e.shape(1)), e.view(y.rstd, e.shape(2))};
          }>);
  set.add("instance-norm", {op::instance_norm}, rule<instance_norm>);
  set.add("rms-norm", {op::rms_norm}, rule<[](Emit &e) -> V {
            if (e.given("eps"))
              return nullptr;
            return e.op(op::rms_norm, {e.in(0), e.in(1)},
                        {{"normalized_shape", e.attr("normalized_shape")},
                         {"eps", Attr::of_float(rms_eps(e))}});
          }>);
  set.add("rms-norm-fused", {op::u_fused_rms_norm}, rule<[](Emit &e) -> Values {
            V factor = nullptr;
            if (e.used(1)) {
              V x = e.up(e.in());
              Axes dims = e.all_dims(x->type().rank());
              dims.erase(dims.begin(), dims.end() - i64(e.sizes("normalized_shape").size()));
              factor = e.rsqrt(e.add(e.mean(e.mul(x, x), dims, true), rms_eps(e)));
            }
            return {e.op(op::rms_norm, {e.in(0), e.in(1)},
                         {{"normalized_shape", e.attr("normalized_shape")},
                          {"eps", Attr::of_float(rms_eps(e))}}),
                    factor};
          }>);
  set.add("weight-norm-interface", {op::u_weight_norm_interface}, rule<weight_norm>);
  set.add("weight-norm", {op::u_weight_norm}, rule<[](Emit &e) { return weight_norm(e)[0]; }>);
}

} // namespace chute::aten
