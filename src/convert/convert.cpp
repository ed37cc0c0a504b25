#include "convert/convert.h"

#include "circle/writer.h"
#include "convert/interface.h"
#include "convert/pipelines.h"
#include "ethosu/vela.h"
#include "executorch/program.h"
#include "executorch/spec.h"
#include "ir/verifier.h"
#include "pt2/reader.h"
#include "quant/ledger.h"
#include "support/output_file.h"
#include "support/parallel.h"
#include "support/trace.h"
#include "tosa/mlir.h"
#include "tosa/writer.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <mutex>

namespace chute::convert {

namespace {

double seconds_since(i64 start_us) {
  return static_cast<double>(Trace::now_us() - start_us) * 1e-6;
}

Status save(const std::string &to, std::span<const std::byte> bytes, ConvertReport &report) {
  auto file = OutputFile::create(to);
  if (!file)
    return tl::unexpected(file.error());
  if (Status s = file->write(bytes); !s)
    return s;
  report.bytes_written = bytes.size();
  return file->commit();
}

/// Vela's figures beside the modules of the program.
void join_layers(const ir::Graph &graph, const ethosu::Compiled &compiled,
                 const std::vector<std::pair<std::string, ir::LocId>> &names,
                 ConvertReport &report) {
  boost::unordered_flat_map<std::string_view, ir::LocId> places;
  for (const auto &[name, loc] : names)
    places.try_emplace(name, loc);
  for (const ethosu::Layer &l : compiled.layers) {
    AcceleratorLayer out{l.name, l.original, l.target, {}, {}, l.cycles, l.macs, l.utilization};
    if (const auto it = places.find(l.name); it != places.end()) {
      ir::Provenance place = graph.locations().resolve(it->second);
      out.module_path = std::move(place.module_path);
      out.source_line = std::move(place.source_line);
    }
    report.layers.push_back(std::move(out));
  }
  report.accelerator_totals = compiled.totals;
}

/// A TOSA file, an ExecuTorch program around it, or around what Vela makes of it.
Status write_tosa(const ir::Graph &graph, const std::string &to, Target target,
                  const std::string &accelerator, ConvertReport &report) {
  std::vector<std::pair<std::string, ir::LocId>> names;
  tosa::WriteOptions options;
  options.names = accelerator.empty() ? nullptr : &names;
  tosa::WriteStats stats;
  const auto payload = tosa::write_bytes(graph, options, &stats);
  if (!payload)
    return tl::unexpected(payload.error());
  report.ops_written = stats.operators;
  executorch::Delegate delegate;
  delegate.backend = "TOSABackend";
  delegate.compile_specs = {{"tosa_spec", executorch::tosa_spec(graph)},
                            {"output_format", "tosa"},
                            {"preserve_io_quantization", "False"}};
  delegate.payload = *payload;
  ethosu::Compiled compiled;
  if (!accelerator.empty()) {
    const auto hardware = ethosu::parse_accelerator(accelerator);
    if (!hardware)
      return tl::unexpected(hardware.error());
    auto made = ethosu::compile(*payload, *hardware);
    if (!made)
      return tl::unexpected(made.error());
    compiled = std::move(*made);
    join_layers(graph, compiled, names, report);
    delegate.backend = "EthosUBackend";
    delegate.compile_specs = {{"tosa_spec", executorch::tosa_spec(graph)},
                              {"compile_flags", ethosu::flags_of(*hardware)},
                              {"output_format", "vela"},
                              {"target", accelerator},
                              {"preserve_io_quantization", "False"}};
    delegate.payload = compiled.stream;
  }
  if (target == Target::Tosa)
    return save(to, *payload, report);
  const auto program = executorch::write_program(graph, delegate);
  if (!program)
    return tl::unexpected(program.error());
  return save(to, *program, report);
}

Status write_file(const ir::Graph &graph, const std::string &to, Target target,
                  const std::string &accelerator, ConvertReport &report) {
  if (target == Target::Mlir)
    return tosa::write_mlir(graph, to);
  if (target != Target::Circle)
    return write_tosa(graph, to, target, accelerator, report);
  circle::WriteStats stats;
  const Status s = circle::write(graph, to, {}, &stats);
  report.ops_written = stats.operators;
  report.bytes_written = stats.bytes;
  return s;
}

/// A graph and what it is interned in.
class Program {
public:
  explicit Program(bool leave) : leave_(leave), parts_(std::make_unique<Parts>()) {}
  ~Program() {
    if (!leave_)
      return;
    // Reachable from here, so nobody takes it for a leak.
    static std::mutex mutex;
    static auto *left = new std::vector<std::unique_ptr<Parts>>;
    const std::lock_guard lock(mutex);
    left->push_back(std::move(parts_));
  }
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  ir::Context &context() { return parts_->context; }
  ir::Graph &keep(std::unique_ptr<ir::Graph> graph) {
    parts_->graph = std::move(graph);
    return *parts_->graph;
  }

private:
  struct Parts {
    ir::Context context;
    std::unique_ptr<ir::Graph> graph; // goes first
  };
  bool leave_;
  std::unique_ptr<Parts> parts_;
};

} // namespace

bool convert_pt2(const std::string &from, const std::string &to, Target target,
                 const ConvertOptions &options, Diagnostics &diagnostics, ConvertReport &report) {
  const auto phase = [&](std::string_view name) {
    if (options.on_phase)
      options.on_phase(name);
  };

  phase("read");
  i64 start = Trace::now_us();
  Program program(options.leave_memory);
  ir::Context &ctx = program.context();
  pt2::ReadOptions read;
  read.threads = options.threads;
  read.model = options.model;
  read.size_hints = target != Target::Circle;
  pt2::Summary summary;
  auto found = [&] {
    const TraceScope scope("read");
    return pt2::read(ctx, from, diagnostics, read, &summary);
  }();
  if (!found) {
    diagnostics.add(std::move(found.error()));
    return false;
  }
  ir::Graph &graph = program.keep(std::move(*found));
  report.torch_version = summary.torch_version;
  report.nodes_read = summary.nodes;
  report.read_seconds = seconds_since(start);

  start = Trace::now_us();
  std::vector<std::string> passes = core_aten_pipeline();
  if (target != Target::Circle)
    passes.insert(passes.begin(), "fix-sizes"); // shapes are static in TOSA
  const std::vector<std::string> &lowering =
      target == Target::Circle ? circle_pipeline() : tosa_pipeline();
  const pass::Settings &settings = options.pipeline.settings;
  const auto optimize = settings.find("circle_optimize");
  for (const std::string &name : lowering)
    if (optimize == settings.end() || optimize->second != "false" || !is_optimization(name))
      passes.push_back(name);
  phase(passes.front());
  pass::PipelineOptions pipeline = options.pipeline;
  if (target != Target::Circle)
    add_tosa_settings(summary.size_hints, pipeline.settings);
  pipeline.after_pass = [&](const pass::PassRecord &record, const ir::Graph &g) {
    if (options.pipeline.after_pass)
      options.pipeline.after_pass(record, g);
    phase(record.name);
  };
  {
    const quant::Ledger::Scope recording(options.ledger);
    bool lowered = false;
    with_threads(static_cast<int>(options.threads), [&] {
      lowered = pass::run_pipeline(graph, passes, diagnostics, pipeline, report.passes);
    });
    if (!lowered)
      return false;
  }
  if (options.ledger)
    options.ledger->finish(graph);
  const size_t errors = diagnostics.error_count();
  {
    const TraceScope scope("verify");
    ir::verify(graph, diagnostics);
  }
  if (diagnostics.error_count() != errors)
    return false;
  report.pass_seconds = seconds_since(start);

  phase("write");
  start = Trace::now_us();
  const TraceScope scope("write");
  if (Status s = write_file(graph, to, target, options.accelerator, report); !s) {
    diagnostics.add(std::move(s.error()));
    return false;
  }
  fill_interface(graph, report);
  report.write_seconds = seconds_since(start);
  return true;
}

} // namespace chute::convert
