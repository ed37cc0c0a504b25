#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>
#include <optional>

// Small systems of equations by Gaussian elimination with partial pivoting, unrolled: one step per
// row, a constant number of operators each, over all matrices of a batch at once. What is left of
// the matrix shrinks as it goes. PyTorch raises an error on singular matrices where these divide by
// zero.
namespace chute::aten {

namespace {

constexpr i64 kLargest = 64; ///< rows; the steps become operators of the program

/// Rows of square matrices that elimination takes, or an empty result.
std::optional<i64> rows_of(Emit &e, V x) {
  const SymInt n = x->type().dim(x->type().rank() - 1);
  if (!ir::is_float(x->type().element()) || n.is_symbolic() || n.value() > kLargest) {
    e.reject("a system of more than 64 equations, or of a number that is not static");
    return {};
  }
  return n.value();
}

/// 0 … n-1 as a column.
V row_numbers(Emit &e, i64 n) { return e.view(e.arange(0, n), {n, 1}); }

struct Pivot {
  V at;    ///< [.., 1, 1]: the row of the largest element of the first column
  V hit;   ///< [.., n, 1]: whether a row is that one
  V row;   ///< [.., 1, w]
  V value; ///< [.., 1, 1]
};

/// Among the rows from `first` on.
Pivot choose_pivot(Emit &e, V m, i64 first) {
  const int columns = m->type().rank() - 1, rows = columns - 1;
  const i64 n = m->type().dim(rows).value();
  V size = e.abs(e.slice(m, columns, 0, 1));
  V number = row_numbers(e, n);
  if (first)
    size = e.where(e.ge(number, static_cast<double>(first)), size, e.scalar_like(-1, size));
  Pivot p{};
  p.at = e.op(op::argmax, {size}, {{"dim", Attr::of_int(rows)}, {"keepdim", Attr::of_bool(true)}});
  p.hit = e.eq(number, p.at);
  p.row = e.sum(e.where(p.hit, m, e.scalar_like(0, m)), {rows}, true);
  p.value = e.slice(p.row, columns, 0, 1);
  return p;
}

/// The inverse of the matrices in `a` times `b` (Gauss-Jordan): [.., n, n], [.., n, m] -> [.., n,
/// m].
V eliminate(Emit &e, V a, V b, i64 n) {
  const int columns = a->type().rank() - 1, rows = columns - 1;
  V m = e.cat({a, b}, columns);
  for (i64 k = 0; k < n && !e.failed(); ++k) {
    const Pivot p = choose_pivot(e, m, k);
    // Rows change places; the pivot's is scaled to a leading one and taken from all the others.
    V scaled = e.div(e.slice(p.row, columns, 1, m->type().dim(columns)), p.value);
    V swapped = e.where(p.hit, e.slice(m, rows, k, k + 1), m);
    V lead = e.slice(swapped, columns, 0, 1);
    V rest = e.slice(swapped, columns, 1, m->type().dim(columns));
    V own = e.eq(row_numbers(e, n), static_cast<double>(k));
    m = e.where(own, scaled, e.sub(rest, e.mul(lead, scaled)));
  }
  return m;
}

V inverse(Emit &e) {
  V a = e.in();
  const auto n = rows_of(e, a);
  if (!n)
    return nullptr;
  if (*n == 0)
    return a;
  V number = e.arange(0, *n);
  V one = e.cast(e.eq(row_numbers(e, *n), number), a->type().element());
  return eliminate(e, a, e.expand(one, e.shape_of(a)), *n);
}

/// A X = B, or X A = B. B is a batch of vectors where that fits, as `solve` infers.
V solve(Emit &e) {
  V a = e.in(0), b = e.in(1);
  const auto n = rows_of(e, a);
  if (!n)
    return nullptr;
  const Shape sa = e.shape_of(a), sb = e.shape_of(b);
  const bool vector = sb.size() == 1 ||
                      (sb.size() + 1 == sa.size() && std::equal(sb.begin(), sb.end(), sa.begin()));
  if (vector)
    b = e.unsqueeze(b, b->type().rank());
  Shape lead = e.shape(); // of the batch
  lead.resize(lead.size() - (vector ? 1 : 2));
  const auto batched = [&](V v) {
    Shape s = lead;
    s.push_back(v->type().dim(v->type().rank() - 2));
    s.push_back(v->type().dim(v->type().rank() - 1));
    return e.expand(v, s);
  };
  a = batched(a), b = batched(b);
  if (*n == 0 || b->type().num_elements() == 0)
    return e.view(b, e.shape());
  if (e.flag("left") || vector)
    return e.view(eliminate(e, a, b, *n), e.shape());
  return e.transpose(eliminate(e, e.transpose(a, -1, -2), e.transpose(b, -1, -2), *n), -1, -2);
}

struct Pivots {
  V sign = nullptr; ///< of the exchanges of rows
  Values values;    ///< whose product is the determinant up to that sign; [..] each
};

Pivots pivots_of(Emit &e, V m, i64 n) {
  Pivots out;
  const int columns = m->type().rank() - 1, rows = columns - 1;
  Shape batch = e.shape_of(m);
  batch.resize(batch.size() - 2);
  for (i64 left = n; left > 0 && !e.failed(); --left) {
    const Pivot p = choose_pivot(e, m, 0);
    out.values.push_back(e.view(p.value, batch));
    if (left == 1)
      break;
    V one = e.scalar_like(1, m);
    V sign = e.where(e.eq(e.view(p.at, batch), 0.0), one, e.neg(one));
    out.sign = out.sign ? e.mul(out.sign, sign) : sign;
    V swapped = e.slice(e.where(p.hit, e.slice(m, rows, 0, 1), m), rows, 1, left);
    // A column of zeros: nothing to take away, and the pivot makes the determinant zero.
    V by = e.where(e.eq(p.value, 0.0), one, p.value);
    V factor = e.div(e.slice(swapped, columns, 0, 1), by);
    m = e.sub(e.slice(swapped, columns, 1, left), e.mul(factor, e.slice(p.row, columns, 1, left)));
  }
  return out;
}

V determinant(Emit &e) {
  V a = e.in();
  const auto n = rows_of(e, a);
  if (!n)
    return nullptr;
  if (*n == 0)
    return e.full(e.shape(), 1.0, a->type().element());
  const Pivots p = pivots_of(e, a, *n);
  V out = p.sign;
  for (V v : p.values)
    out = out ? e.mul(out, v) : v;
  return out;
}

/// The sign of the determinant and the logarithm of its magnitude.
Values sign_and_log(Emit &e) {
  V a = e.in();
  const auto n = rows_of(e, a);
  if (!n)
    return {};
  if (*n == 0)
    return {e.full(e.shape(), 1.0, a->type().element()),
            e.full(e.shape(), 0.0, a->type().element())};
  const Pivots p = pivots_of(e, a, *n);
  V sign = p.sign, logs = nullptr;
  for (V v : p.values) {
    sign = sign ? e.mul(sign, e.sign(v)) : e.sign(v);
    V log = e.log(e.abs(v));
    logs = logs ? e.add(logs, log) : log;
  }
  return {sign, logs};
}

/// NaN where the determinant is negative.
V log_determinant(Emit &e) {
  const Values both = sign_and_log(e);
  return both.empty() ? nullptr : e.add(e.log(both[0]), both[1]);
}

/// L with L Lᵀ = A, column by column; reads the lower triangle (the upper one with `upper`, whose
/// result is Lᵀ).
V cholesky(Emit &e) {
  const bool upper = e.flag("upper");
  V m = upper ? e.transpose(e.in(), -1, -2) : e.in();
  const auto n = rows_of(e, m);
  if (!n)
    return nullptr;
  if (*n == 0)
    return e.in();
  const int last = m->type().rank() - 1, rows = last - 1;
  Values columns;
  for (i64 k = 0; k < *n && !e.failed(); ++k) {
    V first = e.slice(m, last, 0, 1); // [.., n-k, 1]
    V column = e.div(first, e.sqrt(e.slice(first, rows, 0, 1)));
    columns.push_back(e.pad(column, {0, 0, k, 0}, Attr::of_float(0)));
    if (k + 1 == *n)
      break;
    V below = e.slice(column, rows, 1, *n - k);
    V inner = e.slice(e.slice(m, rows, 1, *n - k), last, 1, *n - k);
    m = e.sub(inner, e.mul(below, e.transpose(below, -1, -2)));
  }
  V lower = e.cat(columns, last);
  return upper ? e.transpose(lower, -1, -2) : lower;
}

} // namespace

void add_linear_algebra_rules(pass::PatternSet &set) {
  set.add("inverse", {op::linalg_inv}, rule<inverse>);
  set.add("solve", {op::linalg_solve}, rule<solve>);
  set.add("determinant", {op::linalg_det}, rule<determinant>);
  set.add("log-determinant", {op::logdet}, rule<log_determinant>);
  set.add("sign-and-log-determinant", {op::linalg_slogdet}, rule<sign_and_log>);
  set.add("cholesky", {op::linalg_cholesky}, rule<cholesky>);
}

} // namespace chute::aten
