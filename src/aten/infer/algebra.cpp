#include "aten/infer/args.h"

#include <algorithm>
#include <array>

/// Linear algebra, distances, Fourier transforms, differences.
namespace chute::aten::rule {

using ir::ElementType;
using ir::SymInt;
using ir::Type;

namespace {

ElementType promote_two(InferArgs &a) {
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  const auto e = result_type(types);
  a.check(e.has_value(), kDtypeError, "PyTorch does not promote these element types");
  return e.value_or(types[0].element());
}

ElementType complex_element(ElementType e) {
  switch (e) {
  case ElementType::F16: return ElementType::C32;
  case ElementType::F64: return ElementType::C128;
  default: return ir::is_complex(e) ? e : ElementType::C64;
  }
}

} // namespace

Status determinant(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() >= 2, kShapeError, "takes matrices"))
    return a.failed();
  return a.done(x.element(), x.shape().first(x.shape().size() - 2));
}

Status determinant_pair(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() >= 2, kShapeError, "takes matrices"))
    return a.failed();
  const auto batch = x.shape().first(x.shape().size() - 2);
  a.add(x.element(), batch);
  return a.done(x.element(), batch);
}

Status square_matrix(InferArgs &a) {
  const Type x = a.tensor(0);
  a.check(x.rank() >= 2 && x.dim(x.rank() - 1) == x.dim(x.rank() - 2), kShapeError,
          "takes square matrices");
  return a.done(x.element(), x.shape());
}

Status solve(InferArgs &a) {
  const Type m = a.tensor(0), b = a.tensor(1);
  if (!a.check(m.rank() >= 2 && b.rank() >= 1, kShapeError, "takes matrices"))
    return a.failed();
  const DimSpan ms = m.shape();
  // A right-hand side of one dimension less that fits is a batch of vectors.
  const bool vector = b.rank() == 1 || (b.rank() + 1 == m.rank() &&
                                        std::ranges::equal(b.shape(), ms.first(ms.size() - 1)));
  const size_t tail = vector ? 1 : 2;
  Dims shape(ms.begin(), ms.end() - 2);
  a.broadcast_into(shape, b.shape().first(b.shape().size() - tail));
  shape.insert(shape.end(), b.shape().end() - static_cast<i64>(tail), b.shape().end());
  return a.done(b.element(), shape);
}

Status cross(InferArgs &a) {
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  return a.done(promote_two(a), a.broadcast_all(types));
}

Status cdist(InferArgs &a) {
  const Type x = a.tensor(0), y = a.tensor(1);
  if (!a.check(x.rank() >= 2 && y.rank() >= 2, kShapeError, "takes batches of vectors"))
    return a.failed();
  Dims shape(x.shape().begin(), x.shape().end() - 2);
  a.broadcast_into(shape, y.shape().first(y.shape().size() - 2));
  shape.push_back(x.dim(x.rank() - 2));
  shape.push_back(y.dim(y.rank() - 2));
  return a.done(x.element(), shape);
}

Status pdist(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() == 2, kShapeError, "takes a matrix"))
    return a.failed();
  ir::SymTable &sym = a.sym();
  const SymInt pairs = sym.floordiv(sym.mul(x.dim(0), sym.sub(x.dim(0), 1)), 2);
  return a.done(x.element(), std::array{pairs});
}

Status pairwise_distance(InferArgs &a) {
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  Dims shape = a.broadcast_all(types);
  if (!a.check(!shape.empty(), kShapeError, "needs a dimension") || a.bad())
    return a.failed();
  if (a.flag("keepdim"))
    shape.back() = 1;
  else
    shape.pop_back();
  return a.done(promote_two(a), shape);
}

Status cosine_similarity(InferArgs &a) {
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  Dims shape = a.broadcast_all(types);
  const size_t d = a.dim("dim", static_cast<int>(shape.size()), 1);
  if (!a.check(!shape.empty(), kShapeError, "needs a dimension") || a.bad())
    return a.failed();
  shape.erase(shape.begin() + static_cast<i64>(d));
  return a.done(promote_two(a), shape);
}

Status diff(InferArgs &a) {
  const Type x = a.tensor(0);
  const size_t d = a.dim("dim", x.rank(), -1);
  if (!a.check(x.rank() > 0, kShapeError, "needs a dimension") || a.bad())
    return a.failed();
  ir::SymTable &sym = a.sym();
  Dims shape = dims_of(x);
  for (u32 i = 1; i <= 2; ++i)
    if (a.has(i) && a.check(a.tensor(i).rank() == x.rank(), kShapeError, "ranks differ"))
      shape[d] = sym.add(shape[d], a.tensor(i).shape()[d]);
  shape[d] = sym_max(sym, sym.sub(shape[d], a.literal("n", 1)), 0);
  return a.done(x.element(), shape);
}

Status gradient(InferArgs &a) {
  const Type x = a.tensor(0);
  const int count = a.has_attr("dim") ? 1 : x.rank();
  for (int i = 0; i < count; ++i)
    a.add(int_to_float(x.element()), x.shape());
  return a.done();
}

Status vander(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() == 1, kShapeError, "takes a vector"))
    return a.failed();
  return a.done(int_to_i64(x.element()), std::array{x.dim(0), a.integer("N", x.dim(0))});
}

Status multinomial(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() == 1 || x.rank() == 2, kShapeError, "takes a vector or a matrix"))
    return a.failed();
  Dims shape = dims_of(x);
  shape.back() = a.integer("num_samples");
  return a.done(ElementType::I64, shape);
}

// --- Fourier transforms --------------------------------------------------------------------------

namespace {

SymInt half_spectrum(ir::SymTable &sym, SymInt n) { return sym.add(sym.floordiv(n, 2), 1); }

} // namespace

Status rfft(InferArgs &a) {
  const Type x = a.tensor(0);
  const size_t d = a.dim("dim", x.rank(), -1);
  if (!a.check(x.rank() > 0, kShapeError, "needs a dimension") || a.bad())
    return a.failed();
  Dims shape = dims_of(x);
  shape[d] = half_spectrum(a.sym(), a.integer("n", shape[d]));
  return a.done(complex_element(int_to_float(x.element())), shape);
}

Status rfftn(InferArgs &a) {
  const Type x = a.tensor(0);
  const DimSpan sizes = a.ints("s");
  Dims dims(a.ints("dim").begin(), a.ints("dim").end());
  if (dims.empty()) { // the last ones that `s` names, or all
    const i64 n = sizes.empty() ? x.rank() : static_cast<i64>(sizes.size());
    for (i64 i = -n; i < 0; ++i)
      dims.push_back(i);
  }
  if (!a.check(sizes.empty() || sizes.size() == dims.size(), kAttrError, "s and dim differ") ||
      !a.check(x.rank() > 0, kShapeError, "needs a dimension"))
    return a.failed();
  Dims shape = dims_of(x);
  for (size_t i = 0; i < dims.size(); ++i) {
    SymInt &d = shape[a.wrap(dims[i], x.rank())];
    if (!sizes.empty() && sizes[i] != SymInt(-1))
      d = sizes[i];
    if (i + 1 == dims.size())
      d = half_spectrum(a.sym(), d);
  }
  return a.done(complex_element(int_to_float(x.element())), shape);
}

Status fft_r2c(InferArgs &a) {
  const Type x = a.tensor(0);
  Dims shape = dims_of(x);
  const DimSpan dims = a.ints("dim");
  if (a.flag("onesided") && !dims.empty() && a.check(x.rank() > 0, kShapeError, "needs dims")) {
    SymInt &last = shape[a.wrap(dims.back(), x.rank())];
    last = half_spectrum(a.sym(), last);
  }
  return a.done(complex_element(x.element()), shape);
}

Status fft_c2r(InferArgs &a) {
  const Type x = a.tensor(0);
  Dims shape = dims_of(x);
  const DimSpan dims = a.ints("dim");
  if (!dims.empty() && a.check(x.rank() > 0, kShapeError, "needs dims"))
    shape[a.wrap(dims.back(), x.rank())] = a.integer("last_dim_size");
  return a.done(real_element(x.element()), shape);
}

Status stft(InferArgs &a) {
  const Type x = a.tensor(0);
  const i64 n = a.literal("n_fft", 1);
  const i64 hop = a.literal("hop_length", n / 4);
  if (!a.check((x.rank() == 1 || x.rank() == 2) && n > 0 && hop > 0, kShapeError,
               "takes signals and a positive n_fft and hop_length") ||
      a.bad())
    return a.failed();
  ir::SymTable &sym = a.sym();
  const bool complex = ir::is_complex(x.element());
  const bool onesided = a.has_attr("onesided") ? a.flag("onesided") : !complex;
  Dims shape(x.shape().begin(), x.shape().end() - 1);
  shape.push_back(onesided ? SymInt(n / 2 + 1) : SymInt(n));
  shape.push_back(sym.add(sym.floordiv(sym.sub(x.shape().back(), n), hop), 1));
  const ElementType e = complex_element(x.element());
  if (a.has_attr("return_complex") ? a.flag("return_complex") : complex)
    return a.done(e, shape);
  shape.push_back(2);
  return a.done(real_element(e), shape);
}

} // namespace chute::aten::rule
