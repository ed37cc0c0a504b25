#include "ptq/apply.h"

#include "circle/ops.h"
#include "eval/quantized.h"
#include "ir/builder.h"
#include "ir/op_def.h"
#include "pass/constants.h"
#include "quant/params.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace chute::ptq {

namespace op = circle::op;
using pass::constant_of;

namespace {

class Applier {
public:
  Applier(ir::Graph &graph, const Plan &plan, IoType io, WeightRounder *rounder, ApplyStats &stats)
      : graph_(graph),
        ctx_(graph.context()),
        plan_(plan),
        scheme_(*plan.scheme),
        io_(io),
        rounder_(rounder),
        stats_(stats) {}

  Status run() {
    if (io_ == IoType::Quantized)
      for (ir::Value *arg : graph_.body().args())
        if (const ir::Quantization *q = quant_of(*arg))
          retype(*arg, scheme_.activation, q);
    if (rounder_)
      if (Status s = rounder_->begin(graph_); !s)
        return s;
    for (ir::Op &o : graph_.body()) {
      // Conversions that were inserted before have ids beyond the plan's.
      if (o.id() >= plan_.quantized.size() || o.has(ir::trait::kConstant))
        continue;
      if (plan_.quantized[o.id()]) {
        if (Status s = quantize(o); !s)
          return s;
      } else {
        keep(o);
      }
      if (rounder_)
        if (Status s = rounder_->done(o); !s)
          return s;
    }
    return {};
  }

private:
  /// What the plan wants for a value; conversions that were inserted are what they are.
  const ir::Quantization *quant_of(const ir::Value &v) const {
    return v.id() < plan_.quant.size() ? plan_.quant[v.id()] : v.type().quant();
  }
  void retype(ir::Value &v, ir::ElementType element, const ir::Quantization *q) {
    graph_.set_type(&v, ctx_.tensor_type(element, v.type().shape(), q));
  }

  /// `v` in another form, converted right behind its producer, once.
  ir::Value *converted(ir::Value &v, ir::ElementType element, const ir::Quantization *q) {
    const ir::Type type = ctx_.tensor_type(element, v.type().shape(), q);
    if (v.type() == type)
      return &v;
    ir::Value *&made = forms_[{v.id(), type.id()}];
    if (!made) {
      ir::Region &body = graph_.body();
      ir::Op *producer = v.producer();
      ir::Builder b(graph_, body, producer ? producer->next() : body.front());
      if (producer)
        b.set_loc(producer->loc());
      ir::Value *operands[] = {&v};
      made = b.create_typed(q ? op::QUANTIZE : op::DEQUANTIZE, operands, {}, std::span(&type, 1))
                 ->result();
      ++(q ? stats_.quantize_ops : stats_.dequantize_ops);
    }
    return made;
  }

  /// A constant stored as `element` with `q`.
  Result<ir::Value *> stored(const ir::Op &user, ir::Value &v, ir::ElementType element,
                             const ir::Quantization *q) {
    const ir::Constant &c = *constant_of(&v);
    ir::Value *&made = constants_[{c.id, element, q}];
    if (!made) {
      Result<eval::Tensor> t = eval::quantize(eval::Tensor::of_constant(c), element, *q);
      if (!t)
        return tl::unexpected(t.error());
      const ir::Type type = ctx_.tensor_type(element, c.type.shape(), q);
      ir::Builder b(graph_, graph_.body(), v.producer());
      b.set_loc(v.producer()->loc().id ? v.producer()->loc() : user.loc());
      made = b.constant(graph_.add_constant(type, t->data(), t->owner()), v.name());
      graph_.set_type(made, type);
    }
    return made;
  }

  /// An operator in float: whatever it uses is turned back.
  void keep(ir::Op &o) {
    if (o.opcode() == ir::core_op::ret && io_ == IoType::Quantized)
      return;
    for (u32 i = 0; i < o.num_operands(); ++i) {
      ir::Value *v = o.operand(i);
      if (v && v->type().is_tensor() && v->type().quant() && quant_of(*v))
        graph_.set_operand(&o, i, converted(*v, ir::ElementType::F32, nullptr));
    }
  }

  Status quantize(ir::Op &o) {
    const Rule rule = rule_of(o);
    const ir::Quantization *shared = nullptr; // of a Same operator
    if (rule.treatment == Treatment::Same)
      for (const ir::Value &v : o.results())
        if (is_real(&v))
          shared = quant_of(v);
    const ir::Value *bias = role(o, rule.roles.bias);
    const ir::Value *weight =
        constant_of(role(o, rule.roles.weight)) ? role(o, rule.roles.weight) : nullptr;
    for (u32 i = 0; i < o.num_operands(); ++i) {
      ir::Value *v = o.operand(i);
      // What came before is retyped already.
      const bool stored_before = v && v->type().is_tensor() && v->type().quant();
      if ((!is_real(v) && !stored_before) || v == bias || v == weight)
        continue;
      if (const ir::Constant *c = constant_of(v)) {
        Result<ir::Value *> made = constant(o, *v, *c, i, shared);
        if (!made)
          return tl::unexpected(made.error());
        graph_.set_operand(&o, i, *made);
        continue;
      }
      const ir::Quantization *wanted = shared ? shared : quant_of(*v);
      graph_.set_operand(&o, i, converted(*v, scheme_.activation, wanted));
    }
    if (weight || bias)
      if (Status s = contraction(o, rule.roles, weight, bias); !s)
        return s;
    for (ir::Value &v : o.results())
      if (is_real(&v) && quant_of(v))
        retype(v, scheme_.activation, quant_of(v));
    if (const ir::Quantization *table = table_quant(o))
      requantize(o, table);
    return {};
  }

  static ir::Value *role(const ir::Op &o, int index) {
    return index >= 0 && static_cast<u32>(index) < o.num_operands()
               ? o.operand(static_cast<u32>(index))
               : nullptr;
  }

  /// A constant that is neither weights nor bias: numbers like any other.
  Result<ir::Value *> constant(ir::Op &o, ir::Value &v, const ir::Constant &c, u32 index,
                               const ir::Quantization *shared) {
    const bool table = (o.opcode() == op::GATHER && index == 0) ||
                       (o.opcode() == op::EMBEDDING_LOOKUP && index == 1);
    if (table && scheme_.table != scheme_.activation)
      return stored(o, v, scheme_.table, parameters(ctx_, range_of(c), scheme_.table, false));
    if (shared)
      return stored(o, v, scheme_.activation, shared);
    const float depth = o.num_results() ? plan_.mask_depth[o.result()->id()] : 0;
    Range r = range_of(c, depth > 0 ? -depth : 0);
    if (depth > 0)
      r.include({-depth, 0});
    return stored(o, v, scheme_.activation,
                  parameters(ctx_, r, scheme_.activation, scheme_.activation_symmetric));
  }

  /// The parameters of a table that rows are gathered from in a narrower type than activations.
  const ir::Quantization *table_quant(const ir::Op &o) const {
    if (scheme_.table == scheme_.activation ||
        (o.opcode() != op::GATHER && o.opcode() != op::EMBEDDING_LOOKUP))
      return nullptr;
    const ir::Value *table = o.operand(o.opcode() == op::GATHER ? 0 : 1);
    return constant_of(table) ? table->type().quant() : nullptr;
  }
  /// The operator moves the table's stored numbers; a QUANTIZE makes activations of them.
  void requantize(ir::Op &o, const ir::Quantization *table) {
    ir::Value &v = *o.result();
    const ir::Type type = v.type();
    ir::Builder b(graph_, graph_.body(), o.next());
    b.set_loc(o.loc());
    ir::Value *operands[] = {&v};
    ir::Op *q = b.create_typed(op::QUANTIZE, operands, {}, std::span(&type, 1));
    ++stats_.quantize_ops;
    graph_.replace_all_uses(&v, q->result());
    graph_.set_operand(q, 0, &v);
    retype(v, scheme_.table, table);
  }

  /// Weights per output channel, and the bias in steps of the product.
  Status contraction(ir::Op &o, const Roles &roles, const ir::Value *weight,
                     const ir::Value *bias) {
    const ir::Value *x = o.operand(static_cast<u32>(roles.data));
    const float x_scale = x->type().quant()->scales[0];
    const ir::Quantization *w = nullptr;
    eval::Tensor b;
    if (bias)
      b = eval::Tensor::of_constant(*constant_of(bias));
    if (weight) {
      eval::Tensor real = eval::Tensor::of_constant(*constant_of(weight));
      Result<eval::Tensor> adjusted = rounder_ ? rounder_->adjust(o, roles) : eval::Tensor();
      if (!adjusted)
        return tl::unexpected(adjusted.error());
      if (adjusted->defined())
        real = *adjusted;
      w = weight_parameters(real, roles.channel, x_scale, b,
                            plan_.per_layer ||
                                (scheme_.linear_per_layer && o.opcode() == op::FULLY_CONNECTED));
      Result<ir::Value *> made = adjusted->defined()
                                     ? rounded(*role(o, roles.weight), real, w)
                                     : stored(o, *role(o, roles.weight), scheme_.weight, w);
      if (!made)
        return tl::unexpected(made.error());
      graph_.set_operand(&o, static_cast<u32>(roles.weight), *made);
    } else {
      w = o.operand(static_cast<u32>(roles.weight))->type().quant();
    }
    if (!bias)
      return {};
    std::vector<float> scales;
    for (const float s : w->scales)
      scales.push_back(std::max(s * x_scale, 1e-37f));
    ir::Quantization q;
    q.kind = scales.size() > 1 ? ir::QuantKind::PerChannel : ir::QuantKind::PerTensor;
    q.scales = scales;
    Result<ir::Value *> made = stored(o, *role(o, roles.bias), scheme_.bias, ctx_.quantization(q));
    if (!made)
      return tl::unexpected(made.error());
    graph_.set_operand(&o, static_cast<u32>(roles.bias), *made);
    return {};
  }

  /// Weights of this operator alone: what others do with the constant is not known here.
  Result<ir::Value *> rounded(ir::Value &v, const eval::Tensor &real, const ir::Quantization *q) {
    const Result<eval::Tensor> t = rounder_->round(real, scheme_.weight, *q);
    if (!t)
      return tl::unexpected(t.error());
    ++stats_.adjusted;
    const ir::Type type = ctx_.tensor_type(scheme_.weight, v.type().shape(), q);
    ir::Builder b(graph_, graph_.body(), v.producer());
    b.set_loc(v.producer()->loc());
    ir::Value *made = b.constant(graph_.add_constant(type, t->data(), t->owner()), v.name());
    graph_.set_type(made, type);
    return made;
  }

  /// A scale per channel from its extremes. Wide enough for the channel's bias to fit its type.
  const ir::Quantization *weight_parameters(const eval::Tensor &w, int axis, float x_scale,
                                            const eval::Tensor &bias, bool per_layer) {
    const i64 channels = w.dim(axis);
    const i64 inner =
        eval::num_elements(std::span(w.shape()).subspan(static_cast<size_t>(axis) + 1));
    std::vector<Range> range(static_cast<size_t>(channels));
    const float *f = w.as<float>();
    Range whole;
    for (i64 i = 0; i < w.num_elements(); ++i) {
      const Range point{f[i], f[i]};
      range[static_cast<size_t>(i / inner % channels)].include(point);
      whole.include(point);
    }
    if (per_layer)
      std::fill(range.begin(), range.end(), whole);
    const quant::Range bias_range = quant::range_of(scheme_.bias).value_or(quant::Range{});
    std::vector<float> scales;
    std::vector<i64> zeros;
    for (size_t c = 0; c < range.size(); ++c) {
      // A channel of zeros takes the tensor's steps, so that its bias has fine ones too.
      const bool blank = range[c].empty() || (range[c].lo == 0 && range[c].hi == 0);
      const ir::Quantization *q =
          parameters(ctx_, blank ? whole : range[c], scheme_.weight, scheme_.weight_symmetric);
      float scale = q->scales[0];
      if (bias.defined() && bias.num_elements() == channels) {
        const double b = std::fabs(bias.at(static_cast<i64>(c)));
        const double limit = static_cast<double>(bias_range.max) * static_cast<double>(x_scale);
        scale = std::max(scale, static_cast<float>(b / limit));
      }
      scales.push_back(scale);
      zeros.push_back(q->zero_points[0]);
    }
    ir::Quantization q;
    if (per_layer) {
      scales = {*std::max_element(scales.begin(), scales.end())};
      zeros.resize(1);
    } else {
      q.kind = ir::QuantKind::PerChannel;
      q.axis = axis;
    }
    q.scales = scales;
    q.zero_points = zeros;
    return ctx_.quantization(q);
  }

  ir::Graph &graph_;
  ir::Context &ctx_;
  const Plan &plan_;
  const Scheme &scheme_;
  const IoType io_;
  WeightRounder *rounder_;
  ApplyStats &stats_;
  // Looked up by key only.
  std::map<std::pair<u32, u32>, ir::Value *> forms_; // by value and type
  std::map<std::tuple<u32, ir::ElementType, const ir::Quantization *>, ir::Value *> constants_;
};

} // namespace

Status apply(ir::Graph &graph, const Plan &plan, IoType io, WeightRounder *rounder,
             ApplyStats &stats) {
  return Applier(graph, plan, io, rounder, stats).run();
}

} // namespace chute::ptq
