#include "cli/command.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "convert/pipelines.h"
#include "eval/evaluator.h"
#include "eval/npz.h"
#include "pass/pass.h"
#include "toolkit/inputs.h"

#include <cstdio>
#include <filesystem>
#include <map>

namespace chute::cli {

namespace {

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
    args.option("--state", state_,
                "Keep the buffers that the program writes in this .npz: read when it is there, "
                "written after the run");
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
      if (!pass::run_pipeline(graph, convert::executable_pipeline(), session.diagnostics, {},
                              records))
        return session.finish();
    }
    auto arrays = toolkit::read_inputs(inputs_);
    if (!arrays)
      return session.fail(std::move(arrays.error()));
    auto inputs = toolkit::gather_inputs(graph, *arrays, seed_, session.diagnostics);
    if (!inputs)
      return session.fail(std::move(inputs.error()));
    eval::EvalOptions options;
    options.threads = static_cast<int>(session.threads);
    State state;
    if (!state_.empty() && std::filesystem::exists(state_)) {
      auto read = eval::read_numpy(state_);
      if (!read)
        return session.fail(std::move(read.error()));
      for (auto &[name, tensor] : *read)
        state.insert_or_assign(name, std::move(tensor));
      options.state = &state;
    }
    auto outputs = eval::evaluate(graph, *inputs, options);
    if (!outputs)
      return session.fail(std::move(outputs.error()));
    if (Status s = keep_state(graph, *outputs, state); !s)
      return session.fail(std::move(s.error()));
    return deliver(graph, *outputs, session);
  }

private:
  using State = std::map<std::string, eval::Tensor, std::less<>>;

  /// Takes the next content of buffers out of the outputs, and writes it.
  Status keep_state(ir::Graph &graph, std::vector<eval::Tensor> &outputs, State &state) const {
    if (state_.empty())
      return {};
    std::vector<eval::Tensor> own;
    std::vector<ir::OutputInfo> infos;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (i < graph.outputs().size() && graph.outputs()[i].kind == ir::OutputKind::BufferMutation) {
        state.insert_or_assign(graph.outputs()[i].target, std::move(outputs[i]));
        continue;
      }
      own.push_back(std::move(outputs[i]));
      if (i < graph.outputs().size())
        infos.push_back(graph.outputs()[i]);
    }
    outputs = std::move(own);
    graph.outputs() = std::move(infos);
    const std::vector<std::pair<std::string, eval::Tensor>> arrays(state.begin(), state.end());
    return eval::write_npz(state_, arrays);
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
  std::string state_;
};

} // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

} // namespace chute::cli
