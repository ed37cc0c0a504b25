#include "aten/infer/args.h"

#include <array>
#include <cmath>

/// Resizing and sampling of images laid out [batch, channels, spatial…].
namespace chute::aten::rule {

using ir::SymInt;
using ir::Type;

namespace {

/// floor(size * scale). For a symbolic size the scale must be a multiple of 2^-16.
std::optional<SymInt> scaled(ir::SymTable &sym, SymInt size, double scale) {
  if (size.is_static()) {
    const double out = static_cast<double>(size.value()) * scale;
    return out >= 0 && out < 9e18 ? std::optional<SymInt>(static_cast<i64>(out)) : std::nullopt;
  }
  for (i64 denominator = 1; denominator <= 1 << 16; denominator *= 2) {
    const double numerator = scale * static_cast<double>(denominator);
    if (numerator == std::floor(numerator) && numerator > 0 && numerator < 1e12)
      return sym.floordiv(sym.mul(size, static_cast<i64>(numerator)), denominator);
  }
  return std::nullopt;
}

} // namespace

Status upsample(InferArgs &a) {
  const Type x = a.tensor(0);
  if (!a.check(x.rank() >= 3 && x.rank() <= 5, kShapeError, "input must have spatial dimensions"))
    return a.failed();
  const size_t n = static_cast<size_t>(x.rank()) - 2;
  Dims shape = dims_of(x);
  if (a.has_attr("output_size")) {
    const Dims size = a.ints_n("output_size", n, 1);
    for (size_t i = 0; i < n; ++i)
      shape[2 + i] = size[i];
    return a.done(x.element(), shape);
  }
  const ir::Attr scales = a.op().attr("scale_factors");
  if (!a.check(scales.kind() == ir::AttrKind::Floats && scales.as_floats().size() == n, kAttrError,
               "needs output_size or one scale factor per spatial dimension"))
    return a.failed();
  for (size_t i = 0; i < n; ++i) {
    const auto d = scaled(a.sym(), shape[2 + i], scales.as_floats()[i]);
    if (!a.check(d.has_value(), kAttrError, "a scale factor gives no size"))
      return a.failed();
    shape[2 + i] = *d;
  }
  return a.done(x.element(), shape);
}

Status grid_sampler(InferArgs &a) {
  const Type x = a.tensor(0), grid = a.tensor(1);
  if (!a.check(x.rank() >= 4 && grid.rank() == x.rank(), kShapeError,
               "input and grid must both have a batch and spatial dimensions"))
    return a.failed();
  Dims shape{x.dim(0), x.dim(1)};
  shape.insert(shape.end(), grid.shape().begin() + 1, grid.shape().end() - 1);
  return a.done(x.element(), shape);
}

Status affine_grid(InferArgs &a) {
  const DimSpan size = a.ints("size");
  if (!a.check(size.size() == 4 || size.size() == 5, kAttrError, "size must have 4 or 5 numbers"))
    return a.failed();
  Dims shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(static_cast<i64>(size.size()) - 2);
  return a.done(a.tensor(0).element(), shape);
}

} // namespace chute::aten::rule
