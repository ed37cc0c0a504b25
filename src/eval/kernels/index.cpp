// Reads by index: index_select, embedding, gather, advanced indexing, masks, searches.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/advanced_index.h"
#include "eval/kernels/families.h"
#include "eval/kernels/indices.h"
#include "eval/strided.h"
#include "support/parallel.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace chute::eval {

bool load_indices(const Tensor &index, i64 extent, std::vector<i64> &out) {
  if (!ir::is_integer(index.element()))
    return false;
  out.resize(static_cast<size_t>(index.num_elements()));
  load_run(index.element(), index.data(), index.num_elements(), out.data());
  for (i64 &i : out) {
    if (i < 0)
      i += extent;
    if (i < 0 || i >= extent)
      return false;
  }
  return true;
}

Tensor take_rows(const Tensor &table, const std::vector<i64> &rows) {
  Shape shape = table.shape();
  shape[0] = static_cast<i64>(rows.size());
  Tensor out = Tensor::allocate(table.element(), shape);
  const i64 row = num_elements(std::span(shape).subspan(1)) * static_cast<i64>(out.item_bytes());
  parallel_for(shape[0], 65536 / std::max<i64>(row, 1) + 1, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i)
      std::memcpy(out.mutable_data() + i * row, table.data() + rows[static_cast<size_t>(i)] * row,
                  static_cast<size_t>(row));
  });
  return out;
}

std::vector<std::vector<i64>> nonzero_positions(const Tensor &mask) {
  std::vector<std::vector<i64>> out(static_cast<size_t>(mask.rank()));
  std::vector<i64> flat;
  if (computable(mask.element())) {
    std::vector<double> v(static_cast<size_t>(mask.num_elements()));
    load_run(mask.element(), mask.data(), mask.num_elements(), v.data());
    for (size_t i = 0; i < v.size(); ++i)
      if (v[i] != 0)
        flat.push_back(static_cast<i64>(i));
  }
  const Shape strides = dense_strides(mask.shape());
  for (size_t d = 0; d < out.size(); ++d)
    for (i64 i : flat)
      out[d].push_back(i / strides[d] % mask.shape()[d]);
  return out;
}

Status prepare_index(KernelContext &ctx, const Tensor &x, std::span<const Tensor *const> given,
                     AdvancedIndex &out) {
  std::vector<std::vector<i64>> values;
  std::vector<Shape> shapes;
  std::vector<i64> indexed;
  int dim = 0;
  for (const Tensor *index : given) {
    if (!index) {
      ++dim;
      continue;
    }
    if (index->element() == ElementType::Bool || index->element() == ElementType::U8) {
      EVAL_REQUIRE(dim + index->rank() <= x.rank(), "more indices than dims");
      for (int d = 0; d < index->rank(); ++d)
        EVAL_REQUIRE(index->dim(d) == x.dim(dim + d),
                     "a mask does not fit the dims it selects from");
      EVAL_REQUIRE(index->rank() > 0, "a rank-0 mask is not evaluated");
      for (std::vector<i64> &positions : nonzero_positions(*index)) {
        shapes.push_back({static_cast<i64>(positions.size())});
        values.push_back(std::move(positions));
        indexed.push_back(dim++);
      }
      continue;
    }
    EVAL_REQUIRE(dim < x.rank(), "more indices than dims");
    std::vector<i64> v;
    EVAL_REQUIRE(load_indices(*index, x.dim(dim), v), "an index is out of range");
    values.push_back(std::move(v));
    shapes.push_back(index->shape());
    indexed.push_back(dim++);
  }
  EVAL_REQUIRE(!indexed.empty() && dim <= x.rank(), "there is no index");
  for (const Shape &s : shapes) {
    Shape both;
    EVAL_REQUIRE(broadcast_shape(out.batch, s, both), "the indices do not broadcast");
    out.batch = both;
  }
  // Dims that are indexed first, the others after them.
  out.order = indexed;
  for (i64 d = 0; d < x.rank(); ++d)
    if (std::find(indexed.begin(), indexed.end(), d) == indexed.end()) {
      out.order.push_back(d);
      out.rest.push_back(x.dim(static_cast<int>(d)));
    }
  const i64 n = num_elements(out.batch);
  out.rows.assign(static_cast<size_t>(n), 0);
  out.table_rows = 1;
  for (size_t k = 0; k < indexed.size(); ++k) {
    const i64 extent = x.dim(static_cast<int>(indexed[k]));
    const Tensor own = Tensor::of(ElementType::I64, shapes[k], std::span<const i64>(values[k]));
    Tensor full = Tensor::allocate(ElementType::I64, out.batch);
    const Tensor *in[] = {&own};
    map_elements<i64>(in, full,
                      [](const i64 *const *a, i64 *o, i64 count) { std::copy_n(a[0], count, o); });
    for (i64 i = 0; i < n; ++i)
      out.rows[static_cast<size_t>(i)] =
          out.rows[static_cast<size_t>(i)] * extent + full.as<i64>()[i];
    out.table_rows *= extent;
  }
  // Neighbouring indices leave their result where they were, scattered ones put it first.
  const bool adjacent = indexed.back() - indexed.front() + 1 == static_cast<i64>(indexed.size());
  out.leading = adjacent ? static_cast<size_t>(indexed.front()) : 0;
  return {};
}

Shape AdvancedIndex::result_shape() const {
  Shape shape(rest.begin(), rest.begin() + static_cast<i64>(leading));
  shape.insert(shape.end(), batch.begin(), batch.end());
  shape.insert(shape.end(), rest.begin() + static_cast<i64>(leading), rest.end());
  return shape;
}

std::vector<i64> AdvancedIndex::result_order() const {
  // From [batch…, rest…] to [leading rest…, batch…, trailing rest…].
  std::vector<i64> dims;
  const auto b = static_cast<i64>(batch.size());
  for (size_t i = 0; i < leading; ++i)
    dims.push_back(b + static_cast<i64>(i));
  for (i64 i = 0; i < b; ++i)
    dims.push_back(i);
  for (size_t i = leading; i < rest.size(); ++i)
    dims.push_back(b + static_cast<i64>(i));
  return dims;
}

namespace {

Shape with_front(const Shape &front, const Shape &back) {
  Shape s = front;
  s.insert(s.end(), back.begin(), back.end());
  return s;
}

Status k_index(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  AdvancedIndex a;
  if (Status s = prepare_index(ctx, x, ctx.list(1), a); !s)
    return s;
  const Tensor table = permute(x, a.order).reshaped(with_front({a.table_rows}, a.rest));
  const Tensor taken = take_rows(table, a.rows).reshaped(with_front(a.batch, a.rest));
  ctx.set(0, permute(taken, a.result_order()));
  return {};
}

Status k_index_select(KernelContext &ctx) {
  Tensor x = ctx.in(0);
  const Tensor &index = ctx.in(1);
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  EVAL_REQUIRE(dim >= 0 && index.rank() <= 1, "dim or index out of range");
  const bool number = x.rank() == 0;
  if (number)
    x = x.reshaped({1});
  std::vector<i64> rows;
  EVAL_REQUIRE(load_indices(index, x.dim(dim), rows), "an index is out of range");
  std::vector<i64> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + dim, order.begin() + dim + 1);
  const Tensor taken = take_rows(permute(x, order), rows);
  std::vector<i64> back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<i64>(i);
  ctx.set(0, number ? taken.reshaped({}) : permute(taken, back));
  return {};
}
Status k_embedding(KernelContext &ctx) {
  const Tensor &weight = ctx.in(0);
  const Tensor &index = ctx.in(1);
  std::vector<i64> rows;
  EVAL_REQUIRE(weight.rank() == 2 && load_indices(index, weight.dim(0), rows),
               "an index is out of range");
  ctx.set(0, take_rows(weight, rows).reshaped(with_front(index.shape(), {weight.dim(1)})));
  return {};
}

/// out[i] = x[i with dim d replaced by index[i]].
Status gather_elements(KernelContext &ctx, Tensor x, Tensor index, i64 dim_attr) {
  const Shape result = index.shape();
  const int dim = wrap_dim(dim_attr, x.rank());
  EVAL_REQUIRE(dim >= 0, "dim out of range");
  if (x.rank() == 0)
    x = x.reshaped({1});
  if (index.rank() == 0)
    index = index.reshaped({1});
  EVAL_REQUIRE(x.rank() == index.rank() || index.num_elements() == 0,
               "index and operand differ in rank");
  if (index.num_elements() == 0) {
    ctx.set(0, Tensor::allocate(x.element(), result));
    return {};
  }
  for (int d = 0; d < x.rank(); ++d)
    EVAL_REQUIRE(d == dim || index.dim(d) <= x.dim(d), "the index is larger than the operand");
  std::vector<i64> at;
  EVAL_REQUIRE(load_indices(index, x.dim(dim), at), "an index is out of range");
  Tensor out = Tensor::allocate(x.element(), index.shape());
  const Shape from = dense_strides(x.shape());
  const auto rank = static_cast<size_t>(x.rank());
  const size_t item = x.item_bytes();
  parallel_for(index.num_elements(), 8192, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      i64 rest = i;
      i64 offset = 0;
      for (size_t d = rank; d-- > 0;) {
        const i64 n = index.shape()[d];
        offset += (static_cast<int>(d) == dim ? at[static_cast<size_t>(i)] : rest % n) * from[d];
        rest /= n;
      }
      std::memcpy(out.mutable_data() + static_cast<size_t>(i) * item,
                  x.data() + static_cast<size_t>(offset) * item, item);
    }
  });
  ctx.set(0, out.reshaped(result));
  return {};
}
Status k_gather(KernelContext &ctx) {
  return gather_elements(ctx, ctx.in(0), ctx.in(1), ctx.integer("dim"));
}
Status k_take(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  std::vector<i64> rows;
  EVAL_REQUIRE(load_indices(ctx.in(1), x.num_elements(), rows), "an index is out of range");
  ctx.set(0, take_rows(x.reshaped({x.num_elements()}), rows).reshaped(ctx.in(1).shape()));
  return {};
}
Tensor expand_to(const Tensor &t, const Shape &shape) {
  const Shape dense = dense_strides(t.shape());
  Shape strides(shape.size(), 0);
  for (size_t i = 0; i < dense.size(); ++i)
    if (t.shape()[i] != 1)
      strides[i + shape.size() - dense.size()] = dense[i];
  return gather_strided(t, shape, 0, strides);
}
Status k_take_along_dim(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Tensor &index = ctx.in(1);
  if (ctx.is_none("dim"))
    return gather_elements(ctx, x.reshaped({x.num_elements()}),
                           index.reshaped({index.num_elements()}), 0);
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  EVAL_REQUIRE(dim >= 0 && x.rank() == index.rank() && x.rank() > 0, "dim or ranks do not fit");
  // All dims but the gathered one broadcast.
  Shape sx = x.shape();
  Shape si = index.shape();
  sx[static_cast<size_t>(dim)] = si[static_cast<size_t>(dim)] = 1;
  Shape both;
  EVAL_REQUIRE(broadcast_shape(sx, si, both), "index and operand do not broadcast");
  sx = si = both;
  sx[static_cast<size_t>(dim)] = x.dim(dim);
  si[static_cast<size_t>(dim)] = index.dim(dim);
  return gather_elements(ctx, expand_to(x, sx), expand_to(index, si), dim);
}

constexpr i64 kMostBins = i64{1} << 28; ///< a stray number must not ask for all memory

Status k_masked_select(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Tensor &mask = ctx.in(1);
  Shape shape;
  EVAL_REQUIRE(broadcast_shape(x.shape(), mask.shape(), shape), "the mask does not broadcast");
  const Tensor full = expand_to(x, shape);
  std::vector<i64> rows;
  const Tensor flags = expand_to(mask, shape);
  for (i64 i = 0; i < flags.num_elements(); ++i)
    if (flags.int_at(i))
      rows.push_back(i);
  ctx.set(0, take_rows(full.reshaped({full.num_elements()}), rows));
  return {};
}
Status k_nonzero(KernelContext &ctx) {
  const auto positions = nonzero_positions(ctx.in(0));
  const i64 rank = ctx.in(0).rank();
  i64 count = 0;
  if (rank)
    count = static_cast<i64>(positions[0].size());
  else
    count = computable(ctx.in(0).element()) && ctx.in(0).at(0) != 0;
  Tensor out = Tensor::allocate(ElementType::I64, {count, rank});
  for (i64 i = 0; i < count; ++i)
    for (i64 d = 0; d < rank; ++d)
      out.mutable_as<i64>()[i * rank + d] =
          positions[static_cast<size_t>(d)][static_cast<size_t>(i)];
  ctx.set(0, std::move(out));
  return {};
}
Status k_bincount(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(ir::is_integer(x.element()) && x.rank() == 1,
               "bins are counted in a vector of integers");
  std::vector<i64> v(static_cast<size_t>(x.num_elements()));
  load_run(x.element(), x.data(), x.num_elements(), v.data());
  i64 bins = std::max<i64>(ctx.integer("minlength"), 0);
  for (i64 at : v) {
    EVAL_REQUIRE(at >= 0 && at < kMostBins, "a number of a bin is out of range");
    bins = std::max(bins, at + 1);
  }
  EVAL_REQUIRE(bins <= kMostBins, "too many bins");
  Tensor sums = Tensor::zeros(ElementType::F64, {bins});
  Tensor weights;
  if (ctx.has(1)) {
    EVAL_REQUIRE(computable(ctx.in(1).element()) && ctx.in(1).num_elements() == x.num_elements(),
                 "a weight for each number");
    weights = cast(ctx.in(1), ElementType::F64);
  }
  for (size_t i = 0; i < v.size(); ++i)
    sums.mutable_as<double>()[v[i]] += ctx.has(1) ? weights.as<double>()[i] : 1.0;
  ctx.set(0, cast(sums, ctx.type().element));
  return {};
}
Status k_one_hot(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  i64 classes = ctx.integer("num_classes");
  std::vector<i64> v(static_cast<size_t>(x.num_elements()));
  EVAL_REQUIRE(ir::is_integer(x.element()), "classes are integers");
  load_run(x.element(), x.data(), x.num_elements(), v.data());
  if (classes < 0) {
    EVAL_REQUIRE(!v.empty(), "the number of classes of nothing is not known");
    classes = *std::max_element(v.begin(), v.end()) + 1;
  }
  Shape shape = x.shape();
  shape.push_back(classes);
  Tensor out = Tensor::zeros(ElementType::I64, shape);
  for (size_t i = 0; i < v.size(); ++i) {
    EVAL_REQUIRE(v[i] >= 0 && v[i] < classes, "a class is out of range");
    out.mutable_as<i64>()[static_cast<i64>(i) * classes + v[i]] = 1;
  }
  ctx.set(0, std::move(out));
  return {};
}

/// First position in each sorted row that keeps the order; `right`: after equals.
Status search(KernelContext &ctx, const Tensor &sorted, const Tensor &values, bool right) {
  EVAL_REQUIRE(computable(sorted.element()) && computable(values.element()) && sorted.rank() > 0 &&
                   (sorted.rank() == 1 || sorted.rank() == values.rank()),
               "boundaries and values do not fit");
  const i64 n = sorted.dim(sorted.rank() - 1);
  const i64 per_row = sorted.rank() == 1 || values.rank() == 0
                          ? std::max<i64>(values.num_elements(), 1)
                          : std::max<i64>(values.dim(values.rank() - 1), 1);
  EVAL_REQUIRE(sorted.rank() == 1 ||
                   sorted.num_elements() / std::max<i64>(n, 1) == values.num_elements() / per_row,
               "boundaries and values do not fit");
  const Tensor s = cast(sorted, ElementType::F64);
  const Tensor v = cast(values, ElementType::F64);
  Tensor out = Tensor::allocate(ctx.type().element, values.shape());
  for (i64 i = 0; i < v.num_elements(); ++i) {
    const double *row = s.as<double>() + (sorted.rank() == 1 ? 0 : i / per_row * n);
    const double x = v.as<double>()[i];
    const i64 at =
        (right ? std::upper_bound(row, row + n, x) : std::lower_bound(row, row + n, x)) - row;
    store_run(out.element(), &at, 1,
              out.mutable_data() + static_cast<size_t>(i) * out.item_bytes());
  }
  ctx.set(0, std::move(out));
  return {};
}
Status k_bucketize(KernelContext &ctx) {
  return search(ctx, ctx.in(1), ctx.in(0), ctx.boolean("right"));
}
Status k_searchsorted(KernelContext &ctx) {
  EVAL_REQUIRE(!ctx.has(2), "searchsorted with a sorter is not evaluated");
  const std::string_view side = ctx.text("side");
  return search(ctx, ctx.in(0), ctx.in(1), side.empty() ? ctx.boolean("right") : side == "right");
}

constexpr KernelEntry kEntries[] = {
    {"aten.index.Tensor", k_index},
    {"aten.index_select.default", k_index_select},
    {"aten.embedding.default", k_embedding},
    {"aten.gather.default", k_gather},
    {"aten.take.default", k_take},
    {"aten.take_along_dim.default", k_take_along_dim},
    {"aten.masked_select.default", k_masked_select},
    {"aten.nonzero.default", k_nonzero},
    {"aten.bincount.default", k_bincount},
    {"aten.one_hot.default", k_one_hot},
    {"aten.bucketize.Tensor", k_bucketize},
    {"aten.searchsorted.Tensor", k_searchsorted},
};

} // namespace

std::span<const KernelEntry> index_kernels() { return kEntries; }

} // namespace chute::eval
