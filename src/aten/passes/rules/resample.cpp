#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

// Resampling: nearest and bilinear over planes stay, with the output size written out.
namespace chute::aten {

namespace {

/// Scale factors of the operator in its own order; empty when it has none.
std::vector<double> factors(Emit &e) {
  std::vector<double> out;
  for (std::string_view name : {"scales_d", "scales_h", "scales_w", "scales"})
    if (e.root().def().attr_index(name) >= 0 && e.given(name))
      out.push_back(e.number(name));
  if (e.root().def().attr_index("scale_factors") >= 0 && e.given("scale_factors"))
    for (double f : e.attr("scale_factors").as_floats())
      out.push_back(f);
  return out;
}

V resample(Emit &e, ir::OpCode code, bool corners) {
  V x = e.in();
  const bool bytes = corners && e.type().element() == ElementType::U8;
  if (bytes)
    x = e.to_float(x);
  const int rank = e.type().rank();
  const Shape out = e.shape();
  Shape size(out.begin() + 2, out.end());
  std::vector<double> f = factors(e);
  Shape in = e.shape_of(x);
  if (rank == 3) {
    in.insert(in.begin() + 2, 1);
    x = e.view(x, in);
    size.insert(size.begin(), 1);
    if (!f.empty())
      f.insert(f.begin(), 1.0);
  }
  if (f.size() != 2)
    f.clear();
  const Attr scale = f.empty() ? Attr::none() : e.ctx().floats_attr(f);
  V y = corners
            ? e.op(code, {x},
                   {{"output_size", e.ctx().ints_attr(size)},
                    {"align_corners", e.attr("align_corners")},
                    {"scale_factors", scale}})
            : e.op(code, {x}, {{"output_size", e.ctx().ints_attr(size)}, {"scale_factors", scale}});
  if (bytes)
    y = e.op(op::floor, {e.add(y, 0.5)});
  return e.view(y, e.shape());
}

bool canonical(Emit &e) {
  if (e.type().element() == ElementType::U8 && e.root().opcode() == op::upsample_bilinear2d_vec)
    return false;
  const Attr size = e.attr("output_size");
  return size.kind() == ir::AttrKind::Ints && size.as_ints()[0] == e.type().dim(2) &&
         size.as_ints()[1] == e.type().dim(3);
}

} // namespace

void add_resample_rules(pass::PatternSet &set) {
  set.add("nearest",
          {op::upsample_nearest1d, op::upsample_nearest1d_vec, op::upsample_nearest2d,
           op::upsample_nearest2d_vec},
          rule<[](Emit &e) -> V {
            if (e.root().opcode() == op::upsample_nearest2d_vec && canonical(e))
              return nullptr;
            return resample(e, op::upsample_nearest2d_vec, false);
          }>);
  set.add("linear",
          {op::upsample_linear1d, op::upsample_linear1d_vec, op::upsample_bilinear2d,
           op::upsample_bilinear2d_vec},
          rule<[](Emit &e) -> V {
            if (e.root().opcode() == op::upsample_bilinear2d_vec && canonical(e))
              return nullptr;
            return resample(e, op::upsample_bilinear2d_vec, true);
          }>);
}

} // namespace chute::aten
