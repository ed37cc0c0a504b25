#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>

#include <cmath>

// Products of matrices and vectors: linear and matmul of rank 2 and more.
namespace chute::aten {

namespace {

/// matmul of any ranks: vectors get a dimension that the result loses again.
V matmul(Emit &e, V a, V b) {
  const ElementType t = common_element(a, b);
  a = e.cast(a, t), b = e.cast(b, t);
  const int ra = a->type().rank(), rb = b->type().rank();
  if (ra >= 2 && rb >= 2)
    return e.matmul(a, b);
  V left = ra == 1 ? e.unsqueeze(a, 0) : a;
  V right = rb == 1 ? e.unsqueeze(b, 1) : b;
  V y = e.matmul(left, right);
  Shape s = e.shape_of(y);
  if (rb == 1)
    s.pop_back();
  if (ra == 1)
    s.erase(s.end() - (rb == 1 ? 1 : 2));
  return e.view(y, s);
}

V scaled(Emit &e, V x, std::string_view name) {
  return e.number(name) == 1.0 ? x : e.mul(x, e.scalar(e.attr(name), x->type().element()));
}

/// beta * self + alpha * product; beta 0 drops self even where it is NaN.
V add_product(Emit &e, V product) {
  V y = scaled(e, product, "alpha");
  if (e.number("beta") == 0)
    return e.expand(y, e.shape());
  return e.add(scaled(e, e.in(), "beta"), y);
}

/// The weight W when `x` is its transpose [1,0]; null otherwise.
V transposed_weight(V x) {
  ir::Op *p = x->producer();
  if (!p || (p->opcode() != op::permute && p->opcode() != op::t) || x->type().rank() != 2)
    return nullptr;
  if (p->opcode() == op::permute) {
    const auto dims = p->attr("dims").as_ints();
    if (dims[0] != SymInt(1) && dims[0] != SymInt(-1))
      return nullptr;
  }
  return p->operand(0);
}

V addmm(Emit &e) {
  // The decomposed linear: bias + x W^T.
  V weight = transposed_weight(e.in(2));
  if (weight && e.number("alpha") == 1 && e.number("beta") == 1 && e.in()->type().rank() == 1)
    return e.linear(e.in(1), weight, e.in());
  return add_product(e, e.matmul(e.in(1), e.in(2)));
}

V mm(Emit &e) {
  V weight = transposed_weight(e.in(1));
  return weight ? e.linear(e.in(0), weight, nullptr) : e.matmul(e.in(0), e.in(1));
}

V linear(Emit &e) {
  V x = e.in(0), w = e.in(1), b = e.in(2);
  if (w->type().rank() == 1) { // a single output feature without a dimension
    V y = matmul(e, x, w);
    return b ? e.add(y, b) : y;
  }
  if (x->type().rank() == 1)
    return e.view(e.linear(e.unsqueeze(x, 0), w, b), e.shape());
  return nullptr;
}

V outer(Emit &e, V a, V b) { return e.mul(e.unsqueeze(a, 1), e.unsqueeze(b, 0)); }

V tensordot(Emit &e) {
  V a = e.in(0), b = e.in(1);
  const auto take = [&](V x, const std::vector<i64> &summed, bool last, Shape &kept,
                        SymInt &inner) {
    const int rank = x->type().rank();
    Axes gone, stay;
    inner = 1;
    for (i64 d : summed) {
      gone.push_back(e.wrap(d, rank));
      inner = e.sym().mul(inner, x->type().dim(gone.back()));
    }
    SymInt outer_size = 1;
    for (int d = 0; d < rank; ++d)
      if (std::find(gone.begin(), gone.end(), d) == gone.end()) {
        stay.push_back(d);
        kept.push_back(x->type().dim(d));
        outer_size = e.sym().mul(outer_size, x->type().dim(d));
      }
    Axes order = last ? stay : gone;
    order.insert(order.end(), last ? gone.begin() : stay.begin(), last ? gone.end() : stay.end());
    V y = e.permute(x, order);
    return e.view(y, last ? Shape{outer_size, inner} : Shape{inner, outer_size});
  };
  Shape out;
  SymInt k_a, k_b;
  const std::vector<i64> dims_a = e.ints("dims_self"), dims_b = e.ints("dims_other");
  // A summed dimension of size 1 is broadcast: the other one is summed first.
  for (size_t i = 0; i < std::min(dims_a.size(), dims_b.size()); ++i) {
    const int at_a = e.wrap(dims_a[i], a->type().rank()),
              at_b = e.wrap(dims_b[i], b->type().rank());
    const SymInt n_a = a->type().dim(at_a), n_b = b->type().dim(at_b);
    if (n_a == SymInt(1) && n_b != SymInt(1))
      b = e.sum(b, {at_b}, true);
    else if (n_b == SymInt(1) && n_a != SymInt(1))
      a = e.sum(a, {at_a}, true);
  }
  V left = take(a, dims_a, true, out, k_a);
  V right = take(b, dims_b, false, out, k_b);
  if (k_a != k_b)
    return e.reject("contracted dimensions of different sizes");
  return e.view(e.matmul(left, right), out);
}

/// A dimension of the result is one of each factor's; neighbours that only one factor has are one,
/// so that few are left.
V kron(Emit &e) {
  const Shape a = e.shape_of(e.in(0)), b = e.shape_of(e.in(1));
  const size_t rank = std::max(a.size(), b.size());
  const SymInt one(1);
  Shape sa, sb;
  const auto append = [&](SymInt x, SymInt y) {
    if (x == one && y == one)
      return;
    if (!sa.empty() && y == one && sb.back() == one)
      sa.back() = e.sym().mul(sa.back(), x);
    else if (!sa.empty() && x == one && sa.back() == one)
      sb.back() = e.sym().mul(sb.back(), y);
    else
      sa.push_back(x), sb.push_back(y);
  };
  for (size_t i = 0; i < rank; ++i) {
    append(i + a.size() < rank ? one : a[i + a.size() - rank], one);
    append(one, i + b.size() < rank ? one : b[i + b.size() - rank]);
  }
  return e.view(e.mul(e.view(e.in(0), sa), e.view(e.in(1), sb)), e.shape());
}

V bilinear(Emit &e) {
  // y[.., o] = sum_ij a[.., i] W[o, i, j] b[.., j]
  const ir::Type w = e.in(2)->type();
  const SymInt o = w.dim(0), i = w.dim(1), j = w.dim(2);
  Shape lead = e.shape();
  lead.pop_back();
  const SymInt rows = e.mul_sizes(lead);
  V a = e.view(e.in(0), {rows, i}), b = e.view(e.in(1), {rows, j});
  V ab = e.view(e.mul(e.unsqueeze(a, 2), e.unsqueeze(b, 1)), {rows, e.sym().mul(i, j)});
  return e.view(e.linear(ab, e.view(e.in(2), {o, e.sym().mul(i, j)}), e.in(3)), e.shape());
}

/// Squared differences summed over the last dimension of two broadcast operands.
V distance(Emit &e, V diff, double p, bool keep) {
  const int last = diff->type().rank() - 1;
  if (last < 0)
    return p == 0 ? e.cast(e.ne(diff, 0.0), diff->type().element()) : e.abs(diff);
  if (p == 1)
    return e.sum(e.abs(diff), {last}, keep);
  if (p == 2)
    return e.sqrt(e.sum(e.mul(diff, diff), {last}, keep));
  if (std::isinf(p))
    return e.amax(e.abs(diff), {last}, keep);
  if (p == 0)
    return e.sum(e.cast(e.ne(diff, 0.0), diff->type().element()), {last}, keep);
  return e.pow(e.sum(e.pow(e.abs(diff), p), {last}, keep), 1 / p);
}

V cdist(Emit &e) {
  V a = e.in(0), b = e.in(1);
  const int ra = a->type().rank(), rb = b->type().rank();
  V diff = e.sub(e.unsqueeze(a, ra - 1), e.unsqueeze(b, rb - 2));
  return distance(e, diff, e.number("p"), false);
}

/// Sums products of three operands that first get dimensions of size 1 (bilinear's decomposition).
V trilinear(Emit &e) {
  const auto lifted = [&](u32 i, std::string_view name) {
    V x = e.in(i);
    auto at = e.ints(name);
    for (i64 &d : at)
      d = e.wrap(d, x->type().rank() + int(at.size()));
    std::sort(at.begin(), at.end());
    for (i64 d : at)
      x = e.unsqueeze(x, int(d));
    return x;
  };
  V y = e.mul(e.mul(lifted(0, "expand1"), lifted(1, "expand2")), lifted(2, "expand3"));
  const auto gone = e.ints("sumdim");
  return gone.empty() ? y : e.sum(y, e.dims("sumdim", y->type().rank()), false);
}

/// Distances of all pairs of rows i < j.
V pdist(Emit &e) {
  V x = e.in();
  if (x->type().dim(0).is_symbolic())
    return e.reject("pairs of a number of rows that is not static");
  const i64 n = x->type().dim(0).value();
  std::vector<i64> first, second;
  for (i64 i = 0; i < n; ++i)
    for (i64 j = i + 1; j < n; ++j)
      first.push_back(i), second.push_back(j);
  V diff = e.sub(e.index_select(x, 0, e.i64s(first)), e.index_select(x, 0, e.i64s(second)));
  return distance(e, diff, e.number("p"), false);
}

V cosine_similarity(Emit &e) {
  V a = e.in(0), b = e.in(1);
  const ElementType t = e.type().element();
  a = e.up(e.cast(a, t)), b = e.up(e.cast(b, t));
  const int rank = std::max(a->type().rank(), b->type().rank());
  const int dim = e.dim("dim", rank);
  const auto norm = [&](V x) {
    const int d = dim - (rank - x->type().rank());
    return e.maximum(e.sqrt(e.sum(e.mul(x, x), {d}, true)), e.number("eps"));
  };
  // Each factor is divided by its own norm, as PyTorch does against overflow.
  return e.sum(e.mul(e.div(a, norm(a)), e.div(b, norm(b))), {dim}, false);
}

V cross(Emit &e) {
  V a = e.in(0), b = e.in(1);
  const int rank = e.type().rank();
  int dim = -1;
  if (e.given("dim"))
    dim = e.dim("dim", rank);
  else
    for (int d = rank - 1; d >= 0; --d)
      if (e.type().dim(d) == SymInt(3))
        dim = d;
  if (dim < 0)
    return e.reject("a cross product without a dimension of size 3");
  a = e.expand(a, e.shape()), b = e.expand(b, e.shape());
  // Component i is a[i+1] b[i+2] - a[i+2] b[i+1].
  const auto turn = [&](V x, i64 by) {
    return e.cat({e.slice(x, dim, by, 3), e.slice(x, dim, 0, by)}, dim);
  };
  return e.sub(e.mul(turn(a, 1), turn(b, 2)), e.mul(turn(a, 2), turn(b, 1)));
}

} // namespace

void add_einsum_rules(pass::PatternSet &set);

void add_contraction_rules(pass::PatternSet &set) {
  add_einsum_rules(set);
  set.add("matmul", {op::matmul}, rule<[](Emit &e) -> V {
            if (e.in(0)->type().rank() >= 2 && e.in(1)->type().rank() >= 2)
              return nullptr;
            return matmul(e, e.in(0), e.in(1));
          }>);
  set.add("mm", {op::mm}, rule<mm>);
  set.add("bmm", {op::bmm, op::mv}, rule<[](Emit &e) { return matmul(e, e.in(0), e.in(1)); }>);
  set.add("dot", {op::dot, op::vdot},
          rule<[](Emit &e) { return e.sum(e.mul(e.in(0), e.in(1)), {0}, false); }>);
  set.add("inner", {op::inner}, rule<[](Emit &e) {
            V a = e.in(0), b = e.in(1);
            if (a->type().rank() == 0 || b->type().rank() == 0)
              return e.mul(a, b);
            const SymInt k = a->type().dim(a->type().rank() - 1);
            Shape la = e.shape_of(a), lb = e.shape_of(b);
            la.pop_back(), lb.pop_back();
            return e.view(
                e.linear(e.view(a, {e.mul_sizes(la), k}), e.view(b, {e.mul_sizes(lb), k}), nullptr),
                e.shape());
          }>);
  set.add("outer", {op::outer}, rule<[](Emit &e) { return outer(e, e.in(0), e.in(1)); }>);
  set.add("addmm", {op::addmm}, rule<addmm>);
  set.add("baddbmm", {op::baddbmm},
          rule<[](Emit &e) { return add_product(e, e.matmul(e.in(1), e.in(2))); }>);
  set.add(
      "addbmm", {op::addbmm},
      rule<[](Emit &e) { return add_product(e, e.sum(e.matmul(e.in(1), e.in(2)), {0}, false)); }>);
  set.add("addmv", {op::addmv},
          rule<[](Emit &e) { return add_product(e, matmul(e, e.in(1), e.in(2))); }>);
  set.add("addr", {op::addr},
          rule<[](Emit &e) { return add_product(e, outer(e, e.in(1), e.in(2))); }>);
  set.add("chain-matmul", {op::chain_matmul}, rule<[](Emit &e) {
            const Values m = e.list(0);
            V y = m[0];
            for (size_t i = 1; i < m.size(); ++i)
              y = e.matmul(y, m[i]);
            return y;
          }>);
  set.add("linear", {op::linear}, rule<linear>);
  set.add("tensordot", {op::tensordot}, rule<tensordot>);
  set.add("kron", {op::kron}, rule<kron>);
  set.add("bilinear", {op::bilinear}, rule<bilinear>);
  set.add("cdist", {op::cdist, op::u_cdist_forward}, rule<cdist>);
  set.add("pairwise-distance", {op::pairwise_distance}, rule<[](Emit &e) {
            V diff = e.add(e.to_float(e.sub(e.in(0), e.in(1))), e.number("eps"));
            return distance(e, diff, e.number("p"), e.flag("keepdim"));
          }>);
  set.add("trilinear", {op::u_trilinear}, rule<trilinear>);
  set.add("pdist", {op::pdist, op::u_pdist_forward}, rule<pdist>);
  set.add("int-mm", {op::u_int_mm}, rule<[](Emit &e) {
            return e.matmul(e.cast(e.in(0), ElementType::I32), e.cast(e.in(1), ElementType::I32));
          }>);
  set.add("cosine-similarity", {op::cosine_similarity}, rule<cosine_similarity>);
  set.add("cross", {op::cross, op::linalg_cross}, rule<cross>);
}

} // namespace chute::aten
