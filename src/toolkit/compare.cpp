#include "toolkit/compare.h"

#include "eval/evaluator.h"
#include "eval/quantized.h"
#include "ir/walk.h"
#include "toolkit/align.h"
#include "toolkit/inputs.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cmath>

namespace chute::toolkit {

namespace {

using eval::Tensor;
using ir::Op;
using ir::Value;

Tensor real(const Tensor &t, ir::Type type) {
  if (type && type.is_tensor() && type.quant() && ir::is_integer(t.element()))
    if (auto r = eval::dequantize(t, *type.quant()))
      return *r;
  return t;
}

std::string shape_text(const Tensor &t) {
  std::string out = "[";
  for (i64 d : t.shape())
    out += (out.size() > 1 ? "," : "") + std::to_string(d);
  return out + "]";
}

} // namespace

Difference measure(const Tensor &a, ir::Type type_a, const Tensor &b, ir::Type type_b,
                   const Tolerance &tolerance) {
  Difference out;
  if (!a.defined() || !b.defined()) {
    out.comparable = a.defined() == b.defined();
    out.problem = out.comparable ? "" : "one has no value";
    return out;
  }
  if (a.shape() != b.shape()) {
    out.comparable = false;
    out.problem = "shape " + shape_text(a) + " against " + shape_text(b);
    return out;
  }
  const Tensor x = real(a, type_a), y = real(b, type_b);
  const auto number = [](const Tensor &t) {
    return ir::is_float(t.element()) || ir::is_integer(t.element()) ||
           t.element() == ir::ElementType::Bool;
  };
  out.elements = x.num_elements();
  if (!number(x) || !number(y)) {
    out.comparable = false;
    out.problem = "elements are no real numbers";
    return out;
  }
  double signal = 0, noise = 0;
  for (i64 i = 0; i < out.elements; ++i) {
    const double p = x.at(i), q = y.at(i);
    if (std::isfinite(p))
      signal += p * p;
    if (p == q || (std::isnan(p) && std::isnan(q)))
      continue;
    double d = std::abs(p - q);
    if (std::isnan(d))
      d = std::numeric_limits<double>::infinity();
    noise += d * d;
    out.max_abs = std::max(out.max_abs, d);
    if (p != 0 && std::isfinite(p))
      out.max_rel = std::max(out.max_rel, d / std::abs(p));
    out.beyond +=
        !(d <= tolerance.absolute + tolerance.relative * std::abs(p)) || !std::isfinite(d);
  }
  if (noise > 0)
    out.sqnr_db = signal > 0 && std::isfinite(noise) ? 10 * std::log10(signal / noise)
                                                     : -std::numeric_limits<double>::infinity();
  return out;
}

std::vector<size_t> user_outputs(const ir::Graph &graph) {
  std::vector<size_t> out;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (graph.outputs()[i].kind == ir::OutputKind::User)
      out.push_back(i);
  return out;
}

Result<std::vector<Tensor>> inputs_for(const ir::Graph &b, const ir::Graph &a,
                                       std::span<const Tensor> inputs) {
  std::vector<const ir::InputInfo *> from, to;
  for (const ir::InputInfo &i : a.inputs())
    if (i.value)
      from.push_back(&i);
  for (const ir::InputInfo &i : b.inputs())
    if (i.value)
      to.push_back(&i);
  const auto wrong = [](std::string why) {
    return fail(ErrorKind::Usage, "toolkit.compare.inputs", std::move(why), {},
                "`chute diff` shows how the interfaces differ");
  };
  if (from.size() != inputs.size())
    return wrong(std::to_string(inputs.size()) + " inputs for a program that takes " +
                 std::to_string(from.size()));
  boost::unordered_flat_map<std::string_view, size_t> by_name;
  for (size_t i = 0; i < from.size(); ++i)
    by_name.try_emplace(from[i]->name, i);
  bool all_named = by_name.size() == from.size();
  for (const ir::InputInfo *t : to)
    all_named = all_named && by_name.contains(t->name);
  if (!all_named && from.size() != to.size())
    return wrong("one program takes " + std::to_string(from.size()) + " inputs, the other " +
                 std::to_string(to.size()) + " of other names");
  std::vector<Tensor> out;
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t at = all_named ? by_name.at(to[i]->name) : i;
    Tensor given = inputs[at];
    // A quantized reference hands on the real numbers, so that a float program can take them.
    const ir::Type type_a = from[at]->value->type(), type_b = to[i]->value->type();
    if (type_a.is_tensor() && type_b.is_tensor() && type_a.quant() != type_b.quant())
      given = real(given, type_a);
    out.push_back(fit_input(given, *to[i]));
  }
  return out;
}

bool CompareReport::within() const {
  if (!problem.empty())
    return false;
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const OutputDifference &o) { return o.difference.within(); });
}

namespace {

/// Which value of `b` a value of `a` is compared with, body values alone.
class Partners {
public:
  Partners(const ir::Graph &a, const ir::Graph &b) {
    of_a_.assign(a.num_value_ids(), nullptr);
    of_b_.assign(b.num_value_ids(), nullptr);
    const Alignment alignment = align(a, b);
    std::vector<const Value *> rest_a, rest_b;
    for (const Op &op : a.body()) {
      if (op.has(ir::trait::kConstant))
        continue;
      for (const Value &v : op.results()) {
        const Value *other = alignment.value_b_of_a[v.id()];
        if (other && other->producer() && other->producer()->parent() == &b.body())
          pair(v, *other);
        else
          rest_a.push_back(&v);
      }
    }
    for (const Op &op : b.body())
      if (!op.has(ir::trait::kConstant))
        for (const Value &v : op.results())
          if (!of_b_[v.id()])
            rest_b.push_back(&v);
    by_name(rest_a, rest_b);
  }
  const Value *of_a(const Value &v) const { return of_a_[v.id()]; }
  const Value *of_b(const Value &v) const { return of_b_[v.id()]; }
  bool by_name(const Value &of_a) const { return named_.contains(&of_a); }

private:
  bool pair(const Value &x, const Value &y) {
    if (of_b_[y.id()])
      return false;
    of_a_[x.id()] = &y;
    of_b_[y.id()] = &x;
    return true;
  }
  void by_name(const std::vector<const Value *> &a, const std::vector<const Value *> &b) {
    struct Seen {
      const Value *value = nullptr;
      u32 count = 0;
    };
    boost::unordered_flat_map<u32, Seen> names; // of b, by StringId
    boost::unordered_flat_map<u32, u32> counts; // of a
    for (const Value *v : b) {
      Seen &s = names[v->name().id];
      s.value = v;
      ++s.count;
    }
    for (const Value *v : a)
      ++counts[v->name().id];
    for (const Value *v : a) {
      const auto it = v->name() ? names.find(v->name().id) : names.end();
      if (it != names.end() && it->second.count == 1 && counts[v->name().id] == 1)
        if (pair(*v, *it->second.value))
          named_.insert(v);
    }
  }
  std::vector<const Value *> of_a_; // by Value::id
  std::vector<const Value *> of_b_;
  boost::unordered_flat_set<const Value *> named_; // of a
};

} // namespace

Result<CompareReport> compare(const ir::Graph &a, const ir::Graph &b,
                              std::span<const Tensor> inputs, const CompareOptions &options) {
  auto inputs_b = inputs_for(b, a, inputs);
  if (!inputs_b)
    return tl::unexpected(std::move(inputs_b.error()));
  CompareReport report;
  std::optional<Partners> partners;
  struct Kept {
    Tensor tensor;
    u64 step;
  };
  boost::unordered_flat_map<const Value *, Kept> kept;
  if (options.layers)
    partners.emplace(a, b);

  eval::EvalOptions run;
  run.threads = options.threads;
  u64 step = 0;
  if (options.layers)
    run.on_value = [&](const Value &v, const Tensor &t) {
      if (v.producer() && partners->of_a(v))
        kept.insert_or_assign(&v, Kept{t, step++});
    };
  auto outputs_a = eval::evaluate(a, inputs, run);
  if (!outputs_a)
    return tl::unexpected(std::move(outputs_a.error()));
  if (options.layers)
    run.on_value = [&](const Value &v, const Tensor &t) {
      const Value *x = v.producer() ? partners->of_b(v) : nullptr;
      const auto it = x ? kept.find(x) : kept.end();
      if (it == kept.end())
        return;
      LayerDifference layer;
      layer.difference = measure(it->second.tensor, x->type(), t, v.type(), options.tolerance);
      if (layer.difference.comparable) {
        layer.op_a = x->producer()->name();
        layer.op_b = v.producer()->name();
        layer.name_a = a.context().string(x->name());
        layer.name_b = b.context().string(v.name());
        layer.module_path = a.locations().resolve(x->producer()->loc()).module_path;
        layer.step = it->second.step;
        layer.by_name = partners->by_name(*x);
        report.layers.push_back(std::move(layer));
      }
      kept.erase(it);
    };
  auto outputs_b = eval::evaluate(b, *inputs_b, run);
  if (!outputs_b)
    return tl::unexpected(std::move(outputs_b.error()));

  std::stable_sort(report.layers.begin(), report.layers.end(),
                   [](const auto &x, const auto &y) { return x.step < y.step; });
  const std::vector<size_t> of_a = user_outputs(a), of_b = user_outputs(b);
  if (of_a.size() != of_b.size())
    report.problem =
        std::to_string(of_a.size()) + " outputs against " + std::to_string(of_b.size());
  const auto type_of = [](const ir::Graph &g, size_t i) {
    const ir::OutputInfo &o = g.outputs()[i];
    return o.operand >= 0 && g.return_op()
               ? g.return_op()->operand(static_cast<u32>(o.operand))->type()
               : ir::Type();
  };
  for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) {
    const size_t p = of_a[i], q = of_b[i];
    report.outputs.push_back({a.outputs()[p].name, b.outputs()[q].name,
                              measure((*outputs_a)[p], type_of(a, p), (*outputs_b)[q],
                                      type_of(b, q), options.tolerance)});
  }
  if (report.within())
    std::erase_if(report.layers,
                  [](const LayerDifference &l) { return l.by_name && !l.difference.within(); });
  for (size_t i = 0; i < report.layers.size() && report.first_parting < 0; ++i)
    if (!report.layers[i].difference.within())
      report.first_parting = static_cast<i64>(i);
  return report;
}

} // namespace chute::toolkit
