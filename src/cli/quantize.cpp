#include "circle/reader.h"
#include "circle/writer.h"
#include "cli/command.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "convert/pipelines.h"
#include "eval/npz.h"
#include "ir/verifier.h"
#include "pass/pass.h"
#include "ptq/ptq.h"
#include "ptq/report.h"
#include "support/text_file.h"

#include <cstdio>
#include <cstdlib>

namespace chute::cli {

namespace {

class Quantize final : public Command {
public:
  std::string_view summary() const override {
    return "Quantize a float model after training, from example inputs";
  }
  std::string_view examples() const override {
    return "  chute quantize model.pt2 --calibrate inputs.npz --scheme int8 -o model.int8.circle\n"
           "  chute quantize model.circle --calibrate a.npz,b.npz --scheme w8a16 --observer mse "
           "\\\n"
           "      --keep-float SOFTMAX,'*.head*' --report layers.json -o model.w8a16.circle\n"
           "An .npz names its arrays as the model names its inputs, or in0, in1, … by position; "
           "with\n"
           "one more dim than its input an array holds one sample per index.";
  }
  void declare(Args &args) override {
    std::vector<std::string> schemes;
    for (const ptq::Scheme &s : ptq::all_schemes())
      schemes.emplace_back(s.name);
    args.positional("model", model_, "A float .pt2, .circle or text IR file");
    args.option("-o,--output", output_, "The .circle file to write", true);
    args.option("--calibrate", calibrate_, "Example inputs: .npz files, or one .npy for one input");
    args.choice(
        "--scheme", scheme_, schemes,
        "Number formats: int8, uint8, int16x8 (i16 activations, i8 weights), w8a16 (i16, u8), "
        "w4a16 (i16, u4)");
    args.choice("--observer", observer_, {"minmax", "moving-average", "percentile", "mse"},
                "How ranges follow from what was seen");
    args.option("--percentile", percentile_,
                "With --observer percentile: the share of numbers below the upper end");
    args.choice(
        "--weights", weights_, {"auto", "nearest", "gptq"},
        "How weights are rounded: each to the nearest step, or so that each layer's output on "
        "the examples stays what it was");
    args.choice("--granularity", granularity_, {"channel", "layer"},
                "Scales of weights: one per output channel, or one per tensor");
    args.option("--keep-float", keep_float_,
                "Operators to leave in float: patterns on names, module paths or operators");
    args.choice("--io-dtype", io_, {"float", "quantized"},
                "Types of the model's inputs and outputs");
    args.option("--report", report_, "Write parameters and error of every layer to this JSON file");
  }

  int run(Session &session) override {
    session.diagnostics.set_file(model_);
    ptq::Options options;
    if (auto wrong = fill(options, session))
      return session.fail(std::move(*wrong));
    Progress progress(session.quiet);
    progress.phase("read");
    ir::Context ctx;
    u64 float_bytes = 0;
    bool first = true;
    const auto load = [&] {
      auto graph = load_float(ctx, session, first, float_bytes);
      first = false;
      progress.phase("calibrate");
      return graph;
    };
    ptq::Report report;
    auto graph = ptq::quantize(
        load, [&](const ir::Graph &g, const auto &use) { return each_sample(g, use); }, options,
        report);
    if (!graph)
      return session.fail(std::move(graph.error()));
    progress.phase("write");
    std::vector<pass::PassRecord> records;
    if (!pass::run_pipeline(**graph, {"cse", "dce"}, session.diagnostics, {}, records))
      return session.finish();
    ir::verify(**graph, session.diagnostics);
    if (session.diagnostics.has_errors())
      return session.finish();
    circle::WriteStats stats;
    if (Status s = circle::write(**graph, output_, write_, &stats); !s)
      return session.fail(std::move(s.error()));
    const ptq::Sizes sizes{float_bytes, stats.bytes};
    if (!report_.empty())
      if (Status s = write_text(report_, ptq::report_json(report, options, sizes)); !s)
        return session.fail(std::move(s.error()));
    if (session.json)
      std::fputs(ptq::report_json(report, options, sizes).c_str(), stdout);
    else if (!session.quiet)
      std::fputs(ptq::report_text(report, options, sizes).c_str(), stdout);
    return session.finish();
  }

private:
  static Diagnostic usage(std::string code, std::string message, std::string object,
                          std::string hint) {
    return fail(ErrorKind::Usage, std::move(code), std::move(message), std::move(object),
                std::move(hint))
        .value();
  }

  std::optional<Diagnostic> fill(ptq::Options &options, const Session &session) const {
    if (!output_.ends_with(".circle"))
      return usage("cli.output.format",
                   "the output's extension names the format, and only .circle is known", output_,
                   "name the output model.circle");
    if (calibrate_.empty())
      return usage(
          "quantize.no_samples",
          "ranges of activations follow from example inputs, and "
          "none were given",
          model_, "give some with --calibrate inputs.npz: numpy.savez('inputs.npz', in0=…, in1=…)");
    options.plan.scheme = ptq::find_scheme(scheme_);
    options.plan.keep_float = keep_float_;
    options.weights = weights_ == "gptq"   ? ptq::WeightMode::Gptq
                      : weights_ == "auto" ? ptq::WeightMode::Auto
                                           : ptq::WeightMode::Nearest;
    options.plan.per_layer = granularity_ == "layer";
    options.observer.kind = observer_ == "moving-average" ? ptq::ObserverKind::MovingAverage
                            : observer_ == "percentile"   ? ptq::ObserverKind::Percentile
                            : observer_ == "mse"          ? ptq::ObserverKind::Mse
                                                          : ptq::ObserverKind::MinMax;
    char *end = nullptr;
    options.observer.percentile = std::strtod(percentile_.c_str(), &end);
    if (percentile_.empty() || *end || !(options.observer.percentile > 50) ||
        !(options.observer.percentile <= 100))
      return usage("quantize.percentile", "--percentile takes a number above 50 and up to 100",
                   percentile_, "99.99 leaves out one number in ten thousand on either side");
    options.io = io_ == "quantized" ? ptq::IoType::Quantized : ptq::IoType::Float;
    options.threads = static_cast<int>(session.threads);
    return {};
  }

  /// The float Circle graph. Findings of the first load are reported, those of the next are the
  /// same.
  Result<std::unique_ptr<ir::Graph>> load_float(ir::Context &ctx, Session &session, bool first,
                                                u64 &float_bytes) {
    Diagnostics ignored;
    Diagnostics &diagnostics = first ? session.diagnostics : ignored;
    auto model = load_model(ctx, model_, session.threads, diagnostics);
    if (!model)
      return tl::unexpected(std::move(model.error()));
    if (first)
      float_bytes = model->file_bytes;
    if (model->format == FileFormat::Circle)
      return load_circle(ctx, diagnostics);
    if (model->format != FileFormat::Pt2)
      return std::move(model->graph);
    std::vector<std::string> passes = convert::core_aten_pipeline();
    const std::vector<std::string> &circle = convert::circle_pipeline();
    passes.insert(passes.end(), circle.begin(), circle.end());
    std::vector<pass::PassRecord> records;
    // The first error is the caller's to report, the others go with it.
    Diagnostics found;
    const bool ok = pass::run_pipeline(*model->graph, passes, found, {}, records);
    std::optional<Diagnostic> error;
    for (const Diagnostic &d : found.all())
      if (d.severity == Severity::Error && !error)
        error = d;
      else
        diagnostics.add(d);
    if (!ok)
      return error ? tl::unexpected(std::move(*error))
                   : fail(ErrorKind::Failure, "quantize.convert", "the model does not convert",
                          model_);
    if (first) {
      const auto bytes = circle::write_bytes(*model->graph);
      float_bytes = bytes ? bytes->size() : float_bytes;
    }
    return std::move(model->graph);
  }

  /// With what the file says of itself, which the new one says too.
  Result<std::unique_ptr<ir::Graph>> load_circle(ir::Context &ctx, Diagnostics &diagnostics) {
    auto model = circle::read_model(ctx, model_);
    if (!model)
      return tl::unexpected(std::move(model.error()));
    write_.description = model->description;
    write_.signature_key = model->signature_key;
    write_.subgraph_name = model->subgraph_name;
    write_.metadata = model->metadata;
    if (!model->more.empty() || model->signatures.size() > 1) {
      Diagnostic d;
      d.severity = Severity::Warning;
      d.kind = ErrorKind::None;
      d.code = "quantize.main_only";
      d.message = "further subgraphs and signatures are left out; the main subgraph is quantized";
      d.hint = "`chute extract` makes a model of another one";
      diagnostics.add(std::move(d));
    }
    return std::move(model->graph);
  }

  Status each_sample(const ir::Graph &graph,
                     const std::function<Status(const ptq::Sample &)> &use) const {
    for (const std::string &path : calibrate_) {
      auto arrays = eval::read_numpy(path);
      if (!arrays)
        return tl::unexpected(std::move(arrays.error()));
      // A .npy has no name of its own.
      for (auto &[name, tensor] : *arrays)
        if (name.empty())
          name = "in0";
      auto samples = ptq::samples_of(graph, *arrays, path);
      if (!samples)
        return tl::unexpected(std::move(samples.error()));
      for (const ptq::Sample &s : *samples)
        if (Status used = use(s); !used)
          return used;
    }
    return {};
  }

  std::string model_;
  std::string output_;
  circle::WriteOptions write_;
  std::vector<std::string> calibrate_;
  std::string scheme_ = "int8";
  std::string observer_ = "minmax";
  std::string percentile_ = "99.99";
  std::string weights_ = "auto";
  std::string granularity_ = "channel";
  std::vector<std::string> keep_float_;
  std::string io_ = "float";
  std::string report_;
};

} // namespace

std::unique_ptr<Command> make_quantize() { return std::make_unique<Quantize>(); }

} // namespace chute::cli
