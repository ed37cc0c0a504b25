#include "ptq/ptq.h"

#include "ir/op_def.h"
#include "ir/walk.h"
#include "support/parallel.h"

namespace chute::ptq {

namespace {

Status check_float(const ir::Graph &graph) {
  Status status;
  const auto look = [&](const ir::Value &v) {
    if (status && v.type().is_tensor() && v.type().quant())
      status = fail(ErrorKind::Usage, "quantize.already", "the model has quantized tensors already",
                    name_of(graph, v), "give the float model");
  };
  for (const ir::Value *arg : graph.body().args())
    look(*arg);
  ir::walk(graph, [&](const ir::Op &o) {
    for (const ir::Value &v : o.results())
      look(v);
  });
  return status;
}

void describe(const ir::Graph &graph, const ir::Op &o, std::string &name, std::string &op,
              std::string &module) {
  name = o.num_results() ? name_of(graph, *o.result()) : std::string(o.name());
  op = o.name();
  module = graph.locations().resolve(o.loc()).module_path;
}

void fill(Report &report, const ir::Graph &reference, const ir::Graph &quantized, const Plan &plan,
          const Ranges &ranges, const Measurement &measured) {
  for (const ir::Op &o : reference.body()) {
    if (!plan.quantized[o.id()])
      continue;
    for (const ir::Value &v : o.results()) {
      const ir::Quantization *q = plan.quant[v.id()];
      if (!q)
        continue;
      Layer l;
      describe(reference, o, l.name, l.op, l.module);
      l.name = name_of(reference, v);
      l.type = ir::element_type_name(plan.scheme->activation);
      l.scale = q->scales[0];
      l.zero_point = q->zero_points[0];
      if (const Observer *seen = ranges.of(v))
        l.seen = seen->seen();
      l.sqnr = measured.of(v).sqnr();
      report.layers.push_back(std::move(l));
    }
  }
  for (const Refusal &r : plan.refused) {
    Kept k;
    describe(reference, *r.op, k.name, k.op, k.module);
    k.reason = r.reason;
    report.kept.push_back(std::move(k));
  }
  for (size_t i = 0; i < measured.outputs().size(); ++i)
    report.outputs.emplace_back(i < quantized.outputs().size() ? quantized.outputs()[i].name
                                                               : "out" + std::to_string(i),
                                measured.outputs()[i].sqnr());
}

} // namespace

Result<std::unique_ptr<ir::Graph>> quantize(const LoadGraph &load, const ForEachSample &samples,
                                            const Options &options, Report &report) {
  auto reference = load();
  if (!reference)
    return reference;
  const ir::Graph &graph = **reference;
  if (Status s = check_float(graph); !s)
    return tl::unexpected(s.error());

  Ranges ranges(graph, options.observer);
  Status observed = samples(graph, [&](const Sample &sample) {
    ++report.samples;
    return ranges.observe(graph, sample, options.threads);
  });
  if (!observed)
    return tl::unexpected(observed.error());
  if (report.samples == 0)
    return fail(ErrorKind::Usage, "quantize.no_samples", "there is no calibration sample", {},
                "give arrays for the inputs: --calibrate data.npz");

  const Plan plan = make_plan(graph, ranges, options.plan);
  if (std::find(plan.quantized.begin(), plan.quantized.end(), true) == plan.quantized.end())
    return fail(ErrorKind::Unsupported, "quantize.nothing", "every operator stays in float",
                plan.refused.empty() ? std::string() : std::string(plan.refused[0].op->name()),
                plan.refused.empty() ? "the model computes nothing on f32 tensors"
                                     : "the first one: " + plan.refused[0].reason);
  auto quantized = load();
  if (!quantized)
    return quantized;
  std::unique_ptr<WeightRounder> rounder;
  Status possible = check_gptq(graph);
  if (options.weights == WeightMode::Gptq && !possible)
    return tl::unexpected(possible.error());
  if (options.weights == WeightMode::Auto && !possible)
    report.without_gptq = possible.error().object + ": " + possible.error().message;
  if (options.weights != WeightMode::Nearest && possible) {
    std::vector<Sample> first;
    Status gathered = samples(graph, [&](const Sample &sample) -> Status {
      if (first.size() < options.gptq_samples)
        first.push_back(sample);
      return {};
    });
    if (!gathered)
      return tl::unexpected(gathered.error());
    rounder = make_gptq(graph, std::move(first), options.weights == WeightMode::Gptq ? 4096 : 1024);
  }
  ApplyStats stats;
  Status applied;
  with_threads(options.threads,
               [&] { applied = apply(**quantized, plan, options.io, rounder.get(), stats); });
  if (!applied)
    return tl::unexpected(applied.error());
  rounder.reset();
  report.adjusted = stats.adjusted;
  report.quantize_ops = stats.quantize_ops;
  report.dequantize_ops = stats.dequantize_ops;

  Measurement measured(graph);
  size_t left = options.report_samples;
  Status compared = samples(graph, [&](const Sample &sample) -> Status {
    if (left == 0)
      return {};
    --left;
    return measured.add(**quantized, sample, options.threads);
  });
  if (!compared)
    return tl::unexpected(compared.error());
  fill(report, graph, **quantized, plan, ranges, measured);
  return quantized;
}

} // namespace chute::ptq
