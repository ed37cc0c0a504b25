#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

// Fourier transforms of real tensors whose results are read as real numbers: products with matrices
// of cosines and sines. No target has complex numbers; each reader of a spectrum (its real or
// imaginary part, both, its size) makes the parts that it needs, and equal ones become one (cse).
// Transforms with complex results that something else reads stay, and are refused.
namespace chute::aten {

namespace {

constexpr i64 kLongest = 2048; ///< points along a dimension: a matrix of so many rows is 32 MB

struct Transform {
  V x = nullptr;
  Axes dims; ///< the last one is the one of which half is kept
  bool half = true;
  double power = 0; ///< the result is divided by the number of points to this power
};

/// What PyTorch's names stand for in a forward transform.
double power_of(Attr norm) {
  const std::string_view name = norm.is_none() ? "backward" : norm.as_string();
  return name == "ortho" ? 0.5 : name == "forward" ? 1 : 0;
}

/// The transform that makes `spectrum`; null x after a refusal, or where it is none.
Transform read(Emit &e, const ir::Op &op) {
  Transform t;
  const auto attr = [&](std::string_view name) { return op.attr(name); };
  V x = op.arg(0);
  const int rank = x->type().rank();
  const bool core = op.opcode() == op::u_fft_r2c, one = op.opcode() == op::fft_rfft;
  if (!core && !one && op.opcode() != op::fft_rfft2 && op.opcode() != op::fft_rfftn)
    return t;
  if (!attr(one ? "n" : "s").is_none() && !core) {
    e.reject("a Fourier transform of a part of its input");
    return t;
  }
  if (one)
    t.dims = {e.wrap(attr("dim").as_int().value(), rank)};
  else if (attr("dim").is_none())
    t.dims = e.all_dims(rank);
  else
    for (const SymInt &d : attr("dim").as_ints())
      t.dims.push_back(e.wrap(d.value(), rank));
  if (core) {
    const i64 mode = attr("normalization").as_int().value();
    t.power = double(mode) / 2;
    t.half = attr("onesided").as_bool();
  } else {
    t.power = power_of(attr("norm"));
  }
  for (const int d : t.dims)
    if (x->type().dim(d).is_symbolic() || x->type().dim(d).value() > kLongest) {
      e.reject("a Fourier transform over more than " + std::to_string(kLongest) +
               " points, or a size that is not static");
      return t;
    }
  t.x = x;
  return t;
}

struct Parts {
  V real = nullptr, imaginary = nullptr;
};

/// Cosines, or negative sines, of point j (row) in frequency k (column).
V waves(Emit &e, ElementType element, i64 points, i64 frequencies, bool sines, double scale) {
  std::vector<double> out;
  out.reserve(size_t(points * frequencies));
  for (i64 j = 0; j < points; ++j)
    for (i64 k = 0; k < frequencies; ++k) {
      const double angle = 2 * std::numbers::pi * double(j * k % points) / double(points);
      out.push_back(scale * (sines ? -std::sin(angle) : std::cos(angle)));
    }
  return e.constant(element, {points, frequencies}, out);
}

Parts spectrum(Emit &e, V value) {
  const ir::Op *producer = value->producer();
  if (!producer)
    return {};
  const Transform t = read(e, *producer);
  if (!t.x)
    return {};
  Parts y{e.to_float(e.up(t.x)), nullptr};
  const ElementType element = y.real->type().element();
  double scale = 1;
  for (const int d : t.dims)
    scale *= std::pow(double(t.x->type().dim(d).value()), -t.power);
  const int last = t.x->type().rank() - 1;
  for (size_t i = t.dims.size(); i-- > 0;) {
    const int d = t.dims[i];
    const bool first = i + 1 == t.dims.size();
    const i64 n = t.x->type().dim(d).value(), kept = first && t.half ? n / 2 + 1 : n;
    V cosines = waves(e, element, n, kept, false, first ? scale : 1),
      sines = waves(e, element, n, kept, true, first ? scale : 1);
    const auto along = [&](V x, V m) {
      return e.transpose(e.matmul(e.transpose(x, d, last), m), d, last);
    };
    if (first)
      y = {along(y.real, cosines), along(y.real, sines)};
    else
      y = {e.sub(along(y.real, cosines), along(y.imaginary, sines)),
           e.add(along(y.real, sines), along(y.imaginary, cosines))};
  }
  return y;
}

template <V (*read_parts)(Emit &, const Parts &)>
V real_result(Emit &e) {
  if (!ir::is_complex(e.in()->type().element()))
    return nullptr;
  const Parts parts = spectrum(e, e.in());
  return parts.real ? e.cast(read_parts(e, parts), e.type().element()) : nullptr;
}

V real_part(Emit &, const Parts &p) { return p.real; }
V imaginary_part(Emit &, const Parts &p) { return p.imaginary; }

V both(Emit &e, const Parts &p) {
  const int rank = p.real->type().rank();
  return e.cat({e.unsqueeze(p.real, rank), e.unsqueeze(p.imaginary, rank)}, rank);
}

V size(Emit &e, const Parts &p) {
  return e.sqrt(e.add(e.mul(p.real, p.real), e.mul(p.imaginary, p.imaginary)));
}

} // namespace

void add_fourier_rules(pass::PatternSet &set) {
  set.add("real-of-spectrum", {op::real}, rule<real_result<real_part>>);
  set.add("imaginary-of-spectrum", {op::imag}, rule<real_result<imaginary_part>>);
  set.add("spectrum-as-reals", {op::view_as_real}, rule<real_result<both>>);
  set.add("size-of-spectrum", {op::abs}, rule<real_result<size>>);
}

} // namespace chute::aten
