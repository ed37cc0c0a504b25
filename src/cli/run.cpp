#include "aten/passes/passes.h"
#include "cli/command.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "eval/evaluator.h"
#include "eval/npz.h"
#include "eval/quantized.h"
#include "ir/element_convert.h"
#include "ir/sym_table.h"
#include "pass/pass.h"

#include <cstdio>

namespace chute::cli {

namespace {

/// Inputs made up from a seed: floats uniform in [-1, 1), integers in [0, 8), Bools fair. Symbolic
/// dimensions take the smallest value of their range, but at least 2 where the range allows it.
class InputMaker {
public:
  InputMaker(const ir::Graph &graph, u64 seed) : graph_(graph), state_(seed) {}

  Result<eval::Tensor> make(const ir::InputInfo &input) {
    const ir::Type type = input.value->type();
    if (!type.is_tensor()) {
      switch (type.kind()) {
      case ir::TypeKind::Float: return eval::Tensor::scalar(ir::ElementType::F64, uniform());
      case ir::TypeKind::Bool: return eval::Tensor::scalar_int(ir::ElementType::Bool, next() & 1);
      case ir::TypeKind::Int: return eval::Tensor::scalar_int(ir::ElementType::I64, 2);
      default:
        return fail(ErrorKind::Unsupported, "run.input.kind", "no value can be made up for it",
                    input.name, "give it with --inputs");
      }
    }
    eval::Shape shape;
    for (ir::SymInt d : type.shape())
      shape.push_back(extent(d));
    eval::Tensor t = eval::Tensor::zeros(type.element(), shape);
    const auto item = static_cast<i64>(t.item_bytes());
    for (i64 i = 0; i < t.num_elements(); ++i) {
      std::byte *to = t.mutable_data() + i * item;
      if (type.element() == ir::ElementType::Bool)
        ir::store_element_int(type.element(), static_cast<i64>(next() & 1), to);
      else if (ir::is_integer(type.element()))
        ir::store_element_int(type.element(), static_cast<i64>(next() & 7), to);
      else
        ir::store_element(type.element(), uniform(), to);
    }
    return t;
  }

private:
  i64 extent(ir::SymInt d) const {
    const ir::SymTable &sym = graph_.context().sym();
    const auto value = sym.evaluate(d, [&](ir::SymInt symbol) -> std::optional<i64> {
      const ir::SymRange range = sym.range(symbol);
      return std::max<i64>({1, range.min, std::min<i64>(2, range.max)});
    });
    return value.value_or(1);
  }
  u64 next() { // splitmix64
    u64 z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-52 - 1.0; }

  const ir::Graph &graph_;
  u64 state_;
};

class Run final : public Command {
public:
  std::string_view summary() const override { return "Execute a model with chute's own evaluator"; }
  std::string_view examples() const override {
    return "  chute run model.pt2 --inputs inputs.npz -o outputs.npz\n"
           "  chute run model.circle --inputs a.npy,b.npy -o outputs.npz\n"
           "  chute run model.pt2 --seed 7\n"
           "An .npz names its arrays as the model names its inputs, or in0, in1, … by position.";
  }
  void declare(Args &args) override {
    args.positional("model", model_, "A .pt2, .circle or text IR file");
    args.option("-i,--inputs", inputs_, "One .npz, or one .npy per input in order");
    args.option("--seed", seed_, "Make up inputs from this seed when none are given (default 0)");
    args.option("-o,--output", output_, "Write the outputs (out0, out1, …) to this .npz");
  }

  int run(Session &session) override {
    session.diagnostics.set_file(model_);
    ir::Context ctx;
    auto model = load_model(ctx, model_, session.threads, session.diagnostics);
    if (!model)
      return session.fail(std::move(model.error()));
    ir::Graph &graph = *model->graph;
    if (model->format == FileFormat::Pt2) {
      std::vector<pass::PassRecord> records;
      if (!pass::run_pipeline(graph, aten::core_pipeline(), session.diagnostics, {}, records))
        return session.finish();
    }
    auto inputs = gather(graph, session.diagnostics);
    if (!inputs)
      return session.fail(std::move(inputs.error()));
    eval::EvalOptions options;
    options.threads = static_cast<int>(session.threads);
    auto outputs = eval::evaluate(graph, *inputs, options);
    if (!outputs)
      return session.fail(std::move(outputs.error()));
    return deliver(graph, *outputs, session);
  }

private:
  /// `given` with the element type that the model takes, where both are floating point: NumPy has
  /// no bf16, and a Circle file takes f32 where its program took f16 or f64.
  static eval::Tensor fitted(const eval::Tensor &given, const ir::InputInfo &input,
                             Diagnostics &diagnostics) {
    const ir::Type type = input.value->type();
    // Real numbers for a quantized input are stored by its parameters.
    if (type.is_tensor() && type.quant() && ir::is_float(given.element()))
      if (auto stored = eval::quantize(given, type.element(), *type.quant()))
        return *stored;
    if (!type.is_tensor() || type.element() == given.element() || !ir::is_float(type.element()) ||
        !ir::is_float(given.element()))
      return given;
    eval::Tensor out = eval::Tensor::zeros(type.element(), given.shape());
    const auto item = static_cast<i64>(out.item_bytes());
    for (i64 i = 0; i < out.num_elements(); ++i)
      ir::store_element(type.element(), given.at(i), out.mutable_data() + i * item);
    Diagnostic d;
    d.severity = Severity::Note;
    d.kind = ErrorKind::None;
    d.code = "run.input.converted";
    d.object = input.name;
    d.message = "converted from " + std::string(ir::element_type_name(given.element())) + " to " +
                std::string(ir::element_type_name(type.element()));
    diagnostics.add(std::move(d));
    return out;
  }

  Result<std::vector<eval::Tensor>> gather(const ir::Graph &graph, Diagnostics &diagnostics) {
    std::vector<std::pair<std::string, eval::Tensor>> arrays;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      auto read = eval::read_numpy(inputs_[i]);
      if (!read)
        return tl::unexpected(read.error());
      // A .npy has no name of its own: it stands for the input at its position.
      for (auto &[name, tensor] : *read)
        arrays.emplace_back(name.empty() ? "in" + std::to_string(i) : name, std::move(tensor));
    }
    const auto find = [&](const std::string &name) -> const eval::Tensor * {
      for (const auto &[key, tensor] : arrays)
        if (key == name)
          return &tensor;
      return nullptr;
    };
    InputMaker maker(graph, seed_);
    std::vector<eval::Tensor> out;
    size_t position = 0; // among all inputs of the caller, literals included
    for (const ir::InputInfo &input : graph.inputs()) {
      const std::string by_position = "in" + std::to_string(position++);
      if (!input.value)
        continue;
      if (inputs_.empty()) {
        auto made = maker.make(input);
        if (!made)
          return tl::unexpected(made.error());
        out.push_back(std::move(*made));
        continue;
      }
      const eval::Tensor *given = find(input.name);
      if (!given)
        given = find(by_position);
      if (!given)
        return fail(ErrorKind::Usage, "run.input.missing",
                    "no array named '" + input.name + "' or '" + by_position + "'", model_,
                    "`chute inspect` lists the model's inputs");
      out.push_back(fitted(*given, input, diagnostics));
    }
    return out;
  }

  int deliver(const ir::Graph &graph, const std::vector<eval::Tensor> &outputs, Session &session) {
    std::vector<std::pair<std::string, eval::Tensor>> named;
    std::string json = "[";
    for (size_t i = 0; i < outputs.size(); ++i) {
      const eval::Tensor &t = outputs[i];
      named.emplace_back("out" + std::to_string(i), t);
      std::string shape;
      for (i64 d : t.shape())
        shape += (shape.empty() ? "" : ",") + std::to_string(d);
      double low = 0, high = 0, sum = 0;
      for (i64 k = 0; k < t.num_elements(); ++k) {
        const double v = t.at(k);
        low = k == 0 ? v : std::min(low, v);
        high = k == 0 ? v : std::max(high, v);
        sum += v;
      }
      const std::string name = i < graph.outputs().size() ? graph.outputs()[i].name : "";
      const std::string element(ir::element_type_name(t.element()));
      const double mean = t.num_elements() ? sum / static_cast<double>(t.num_elements()) : 0.0;
      char numbers[128];
      if (session.json) {
        std::snprintf(numbers, sizeof(numbers), "\"min\":%.9g,\"max\":%.9g,\"mean\":%.9g", low,
                      high, mean);
        json += (i ? ",\n " : "\n ") + ("{\"name\":" + json_quote(name)) + ",\"type\":\"" +
                element + "\",\"shape\":[" + shape + "]," + numbers + "}";
      } else if (output_.empty()) {
        std::printf("out%zu %s: %s[%s] min %.6g max %.6g mean %.6g\n", i, name.c_str(),
                    element.c_str(), shape.c_str(), low, high, mean);
      }
    }
    if (session.json)
      std::printf("%s\n]\n", json.c_str());
    if (!output_.empty())
      if (Status s = eval::write_npz(output_, named); !s)
        return session.fail(std::move(s.error()));
    return session.finish();
  }

  std::string model_;
  std::vector<std::string> inputs_;
  u64 seed_ = 0;
  std::string output_;
};

} // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

} // namespace chute::cli
