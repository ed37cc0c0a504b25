// Writes by index: scatter in all forms, index_put, index_add, index_copy, index_fill,
// masked_scatter. All run in order of the index, so repeated positions have a defined result.

#include "eval/broadcast.h"
#include "eval/convert.h"
#include "eval/kernels/advanced_index.h"
#include "eval/kernels/elementwise.h"
#include "eval/kernels/families.h"
#include "eval/kernels/indices.h"
#include "eval/strided.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace chute::eval {

namespace {

enum class Combine : u8 { Assign, Add, Multiply, Mean, Max, Min };

bool parse_combine(std::string_view name, Combine &out) {
  if (name == "sum" || name == "add")
    out = Combine::Add;
  else if (name == "prod" || name == "multiply")
    out = Combine::Multiply;
  else if (name == "mean")
    out = Combine::Mean;
  else if (name == "amax")
    out = Combine::Max;
  else if (name == "amin")
    out = Combine::Min;
  else
    return false;
  return true;
}

template <class C>
C combine(Combine op, C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    const u64 ua = static_cast<u64>(a);
    const u64 ub = static_cast<u64>(b);
    if (op == Combine::Add || op == Combine::Mean)
      return static_cast<C>(ua + ub);
    if (op == Combine::Multiply)
      return static_cast<C>(ua * ub);
  } else {
    if (op == Combine::Add || op == Combine::Mean)
      return a + b;
    if (op == Combine::Multiply)
      return a * b;
  }
  if (op == Combine::Max)
    return a != a || a > b ? a : b;
  if (op == Combine::Min)
    return a != a || a < b ? a : b;
  return b;
}

/// What a reduction starts from when the operand itself does not take part.
template <class C>
C neutral(Combine op) {
  using Limits = std::numeric_limits<C>;
  switch (op) {
  case Combine::Multiply: return 1;
  case Combine::Max: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  case Combine::Min: return Limits::has_infinity ? Limits::infinity() : Limits::max();
  default: return 0;
  }
}

/// target[offset[i]] = combine(target[offset[i]], source[i]) in order, in the compute type.
Tensor apply(const Tensor &x, const std::vector<i64> &offsets, const Tensor &source, Combine op,
             bool include_self) {
  const ElementType element = x.element();
  const Compute c = compute_of(element);
  Tensor out = Tensor::allocate(element, x.shape());
  with_compute(c, [&](auto zero) {
    using C = decltype(zero);
    std::vector<C> target(static_cast<size_t>(x.num_elements()));
    std::vector<C> values(static_cast<size_t>(source.num_elements()));
    load_run(element, x.data(), x.num_elements(), target.data());
    load_run(source.element(), source.data(), source.num_elements(), values.data());
    std::vector<i64> counts;
    if (op == Combine::Mean)
      counts.assign(target.size(), include_self);
    if (!include_self && op != Combine::Assign)
      for (i64 at : offsets)
        target[static_cast<size_t>(at)] = neutral<C>(op);
    for (size_t i = 0; i < offsets.size(); ++i) {
      const auto at = static_cast<size_t>(offsets[i]);
      target[at] = combine(op, target[at], values[values.size() == 1 ? 0 : i]);
      if (op == Combine::Mean)
        ++counts[at];
    }
    if (op == Combine::Mean)
      for (size_t i = 0; i < target.size(); ++i) {
        const C n = static_cast<C>(std::max<i64>(counts[i], 1));
        if constexpr (std::is_same_v<C, i64>) {
          const C q = target[i] / n;
          target[i] = target[i] % n != 0 && target[i] < 0 ? q - 1 : q;
        } else {
          target[i] = static_cast<C>(target[i] / n);
        }
      }
    store_run(element, target.data(), x.num_elements(), out.mutable_data());
  });
  return out;
}

/// Offsets into x for each element of `index` along `dim`.
Status scatter_offsets(KernelContext &ctx, const Tensor &x, const Tensor &index, int dim,
                       std::vector<i64> &out) {
  std::vector<i64> at;
  EVAL_REQUIRE(x.rank() == index.rank() && dim >= 0, "index and operand differ in rank");
  EVAL_REQUIRE(load_indices(index, x.dim(dim), at), "an index is out of range");
  const Shape strides = dense_strides(x.shape());
  for (int d = 0; d < x.rank(); ++d)
    EVAL_REQUIRE(d == dim || index.dim(d) <= x.dim(d), "the index is larger than the operand");
  out.resize(at.size());
  for (size_t i = 0; i < at.size(); ++i) {
    auto rest = static_cast<i64>(i);
    i64 offset = 0;
    for (int d = x.rank(); d-- > 0;) {
      offset += (d == dim ? at[i] : rest % index.dim(d)) * strides[static_cast<size_t>(d)];
      rest /= index.dim(d);
    }
    out[i] = offset;
  }
  return {};
}

Status scatter(KernelContext &ctx, Tensor source, Combine op, bool include_self) {
  Tensor x = ctx.in(0);
  Tensor index = ctx.in(1);
  const Shape shape = x.shape();
  EVAL_REQUIRE(computable(x.element()) && computable(source.element()),
               "this element type has no arithmetic");
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  if (index.num_elements() == 0) {
    ctx.set(0, x);
    return {};
  }
  if (x.rank() == 0)
    x = x.reshaped({1});
  if (index.rank() == 0)
    index = index.reshaped({1});
  std::vector<i64> offsets;
  if (Status s = scatter_offsets(ctx, x, index, dim, offsets); !s)
    return s;
  if (source.num_elements() != 1 || source.rank() == index.rank()) {
    // The part of the source that the index covers.
    if (source.rank() == 0)
      source = source.reshaped({1});
    EVAL_REQUIRE(source.rank() == index.rank(), "source and index differ in rank");
    for (int d = 0; d < index.rank(); ++d)
      EVAL_REQUIRE(index.dim(d) <= source.dim(d), "the index is larger than the source");
    source = gather_strided(source, index.shape(), 0, dense_strides(source.shape()));
  }
  ctx.set(0, apply(x, offsets, source, op, include_self).reshaped(shape));
  return {};
}

Status k_scatter_src(KernelContext &ctx) { return scatter(ctx, ctx.in(2), Combine::Assign, true); }
Status k_scatter_add(KernelContext &ctx) { return scatter(ctx, ctx.in(2), Combine::Add, true); }
Status k_scatter_value(KernelContext &ctx) {
  return scatter(ctx, scalar_operand(ctx, "value"), Combine::Assign, true);
}
Status k_scatter_reduce(KernelContext &ctx) {
  Combine op{};
  EVAL_REQUIRE(parse_combine(ctx.text("reduce"), op), "unknown reduction");
  return scatter(ctx, ctx.in(2), op, ctx.is_none("include_self") || ctx.boolean("include_self"));
}
Status k_scatter_value_reduce(KernelContext &ctx) {
  Combine op{};
  EVAL_REQUIRE(parse_combine(ctx.text("reduce"), op), "unknown reduction");
  return scatter(ctx, scalar_operand(ctx, "value"), op, true);
}

/// index_add, index_copy, index_fill, index_reduce: whole slices of `dim`. As scatter with the
/// index repeated over the other dims.
Status by_slice(KernelContext &ctx, const Tensor &source, Combine op, bool include_self) {
  const Tensor &x0 = ctx.in(0);
  const Tensor x = x0.rank() ? x0 : x0.reshaped({1});
  const Tensor &index = ctx.in(1);
  const int dim = wrap_dim(ctx.integer("dim"), x.rank());
  EVAL_REQUIRE(dim >= 0 && index.rank() <= 1 && computable(x.element()) &&
                   computable(source.element()),
               "dim or index out of range");
  Shape box = x.shape();
  box[static_cast<size_t>(dim)] = index.num_elements();
  EVAL_REQUIRE(source.num_elements() == 1 || source.num_elements() == num_elements(box),
               "the source does not fit the slices");
  Shape strides(box.size(), 0);
  strides[static_cast<size_t>(dim)] = 1;
  const Tensor full = gather_strided(index, box, 0, strides);
  std::vector<i64> offsets;
  if (Status s = scatter_offsets(ctx, x, full, dim, offsets); !s)
    return s;
  ctx.set(0, apply(x, offsets, source, op, include_self).reshaped(x0.shape()));
  return {};
}
Status k_index_add(KernelContext &ctx) {
  Tensor source = ctx.in(2);
  const Scalar alpha = ctx.scalar("alpha");
  if (!ctx.is_none("alpha") && alpha.real != 1 && computable(source.element())) {
    Tensor scaled = Tensor::allocate(source.element(), source.shape());
    const Tensor *in[] = {&source};
    with_compute(compute_of(source.element()), [&](auto zero) {
      using C = decltype(zero);
      const C a = as_compute<C>(alpha);
      map_elements<C>(in, scaled, [=](const C *const *v, C *o, i64 n) {
        for (i64 i = 0; i < n; ++i)
          o[i] = static_cast<C>(a * v[0][i]);
      });
    });
    source = scaled;
  }
  return by_slice(ctx, source, Combine::Add, true);
}
Status k_index_copy(KernelContext &ctx) { return by_slice(ctx, ctx.in(2), Combine::Assign, true); }
Status k_index_fill(KernelContext &ctx) {
  return by_slice(ctx, scalar_operand(ctx, "value"), Combine::Assign, true);
}
Status k_index_fill_tensor(KernelContext &ctx) {
  EVAL_REQUIRE(ctx.in(2).num_elements() == 1, "the value is not one number");
  return by_slice(ctx, ctx.in(2), Combine::Assign, true);
}
Status k_index_reduce(KernelContext &ctx) {
  Combine op{};
  EVAL_REQUIRE(parse_combine(ctx.text("reduce"), op), "unknown reduction");
  return by_slice(ctx, ctx.in(2), op, ctx.boolean("include_self"));
}

Status k_index_put(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Tensor &values = ctx.in(2);
  AdvancedIndex a;
  if (Status s = prepare_index(ctx, x, ctx.list(1), a); !s)
    return s;
  EVAL_REQUIRE(values.element() == x.element() && computable(x.element()),
               "the values have another element type than the operand");
  const Shape shape = a.result_shape();
  EVAL_REQUIRE(broadcasts_to(values.shape(), shape), "the values do not broadcast to the indices");
  Tensor full = Tensor::allocate(x.element(), shape);
  const Tensor *in[] = {&values};
  with_compute(compute_of(x.element()), [&](auto zero) {
    using C = decltype(zero);
    map_elements<C>(in, full, [](const C *const *v, C *o, i64 n) { std::copy_n(v[0], n, o); });
  });
  // The values' dims back to [batch…, rest…], where row b of the table is rows[b].
  const std::vector<i64> order = a.result_order();
  std::vector<i64> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<i64>(i);
  const Tensor source = permute(full, inverse);
  const Tensor table = permute(x, a.order);
  const i64 width = num_elements(a.rest);
  std::vector<i64> offsets;
  offsets.reserve(a.rows.size() * static_cast<size_t>(width));
  for (i64 row : a.rows)
    for (i64 i = 0; i < width; ++i)
      offsets.push_back(row * width + i);
  if (offsets.empty()) {
    ctx.set(0, x);
    return {};
  }
  const Tensor done = apply(table, offsets, source,
                            ctx.boolean("accumulate") ? Combine::Add : Combine::Assign, true);
  std::vector<i64> back(a.order.size());
  for (size_t i = 0; i < a.order.size(); ++i)
    back[static_cast<size_t>(a.order[i])] = static_cast<i64>(i);
  ctx.set(0, permute(done, back));
  return {};
}
Status k_put(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  std::vector<i64> offsets;
  EVAL_REQUIRE(load_indices(ctx.in(1), x.num_elements(), offsets), "an index is out of range");
  EVAL_REQUIRE(ctx.in(2).num_elements() == ctx.in(1).num_elements() && computable(x.element()),
               "source and index differ in size");
  ctx.set(0, apply(x, offsets, ctx.in(2),
                   ctx.boolean("accumulate") ? Combine::Add : Combine::Assign, true));
  return {};
}
Status k_masked_scatter(KernelContext &ctx) {
  const Tensor &x = ctx.in(0);
  const Tensor &mask = ctx.in(1);
  const Tensor &source = ctx.in(2);
  EVAL_REQUIRE(broadcasts_to(mask.shape(), x.shape()) && source.element() == x.element(),
               "mask or source do not fit the operand");
  Tensor flags = Tensor::allocate(ElementType::I64, x.shape());
  const Tensor *in[] = {&mask};
  map_elements<i64>(in, flags, [](const i64 *const *v, i64 *o, i64 n) { std::copy_n(v[0], n, o); });
  Tensor out = Tensor::allocate(x.element(), x.shape());
  if (x.num_bytes())
    std::memcpy(out.mutable_data(), x.data(), x.num_bytes());
  const size_t item = x.item_bytes();
  i64 next = 0;
  for (i64 i = 0; i < x.num_elements(); ++i)
    if (flags.as<i64>()[i]) {
      EVAL_REQUIRE(next < source.num_elements(), "the source has fewer elements than the mask");
      std::memcpy(out.mutable_data() + static_cast<size_t>(i) * item,
                  source.data() + static_cast<size_t>(next++) * item, item);
    }
  ctx.set(0, std::move(out));
  return {};
}

constexpr KernelEntry kEntries[] = {
    {"aten.scatter.src", k_scatter_src},
    {"aten.scatter.value", k_scatter_value},
    {"aten.scatter.reduce", k_scatter_reduce},
    {"aten.scatter.value_reduce", k_scatter_value_reduce},
    {"aten.scatter_add.default", k_scatter_add},
    {"aten.scatter_reduce.two", k_scatter_reduce},
    {"aten.index_add.default", k_index_add},
    {"aten.index_copy.default", k_index_copy},
    {"aten.index_fill.int_Scalar", k_index_fill},
    {"aten.index_fill.int_Tensor", k_index_fill_tensor},
    {"aten.index_reduce.default", k_index_reduce},
    {"aten.index_put.default", k_index_put},
    {"aten.put.default", k_put},
    {"aten.masked_scatter.default", k_masked_scatter},
};

} // namespace

std::span<const KernelEntry> scatter_kernels() { return kEntries; }

} // namespace chute::eval
