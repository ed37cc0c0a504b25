// rms_norm and the softmax family.
#include "circle/legalize/emit.h"
#include "ir/sym_table.h"

#include <limits>
#include <numeric>

namespace chute::circle {

namespace {

namespace a = aten::op;

Value *rms_norm(Emit &e) {
  Value *x = e.arg(0), *weight = e.arg(1);
  if (!e.is_static("normalized_shape"))
    return e.unsupported("over a size known only at run time", "export with static shapes");
  const Dims over = e.ints("normalized_shape");
  i64 size = 1;
  for (i64 d : over)
    size *= d;
  // torch's default is the type's epsilon.
  const double eps = e.number("eps", std::numeric_limits<float>::epsilon());
  if (!weight)
    weight = e.constant(e.element(), std::span(&size, 1),
                        std::vector<double>(static_cast<size_t>(size), 1.0));
  weight = e.reshape(weight, Dims{size});
  // Runtimes take ranks 3 and 4, and normalize the last dimension.
  const int rank = x->type().rank();
  Value *y = x;
  if (over.size() != 1 || rank < 3 || rank > 4) {
    SymInt rows = 1;
    for (int d = 0; d < rank - static_cast<int>(over.size()); ++d)
      rows = e.context().sym().mul(rows, x->type().dim(d));
    y = e.reshape(x, SymDims{1, rows, size});
  }
  y = e(op::RMS_NORM, {y, weight}, {{"epsilon", of(eps)}});
  return e.reshape(y, e.type().shape());
}

/// Circle's softmax works on the last dimension.
template <OpCode code>
Value *softmax(Emit &e) {
  Value *x = e.cast(e.arg(0), e.element());
  if (x->type().rank() == 0)
    x = e.reshape(x, Dims{1});
  const i64 rank = x->type().rank();
  i64 dim = e.integer("dim");
  dim += dim < 0 ? rank : 0;
  Dims perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(dim)], perm.back());
  x = e.transpose(x, perm);
  if constexpr (code == op::SOFTMAX)
    x = e(code, {x}, {{"beta", of(1.0)}});
  else
    x = e(code, {x});
  return e.reshape(e.transpose(x, perm), e.type().shape());
}

} // namespace

void add_norm_rules(pass::PatternSet &set) {
  set.add("rms-norm", {a::rms_norm}, lower<rms_norm>);
  set.add("softmax", {a::u_softmax}, lower<softmax<op::SOFTMAX>>);
  set.add("log-softmax", {a::u_log_softmax}, lower<softmax<op::LOG_SOFTMAX>>);
}

} // namespace chute::circle
