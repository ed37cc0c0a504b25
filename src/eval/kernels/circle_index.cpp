// Circle operators that write or count by index.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/families.h"
#include "eval/kernels/indices.h"
#include "eval/kernels/shared.h"
#include "eval/strided.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace chute::eval {

namespace {

bool is_shape(const Shape &s) {
  i64 n = 1;
  return std::all_of(s.begin(), s.end(), [&](i64 d) {
    return d >= 0 && !__builtin_mul_overflow(n, std::max<i64>(d, 1), &n);
  });
}

Status k_one_hot(KernelContext &ctx) { // (indices, depth, on, off)
  const std::vector<i64> index = values_of(ctx.in(0));
  const Tensor &on = ctx.in(2);
  const Tensor &off = ctx.in(3);
  EVAL_REQUIRE(ctx.in(1).num_elements() == 1 && on.num_elements() == 1 && off.num_elements() == 1 &&
                   on.element() == off.element() &&
                   static_cast<i64>(index.size()) == ctx.in(0).num_elements(),
               "depth or a value is not one number");
  const i64 depth = ctx.in(1).int_at(0);
  const int axis = wrap_dim(ctx.integer("axis"), ctx.in(0).rank() + 1);
  EVAL_REQUIRE(depth >= 0 && axis >= 0, "depth or axis is out of range");
  Shape shape = ctx.in(0).shape();
  shape.insert(shape.begin() + axis, depth);
  EVAL_REQUIRE(is_shape(shape), "the result is too large");
  Tensor out = gather_strided(off, shape, 0, Shape(shape.size(), 0));
  const i64 inner = num_elements(std::span(shape).subspan(static_cast<size_t>(axis) + 1));
  const auto item = static_cast<i64>(on.item_bytes());
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0 || index[i] >= depth)
      continue; // TFLite: a row of `off`
    const auto at = static_cast<i64>(i);
    const i64 to = (at / inner * depth + index[i]) * inner + at % inner;
    std::memcpy(out.mutable_data() + to * item, on.data(), static_cast<size_t>(item));
  }
  ctx.set(0, std::move(out));
  return {};
}

enum class Fold : u8 { Sum, Prod, Max, Min };

/// out[rows[i]] = fold(out[rows[i]], x[i]) over rows of `length` elements, in order; `out` starts
/// from `start`.
Tensor fold_rows(const Tensor &x, const Shape &shape, i64 length, const std::vector<i64> &rows,
                 Fold fold) {
  Tensor out = Tensor::allocate(x.element(), shape);
  with_compute(compute_of(x.element()), [&](auto zero) {
    using C = decltype(zero);
    using Limits = std::numeric_limits<C>;
    // TFLite starts from the extreme number of the type, also where no row comes.
    const C start = fold == Fold::Sum    ? C(0)
                    : fold == Fold::Prod ? C(1)
                    : fold == Fold::Max  ? Limits::lowest()
                                         : Limits::max();
    std::vector<C> to(static_cast<size_t>(out.num_elements()), start);
    std::vector<C> from(static_cast<size_t>(x.num_elements()));
    load_run(x.element(), x.data(), x.num_elements(), from.data());
    for (size_t r = 0; r < rows.size(); ++r)
      for (i64 k = 0; rows[r] >= 0 && k < length; ++k) {
        C &a = to[static_cast<size_t>(rows[r] * length + k)];
        const C b = from[r * static_cast<size_t>(length) + static_cast<size_t>(k)];
        switch (fold) {
        case Fold::Sum: a = static_cast<C>(a + b); break;
        case Fold::Prod: a = static_cast<C>(a * b); break;
        case Fold::Max: a = std::max(a, b); break;
        case Fold::Min: a = std::min(a, b); break;
        }
      }
    store_run(out.element(), to.data(), out.num_elements(), out.mutable_data());
  });
  return out;
}

Status k_scatter_nd(KernelContext &ctx) { // (indices, updates, shape); repeated ones add up
  const Tensor &index = ctx.in(0);
  const Tensor &updates = ctx.in(1);
  const Shape shape = values_of(ctx.in(2));
  const std::vector<i64> v = values_of(index);
  const i64 depth = index.rank() ? index.dim(index.rank() - 1) : 0;
  EVAL_REQUIRE(depth > 0 && depth <= static_cast<i64>(shape.size()) && is_shape(shape) &&
                   computable(updates.element()),
               "indices or shape do not fit");
  const i64 length = num_elements(std::span(shape).subspan(static_cast<size_t>(depth)));
  std::vector<i64> rows;
  for (size_t i = 0; i + static_cast<size_t>(depth) <= v.size(); i += static_cast<size_t>(depth)) {
    i64 row = 0;
    for (i64 d = 0; d < depth; ++d) {
      const i64 at = v[i + static_cast<size_t>(d)];
      EVAL_REQUIRE(at >= 0 && at < shape[static_cast<size_t>(d)], "an index is out of range");
      row = row * shape[static_cast<size_t>(d)] + at;
    }
    rows.push_back(row);
  }
  EVAL_REQUIRE(updates.num_elements() == static_cast<i64>(rows.size()) * length,
               "the updates do not fit the indices");
  ctx.set(0, fold_rows(updates, shape, length, rows, Fold::Sum));
  return {};
}

Status k_sparse_to_dense(KernelContext &ctx) { // (indices, shape, values, default)
  const std::vector<i64> index = values_of(ctx.in(0));
  const Shape shape = values_of(ctx.in(1));
  const Tensor &values = ctx.in(2);
  const Tensor &rest = ctx.in(3);
  EVAL_REQUIRE(is_shape(shape) && rest.num_elements() == 1 && rest.element() == values.element() &&
                   ctx.in(0).rank() <= 2,
               "shape or values do not fit");
  const size_t depth = ctx.in(0).rank() == 2 ? static_cast<size_t>(ctx.in(0).dim(1)) : 1;
  EVAL_REQUIRE(depth == shape.size() && index.size() % std::max<size_t>(depth, 1) == 0,
               "the indices have another number of dims than the shape");
  const size_t count = depth ? index.size() / depth : 0;
  EVAL_REQUIRE(values.num_elements() == 1 || values.num_elements() == static_cast<i64>(count),
               "there is not one value for each index");
  Tensor out = gather_strided(rest, shape, 0, Shape(shape.size(), 0));
  const auto item = static_cast<i64>(out.item_bytes());
  for (size_t i = 0; i < count; ++i) {
    i64 at = 0;
    for (size_t d = 0; d < depth; ++d) {
      const i64 k = index[i * depth + d];
      EVAL_REQUIRE(k >= 0 && k < shape[d], "an index is out of range");
      at = at * shape[d] + k;
    }
    const i64 from = values.num_elements() == 1 ? 0 : static_cast<i64>(i);
    std::memcpy(out.mutable_data() + at * item, values.data() + from * item,
                static_cast<size_t>(item));
  }
  ctx.set(0, std::move(out));
  return {};
}

Status k_segment_sum(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::vector<i64> ids = values_of(ctx.in(1));
  EVAL_REQUIRE(x.rank() > 0 && static_cast<i64>(ids.size()) == x.dim(0) &&
                   computable(x.element()) && std::is_sorted(ids.begin(), ids.end()) &&
                   (ids.empty() || (ids[0] >= 0 && ids.back() < (i64{1} << 31))),
               "the segment ids are not sorted, one per row");
  Shape shape = x.shape();
  shape[0] = ids.empty() ? 0 : ids.back() + 1;
  ctx.set(0, fold_rows(x, shape, num_elements(std::span(x.shape()).subspan(1)), ids, Fold::Sum));
  return {};
}
template <Fold fold>
Status k_unsorted_segment(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::vector<i64> ids = values_of(ctx.in(1));
  EVAL_REQUIRE(ctx.in(2).num_elements() == 1 && ctx.in(1).rank() <= x.rank() &&
                   computable(x.element()),
               "ids or num_segments do not fit");
  const i64 n = ctx.in(2).int_at(0);
  const auto lead = static_cast<size_t>(ctx.in(1).rank());
  EVAL_REQUIRE(
      n >= 0 && n < (i64{1} << 31) &&
          std::equal(ctx.in(1).shape().begin(), ctx.in(1).shape().end(), x.shape().begin()) &&
          std::all_of(
              ids.begin(), ids.end(), [&](i64 v) { return v < n; }),
      "an id is out of range");
  Shape shape{n};
  shape.insert(shape.end(), x.shape().begin() + static_cast<i64>(lead), x.shape().end());
  ctx.set(0, fold_rows(x, shape, num_elements(std::span(x.shape()).subspan(lead)), ids, fold));
  return {};
}

Status k_embedding_lookup(KernelContext &ctx) { // (ids, table)
  std::vector<i64> rows;
  EVAL_REQUIRE(ctx.in(1).rank() > 0 && load_indices(ctx.in(0), ctx.in(1).dim(0), rows),
               "an id is out of range");
  ctx.set(0, take_rows(ctx.in(1), rows));
  return {};
}

Status k_dynamic_update_slice(KernelContext &ctx) { // (x, update, start)
  const Tensor &x = ctx.in(0);
  const Tensor &update = ctx.in(1);
  std::vector<i64> start = values_of(ctx.in(2));
  EVAL_REQUIRE(update.rank() == x.rank() && update.element() == x.element() &&
                   start.size() == x.shape().size(),
               "update or start do not fit");
  const Shape strides = dense_strides(x.shape());
  i64 offset = 0;
  for (size_t d = 0; d < start.size(); ++d) {
    EVAL_REQUIRE(update.shape()[d] <= x.shape()[d], "the update is larger than the operand");
    // A slice that would reach beyond the end is moved back.
    offset += std::clamp<i64>(start[d], 0, x.shape()[d] - update.shape()[d]) * strides[d];
  }
  Tensor out = gather_strided(x, x.shape(), 0, strides);
  if (update.num_elements())
    copy_strided(x.item_bytes(), update.shape(), update.data(), dense_strides(update.shape()),
                 out.mutable_data() + offset * static_cast<i64>(x.item_bytes()), strides);
  ctx.set(0, std::move(out));
  return {};
}

Status k_where(KernelContext &ctx) {
  const Tensor mask = cast(ctx.in(0), ElementType::Bool);
  const std::vector<std::vector<i64>> at = nonzero_positions(mask);
  const i64 n = at.empty() ? 0 : static_cast<i64>(at[0].size());
  Tensor out = Tensor::allocate(ElementType::I64, {n, mask.rank()});
  for (i64 i = 0; i < n; ++i)
    for (size_t d = 0; d < at.size(); ++d)
      out.mutable_as<i64>()[i * mask.rank() + static_cast<i64>(d)] = at[d][static_cast<size_t>(i)];
  ctx.set(0, std::move(out));
  return {};
}

/// Distinct elements in order of appearance, and for each element which of them it is.
Status k_unique(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  EVAL_REQUIRE(x.rank() == 1, "the operand has another rank than 1");
  const size_t item = x.item_bytes();
  std::unordered_map<std::string_view, i64> first; // looked up only
  std::vector<i64> which;
  std::vector<i64> rows;
  for (i64 i = 0; i < x.num_elements(); ++i) {
    const auto *p = reinterpret_cast<const char *>(x.data()) + static_cast<size_t>(i) * item;
    const auto [it, fresh] =
        first.try_emplace(std::string_view(p, item), static_cast<i64>(rows.size()));
    if (fresh)
      rows.push_back(i);
    which.push_back(it->second);
  }
  ctx.set(0, take_rows(x, rows));
  Tensor index = Tensor::allocate(ctx.type(1).element, x.shape());
  store_run(index.element(), which.data(), index.num_elements(), index.mutable_data());
  ctx.set(1, std::move(index));
  return {};
}

Status k_bucketize(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const std::vector<double> bounds = ctx.reals("boundaries");
  EVAL_REQUIRE(std::is_sorted(bounds.begin(), bounds.end()) && computable(x.element()),
               "the boundaries do not ascend");
  std::vector<double> v(static_cast<size_t>(x.num_elements()));
  load_run(x.element(), x.data(), x.num_elements(), v.data());
  for (double &a : v)
    a = static_cast<double>(std::upper_bound(bounds.begin(), bounds.end(), a) - bounds.begin());
  Tensor out = Tensor::allocate(ctx.type().element, x.shape());
  store_run(out.element(), v.data(), out.num_elements(), out.mutable_data());
  ctx.set(0, std::move(out));
  return {};
}

Status k_add_n(KernelContext &ctx) {
  const std::span<const Tensor *const> list = ctx.list(0);
  EVAL_REQUIRE(!list.empty() && computable(list[0]->element()), "nothing to add");
  Tensor sum = *list[0];
  for (const Tensor *t : list.subspan(1)) {
    EVAL_REQUIRE(t->shape() == sum.shape() && t->element() == sum.element(),
                 "the operands differ in shape or type");
    Tensor next = Tensor::allocate(sum.element(), sum.shape());
    const Tensor *in[] = {&sum, t};
    with_compute(compute_of(sum.element()), [&](auto zero) {
      using C = decltype(zero);
      map_elements<C>(in, next, [](const C *const *a, C *o, i64 n) {
        for (i64 i = 0; i < n; ++i)
          o[i] = a[0][i] + a[1][i];
      });
    });
    sum = next;
  }
  ctx.set(0, std::move(sum));
  return {};
}

Status k_broadcast_args(KernelContext &ctx) {
  Shape out;
  EVAL_REQUIRE(broadcast_shape(values_of(ctx.in(0)), values_of(ctx.in(1)), out),
               "the shapes do not broadcast");
  Tensor t = Tensor::allocate(ctx.type().element, {static_cast<i64>(out.size())});
  store_run(t.element(), out.data(), t.num_elements(), t.mutable_data());
  ctx.set(0, std::move(t));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"circle.one_hot", k_one_hot},
    {"circle.scatter_nd", k_scatter_nd},
    {"circle.sparse_to_dense", k_sparse_to_dense},
    {"circle.segment_sum", k_segment_sum},
    {"circle.unsorted_segment_sum", k_unsorted_segment<Fold::Sum>},
    {"circle.unsorted_segment_prod", k_unsorted_segment<Fold::Prod>},
    {"circle.unsorted_segment_max", k_unsorted_segment<Fold::Max>},
    {"circle.unsorted_segment_min", k_unsorted_segment<Fold::Min>},
    {"circle.embedding_lookup", k_embedding_lookup},
    {"circle.dynamic_update_slice", k_dynamic_update_slice},
    {"circle.where", k_where},
    {"circle.unique", k_unique},
    {"circle.bucketize", k_bucketize},
    {"circle.add_n", k_add_n},
    {"circle.broadcast_args", k_broadcast_args},
};

} // namespace

std::span<const KernelEntry> circle_index_kernels() { return kEntries; }

} // namespace chute::eval
