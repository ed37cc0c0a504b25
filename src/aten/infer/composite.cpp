#include "aten/infer/args.h"

#include <array>

/// Result types of composites: distances, norms of matrices, losses over several inputs.
namespace chute::aten::rule {

using ir::ElementType;
using ir::SymInt;
using ir::Type;

namespace {

ElementType common(InferArgs &a) {
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  const auto e = result_type(types);
  a.check(e.has_value(), kDtypeError, "PyTorch does not promote these element types");
  return e.value_or(ElementType::F32);
}

} // namespace

Status distance(InferArgs &a) { return a.done(common(a), DimSpan()); }

Status membership(InferArgs &a) { return a.done(ElementType::Bool, a.tensor(0).shape()); }

Status log_sigmoid_pair(InferArgs &a) {
  a.add(a.tensor(0));
  const std::array<SymInt, 1> nothing{SymInt(0)};
  return a.done(a.tensor(0).element(), nothing); // the buffer is for gradients only
}

Status class_loss_pair(InferArgs &a) {
  const Type x = a.tensor(0), target = a.tensor(1);
  if (a.literal("reduction", 1) == 0)
    a.add(x.element(), target.shape());
  else
    a.add(x.element(), DimSpan());
  return a.done(x.element(), DimSpan());
}

/// One term per row: the last of the dimensions of two inputs that are broadcast together goes.
Status row_loss(InferArgs &a) {
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  const ElementType e = common(a);
  if (a.literal("reduction", 1) != 0)
    return a.done(e, DimSpan());
  Dims shape = a.broadcast_all(types);
  if (a.check(!shape.empty(), kShapeError, "needs a dimension"))
    shape.pop_back();
  return a.done(e, shape);
}

Status vector_dot(InferArgs &a) {
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  Dims shape = a.broadcast_all(types);
  const size_t d = a.dim("dim", static_cast<int>(shape.size()), -1);
  if (d < shape.size())
    shape.erase(shape.begin() + static_cast<i64>(d));
  return a.done(common(a), shape);
}

Status matrix_norm(InferArgs &a) {
  const Type x = a.tensor(0);
  InferArgs::DimFlags over(x.shape().size(), false);
  if (!a.check(x.rank() >= 2, kShapeError, "takes matrices"))
    return a.failed();
  if (a.ints("dim").empty())
    over[over.size() - 2] = over[over.size() - 1] = true;
  for (SymInt d : a.ints("dim"))
    if (const size_t at = a.wrap(d, x.rank()); at < over.size())
      over[at] = true;
  Dims shape;
  for (size_t d = 0; d < over.size(); ++d) {
    if (!over[d])
      shape.push_back(x.shape()[d]);
    else if (a.flag("keepdim"))
      shape.emplace_back(1);
  }
  return a.done(real_element(a.dtype(x.element())), shape);
}

} // namespace chute::aten::rule
