#include "aten/quantization.h"

#include "aten/ops.h"
#include "ir/element_convert.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>

namespace chute::aten {

namespace {

using ir::ElementType;
using ir::Op;
using ir::Value;
using Step = AffineForm::Step;

enum class Source : u8 { Attributes, Operands };

struct FormInfo {
  Step step;
  Source parameters;
  bool per_channel = false;
  bool bounds_are_operands = false;
  // Slots of attributes, -1 where the form has none.
  int scale = -1, zero_point = -1, low = -1, high = -1, axis = -1, dtype = -1;
};

const boost::unordered_flat_map<u16, FormInfo> &forms() {
  static const boost::unordered_flat_map<u16, FormInfo> table = [] {
    boost::unordered_flat_map<u16, FormInfo> t;
    const auto add = [&](ir::OpCode code, FormInfo info) {
      const ir::OpDef &def = ir::Registry::row(code);
      info.scale = def.attr_index("scale");
      info.zero_point = def.attr_index("zero_point");
      info.low = def.attr_index("quant_min");
      info.high = def.attr_index("quant_max");
      info.axis = def.attr_index("axis");
      info.dtype = def.attr_index("dtype");
      t[ir::index(code)] = info;
    };
    add(op::fake_quantize_per_tensor_affine, {Step::Both, Source::Attributes});
    add(op::fake_quantize_per_tensor_affine_cachemask, {Step::Both, Source::Attributes});
    add(op::fake_quantize_per_tensor_affine_tensor_qparams, {Step::Both, Source::Operands});
    add(op::u_fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
        {Step::Both, Source::Operands});
    add(op::u_fake_quantize_learnable_per_tensor_affine, {Step::Both, Source::Operands});
    add(op::fake_quantize_per_channel_affine, {Step::Both, Source::Operands, true});
    add(op::fake_quantize_per_channel_affine_cachemask, {Step::Both, Source::Operands, true});
    add(op::qd_fake_quant_per_channel, {Step::Both, Source::Operands, true});
    add(op::qd_quantize_per_tensor, {Step::Quantize, Source::Attributes});
    add(op::qd_quantize_per_tensor_tensor, {Step::Quantize, Source::Operands});
    add(op::qd_quantize_per_tensor_tensor2, {Step::Quantize, Source::Operands, false, true});
    add(op::qd_quantize_per_channel, {Step::Quantize, Source::Operands, true});
    add(op::qd_dequantize_per_tensor, {Step::Dequantize, Source::Attributes});
    add(op::qd_dequantize_per_tensor_tensor, {Step::Dequantize, Source::Operands});
    add(op::qd_dequantize_per_tensor_tensor2, {Step::Dequantize, Source::Operands, false, true});
    add(op::qd_dequantize_per_channel, {Step::Dequantize, Source::Operands, true});
    return t;
  }();
  return table;
}

const ir::Constant *constant_of(const Value *v) {
  const Op *p = v ? v->producer() : nullptr;
  return p && p->has(ir::trait::kConstant) ? p->attr("value").as_constant() : nullptr;
}

/// Calls f(address of element i) in row-major order; false without data.
template <class F>
bool each_element(const ir::Constant *c, F f) {
  if (!c || !c->has_data)
    return false;
  std::vector<std::byte> bytes(c->dense_bytes());
  c->copy_dense(bytes.data());
  const auto item = static_cast<size_t>(ir::element_bytes(c->type.element()));
  for (size_t at = 0; at < bytes.size(); at += item)
    f(bytes.data() + at);
  return true;
}

ir::Attr at(const Op &op, int slot) {
  return slot < 0 ? ir::Attr() : op.attr(static_cast<u32>(slot));
}

tl::unexpected<Diagnostic> at_run_time(std::string_view what) {
  return fail(ErrorKind::Unsupported, "aten.quant.run_time",
              std::string(what) + " is computed at run time");
}
tl::unexpected<Diagnostic> meaningless(std::string why) {
  return fail(ErrorKind::Unsupported, "aten.quant.parameters", std::move(why));
}

bool read_one(const Value *v, i64 &out) {
  bool one = false;
  const ir::Constant *c = constant_of(v);
  return each_element(c,
                      [&](const std::byte *p) {
                        one = true;
                        out = ir::is_float(c->type.element())
                                  ? std::llround(ir::load_element(c->type.element(), p))
                                  : ir::load_element_int(c->type.element(), p);
                      }) &&
         one;
}

} // namespace

bool has_affine_form(ir::OpCode code) { return forms().contains(ir::index(code)); }

RunTimeParameters run_time_parameters(const ir::Op &op) {
  const auto it = forms().find(ir::index(op.opcode()));
  if (it == forms().end() || it->second.parameters == Source::Attributes)
    return {};
  return {op.operand(1), op.num_operands() > 2 ? op.operand(2) : nullptr};
}

Result<AffineForm> affine_form(const ir::Op &op) {
  const FormInfo &info = forms().at(ir::index(op.opcode()));
  AffineForm f;
  f.step = info.step;
  if (info.parameters == Source::Attributes) {
    f.scales.push_back(static_cast<float>(at(op, info.scale).scalar_as_double()));
    const ir::SymInt zero = at(op, info.zero_point).as_int();
    if (zero.is_symbolic())
      return at_run_time("its zero point");
    f.zero_points.push_back(zero.value());
  } else {
    const ir::Constant *scale = constant_of(op.operand(1));
    if (!each_element(scale, [&](const std::byte *p) {
          f.scales.push_back(static_cast<float>(ir::load_element(scale->type.element(), p)));
        }))
      return at_run_time("its scale");
    const Value *zeros = op.num_operands() > 2 ? op.operand(2) : nullptr;
    const ir::Constant *zero = constant_of(zeros);
    if (zeros && !each_element(zero, [&](const std::byte *p) {
          const ElementType e = zero->type.element();
          f.zero_points.push_back(ir::is_float(e) ? std::llrint(ir::load_element(e, p))
                                                  : ir::load_element_int(e, p));
        }))
      return at_run_time("its zero point");
    if (!zeros)
      f.zero_points.assign(f.scales.size(), 0);
  }
  if (info.bounds_are_operands) {
    if (!read_one(op.operand(3), f.min) || !read_one(op.operand(4), f.max))
      return at_run_time("its range");
  } else {
    const ir::SymInt low = at(op, info.low).as_int(), high = at(op, info.high).as_int();
    if (low.is_symbolic() || high.is_symbolic())
      return at_run_time("its range");
    f.min = low.value();
    f.max = high.value();
  }
  if (op.opcode() == op::u_fake_quantize_per_tensor_affine_cachemask_tensor_qparams) {
    i64 enabled = 0;
    if (!read_one(op.operand(3), enabled))
      return at_run_time("its switch fake_quant_enabled");
    if (!enabled)
      f.step = Step::None;
  }
  if (info.step != Step::Both)
    f.storage = at(op, info.dtype).as_element();
  if (info.per_channel) {
    const ir::Type x = op.operand(0)->type();
    i64 axis = at(op, info.axis).as_int().value();
    axis += axis < 0 ? x.rank() : 0;
    if (axis < 0 || axis >= x.rank() ||
        x.dim(static_cast<int>(axis)) != ir::SymInt(static_cast<i64>(f.scales.size())))
      return meaningless("it has " + std::to_string(f.scales.size()) +
                         " scales, which is not the size of its axis");
    f.axis = f.scales.size() == 1 ? -1 : static_cast<int>(axis);
  } else if (f.scales.size() != 1) {
    return meaningless("it has " + std::to_string(f.scales.size()) + " scales where one is due");
  }
  if (f.zero_points.size() != f.scales.size())
    return meaningless("its scales and zero points differ in number");
  if (f.min > f.max)
    return meaningless("its quant_min is larger than its quant_max");
  for (float s : f.scales)
    if (!(s > 0) || !std::isfinite(s))
      return meaningless("one of its scales is " + std::to_string(s));
  return f;
}

} // namespace chute::aten
