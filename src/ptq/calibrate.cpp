#include "ptq/calibrate.h"

#include "circle/ops.h"
#include "eval/convert.h"
#include "eval/evaluator.h"
#include "eval/strided.h"
#include "ir/op_def.h"
#include "ptq/rules.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace chute::ptq {

namespace op = circle::op;

std::string name_of(const ir::Graph &graph, const ir::Value &v) {
  if (v.name())
    return std::string(graph.context().string(v.name()));
  if (const ir::Op *producer = v.producer())
    if (const std::string_view node = graph.locations().node_name(producer->loc()); !node.empty())
      return std::string(node);
  return "%" + std::to_string(v.id());
}

Result<std::vector<Sample>> samples_of(const ir::Graph &graph,
                                       std::span<const std::pair<std::string, eval::Tensor>> arrays,
                                       const std::string &where) {
  const auto find = [&](const std::string &name) -> const eval::Tensor * {
    for (const auto &[key, tensor] : arrays)
      if (key == name)
        return &tensor;
    return nullptr;
  };
  std::vector<const eval::Tensor *> given;
  std::vector<const ir::InputInfo *> inputs;
  i64 stacked = -1;
  size_t position = 0;
  for (const ir::InputInfo &input : graph.inputs()) {
    const std::string by_position = "in" + std::to_string(position++);
    if (!input.value)
      continue;
    const eval::Tensor *t = find(input.name);
    if (!t)
      t = find(by_position);
    if (!t)
      return fail(ErrorKind::Usage, "quantize.sample.missing",
                  "no array named '" + input.name + "' or '" + by_position + "'", where,
                  "`chute inspect` lists the model's inputs");
    const int rank = input.value->type().is_tensor() ? input.value->type().rank() : 0;
    if (t->rank() == rank + 1 && (inputs.empty() || stacked >= 0)) {
      if (stacked >= 0 && stacked != t->dim(0))
        return fail(ErrorKind::Usage, "quantize.sample.shape",
                    "the array for " + input.name + " holds " + std::to_string(t->dim(0)) +
                        " samples, the one before it " + std::to_string(stacked),
                    where);
      stacked = t->dim(0);
    } else if (t->rank() != rank || stacked >= 0) {
      return fail(ErrorKind::Usage, "quantize.sample.shape",
                  "the array for " + input.name + " has rank " + std::to_string(t->rank()) +
                      ", the model takes rank " + std::to_string(rank),
                  where, "one more dim than the input, in every array, holds one sample per index");
    }
    given.push_back(t);
    inputs.push_back(&input);
  }
  std::vector<Sample> out(stacked >= 0 ? static_cast<size_t>(stacked) : 1);
  for (size_t i = 0; i < given.size(); ++i) {
    const ir::Type type = inputs[i]->value->type();
    if (!type.is_tensor())
      return fail(ErrorKind::Usage, "quantize.sample.type",
                  "the input " + inputs[i]->name + " is no tensor", where);
    const bool alike = ir::is_float(type.element()) == ir::is_float(given[i]->element()) &&
                       eval::computable(given[i]->element());
    if (type.element() != given[i]->element() && !alike)
      return fail(ErrorKind::Usage, "quantize.sample.type",
                  "the array for " + inputs[i]->name + " is of " +
                      std::string(ir::element_type_name(given[i]->element())) +
                      ", the model takes " + std::string(ir::element_type_name(type.element())),
                  where);
    for (size_t k = 0; k < out.size(); ++k) {
      eval::Tensor t = *given[i];
      if (stacked >= 0) {
        const eval::Shape shape(t.shape().begin() + 1, t.shape().end());
        const eval::Shape strides = eval::dense_strides(shape);
        t = eval::gather_strided(t, shape, static_cast<i64>(k) * eval::num_elements(shape),
                                 strides);
      }
      out[k].push_back(type.element() == t.element() ? t : eval::cast(t, type.element()));
    }
  }
  return out;
}

namespace {

/// Through which a mask keeps its meaning.
bool carries_masks(const ir::Op &o) {
  static constexpr ir::OpCode kCarriers[] = {op::ADD,       op::SUB,     op::MUL,    op::SELECT,
                                             op::SELECT_V2, op::MAXIMUM, op::MINIMUM};
  return o.has(ir::trait::kMovement) ||
         std::find(std::begin(kCarriers), std::end(kCarriers), o.opcode()) != std::end(kCarriers);
}

bool holds_masks(const ir::Value &v) {
  const ir::Op *producer = v.producer();
  if (!producer || !producer->has(ir::trait::kConstant) ||
      v.type().element() != ir::ElementType::F32)
    return false;
  const ir::Constant &c = *producer->attr("value").as_constant();
  if (!c.has_data)
    return false;
  const eval::Tensor t = eval::Tensor::of_constant(c);
  const float *f = t.as<float>();
  return std::any_of(f, f + t.num_elements(), [](float x) { return x <= -9999; });
}

} // namespace

Masks::Masks(const ir::Graph &graph) : threshold_(graph.num_value_ids()) {
  // Attention masks are often no more than -10000 plus a score; what a maximum ignores is infinite
  // or the least number of its type.
  constexpr float kScores = -5000;
  constexpr float kLeast = -1e30f;
  std::vector<float> reaches(graph.num_value_ids());
  for (const ir::Op *o = graph.body().back(); o; o = o->previous()) {
    float leads = 0;
    if (o->opcode() == op::SOFTMAX || o->opcode() == op::LOG_SOFTMAX)
      leads = kScores;
    else if (o->opcode() == op::MAX_POOL_2D || o->opcode() == op::REDUCE_MAX)
      leads = kLeast;
    else if (carries_masks(*o))
      for (const ir::Value &v : o->results())
        leads = std::min(leads, reaches[v.id()]);
    if (leads != 0)
      for (const ir::Use &u : o->operand_uses())
        if (u.value())
          reaches[u.value()->id()] = std::min(reaches[u.value()->id()], leads);
  }
  for (const ir::Op *o = graph.body().front(); o; o = o->next()) {
    if (!carries_masks(*o))
      continue;
    bool any = false;
    for (const ir::Value &v : o->results())
      any = any || reaches[v.id()] != 0;
    if (!any)
      continue;
    any = false;
    for (const ir::Use &u : o->operand_uses())
      any = any || (is_real(u.value()) && (masked(*u.value()) || holds_masks(*u.value())));
    for (const ir::Value &v : o->results())
      threshold_[v.id()] = any ? reaches[v.id()] : 0;
  }
}

Status Ranges::observe(const ir::Graph &graph, const Sample &sample, int threads) {
  Status status;
  eval::EvalOptions options;
  options.threads = threads;
  std::vector<float> finite;
  options.on_value = [&](const ir::Value &v, const eval::Tensor &t) {
    if (!status || t.element() != ir::ElementType::F32 || v.id() >= observers_.size())
      return;
    std::unique_ptr<Observer> &observer = observers_[v.id()];
    if (!observer)
      observer = std::make_unique<Observer>(options_);
    std::span<const float> values(t.as<float>(), static_cast<size_t>(t.num_elements()));
    const bool masked = masks_.masked(v);
    for (const float x : values)
      if (std::isnan(x) || (std::isinf(x) && !masked)) {
        const ir::Op *producer = v.producer();
        status = fail(ErrorKind::BadInput, "quantize.not_finite",
                      std::string(std::isnan(x) ? "NaN" : "an infinite number") +
                          " in the calibration run",
                      name_of(graph, v) +
                          (producer ? " (" + std::string(producer->name()) + ")" : " (input)"),
                      "check the calibration data and the float model with `chute run`");
        return;
      }
    if (masked) {
      const auto row = static_cast<size_t>(t.rank() ? t.dim(t.rank() - 1) : 1);
      for (size_t i = 0; row && i < values.size(); i += row) {
        const float top = *std::max_element(values.begin() + static_cast<i64>(i),
                                            values.begin() + static_cast<i64>(i + row));
        if (!masks_.is_mask(v, top))
          tops_[v.id()] = std::min(tops_[v.id()], top);
      }
      finite.clear();
      std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
                   [&](float x) { return !masks_.is_mask(v, x); });
      values = finite;
    }
    observer->observe(values);
  };
  const auto outputs = eval::evaluate(graph, sample, options);
  if (!status)
    return status;
  if (!outputs)
    return tl::unexpected(outputs.error());
  return {};
}

} // namespace chute::ptq
