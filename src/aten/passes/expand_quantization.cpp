// expand-quantization: quantization that no type can carry becomes arithmetic on reals.
//
//   quantize, dequantize, fake-quantize with a scale computed at run time
//     q = clamp(round(x * (1 / scale)) + zero_point)            x = (q - zero_point) * scale
//   quantized_decomposed per token, per channel group, choose_qparams*; torchao affine blocks
//   circle_custom.mx_fake_quantize, quantize_mx, dequantize_mx
//     blocks of 32: x / 2^e rounded to the element format, times 2^e
//
// Runs after constants are folded: a scale that folds to a constant is none that is computed at run
// time. Whatever parameters a type can carry is left for the target's lowering.
//
// Setting mx: `numbers` (default) computes microscaling formats as above, since no runtime that
// this project checks with executes their tensors; `types` leaves int8 and fp4 to targets that have
// element types for them.
#include "aten/passes/emit.h"
#include "aten/passes/passes.h"
#include "aten/quantization.h"
#include "ir/walk.h"
#include "pass/constants.h"
#include "quant/ledger.h"
#include "quant/mx.h"
#include "quant/params.h"

#include <cmath>
#include <limits>

namespace chute::aten {

namespace {

constexpr double kLowestNormal = std::numeric_limits<float>::min();

bool is_constant(const ir::Value *v) { return !v || pass::constant_of(v); }

V real(Emit &e, V x) { return e.cast(x, ElementType::F32); }
V clamp(Emit &e, V x, double low, double high) { return e.minimum(e.maximum(x, low), high); }
V round(Emit &e, V x) { return e.op(op::round, {x}); }

V quantized(Emit &e, V x, V scale, V zero, double low, double high) {
  V q = round(e, e.mul(real(e, x), e.reciprocal(scale)));
  return clamp(e, zero ? e.add(q, zero) : q, low, high);
}
V dequantized(Emit &e, V q, V scale, V zero) {
  q = real(e, q);
  return e.mul(zero ? e.sub(q, zero) : q, scale);
}

// --- parameters computed at run time -------------------------------------------------------------

/// `v` (one number, or one per index of `axis`) as reals that broadcast over `x`.
V beside(Emit &e, V v, V x, int axis) {
  if (!v)
    return nullptr;
  Shape shape;
  if (axis >= 0) {
    shape.assign(size_t(x->type().rank()), 1);
    shape[size_t(axis)] = x->type().dim(axis);
  }
  return real(e, e.view(v, shape));
}

V run_time(Emit &e) {
  const RunTimeParameters p = run_time_parameters(e.root());
  if (is_constant(p.scale) && is_constant(p.zero_point))
    return e.reject("its parameters are constants");
  V x = e.in();
  const bool per_channel = e.root().def().attr_index("axis") >= 0;
  const int axis = per_channel ? e.dim("axis", x->type().rank()) : -1;
  if (e.root().def().attr_index("quant_min") < 0)
    return e.reject("its range is an operand");
  const double low = static_cast<double>(e.integer("quant_min"));
  const double high = static_cast<double>(e.integer("quant_max"));
  V scale = beside(e, p.scale, x, axis), zero = beside(e, p.zero_point, x, axis);
  const std::string_view name = e.root().name();
  if (name.find("fake_quant") != name.npos) {
    V q = dequantized(e, quantized(e, x, scale, zero, low, high), scale, zero);
    return e.root().opcode() == op::u_fake_quantize_per_tensor_affine_cachemask_tensor_qparams
               ? e.where(e.ne(real(e, e.view(e.in(3), {})), 0.0), q, x)
               : q;
  }
  return name.find(".dequantize") != name.npos ? dequantized(e, x, scale, zero)
                                               : quantized(e, x, scale, zero, low, high);
}

// --- scales of several dimensions ----------------------------------------------------------------

/// Scale and zero point of each token: one for each index of all dimensions but the last.
V of_tokens(Emit &e, V v, V x) {
  Shape shape = e.shape_of(x);
  shape.back() = 1;
  return v ? real(e, e.view(v, shape)) : nullptr;
}

V quantize_tokens(Emit &e) {
  V x = e.in(), scale = of_tokens(e, e.in(1), x), zero = of_tokens(e, e.in(2), x);
  // Here the zero point is added before rounding, as PyTorch does.
  V q = round(e, e.add(e.mul(real(e, x), e.reciprocal(scale)), zero));
  return clamp(e, q, double(e.integer("quant_min")), double(e.integer("quant_max")));
}
V dequantize_tokens(Emit &e) {
  V q = e.in();
  return dequantized(e, q, of_tokens(e, e.in(1), q), of_tokens(e, e.in(2), q));
}

/// The last dimension cut into groups, each with a scale.
V in_groups(Emit &e, V x, i64 size) {
  Shape shape = e.shape_of(x);
  shape.back() = e.sym().floordiv(shape.back(), size);
  shape.push_back(size);
  return e.view(x, shape);
}
V of_groups(Emit &e, V v, V grouped) {
  Shape shape = e.shape_of(grouped);
  shape.back() = 1;
  return v ? real(e, e.view(v, shape)) : nullptr;
}

V quantize_groups(Emit &e) {
  V x = in_groups(e, real(e, e.in()), e.integer("group_size"));
  V q = round(e, e.add(e.div(x, of_groups(e, e.in(1), x)), of_groups(e, e.in(2), x)));
  q = clamp(e, q, double(e.integer("quant_min")), double(e.integer("quant_max")));
  return e.view(q, e.shape());
}
V dequantize_groups(Emit &e) {
  V q = in_groups(e, e.in(), e.integer("group_size"));
  return e.view(dequantized(e, q, of_groups(e, e.in(1), q), of_groups(e, e.in(2), q)), e.shape());
}

/// torchao: one scale per block of any size in every dimension.
struct Blocks {
  Shape cut;    ///< the operand's shape with each dimension as (blocks, size of a block)
  Shape scales; ///< the shape of scales that broadcasts over it
};
Blocks blocks(Emit &e, V x) {
  Blocks b;
  const Shape size = e.sizes("block_size");
  for (int d = 0; d < x->type().rank(); ++d) {
    const SymInt n = x->type().dim(d), s = size[size_t(d)] == SymInt(-1) ? n : size[size_t(d)];
    if (s == SymInt(1) || s == n) {
      b.cut.push_back(n);
      b.scales.push_back(s == n ? SymInt(1) : n);
      continue;
    }
    b.cut.push_back(e.sym().floordiv(n, s));
    b.cut.push_back(s);
    b.scales.push_back(b.cut[b.cut.size() - 2]);
    b.scales.emplace_back(1);
  }
  return b;
}

V affine_blocks(Emit &e, bool quantize) {
  V x = e.in();
  const Blocks b = blocks(e, x);
  V scale = real(e, e.view(e.in(1), b.scales));
  V zero = e.in(2) ? real(e, e.view(e.in(2), b.scales)) : nullptr;
  V cut = e.view(x, b.cut);
  if (!quantize)
    return e.view(dequantized(e, cut, scale, zero), e.shape());
  const std::optional<quant::Range> whole = quant::range_of(e.type().element());
  if (!whole)
    return e.reject("its result is none of integers");
  V q = quantized(e, cut, scale, zero,
                  e.given("quant_min") ? e.number("quant_min") : double(whole->min),
                  e.given("quant_max") ? e.number("quant_max") : double(whole->max));
  return e.view(q, e.shape());
}

// --- parameters chosen from the data -------------------------------------------------------------

Values choose_for_tensor(Emit &e) {
  V x = real(e, e.in());
  const Axes all = e.all_dims(x->type().rank());
  const double low = double(e.integer("quant_min")), high = double(e.integer("quant_max"));
  V least = e.minimum(e.amin(x, all, false), 0.0), most = e.maximum(e.amax(x, all, false), 0.0);
  V scale = e.maximum(e.div(e.sub(most, least), high - low), e.number("eps"));
  V zero = clamp(e, e.rsub(low, round(e, e.div(least, scale))), low, high);
  return {e.view(scale, {1}), e.view(zero, {1})};
}

/// Symmetric, 8 bits.
Values choose_for_tokens(Emit &e) {
  V x = real(e, e.in());
  V most = e.amax(e.abs(x), {x->type().rank() - 1}, true);
  V scale = e.div(e.maximum(most, 1e-5), 127.0);
  return {scale, e.mul(scale, 0.0)};
}

Values choose_for_tokens_asymmetric(Emit &e) {
  V x = real(e, e.in());
  const Axes last{x->type().rank() - 1};
  V least = e.minimum(e.amin(x, last, true), 0.0), most = e.maximum(e.amax(x, last, true), 0.0);
  const double low = -128, high = 127;
  V scale = e.maximum(e.div(e.sub(most, least), high - low),
                      double(std::numeric_limits<float>::epsilon()));
  V below = e.div(least, scale), above = e.div(most, scale);
  V nearer = e.gt(e.add(e.add(below, low), e.add(above, high)), 0.0);
  V zero = e.where(nearer, e.rsub(low, below), e.rsub(high, above));
  return {scale, round(e, clamp(e, zero, low, high))};
}

// --- microscaling formats ------------------------------------------------------------------------

/// The largest power of two that is no larger than x > 0. The logarithm is off by one next to
/// powers of two; comparing puts it right.
V power_of_two_below(Emit &e, V x) {
  V p = e.pow(e.scalar_like(2, x), e.op(op::floor, {e.op(op::log2, {x})}));
  p = e.where(e.ge(x, e.mul(p, 2.0)), e.mul(p, 2.0), p);
  return e.where(e.lt(x, p), e.mul(p, 0.5), p);
}

V mx_rounded(Emit &e) {
  V x = e.in();
  const std::optional<quant::MxFormat> m = quant::mx_format(e.attr("elem_format").as_string());
  if (!m || e.attr("shared_exp_method").as_string() != "max" ||
      e.attr("round").as_string() != "nearest")
    return e.reject("its element format or rounding is not defined");
  const int rank = x->type().rank();
  const int axis = rank ? e.dim("axis", rank) : -1;
  if (axis < 0 || !x->type().dim(axis).is_static() || x->type().element() != ElementType::F32)
    return e.reject("blocks need a dimension of known size of f32 numbers");
  const i64 n = x->type().dim(axis).value(), blocks = (n + quant::kMxBlock - 1) / quant::kMxBlock;
  if (const ir::Constant *c = pass::constant_of(x); c && c->has_data) {
    std::vector<float> values = quant::real_values(*c);
    const std::vector<i64> dims = pass::static_dims(c->type);
    quant::mx_round(values, dims, axis, *m);
    return e.constant(ElementType::F32, dims, std::vector<double>(values.begin(), values.end()));
  }
  std::vector<i64> amounts(2 * size_t(rank), 0);
  amounts[2 * size_t(rank - 1 - axis) + 1] = blocks * quant::kMxBlock - n;
  V padded = e.pad(x, amounts, Attr::of_float(0));
  Shape cut = e.shape_of(padded);
  cut[size_t(axis)] = blocks;
  cut.insert(cut.begin() + axis + 1, SymInt(quant::kMxBlock));
  V v = e.view(padded, cut);

  V most = e.maximum(e.amax(e.abs(v), {axis + 1}, true), kLowestNormal);
  V scale = e.maximum(e.mul(power_of_two_below(e, most), std::ldexp(1.0, -m->largest_exponent)),
                      kLowestNormal);
  V a = e.div(v, scale), size = e.abs(a);
  const double steps = std::ldexp(1.0, m->mantissa_bits - 2);
  V r = nullptr;
  if (m->exponent_bits == 0) {
    r = e.div(e.op(op::floor, {e.add(e.mul(size, steps), 0.5)}), steps);
  } else {
    const double lowest = std::ldexp(1.0, 2 - (1 << (m->exponent_bits - 1)));
    V step = e.div(power_of_two_below(e, e.maximum(size, lowest)), steps);
    r = e.mul(e.op(op::floor, {e.add(e.div(size, step), 0.5)}), step);
  }
  r = e.minimum(r, double(m->largest));
  r = e.mul(e.where(e.lt(a, 0.0), e.neg(r), r), scale);
  Shape flat = e.shape_of(padded);
  return e.slice(e.view(r, flat), axis, 0, n);
}

/// With the setting mx=types: formats that have an element type stay.
template <bool kTypes>
V mx(Emit &e) {
  const std::optional<quant::MxFormat> m = quant::mx_format(e.attr("elem_format").as_string());
  if (kTypes && m && m->storage != ElementType::None && !pass::constant_of(e.in()))
    return e.reject("the target has a type for it");
  return e.root().opcode() == op::circle_custom_dequantize_mx ? e.in() : mx_rounded(e);
}

template <bool kTypes>
const pass::PatternSet &patterns() {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    s.add("run-time-parameters",
          {op::fake_quantize_per_tensor_affine_tensor_qparams,
           op::u_fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
           op::u_fake_quantize_learnable_per_tensor_affine, op::fake_quantize_per_channel_affine,
           op::fake_quantize_per_channel_affine_cachemask, op::qd_fake_quant_per_channel,
           op::qd_quantize_per_tensor_tensor, op::qd_quantize_per_channel,
           op::qd_dequantize_per_tensor_tensor, op::qd_dequantize_per_channel},
          rule<[](Emit &e) {
            V v = run_time(e);
            return v ? Values(e.root().num_results() > 1 ? Values{v, nullptr} : Values{v})
                     : Values{};
          }>);
    s.add("quantize-per-token", {op::qd_quantize_per_token}, rule<quantize_tokens>);
    s.add("dequantize-per-token", {op::qd_dequantize_per_token}, rule<dequantize_tokens>);
    s.add("quantize-per-group", {op::qd_quantize_per_channel_group}, rule<quantize_groups>);
    s.add("dequantize-per-group", {op::qd_dequantize_per_channel_group}, rule<dequantize_groups>);
    s.add("quantize-affine", {op::torchao_quantize_affine},
          rule<[](Emit &e) { return affine_blocks(e, true); }>);
    s.add("dequantize-affine", {op::torchao_dequantize_affine},
          rule<[](Emit &e) { return affine_blocks(e, false); }>);
    s.add("choose-qparams", {op::qd_choose_qparams}, rule<choose_for_tensor>);
    s.add("choose-qparams-per-token", {op::qd_choose_qparams_per_token}, rule<choose_for_tokens>);
    s.add("choose-qparams-per-token-asymmetric", {op::qd_choose_qparams_per_token_asymmetric},
          rule<choose_for_tokens_asymmetric>);
    s.add("microscaling",
          {op::circle_custom_mx_fake_quantize, op::circle_custom_quantize_mx,
           op::circle_custom_dequantize_mx},
          rule<mx<kTypes>>);
    return s;
  }();
  return set;
}

/// Records the operators that become arithmetic: those whose parameters no tensor carries.
void run_and_record(pass::PassContext &ctx, const pass::PatternSet &set, quant::Ledger &ledger) {
  std::vector<bool> kept(ctx.graph.num_op_ids(), false);
  std::vector<const ir::Op *> before;
  ir::walk(ctx.graph, [&](const ir::Op &op) {
    if (op.has(ir::trait::kQuantization) && !set.for_opcode(op.opcode()).empty())
      before.push_back(&op);
  });
  quant::Ledger::Pending pending(ctx.graph, before);
  ctx.run(set);
  ir::walk(ctx.graph, [&](const ir::Op &op) {
    if (op.id() < kept.size())
      kept[op.id()] = true;
  });
  ledger.dropped(pending, kept, "its parameters are no part of a type: computed as arithmetic");
}

} // namespace

void expand_quantization_pass(pass::PassContext &ctx) {
  const auto it = ctx.settings.find("mx");
  const bool types = it != ctx.settings.end() && it->second == "types";
  if (it != ctx.settings.end() && !types && it->second != "numbers") {
    Diagnostic d;
    d.kind = ErrorKind::Usage;
    d.code = "pass.setting";
    d.message = "mx is '" + it->second + "'";
    d.hint = "give `numbers` or `types`";
    return ctx.diagnostics.add(std::move(d));
  }
  const pass::PatternSet &set = types ? patterns<true>() : patterns<false>();
  if (quant::Ledger *ledger = quant::Ledger::active())
    run_and_record(ctx, set, *ledger);
  else
    ctx.run(set);
}

} // namespace chute::aten
