#include "aten/infer/args.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

/// Tensors from nothing, tensors like another one, and casts.
namespace chute::aten::rule {

using ir::ElementType;
using ir::SymInt;
using ir::Type;

namespace {

Status sized(InferArgs &a, ElementType absent) { return a.done(a.dtype(absent), a.ints("size")); }

/// Length of an arange with literal bounds; nullopt when no tensor can hold it.
std::optional<i64> arange_length(double start, double end, double step) {
  const double n = std::ceil((end - start) / step);
  if (!(n >= 0) || n > 9e18)
    return std::nullopt;
  return static_cast<i64>(n);
}

} // namespace

Status full(InferArgs &a) { return sized(a, scalar_element(a.op().attr("fill_value"))); }

Status zeros(InferArgs &a) { return sized(a, kDefaultFloat); }

Status new_sized(InferArgs &a) { return sized(a, a.tensor(0).element()); }

Status randint(InferArgs &a) { return sized(a, ElementType::I64); }

Status resize(InferArgs &a) { return a.done(a.tensor(0).element(), a.ints("size")); }

Status like(InferArgs &a) {
  const ElementType e = a.dtype(a.tensor(0).element());
  return e == a.tensor(0).element() ? a.done(a.tensor(0)) : a.done(e, a.tensor(0).shape());
}

Status cast_like(InferArgs &a) { return a.done(a.tensor(1).element(), a.tensor(0).shape()); }

Status prim_dtype(InferArgs &a) {
  // torch.ScalarType numbers, as TorchScript passes them.
  constexpr std::array<ElementType, 16> kByNumber{
      ElementType::U8,   ElementType::I8,   ElementType::I16,  ElementType::I32,
      ElementType::I64,  ElementType::F16,  ElementType::F32,  ElementType::F64,
      ElementType::C32,  ElementType::C64,  ElementType::C128, ElementType::Bool,
      ElementType::None, ElementType::None, ElementType::None, ElementType::BF16};
  if (!a.has_attr("dtype"))
    return a.done(a.tensor(0));
  const i64 n = a.literal("dtype");
  const bool known = n >= 0 && n < static_cast<i64>(kByNumber.size()) &&
                     kByNumber[static_cast<size_t>(n)] != ElementType::None;
  if (!a.check(known, kDtypeError, "unknown dtype number"))
    return a.failed();
  return a.done(kByNumber[static_cast<size_t>(n)], a.tensor(0).shape());
}

Status arange(InferArgs &a) {
  const ir::Attr end = a.op().attr("end");
  ir::Attr start = a.op().attr("start"), step = a.op().attr("step");
  if (start.is_none())
    start = ir::Attr::of_int(0);
  if (step.is_none())
    step = ir::Attr::of_int(1);
  bool integers = true, literal = true;
  for (ir::Attr x : {start, end, step}) {
    if (!a.check(x.is_scalar() && x.kind() != ir::AttrKind::Complex, kAttrError,
                 "bounds must be real numbers"))
      return a.failed();
    integers &= x.kind() != ir::AttrKind::Float;
    literal &= x.kind() != ir::AttrKind::Int || x.as_int().is_static();
  }
  const ElementType e = a.dtype(integers ? ElementType::I64 : kDefaultFloat);
  SymInt length = 0;
  if (literal && !(integers && e == ElementType::I64)) {
    double s = start.scalar_as_double(), n = end.scalar_as_double(), d = step.scalar_as_double();
    if (e == ElementType::I64) { // bounds are cut to integers first, for this type only
      s = std::trunc(s);
      n = std::trunc(n);
      d = std::trunc(d);
    }
    const auto count = arange_length(s, n, d);
    if (!a.check(d != 0 && count.has_value(), kAttrError, "the bounds and step give no range"))
      return a.failed();
    length = *count;
  } else {
    if (!a.check(integers, kAttrError, "a symbolic bound needs integer bounds"))
      return a.failed();
    const auto as_int = [](ir::Attr x) {
      return x.kind() == ir::AttrKind::Bool ? SymInt(x.as_bool()) : x.as_int();
    };
    const SymInt d = as_int(step);
    if (!a.check(d.is_symbolic() || d.value() != 0, kAttrError, "the step is zero"))
      return a.failed();
    SymInt distance = a.sym().sub(as_int(end), as_int(start)), stride = d;
    if (d.is_static() && d.value() < 0) {
      distance = a.sym().neg(distance);
      stride = a.sym().neg(d);
    }
    length = a.sym().ceildiv(distance, stride);
    if (!a.check(length.is_symbolic() || length.value() >= 0, kAttrError,
                 "the bounds and step give no range"))
      return a.failed();
  }
  return a.done(e, std::array{length});
}

Status eye(InferArgs &a) {
  const SymInt n = a.integer("n");
  return a.done(a.dtype(kDefaultFloat), std::array{n, a.integer("m", n)});
}

Status linspace(InferArgs &a) {
  return a.done(a.dtype(kDefaultFloat), std::array{a.integer("steps")});
}

Status scalar_tensor(InferArgs &a) { return a.done(a.dtype(kDefaultFloat), DimSpan()); }

Status randperm(InferArgs &a) {
  return a.done(a.dtype(ElementType::I64), std::array{a.integer("n")});
}

Status triangle_indices(InferArgs &a) {
  const i64 rows = a.literal("row"), columns = a.literal("col"), offset = a.literal("offset");
  if (!a.check(rows >= 0 && columns >= 0 && rows < 1 << 20, kAttrError, "sizes out of range"))
    return a.failed();
  const bool lower = a.op().name().find("tril") != std::string_view::npos;
  i64 count = 0;
  for (i64 r = 0; r < rows; ++r) {
    const i64 up_to = std::clamp<i64>(r + offset + (lower ? 1 : 0), 0, columns);
    count += lower ? up_to : columns - up_to;
  }
  return a.done(a.dtype(ElementType::I64), std::array{SymInt(2), SymInt(count)});
}

Status window(InferArgs &a) {
  return a.done(a.dtype(kDefaultFloat), std::array{a.integer("window_length")});
}

Status shape_as_tensor(InferArgs &a) {
  return a.done(ElementType::I64, std::array{SymInt(a.tensor(0).rank())});
}

} // namespace chute::aten::rule
