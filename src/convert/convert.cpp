#include "convert/convert.h"

#include "circle/writer.h"
#include "convert/interface.h"
#include "convert/pipelines.h"
#include "ir/verifier.h"
#include "pt2/reader.h"
#include "quant/ledger.h"
#include "support/trace.h"
#include "tosa/mlir.h"
#include "tosa/writer.h"

namespace chute::convert {

namespace {

double seconds_since(i64 start_us) {
  return static_cast<double>(Trace::now_us() - start_us) * 1e-6;
}

Status write_file(const ir::Graph &graph, const std::string &to, Target target,
                  ConvertReport &report) {
  if (target == Target::Circle) {
    circle::WriteStats stats;
    const Status s = circle::write(graph, to, {}, &stats);
    report.ops_written = stats.operators;
    report.bytes_written = stats.bytes;
    return s;
  }
  if (target == Target::Mlir)
    return tosa::write_mlir(graph, to);
  tosa::WriteStats stats;
  const Status s = tosa::write(graph, to, {}, &stats);
  report.ops_written = stats.operators;
  report.bytes_written = stats.bytes;
  return s;
}

} // namespace

bool convert_pt2(const std::string &from, const std::string &to, Target target,
                 const ConvertOptions &options, Diagnostics &diagnostics, ConvertReport &report) {
  const auto phase = [&](std::string_view name) {
    if (options.on_phase)
      options.on_phase(name);
  };

  phase("read");
  i64 start = Trace::now_us();
  ir::Context ctx;
  pt2::ReadOptions read;
  read.threads = options.threads;
  read.model = options.model;
  pt2::Summary summary;
  auto graph = [&] {
    const TraceScope scope("read");
    return pt2::read(ctx, from, diagnostics, read, &summary);
  }();
  if (!graph) {
    diagnostics.add(std::move(graph.error()));
    return false;
  }
  report.torch_version = summary.torch_version;
  report.nodes_read = summary.nodes;
  report.read_seconds = seconds_since(start);

  start = Trace::now_us();
  std::vector<std::string> passes = core_aten_pipeline();
  const std::vector<std::string> &lowering =
      target == Target::Circle ? circle_pipeline() : tosa_pipeline();
  passes.insert(passes.end(), lowering.begin(), lowering.end());
  phase(passes.front());
  pass::PipelineOptions pipeline = options.pipeline;
  pipeline.after_pass = [&](const pass::PassRecord &record, const ir::Graph &g) {
    if (options.pipeline.after_pass)
      options.pipeline.after_pass(record, g);
    phase(record.name);
  };
  {
    const quant::Ledger::Scope recording(options.ledger);
    if (!pass::run_pipeline(**graph, passes, diagnostics, pipeline, report.passes))
      return false;
  }
  if (options.ledger)
    options.ledger->finish(**graph);
  const size_t errors = diagnostics.error_count();
  {
    const TraceScope scope("verify");
    ir::verify(**graph, diagnostics);
  }
  if (diagnostics.error_count() != errors)
    return false;
  report.pass_seconds = seconds_since(start);

  phase("write");
  start = Trace::now_us();
  const TraceScope scope("write");
  if (Status s = write_file(**graph, to, target, report); !s) {
    diagnostics.add(std::move(s.error()));
    return false;
  }
  fill_interface(**graph, report);
  report.write_seconds = seconds_since(start);
  return true;
}

} // namespace chute::convert
