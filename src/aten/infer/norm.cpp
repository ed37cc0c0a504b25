#include "aten/infer/args.h"

#include <array>

/// Normalisation, softmax and gated units.
namespace chute::aten::rule {

using ir::ElementType;
using ir::SymInt;
using ir::Type;

namespace {

/// The type in which half types are accumulated.
ElementType accumulation_element(ElementType e) {
  return e == ElementType::F16 || e == ElementType::BF16 ? ElementType::F32 : e;
}

/// Shape with the last normalized_shape.size() dimensions 1.
bool layer_statistics(InferArgs &a, Dims &shape) {
  const DimSpan normalized = a.ints("normalized_shape");
  shape = dims_of(a.tensor(0));
  if (!a.check(normalized.size() <= shape.size(), kShapeError,
               "normalized_shape has more dimensions than the input"))
    return false;
  for (size_t i = shape.size() - normalized.size(), k = 0; i < shape.size(); ++i, ++k) {
    a.check(shape[i] == normalized[k], kShapeError, [&] {
      return "normalized_shape " + a.print(normalized) + " does not end the shape " +
             a.print(a.tensor(0).shape());
    });
    shape[i] = 1;
  }
  return !a.bad();
}

} // namespace

Status layer_norm(InferArgs &a) {
  Dims statistics;
  return layer_statistics(a, statistics) ? a.done(a.tensor(0)) : a.failed();
}

Status native_layer_norm(InferArgs &a) {
  Dims statistics;
  if (!layer_statistics(a, statistics))
    return a.failed();
  const ElementType e = a.tensor(0).element();
  a.add(a.tensor(0));
  a.add(e, statistics);
  return a.done(e, statistics);
}

Status fused_rms_norm(InferArgs &a) {
  Dims statistics;
  if (!layer_statistics(a, statistics))
    return a.failed();
  a.add(a.tensor(0));
  return a.done(accumulation_element(a.tensor(0).element()), statistics);
}

Status native_group_norm(InferArgs &a) {
  const Type x = a.tensor(0);
  const std::array shape{a.integer("N"), a.integer("group")};
  a.add(x);
  a.add(x.element(), shape);
  return a.done(x.element(), shape);
}

namespace {

/// Output, saved mean and saved reciprocal deviation: per channel when they were computed here,
/// empty when the running ones were used.
Status batch_statistics(InferArgs &a, bool computed) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() >= 2, kShapeError, "input must have channels"))
    return a.failed();
  const std::array shape{computed ? x.dim(1) : SymInt(0)};
  a.add(x);
  a.add(x.element(), shape);
  a.add(x.element(), shape);
  return a.done();
}

} // namespace

Status batch_norm_stats(InferArgs &a) { return batch_statistics(a, a.flag("training")); }

Status batch_norm_no_stats(InferArgs &a) { return batch_statistics(a, true); }

Status batch_norm_no_training(InferArgs &a) { return batch_statistics(a, false); }

Status batch_norm_functional(InferArgs &a) {
  if (Status s = batch_statistics(a, a.flag("training")); !s)
    return s;
  for (u32 running : {3u, 4u})
    a.add(accumulation_element(a.tensor(running).element()), a.tensor(running).shape());
  return a.done();
}

Status cudnn_batch_norm(InferArgs &a) {
  if (Status s = batch_statistics(a, a.flag("training")); !s)
    return s;
  return a.done(ElementType::U8, std::array{SymInt(0)});
}

Status weight_norm(InferArgs &a) {
  a.add(a.tensor(0));
  return a.done(accumulation_element(a.tensor(0).element()), a.tensor(1).shape());
}

Status softmax(InferArgs &a) {
  a.dim("dim", a.tensor(0).rank());
  const ElementType from = a.tensor(0).element();
  const ElementType to = a.flag("half_to_float") ? ElementType::F32 : a.dtype(from);
  return to == from ? a.done(a.tensor(0)) : a.done(to, a.tensor(0).shape());
}

Status glu(InferArgs &a) {
  const Type x = a.tensor(0);
  const size_t d = a.dim("dim", x.rank(), -1);
  if (!a.check(x.rank() > 0, kShapeError, "needs a dimension") || a.bad())
    return a.failed();
  Dims shape = dims_of(x);
  const auto half = a.sym().exact_div(shape[d], 2);
  a.check(half.has_value() || shape[d].is_symbolic(), kShapeError,
          "the halved dimension must be even");
  shape[d] = half ? *half : a.sym().floordiv(shape[d], 2);
  return a.done(x.element(), shape);
}

} // namespace chute::aten::rule
