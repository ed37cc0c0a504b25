// upsample_nearest2d and upsample_bilinear2d on NHWC.
//
// torch takes source position = out * ratio (nearest), ratio from the scale factors when the caller
// gave them, else in / out. Circle always uses in / out: where the two differ, nearest becomes
// lookups of rows and columns, bilinear two of each.
#include "circle/legalize/window.h"

#include <algorithm>
#include <cmath>

namespace chute::circle {

namespace {

namespace a = aten::op;

struct Sizes {
  i64 in[2];
  i64 out[2];
  double scale[2]; ///< factor given by the caller, 0 when there is none
};

void read(Emit &e, Sizes &s) {
  const Type in = e.arg(0)->type(), out = e.type();
  for (int i = 0; i < 2; ++i) {
    s.in[i] = in.dim(i + 2).is_static() ? in.dim(i + 2).value() : 0;
    s.out[i] = out.dim(i + 2).is_static() ? out.dim(i + 2).value() : 0;
    s.scale[i] = 0;
  }
  const Attr factors = e.attr("scale_factors");
  if (factors.kind() == ir::AttrKind::Floats && factors.as_floats().size() == 2)
    for (size_t i = 0; i < 2; ++i)
      s.scale[i] = factors.as_floats()[i];
  s.scale[0] = e.number("scales_h", s.scale[0]);
  s.scale[1] = e.number("scales_w", s.scale[1]);
}

/// Whether the plane's size is known now.
bool is_static(Emit &e) {
  for (int i = 2; i < 4; ++i)
    if (e.arg(0)->type().dim(i).is_symbolic() || e.type().dim(i).is_symbolic())
      return false;
  return true;
}

/// Over a size known at run time only: right where the ratio is in / out, so with whole scale
/// factors or none.
Value *resize_dynamic(Emit &e, const Sizes &s, OpCode code,
                      std::initializer_list<NamedAttr> attrs) {
  for (int i = 0; i < 2; ++i)
    if (s.scale[i] > 0 && s.scale[i] != std::floor(s.scale[i]))
      return e.unsupported("by a factor that is not whole, over a size known only at run time",
                           "give the output size, or set recompute_scale_factor=True");
  const Type out = e.type();
  const SymInt plane[] = {out.dim(2), out.dim(3)};
  Value *size = e.sizes_operand(plane);
  if (!size)
    return e.unsupported("to a size that no input tells", "export with static shapes");
  const SymInt nhwc[] = {out.dim(0), out.dim(2), out.dim(3), out.dim(1)};
  Value *x = e.transpose(e.arg(0), kToNhwc);
  return e.transpose(e.typed(code, {x, size}, attrs, e.context().tensor_type(out.element(), nhwc)),
                     kToNchw);
}

/// Source row of each output row, in the float arithmetic of torch.
Dims sources(i64 in, i64 out, double scale) {
  const float ratio = scale > 0 ? static_cast<float>(1.0 / scale)
                                : static_cast<float>(in) / static_cast<float>(out);
  Dims v;
  for (i64 i = 0; i < out; ++i)
    v.push_back(std::min<i64>(static_cast<i64>(std::floor(static_cast<float>(i) * ratio)), in - 1));
  return v;
}

Value *nearest(Emit &e) {
  Sizes s;
  read(e, s);
  if (!is_static(e))
    return resize_dynamic(e, s, op::RESIZE_NEAREST_NEIGHBOR, {});
  Value *x = e.transpose(e.arg(0), kToNhwc);
  Dims rows[2];
  bool plain = true;
  for (int i = 0; i < 2; ++i) {
    rows[i] = sources(s.in[i], s.out[i], s.scale[i]);
    plain = plain && rows[i] == sources(s.in[i], s.out[i], 0);
  }
  if (plain && ir::is_float(e.element())) {
    x = e(op::RESIZE_NEAREST_NEIGHBOR, {x, e.i32s({s.out[0], s.out[1]})});
  } else {
    for (int i = 0; i < 2; ++i)
      x = e(op::GATHER, {x, e.i32s(rows[i])}, {{"axis", of(static_cast<i64>(i + 1))}});
  }
  return e.transpose(x, kToNchw);
}

/// One dimension by a factor that is not out / in: the two elements around each source position,
/// half-pixel centers, weighted.
Value *between(Emit &e, Value *x, int dim, i64 in, i64 out, double scale) {
  const float step = scale > 0 ? static_cast<float>(1.0 / scale)
                               : static_cast<float>(in) / static_cast<float>(out);
  Dims low, high;
  std::vector<double> near, far;
  for (i64 i = 0; i < out; ++i) {
    const float at = std::max(step * (static_cast<float>(i) + 0.5f) - 0.5f, 0.0f);
    low.push_back(std::min(static_cast<i64>(at), in - 1));
    high.push_back(std::min(low.back() + 1, in - 1));
    far.push_back(std::clamp(at - static_cast<float>(low.back()), 0.0f, 1.0f));
    near.push_back(1 - far.back());
  }
  Dims shape(4, 1);
  shape[static_cast<size_t>(dim)] = out;
  const auto part = [&](const Dims &rows, const std::vector<double> &weights) {
    return e.mul(e(op::GATHER, {x, e.i32s(rows)}, {{"axis", of(static_cast<i64>(dim))}}),
                 e.constant(x->type().element(), shape, weights));
  };
  return e.add(part(low, near), part(high, far));
}

Value *bilinear(Emit &e) {
  Sizes s;
  read(e, s);
  if (!ir::is_float(e.element()))
    return e.unsupported("of integers", "cast to float32 first");
  const bool corners = e.flag("align_corners");
  if (!is_static(e))
    return resize_dynamic(e, s, op::RESIZE_BILINEAR,
                          {{"align_corners", of(corners)}, {"half_pixel_centers", of(!corners)}});
  Value *x = e.transpose(e.arg(0), kToNhwc);
  bool exact = true;
  for (int i = 0; i < 2 && !corners; ++i) {
    const double ratio = static_cast<double>(s.out[i]) / static_cast<double>(s.in[i]);
    exact = exact && (s.scale[i] <= 0 || std::abs(s.scale[i] - ratio) <= 1e-6 * ratio);
  }
  if (!exact) {
    for (int i = 0; i < 2; ++i)
      x = between(e, x, i + 1, s.in[i], s.out[i], s.scale[i]);
    return e.transpose(x, kToNchw);
  }
  x = e(op::RESIZE_BILINEAR, {x, e.i32s({s.out[0], s.out[1]})},
        {{"align_corners", of(corners)}, {"half_pixel_centers", of(!corners)}});
  return e.transpose(x, kToNchw);
}

/// circle_custom.resize_bilinear is channels-last and has Circle's own options. What decompose
/// leaves of it has neither option set, which torch has no operator for.
Value *custom_bilinear(Emit &e) {
  if (!e.is_static("size") || e.arg(0)->type().rank() != 4)
    return e.unsupported("to a size known only at run time", "export with static shapes");
  return e.typed(op::RESIZE_BILINEAR, {e.arg(0), e.i32s(e.ints("size", 2))},
                 {{"align_corners", of(e.flag("align_corners"))},
                  {"half_pixel_centers", of(e.flag("half_pixel_centers"))}},
                 e.type());
}

} // namespace

void add_resize_rules(pass::PatternSet &set) {
  set.add("upsample-nearest", {a::upsample_nearest2d, a::upsample_nearest2d_vec}, lower<nearest>);
  set.add("upsample-bilinear", {a::upsample_bilinear2d, a::upsample_bilinear2d_vec},
          lower<bilinear>);
  set.add("custom-bilinear", {a::circle_custom_resize_bilinear}, lower<custom_bilinear>);
}

} // namespace chute::circle
