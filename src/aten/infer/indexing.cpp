#include "aten/infer/args.h"

#include <array>

/// Reading and writing at indices held in tensors.
namespace chute::aten::rule {

using ir::ElementType;
using ir::SymInt;
using ir::Type;

namespace {

bool is_mask(Type t) { return t.element() == ElementType::Bool || t.element() == ElementType::U8; }

} // namespace

Status index(InferArgs &a) {
  const Type x = a.tensor(0);
  const auto indices = a.list(1);
  if (!a.check(indices.size() <= x.shape().size(), kShapeError, "more indices than dimensions"))
    return a.failed();
  Dims indexed;
  size_t first = indices.size(), last = 0, count = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i])
      continue;
    if (is_mask(indices[i]))
      return a.data_dependent("the number of elements that a mask selects");
    if (!a.check(ir::is_integer(indices[i].element()), kDtypeError, "indices must be integers"))
      return a.failed();
    a.broadcast_into(indexed, indices[i].shape());
    first = std::min(first, i);
    last = i;
    ++count;
  }
  // Indexed dimensions that stand side by side are replaced in place; separated ones go in front.
  const bool adjacent = count == 0 || last - first + 1 == count;
  Dims shape;
  if (!adjacent)
    shape = indexed;
  for (size_t i = 0; i < x.shape().size(); ++i) {
    if (i < indices.size() && indices[i]) {
      if (adjacent && i == first)
        shape.insert(shape.end(), indexed.begin(), indexed.end());
      continue;
    }
    shape.push_back(x.shape()[i]);
  }
  return a.done(x.element(), shape);
}

Status gather(InferArgs &a) {
  const Type x = a.tensor(0), index = a.tensor(1);
  a.dim("dim", x.rank());
  a.check(x.rank() == index.rank() || x.rank() == 0 || index.rank() == 0 ||
              (index.has_static_shape() && index.num_elements() == 0),
          kShapeError, "index must have the rank of the input");
  return a.done(x.element(), index.shape());
}

Status index_select(InferArgs &a) {
  const Type x = a.tensor(0), index = a.tensor(1);
  const size_t d = a.dim("dim", x.rank());
  if (!a.check(index.rank() <= 1, kShapeError, "index must be a vector") || a.bad())
    return a.failed();
  Dims shape = dims_of(x);
  if (!shape.empty())
    shape[d] = numel(a.ctx(), index.shape());
  return a.done(x.element(), shape);
}

/// Index updates: typed like the tensor that they change.
Status write_dim(InferArgs &a) {
  a.dim("dim", a.tensor(0).rank());
  return a.done(a.tensor(0));
}

Status take(InferArgs &a) { return a.done(a.tensor(0).element(), a.tensor(1).shape()); }

Status take_along(InferArgs &a) {
  const Type x = a.tensor(0), index = a.tensor(1);
  if (!a.has_attr("dim"))
    return a.done(x.element(), std::array{numel(a.ctx(), index.shape())});
  const size_t d = a.dim("dim", x.rank());
  if (!a.check(x.rank() == index.rank() && x.rank() > 0, kShapeError,
               "indices must have the rank of the input") ||
      a.bad())
    return a.failed();
  Dims shape = dims_of(x);
  shape[d] = 1;
  Dims other = dims_of(index);
  const SymInt length = other[d];
  other[d] = 1;
  a.broadcast_into(shape, span_of(other));
  shape[d] = length;
  return a.done(x.element(), shape);
}

Status embedding(InferArgs &a) {
  const Type weight = a.tensor(0);
  if (!a.check(weight.rank() == 2, kShapeError, "the weight must be a matrix"))
    return a.failed();
  Dims shape = dims_of(a.tensor(1));
  shape.push_back(weight.dim(1));
  return a.done(weight.element(), shape);
}

Status embedding_bag(InferArgs &a) {
  const Type weight = a.tensor(0), indices = a.tensor(1), offsets = a.tensor(2);
  if (!a.check(weight.rank() == 2 && offsets.rank() == 1 && indices.rank() == 1, kShapeError,
               "takes a weight matrix and vectors of indices and offsets"))
    return a.failed();
  SymInt bags = offsets.dim(0);
  if (a.flag("include_last_offset"))
    bags = a.sym().sub(bags, 1);
  constexpr i64 kSum = 0, kMax = 2;
  const i64 mode = a.literal("mode");
  // Summing without padding needs no map from index to bag; the other modes return one.
  const bool plain = mode == kSum && a.literal("padding_idx", -1) < 0;
  const ElementType e = offsets.element();
  a.add(weight.element(), std::array{bags, weight.dim(1)});
  a.add(e, std::array{plain ? SymInt(0) : indices.dim(0)});
  // Exported programs record one size per offset, the closing one included, except here.
  const bool counts_bags = a.op().name() == "aten._embedding_bag.default";
  a.add(e, std::array{counts_bags ? bags : offsets.dim(0)});
  if (mode == kMax)
    return a.done(e, std::array{bags, weight.dim(1)});
  return a.done(e, std::array{bags});
}

Status one_hot(InferArgs &a) {
  const SymInt classes = a.integer("num_classes", -1);
  if (classes == SymInt(-1))
    return a.data_dependent("the number of classes");
  Dims shape = dims_of(a.tensor(0));
  shape.push_back(classes);
  return a.done(ElementType::I64, shape);
}

} // namespace chute::aten::rule
