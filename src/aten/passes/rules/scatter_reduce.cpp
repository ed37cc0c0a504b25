#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <cmath>
#include <limits>
#include <string_view>

// Scatters that reduce, and bags of embeddings: a table of which source goes where, and a reduction
// over the sources. Exact and free of order, at the price of target × source elements.
namespace chute::aten {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

enum class How { Sum, Mean, Prod, Greatest, Least, Unknown };

How how_of(std::string_view name) {
  if (name == "sum" || name == "add")
    return How::Sum;
  if (name == "prod" || name == "multiply")
    return How::Prod;
  if (name == "mean")
    return How::Mean;
  if (name == "amax")
    return How::Greatest;
  return name == "amin" ? How::Least : How::Unknown;
}

/// The value that changes nothing.
V neutral(Emit &e, How how, ElementType t) {
  if (how == How::Prod)
    return e.scalar(1.0, t);
  if (how != How::Greatest && how != How::Least)
    return e.scalar(0.0, t);
  const bool low = how == How::Greatest;
  if (ir::is_float(t))
    return e.scalar(low ? -kInf : kInf, t);
  const int bits = 8 * static_cast<int>(ir::element_bytes(t));
  const i64 top = ir::is_signed(t) ? static_cast<i64>((u64{1} << (bits - 1)) - 1)
                                   : static_cast<i64>((u64{1} << bits) - 1);
  const i64 bottom = ir::is_signed(t) ? -top - 1 : 0;
  return e.scalar(Attr::of_int(low ? bottom : top), t);
}

V reduce_last(Emit &e, How how, V x, int dim) {
  switch (how) {
  case How::Greatest: return e.amax(x, {dim}, false);
  case How::Least: return e.amin(x, {dim}, false);
  case How::Prod:
    return ir::is_integer(x->type().element())
               ? e.op(op::prod_dim_int, {x},
                      {{"dim", Attr::of_int(dim)},
                       {"keepdim", Attr::of_bool(false)},
                       {"dtype", Attr::of_element(x->type().element())}})
               : e.op(op::prod_dim_int, {x},
                      {{"dim", Attr::of_int(dim)}, {"keepdim", Attr::of_bool(false)}});
  default: return e.sum(x, {dim}, false);
  }
}

V combine(Emit &e, How how, V a, V b) {
  switch (how) {
  case How::Greatest: return e.maximum(a, b);
  case How::Least: return e.minimum(a, b);
  case How::Prod: return e.mul(a, b);
  default: return e.add(a, b);
  }
}

/// x combined along `dim` with the sources; hit[.., j, .., i]: source i goes to row j of x, the
/// sources in `sources` being [.., 1, .., i] or broadcasting to it.
V reduce_hits(Emit &e, How how, V x, V hit, V sources, bool with_self) {
  const ElementType t = x->type().element();
  const int last = hit->type().rank() - 1;
  V found = reduce_last(e, how, e.where(hit, sources, neutral(e, how, t)), last);
  V count = nullptr;
  if (how == How::Mean || !with_self)
    count = e.sum(e.cast(hit, ElementType::I64), {last}, false);
  V out = with_self ? combine(e, how, x, found) : found;
  if (how == How::Mean) {
    V n = with_self ? e.add(count, 1.0) : e.maximum(count, 1.0);
    out = ir::is_float(t) ? e.div(out, e.cast(n, t)) : e.div_floor(out, e.cast(n, t));
  }
  return with_self ? out : e.where(e.gt(count, 0.0), e.cast(out, t), x);
}

bool with_self(Emit &e) {
  return e.root().def().attr_index("include_self") < 0 || e.flag("include_self");
}

/// src[.., i, ..] goes to x[.., index[.., i, ..], ..].
V scatter_reduce(Emit &e) {
  V x = e.in(0), index = e.in(1);
  How how = how_of(e.attr("reduce").as_string());
  const int rank = x->type().rank();
  V source = e.root().opcode() == op::scatter_value_reduce
                 ? e.full(e.shape_of(index), e.attr("value"), x->type().element())
                 : e.in(2);
  if (x->type().element() == ElementType::Bool) { // a sum is `or`, a product `and`
    x = e.cast(x, ElementType::I32), source = e.cast(source, ElementType::I32);
    how = how == How::Sum    ? How::Greatest
          : how == How::Prod ? How::Least
          : how == How::Mean ? How::Unknown
                             : how;
  }
  const bool plain_sum = how == How::Sum && with_self(e);
  if (how == How::Unknown)
    return e.reject("a scatter with a reduction that PyTorch does not have");
  if (rank == 0) {
    x = e.view(x, {1}), index = e.view(index, {1}), source = e.view(source, {1});
  }
  const int dim = e.dim("dim", std::max(rank, 1));
  if (plain_sum)
    return e.view(e.op(op::scatter_add, {x, index, source}, {{"dim", Attr::of_int(dim)}}),
                  e.shape());
  if (!x->type().has_static_shape() || !index->type().has_static_shape() ||
      !source->type().has_static_shape())
    return e.reject("a reducing scatter over a shape that is not static");
  if (index->type().num_elements() == 0)
    return e.in(0);
  // Where the index does not reach, nothing is scattered: it is filled up with -1.
  std::vector<i64> missing;
  for (int d = std::max(rank, 1); d-- > 0;) {
    source = e.slice(source, d, 0, index->type().dim(d));
    missing.push_back(0);
    missing.push_back(d == dim ? 0 : x->type().dim(d).value() - index->type().dim(d).value());
  }
  index = e.pad(index, missing, Attr::of_int(-1));
  source = e.pad(source, missing, Attr::of_float(0));
  const int end = x->type().rank();
  const auto to_end = [&](V v) {
    Axes order = e.all_dims(end + 1);
    order.erase(order.begin() + dim + 1);
    order.push_back(dim + 1);
    return e.permute(e.unsqueeze(v, dim), order); // [.., 1, .., i]
  };
  Shape line(size_t(end) + 1, 1);
  line[size_t(dim)] = x->type().dim(dim);
  V target = e.view(e.arange(0, x->type().dim(dim), index->type().element()), line);
  V y = reduce_hits(e, how, x, e.eq(to_end(index), target), to_end(source), with_self(e));
  return e.view(y, e.shape());
}

/// source[.., i, ..] goes to x[.., index[i], ..].
V index_reduce(Emit &e) {
  V x = e.in(0), index = e.in(1), source = e.in(2);
  const How how = how_of(e.attr("reduce").as_string());
  const int rank = x->type().rank();
  if (how == How::Unknown || rank == 0 || index->type().rank() != 1)
    return e.reject("an index_reduce of this form");
  const int dim = e.dim("dim", rank);
  Axes order = e.all_dims(rank + 1);
  order.erase(order.begin() + dim + 1);
  order.push_back(dim + 1);
  V sources = e.permute(e.unsqueeze(source, dim), order);
  Shape column(size_t(rank) + 1, 1), row(size_t(rank) + 1, 1);
  column[size_t(dim)] = x->type().dim(dim);
  row[size_t(rank)] = index->type().dim(0);
  V target = e.view(e.arange(0, x->type().dim(dim), index->type().element()), column);
  Shape wide = e.shape_of(x);
  wide.push_back(index->type().dim(0));
  V hit = e.expand(e.eq(e.view(index, row), target), wide);
  return reduce_hits(e, how, x, hit, sources, with_self(e));
}

/// Starts of equally long bags, written as arange(0, n, length): that length, or 0.
i64 even_bags(V offsets) {
  const ir::Op *producer = offsets->producer();
  if (!producer || producer->opcode() != op::arange_start_step)
    return 0;
  const Attr start = producer->attr("start"), step = producer->attr("step");
  const bool plain = start.kind() == ir::AttrKind::Int && step.kind() == ir::AttrKind::Int &&
                     start.as_int() == SymInt(0) && step.as_int().is_static();
  return plain ? step.as_int().value() : 0;
}

/// mode: 0 sum, 1 mean, 2 max.
Values embedding_bag(Emit &e) {
  V weight = e.in(0), indices = e.in(1), offsets = e.in(2), each = e.in(3);
  const i64 mode = e.integer("mode");
  i64 padding = e.given("padding_idx") ? e.integer("padding_idx") : -1;
  // This overload counts from the end; for the others -1 says that there is no padding.
  if (e.root().opcode() == op::embedding_bag_padding_idx && e.given("padding_idx") && padding < 0) {
    if (weight->type().dim(0).is_symbolic())
      return e.reject("a padding row counted from the end of a table of unknown length"), Values{};
    padding += weight->type().dim(0).value();
  }
  const SymInt n = indices->type().dim(0), width = weight->type().dim(1);
  SymInt bags = e.type(0).dim(0);
  for (u32 i = 1; i < e.root().num_results(); ++i)
    if (e.used(i))
      return e.reject("a bag of embeddings whose other results are used"), Values{};
  V rows = e.index_select(weight, 0, indices);
  if (each)
    rows = e.mul(rows, e.unsqueeze(each, 1));
  const i64 length = padding < 0 && !e.flag("include_last_offset") ? even_bags(offsets) : 0;
  if (length > 0 && n.is_static() && bags.is_static() && n.value() == bags.value() * length) {
    V grouped = e.view(rows, {bags, length, width});
    V out = mode == 0   ? e.sum(grouped, {1}, false)
            : mode == 1 ? e.mean(grouped, {1}, false)
                        : e.amax(grouped, {1}, false);
    return {out, nullptr, nullptr, nullptr};
  }
  const ElementType t = offsets->type().element();
  V position = e.unsqueeze(e.arange(0, n, t), 0);
  V starts = e.slice(offsets, 0, 0, bags);
  V ends = e.flag("include_last_offset")
               ? e.slice(offsets, 0, 1, e.sym().add(bags, 1))
               : e.cat({e.slice(offsets, 0, 1, bags), e.full({1}, Attr::of_int(n), t)}, 0);
  V inside = e.land(e.ge(position, e.unsqueeze(starts, 1)), e.lt(position, e.unsqueeze(ends, 1)));
  if (padding >= 0)
    inside = e.land(inside, e.unsqueeze(e.ne(indices, static_cast<double>(padding)), 0));
  const ElementType f = weight->type().element();
  V count = e.sum(e.cast(inside, f), {1}, true); // [bags, 1]
  V out = nullptr;
  if (mode == 2) {
    V all = e.where(e.unsqueeze(inside, 2), e.unsqueeze(rows, 0), e.scalar(-kInf, f));
    out = e.where(e.gt(count, 0.0), e.amax(all, {1}, false), e.scalar(0.0, f));
  } else {
    out = e.matmul(e.cast(inside, f), rows);
    if (mode == 1)
      out = e.div(out, e.maximum(count, 1.0));
  }
  return {out, nullptr, nullptr, nullptr};
}

} // namespace

void add_scatter_reduce_rules(pass::PatternSet &set) {
  set.add("scatter-reduce", {op::scatter_reduce, op::scatter_reduce_two, op::scatter_value_reduce},
          rule<scatter_reduce>);
  set.add("index-reduce", {op::index_reduce}, rule<index_reduce>);
  set.add("embedding-bag",
          {op::u_embedding_bag, op::u_embedding_bag_forward_only, op::embedding_bag,
           op::embedding_bag_padding_idx},
          rule<embedding_bag>);
}

} // namespace chute::aten
