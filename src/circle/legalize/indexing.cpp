// Lookups and scatters. GATHER and GATHER_ND want indices in [0, n): those of aten.index, which may
// be negative, are wrapped (at compile time when constant).
//
// Several index tensors, and aten.gather, become one lookup in a flattened dimension: the position
// is the sum of index times stride.
#include "circle/legalize/emit.h"
#include "circle/legalize/selection.h"
#include "ir/sym_table.h"

#include <algorithm>
#include <numeric>

namespace chute::circle {

namespace {

namespace a = aten::op;

Value *gather(Emit &e, Value *x, Value *indices, i64 axis) {
  return e(op::GATHER, {x, indices}, {{"axis", of(axis)}});
}

Value *embedding(Emit &e) { return gather(e, e.arg(0), e.arg(1), 0); }

Value *index_select(Emit &e) {
  Value *x = e.arg(0), *indices = e.arg(1);
  const i64 rank = x->type().rank();
  if (rank == 0)
    return x;
  i64 dim = e.integer("dim");
  dim += dim < 0 ? rank : 0;
  if (indices->type().rank() == 0)
    indices = e.reshape(indices, Dims{1});
  return gather(e, x, indices, dim);
}

/// Row-major positions of a constant `index` along `dim` of a tensor of shape `in`, each followed
/// by the other coordinates: what GATHER_ND takes.
Value *constant_coordinates(Emit &e, const Dims &index, const Dims &at, i64 dim) {
  const size_t rank = at.size();
  Dims flat;
  Dims counter(rank, 0);
  for (i64 v : index) {
    for (size_t d = 0; d < rank; ++d)
      flat.push_back(static_cast<i64>(d) == dim ? v : counter[d]);
    for (size_t d = rank; d-- > 0;) {
      if (++counter[d] < at[d])
        break;
      counter[d] = 0;
    }
  }
  Dims shape = at;
  shape.push_back(static_cast<i64>(rank));
  return e.constant_ints(ElementType::I32, shape, flat);
}

/// Sum of the positions of `index`'s own coordinates except along `dim`, as a constant of its
/// shape.
Value *base_positions(Emit &e, ElementType element, const Dims &at, const Dims &strides, i64 dim) {
  i64 total = 1;
  for (i64 d : at)
    total *= d;
  Dims flat;
  Dims counter(at.size(), 0);
  for (i64 n = 0; n < total; ++n) {
    i64 position = 0;
    for (size_t d = 0; d < at.size(); ++d)
      position += static_cast<i64>(d) == dim ? 0 : counter[d] * strides[d];
    flat.push_back(position);
    for (size_t d = at.size(); d-- > 0;) {
      if (++counter[d] < at[d])
        break;
      counter[d] = 0;
    }
  }
  return e.constant_ints(element, at, flat);
}

/// v * size; null when the size can not be had.
Value *times(Emit &e, Value *v, SymInt size) {
  if (size == SymInt(1))
    return v;
  Value *by = e.size_scalar(size, v->type().element());
  return by ? e.mul(v, by) : nullptr;
}

/// Row-major strides, symbolic where the shape is.
SymDims sym_strides(Emit &e, std::span<const SymInt> shape) {
  SymDims strides(shape.size());
  SymInt step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = e.context().sym().mul(step, shape[i]);
  }
  return strides;
}

/// 0, 1, … along dimension `d` of a tensor of that rank.
Value *coordinate(Emit &e, SymInt size, i64 d, i64 rank, ElementType element) {
  Value *count = e.size_scalar(size, ElementType::I32);
  if (!count)
    return nullptr;
  Value *v = e.typed(op::RANGE, {e.i32(0), count, e.i32(1)}, {},
                     e.context().tensor_type(ElementType::I32, {size}));
  SymDims shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(d)] = size;
  v = e.reshape(v, shape);
  return v ? e.cast(v, element) : nullptr;
}

/// The lookup below with positions computed at run time.
Value *gather_dynamic(Emit &e, Value *x, Value *index, i64 dim) {
  const i64 rank = x->type().rank();
  const SymDims strides = sym_strides(e, x->type().shape());
  Value *position = times(e, index, strides[static_cast<size_t>(dim)]);
  for (i64 d = 0; d < rank && position; ++d) {
    const SymInt size = index->type().dim(static_cast<int>(d));
    if (d == dim || size == SymInt(1))
      continue;
    Value *at = coordinate(e, size, d, rank, index->type().element());
    at = at ? times(e, at, strides[static_cast<size_t>(d)]) : nullptr;
    position = at ? e.add(position, at) : nullptr;
  }
  const SymInt total = e.context().sym().product(x->type().shape());
  Value *flat = position ? e.reshape(x, SymDims{total}) : nullptr;
  return flat ? gather(e, flat, position, 0)
              : e.unsupported("over a shape that no input tells", "export with static shapes");
}

/// out[i][j][k] = x[index[i][j][k]][j][k] for dim 0, and so on.
Value *gather_elements(Emit &e) {
  Value *x = e.arg(0), *index = e.arg(1);
  const i64 rank = x->type().rank();
  if (rank && (!x->type().has_static_shape() || !index->type().has_static_shape()))
    return gather_dynamic(e, x, index, e.integer("dim") + (e.integer("dim") < 0 ? rank : 0));
  if (rank == 0)
    return x;
  i64 dim = e.integer("dim");
  dim += dim < 0 ? rank : 0;
  const Dims at = static_dims(index), in = static_dims(x);
  if (const std::optional<Dims> known = int_constant(index))
    return e(op::GATHER_ND, {x, constant_coordinates(e, *known, at, dim)});
  const Dims strides = strides_of(in);
  const i64 stride = strides[static_cast<size_t>(dim)];
  Value *position = stride == 1 ? index : e.mul(index, e.like(index, static_cast<double>(stride)));
  if (rank > 1)
    position = e.add(position, base_positions(e, index->type().element(), at, strides, dim));
  return gather(e, e.reshape(x, Dims{x->type().num_elements()}), position, 0);
}

/// Negative indices count from the end.
Value *wrapped(Emit &e, Value *index, SymInt extent) {
  const ElementType element = index->type().element();
  if (extent.is_symbolic()) {
    if (const std::optional<Dims> known = int_constant(index);
        known && std::ranges::none_of(*known, [](i64 v) { return v < 0; }))
      return index;
    Value *size = e.size_scalar(extent, element);
    return size ? e.select(e(op::LESS, {index, e.like(index, 0)}), e.add(index, size), index)
                : nullptr;
  }
  const i64 n = extent.value();
  if (std::optional<Dims> known = int_constant(index)) {
    if (std::ranges::none_of(*known, [](i64 v) { return v < 0; }))
      return index;
    for (i64 &v : *known)
      v += v < 0 ? n : 0;
    return e.constant_ints(element, static_dims(index), *known);
  }
  // Not FLOOR_MOD, which few runtimes have, and none for i64.
  Value *moved = e.add(index, e.like(index, static_cast<double>(n)));
  return e.select(e(op::LESS, {index, e.like(index, 0)}), moved, index);
}

struct Indices {
  std::vector<Value *> values; ///< of the indexed dimensions, in order
  std::vector<bool> wrap;      ///< which of them may be negative
  Dims dims;
};

/// Which rows a constant mask chooses.
Value *constant_positions(Emit &e, const Dims &mask) {
  Dims at;
  for (size_t i = 0; i < mask.size(); ++i)
    if (mask[i])
      at.push_back(static_cast<i64>(i));
  return e.constant_ints(ElementType::I64, Dims{static_cast<i64>(at.size())}, at);
}

bool is_mask(const Value *v) {
  return v->type().element() == ElementType::Bool || v->type().element() == ElementType::U8;
}

/// The non-null entries of aten.index's list. A mask stands for the dimensions that it covers (none
/// for one of rank 0, which adds a dimension): those become one dimension of `x`, indexed by the
/// positions that it chooses, of which there are `chosen`. Empty after `unsupported`.
Indices read_indices(Emit &e, Value *&x, u32 first, u32 count, SymInt chosen) {
  Indices out;
  SymDims merged;
  int d = 0;
  for (u32 i = 0; i < count; ++i) {
    Value *v = e.op.operand(first + i);
    if (!v || !is_mask(v)) {
      if (v) {
        out.values.push_back(v);
        out.wrap.push_back(true);
        out.dims.push_back(i);
      }
      merged.push_back(x->type().dim(d++));
      continue;
    }
    SymInt covered = 1;
    for (int k = 0; k < v->type().rank(); ++k)
      covered = e.context().sym().mul(covered, x->type().dim(d++));
    merged.push_back(covered);
    const std::optional<Dims> known = int_constant(v);
    Value *at = known ? constant_positions(e, *known) : chosen_positions(e, v, chosen);
    if (!at)
      return {};
    out.values.push_back(at);
    out.wrap.push_back(false);
    out.dims.push_back(i);
  }
  for (; d < x->type().rank(); ++d)
    merged.push_back(x->type().dim(d));
  if (static_cast<int>(merged.size()) != x->type().rank())
    x = e.reshape(x, merged);
  return x ? out : Indices{};
}

/// The last dimension of the part of aten.index's result that the indices make: how many elements
/// each mask among them chooses.
SymInt chosen_count(Emit &e, u32 first, u32 count) {
  size_t rank = 0, begin = 0, end = 0;
  bool apart = false, any = false;
  for (u32 i = 0; i < count; ++i) {
    const Value *v = e.op.operand(first + i);
    if (!v)
      continue;
    rank = std::max<size_t>(rank, is_mask(v) ? 1 : static_cast<size_t>(v->type().rank()));
    apart |= any && i != end;
    begin = any ? begin : i;
    end = i + 1;
    any = true;
  }
  const size_t at = (apart ? 0 : begin) + rank;
  const std::span<const SymInt> shape = e.type().shape();
  return at && at <= shape.size() ? shape[at - 1] : SymInt(1);
}

Value *index_tensor(Emit &e) {
  Value *x = e.arg(0);
  const ir::Op::Segment list = e.op.segment(1);
  Indices ix = read_indices(e, x, list.first, list.count, chosen_count(e, list.first, list.count));
  if (ix.values.empty())
    return nullptr;
  const auto size = [&](i64 d) { return x->type().dim(static_cast<int>(d)); };
  const auto unknown = [&] {
    return e.unsupported("along a dimension whose size no input tells",
                         "export with static shapes");
  };
  const auto position_in = [&](size_t k, Value *v) {
    return ix.wrap[k] ? wrapped(e, v, size(ix.dims[k])) : v;
  };
  if (ix.values.size() == 1) {
    Value *at = position_in(0, ix.values[0]);
    return at ? gather(e, x, at, ix.dims[0]) : unknown();
  }
  // Indexed dimensions that are not neighbours go first, as in torch.
  const i64 rank = x->type().rank();
  const bool neighbours = ix.dims.back() - ix.dims.front() + 1 == static_cast<i64>(ix.dims.size());
  if (!neighbours) {
    Dims perm = ix.dims;
    for (i64 d = 0; d < rank; ++d)
      if (!std::ranges::binary_search(ix.dims, d))
        perm.push_back(d);
    x = e.transpose(x, perm);
    std::iota(ix.dims.begin(), ix.dims.end(), 0);
  }
  const i64 axis = ix.dims.front();
  SymInt stride = 1;
  Value *position = nullptr;
  for (size_t k = ix.values.size(); k-- > 0;) {
    Value *v = position_in(k, e.cast(ix.values[k], ElementType::I64));
    v = v ? times(e, v, stride) : nullptr;
    if (!v)
      return unknown();
    position = position ? e.add(position, v) : v;
    stride = e.context().sym().mul(stride, size(ix.dims[k]));
  }
  SymDims shape;
  for (i64 d = 0; d < rank; ++d) {
    if (d == axis)
      shape.push_back(stride);
    if (d < axis || d > ix.dims.back())
      shape.push_back(size(d));
  }
  x = e.reshape(x, shape);
  return x ? gather(e, x, position, axis) : nullptr;
}

} // namespace

void add_indexing_rules(pass::PatternSet &set) {
  set.add("embedding", {a::embedding}, lower<embedding>);
  set.add("index-select", {a::index_select}, lower<index_select>);
  set.add("gather", {a::gather}, lower<gather_elements>);
  set.add("index", {a::index_Tensor}, lower<index_tensor>);
}

} // namespace chute::circle
