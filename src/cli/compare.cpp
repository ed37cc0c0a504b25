#include "toolkit/compare.h"

#include "aten/passes/passes.h"
#include "circle/optimize.h"
#include "cli/graph_file.h"
#include "cli/progress.h"
#include "convert/pipelines.h"
#include "toolkit/bisect.h"
#include "toolkit/inputs.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace chute::cli {

namespace {

std::string number(double v) {
  if (!std::isfinite(v))
    return "null";
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", v);
  return text;
}

std::string difference_json(const toolkit::Difference &d) {
  return "\"within\":" + std::string(d.within() ? "true" : "false") +
         ",\"problem\":" + json_quote(d.problem) + ",\"elements\":" + std::to_string(d.elements) +
         ",\"beyond\":" + std::to_string(d.beyond) + ",\"max_abs\":" + number(d.max_abs) +
         ",\"max_rel\":" + number(d.max_rel) + ",\"sqnr_db\":" + number(d.sqnr_db);
}

std::string difference_text(const toolkit::Difference &d) {
  if (!d.comparable)
    return d.problem;
  char text[160];
  if (d.max_abs == 0)
    return "equal";
  std::snprintf(text, sizeof(text),
                "max difference %.4g, relative %.4g, SQNR %.1f dB, %lld of %lld beyond", d.max_abs,
                d.max_rel, d.sqnr_db, static_cast<long long>(d.beyond),
                static_cast<long long>(d.elements));
  return text;
}

class Compare final : public Command {
public:
  std::string_view summary() const override {
    return "Run two models on the same inputs and say where their numbers part";
  }
  std::string_view examples() const override {
    return "  chute compare model.pt2 model.circle --inputs inputs.npz\n"
           "  chute compare before.circle after.circle --random 7 --layers\n"
           "  chute compare float.circle quantized.circle --inputs x.npz --atol 0.05 --layers\n"
           "  chute compare model.pt2 --bisect                 # which rewrite of convert?\n"
           "  chute compare model.circle --bisect -O2          # which rewrite of optimize?\n"
           "  chute compare model.circle --bisect -p cse,simplify-views --atol 0 --rtol 0\n"
           "Numbers agree when |a - b| <= atol + rtol * |a|. Exit code 0: all outputs agree; 1: "
           "some "
           "do not, or\na rewrite was found; 2 and above: an error.";
  }
  void declare(Args &args) override {
    args.positional("reference", a_, "A .pt2, .circle, .tflite or text IR file");
    args.positional("other", b_, "The model to compare with it (not with --bisect)", false);
    args.option("-i,--inputs", inputs_, "One .npz, or one .npy per input in order");
    args.option("--random", seed_, "Make up inputs from this seed when none are given (default 0)");
    args.option("--atol", atol_, "Absolute tolerance (default 1e-5)");
    args.option("--rtol", rtol_, "Relative tolerance (default 1e-4)");
    args.flag("--layers", layers_,
              "Compare aligned tensors inside, too, and name the first that "
              "parts");
    args.flag("--bisect", bisect_, "Name the first rewrite after which one model's numbers change");
    args.option("-O", level_, "--bisect: the rewrites of `chute optimize` at this level");
    args.option("-p,--passes", passes_, "--bisect: the rewrites of these passes");
  }

  int run(Session &session) override {
    toolkit::Tolerance tolerance;
    if (!parse(atol_, tolerance.absolute) || !parse(rtol_, tolerance.relative))
      return usage(session, "cli.compare.tolerance", "a tolerance is a number that is not negative",
                   "for example --atol 1e-5");
    if (bisect_ != b_.empty() || (!bisect_ && (!level_.empty() || !passes_.empty())))
      return usage(session, "cli.compare.models",
                   bisect_ ? "--bisect takes one model" : "two models are compared",
                   "chute compare REFERENCE OTHER, or chute compare MODEL --bisect");
    auto arrays = toolkit::read_inputs(inputs_);
    if (!arrays)
      return session.fail(std::move(arrays.error()));
    ir::Context ctx;
    return bisect_ ? find_rewrite(ctx, *arrays, tolerance, session)
                   : compare(ctx, *arrays, tolerance, session);
  }

private:
  static bool parse(const std::string &text, double &out) {
    if (text.empty())
      return true;
    char *end = nullptr;
    out = std::strtod(text.c_str(), &end);
    return *end == 0 && out >= 0;
  }
  static int usage(Session &session, std::string code, std::string message, std::string hint) {
    return session.fail(
        fail(ErrorKind::Usage, std::move(code), std::move(message), {}, std::move(hint)).value());
  }

  /// A program that the evaluator can run once it went through `passes`, which are for archives.
  Result<std::unique_ptr<ir::Graph>> load(ir::Context &ctx, const std::string &path,
                                          const std::vector<std::string> &passes, Session &session,
                                          FileFormat *format = nullptr) {
    auto file = open_graph(ctx, path, false, session);
    if (!file)
      return tl::unexpected(std::move(file.error()));
    if (format)
      *format = file->format;
    if (file->format == FileFormat::Pt2) {
      Diagnostics diagnostics;
      std::vector<pass::PassRecord> records;
      if (!pass::run_pipeline(*file->model.graph, passes, diagnostics, {}, records))
        for (const Diagnostic &d : diagnostics.all())
          if (d.severity == Severity::Error)
            return tl::unexpected<Diagnostic>(d);
    }
    return std::move(file->model.graph);
  }

  int compare(ir::Context &ctx, const toolkit::NamedTensors &arrays,
              const toolkit::Tolerance &tolerance, Session &session) {
    session.diagnostics.set_file(a_);
    auto a = load(ctx, a_, convert::executable_pipeline(), session);
    if (!a)
      return session.fail(std::move(a.error()));
    auto b = load(ctx, b_, convert::executable_pipeline(), session);
    if (!b)
      return session.fail(std::move(b.error()));
    auto inputs = toolkit::gather_inputs(**a, arrays, seed_, session.diagnostics);
    if (!inputs)
      return session.fail(std::move(inputs.error()));
    toolkit::CompareOptions options;
    options.tolerance = tolerance;
    options.layers = layers_;
    options.threads = static_cast<int>(session.threads);
    auto report = toolkit::compare(**a, **b, *inputs, options);
    if (!report)
      return session.fail(std::move(report.error()));
    if (session.json)
      print_json(*report);
    else
      print_text(*report);
    const int code = session.finish();
    return code != 0 ? code : report->within() ? 0 : static_cast<int>(ErrorKind::Failure);
  }

  static std::string layer_text(const toolkit::LayerDifference &l) {
    return "'" + l.name_a + "' (" + l.op_a + ")" +
           (l.name_b == l.name_a && l.op_b == l.op_a
                ? ""
                : " against '" + l.name_b + "' (" + l.op_b + ")") +
           (l.module_path.empty() ? "" : " in " + l.module_path) + ": " +
           difference_text(l.difference);
  }

  void print_text(const toolkit::CompareReport &r) const {
    for (const toolkit::OutputDifference &o : r.outputs)
      std::printf("%s %s: %s\n", o.difference.within() ? "ok  " : "FAIL",
                  (o.name_a == o.name_b ? o.name_a : o.name_a + " / " + o.name_b).c_str(),
                  difference_text(o.difference).c_str());
    if (!r.problem.empty())
      std::printf("FAIL %s\n", r.problem.c_str());
    if (!layers_)
      return;
    const toolkit::LayerDifference *worst = nullptr;
    size_t beyond = 0;
    for (const toolkit::LayerDifference &l : r.layers) {
      beyond += !l.difference.within();
      if (!worst || l.difference.sqnr_db < worst->difference.sqnr_db)
        worst = &l;
    }
    std::printf("%zu tensors inside compared, %zu beyond the tolerance\n", r.layers.size(), beyond);
    if (r.first_parting >= 0)
      std::printf("first to part: %s\n",
                  layer_text(r.layers[static_cast<size_t>(r.first_parting)]).c_str());
    if (worst && worst->difference.max_abs > 0)
      std::printf("lowest SQNR:   %s\n", layer_text(*worst).c_str());
  }

  void print_json(const toolkit::CompareReport &r) const {
    std::string out = "{\"within\":" + std::string(r.within() ? "true" : "false") +
                      ",\"problem\":" + json_quote(r.problem) +
                      ",\n\"outputs\":" + outputs_json(r.outputs);
    if (layers_) {
      out += ",\n\"first_parting\":" +
             (r.first_parting < 0 ? std::string("null") : std::to_string(r.first_parting)) +
             ",\n\"layers\":[";
      for (size_t i = 0; i < r.layers.size(); ++i) {
        const toolkit::LayerDifference &l = r.layers[i];
        out += (i ? ",\n " : "\n ") + ("{\"name\":" + json_quote(l.name_a)) +
               ",\"other\":" + json_quote(l.name_b) + ",\"op\":" + json_quote(l.op_a) +
               ",\"other_op\":" + json_quote(l.op_b) + ",\"module\":" + json_quote(l.module_path) +
               "," + difference_json(l.difference) + "}";
      }
      out += "]";
    }
    std::printf("%s}\n", out.c_str());
  }

  static std::string outputs_json(const std::vector<toolkit::OutputDifference> &outputs) {
    std::string out = "[";
    for (size_t i = 0; i < outputs.size(); ++i)
      out += (i ? ",\n " : "\n ") + ("{\"name\":" + json_quote(outputs[i].name_a)) +
             ",\"other\":" + json_quote(outputs[i].name_b) + "," +
             difference_json(outputs[i].difference) + "}";
    return out + "]";
  }

  /// Those of `chute convert` behind the ones that make an archive executable at all.
  static std::vector<std::string> conversion_passes() {
    const std::vector<std::string> done = aten::core_pipeline();
    std::vector<std::string> out = convert::core_aten_pipeline();
    if (out.size() >= done.size() && std::equal(done.begin(), done.end(), out.begin()))
      out.erase(out.begin(), out.begin() + static_cast<i64>(done.size()));
    const std::vector<std::string> &rest = convert::circle_pipeline();
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  }

  int find_rewrite(ir::Context &ctx, const toolkit::NamedTensors &arrays,
                   const toolkit::Tolerance &tolerance, Session &session) {
    session.diagnostics.set_file(a_);
    FileFormat format = FileFormat::Circle;
    auto first = load(ctx, a_, aten::core_pipeline(), session, &format);
    if (!first)
      return session.fail(std::move(first.error()));
    auto inputs = toolkit::gather_inputs(**first, arrays, seed_, session.diagnostics);
    if (!inputs)
      return session.fail(std::move(inputs.error()));
    toolkit::BisectOptions options;
    options.passes = passes_;
    if (passes_.empty()) {
      if (!level_.empty() && (level_.size() != 1 || level_[0] < '0' || level_[0] > '2'))
        return usage(session, "cli.optimize.level", "there is no level '" + level_ + "'",
                     "the levels are -O0, -O1 and -O2");
      options.passes = format == FileFormat::Pt2 && level_.empty()
                           ? conversion_passes()
                           : circle::optimize_pipeline(level_.empty() ? 1 : level_[0] - '0');
    }
    options.tolerance = tolerance;
    options.threads = static_cast<int>(session.threads);
    Progress progress(session.quiet);
    options.on_step = [&](const std::string &what) { progress.phase(what); };
    options.load = [&] {
      Session silent; // warnings were given once
      return load(ctx, a_, aten::core_pipeline(), silent);
    };
    auto report = toolkit::bisect(*inputs, options);
    if (!report)
      return session.fail(std::move(report.error()));
    print_bisection(*report, options.passes.size(), session);
    const int code = session.finish();
    return code != 0 ? code : report->found ? static_cast<int>(ErrorKind::Failure) : 0;
  }

  static void print_bisection(const toolkit::BisectReport &r, size_t passes,
                              const Session &session) {
    if (session.json) {
      std::string out = "{\"found\":" + std::string(r.found ? "true" : "false") +
                        ",\"runs\":" + std::to_string(r.runs);
      if (r.found) {
        out += ",\"pass\":" + json_quote(r.pass) +
               ",\"pass_index\":" + std::to_string(r.pass_index) +
               ",\"rule\":" + json_quote(r.rule) +
               ",\"application\":" + std::to_string(r.application) +
               ",\"rewrites\":" + std::to_string(r.rewrites) +
               ",\n\"outputs\":" + outputs_json(r.outputs) + ",\n\"change\":[";
        for (size_t i = 0; i < r.change.changes.size(); ++i) {
          const toolkit::Change &c = r.change.changes[i];
          out += (i ? ",\n " : "\n ") +
                 ("{\"kind\":\"" + std::string(mark(c.kind) == '-'   ? "removed"
                                               : mark(c.kind) == '+' ? "added"
                                                                     : "changed")) +
                 "\",\"op\":" + json_quote(c.op) + ",\"name\":" + json_quote(c.name) + "}";
        }
        out += "]";
      }
      std::printf("%s}\n", out.c_str());
      return;
    }
    if (!r.found) {
      std::printf("no rewrite of %zu passes changes the outputs beyond the tolerance (%llu runs)\n",
                  passes, static_cast<unsigned long long>(r.runs));
      return;
    }
    std::printf("pass %s (number %zu): ", r.pass.c_str(), r.pass_index + 1);
    if (r.application)
      std::printf("rewrite %llu of %llu, rule %s\n", static_cast<unsigned long long>(r.application),
                  static_cast<unsigned long long>(r.rewrites), r.rule.c_str());
    else
      std::printf("the pass itself, not one of its rules\n");
    for (const toolkit::OutputDifference &o : r.outputs)
      std::printf("  %s: %s\n", o.name_a.c_str(), difference_text(o.difference).c_str());
    constexpr size_t kMost = 12;
    for (size_t i = 0; i < r.change.changes.size() && i < kMost; ++i) {
      const toolkit::Change &c = r.change.changes[i];
      std::printf("  %c %s '%s'\n", mark(c.kind), c.op.c_str(), c.name.c_str());
    }
    if (r.change.changes.size() > kMost)
      std::printf("  ... %zu more changes\n", r.change.changes.size() - kMost);
    std::printf("%llu runs\n", static_cast<unsigned long long>(r.runs));
  }
  static char mark(toolkit::ChangeKind kind) { return "-+~"[static_cast<size_t>(kind)]; }

  std::string a_;
  std::string b_;
  std::vector<std::string> inputs_;
  u64 seed_ = 0;
  std::string atol_;
  std::string rtol_;
  bool layers_ = false;
  bool bisect_ = false;
  std::string level_;
  std::vector<std::string> passes_;
};

} // namespace

std::unique_ptr<Command> make_compare() { return std::make_unique<Compare>(); }

} // namespace chute::cli
