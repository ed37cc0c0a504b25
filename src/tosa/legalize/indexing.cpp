// Lookups by GATHER: values [N, K, C] at indices [N, W] give [N, W, C].
//
// The dimensions before the indexed one are N, those behind it C, so that no lookup needs a
// transposition. Several index tensors become one lookup in a flattened dimension: the position is
// the sum of index times stride. Negative indices are wrapped (at compile time when constant).
#include "tosa/legalize/indexing.h"

#include <algorithm>
#include <numeric>

namespace chute::tosa {

namespace a = aten::op;

Value *wrapped_indices(Emit &e, Value *index, i64 n) {
  index = e.cast(index, ElementType::I32);
  std::optional<Dims> known = int_constant(index);
  if (!known)
    return e.add(index, e.mul(e.sign_bit(index), static_cast<double>(n)));
  for (i64 &v : *known)
    v += v < 0 ? n : 0;
  return e.i32s(static_dims(index), *known);
}

namespace {

/// Entries `index` (any shape) of dimension `axis`, which they replace.
Value *take(Emit &e, Value *x, Value *index, i64 axis) {
  const Dims in = static_dims(x), at = static_dims(index);
  const auto a = static_cast<size_t>(axis);
  const i64 before = product(std::span(in).first(a)), n = product(at);
  const i64 after = product(std::span(in).subspan(a + 1));
  Value *list = e.reshape(e.cast(index, ElementType::I32), {1, n});
  Value *y = e.gather(e.reshape(x, {before, in[a], after}), e.broadcast(list, {before, n}));
  Dims shape(in.begin(), in.begin() + axis);
  shape.insert(shape.end(), at.begin(), at.end());
  shape.insert(shape.end(), in.begin() + axis + 1, in.end());
  return e.reshape(y, shape);
}

Value *embedding(Emit &e) { return take(e, e.arg(0), e.arg(1), 0); }

Value *index_select(Emit &e) {
  Value *x = e.arg(0);
  if (x->type().rank() == 0)
    return x;
  Value *index = e.reshape(e.arg(1), {e.arg(1)->type().num_elements()});
  return take(e, x, index, wrapped_dim(e.integer("dim"), x->type().rank()));
}

/// out[i][j][k] = x[index[i][j][k]][j][k] for dim 0, and so on.
Value *gather_elements(Emit &e) {
  Value *x = e.arg(0), *index = e.cast(e.arg(1), ElementType::I32);
  const i64 rank = x->type().rank();
  if (rank == 0)
    return x;
  const i64 dim = wrapped_dim(e.integer("dim"), rank);
  const Dims in = static_dims(x), at = static_dims(index);
  bool rows = dim == rank - 1; // the index covers every row of the last dimension
  for (size_t d = 0; d + 1 < in.size(); ++d)
    rows = rows && in[d] == at[d];
  if (rows) {
    const i64 n = product(in) / std::max<i64>(in.back(), 1);
    return e.reshape(e.gather(e.reshape(x, {n, in.back(), 1}), e.reshape(index, {n, at.back()})),
                     at);
  }
  Value *position = flat_positions(e, index, in, dim);
  Value *y = e.gather(e.reshape(x, {1, product(in), 1}), e.reshape(position, {1, product(at)}));
  return e.reshape(y, at);
}

struct Indices {
  std::vector<Value *> values; ///< of the indexed dimensions, in order
  Dims dims;
};

/// The non-null entries of aten.index's list; empty after `unsupported`.
Indices read_indices(Emit &e, u32 first, u32 count) {
  Indices out;
  for (u32 i = 0; i < count; ++i) {
    Value *v = e.op.operand(first + i);
    if (!v)
      continue;
    if (is_bool(v) || v->type().element() == ElementType::U8) {
      e.unsupported("by a mask: the size of the result depends on the data",
                    "use torch.where with a value of the same shape");
      return {};
    }
    out.values.push_back(v);
    out.dims.push_back(i);
  }
  return out;
}

Value *index_tensor(Emit &e) {
  Value *x = e.arg(0);
  const ir::Op::Segment list = e.op.segment(1);
  Indices ix = read_indices(e, list.first, list.count);
  if (ix.values.empty())
    return nullptr;
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
  const Dims in = static_dims(x);
  i64 stride = 1;
  Value *position = nullptr;
  for (size_t k = ix.values.size(); k-- > 0;) {
    const i64 n = in[static_cast<size_t>(ix.dims[k])];
    Value *v = e.mul(wrapped_indices(e, ix.values[k], n), static_cast<double>(stride));
    position = position ? e.add(position, v) : v;
    stride *= n;
  }
  Dims shape(in.begin(), in.begin() + ix.dims.front());
  shape.push_back(stride);
  shape.insert(shape.end(), in.begin() + ix.dims.back() + 1, in.end());
  return e.reshape(take(e, e.reshape(x, shape), position, ix.dims.front()), static_dims(e.type()));
}

} // namespace

Value *flat_positions(Emit &e, Value *index, const Dims &in, i64 dim) {
  const Dims at = static_dims(index), strides = strides_of(in);
  Dims base, counter(at.size(), 0);
  for (i64 n = product(at); n > 0; --n) {
    i64 p = 0;
    for (size_t d = 0; d < at.size(); ++d)
      p += static_cast<i64>(d) == dim ? 0 : counter[d] * strides[d];
    base.push_back(p);
    for (size_t d = at.size(); d-- > 0;) {
      if (++counter[d] < at[d])
        break;
      counter[d] = 0;
    }
  }
  const i64 stride = strides[static_cast<size_t>(dim)];
  if (const std::optional<Dims> known = int_constant(index)) {
    for (size_t i = 0; i < base.size(); ++i)
      base[i] += (*known)[i] * stride;
    return e.i32s(at, base);
  }
  Value *scaled = e.mul(index, static_cast<double>(stride));
  return at.size() > 1 ? e.add(scaled, e.i32s(at, base)) : scaled;
}

void add_indexing_rules(pass::PatternSet &set) {
  set.add("embedding", {a::embedding}, lower<embedding>);
  set.add("index-select", {a::index_select}, lower<index_select>);
  set.add("gather", {a::gather}, lower<gather_elements>);
  set.add("index", {a::index_Tensor}, lower<index_tensor>);
}

} // namespace chute::tosa
