#include "toolkit/merge.h"

#include "ir/text.h"
#include "ir/walk.h"
#include "toolkit/align.h"
#include "toolkit/clone.h"
#include "toolkit/model.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

namespace chute::toolkit {

namespace {

using ir::Op;
using ir::Value;

tl::unexpected<Diagnostic> usage(std::string code, std::string message, std::string object,
                                 std::string hint) {
  return fail(ErrorKind::Usage, std::move(code), std::move(message), std::move(object),
              std::move(hint));
}

class Names {
public:
  std::string take(const std::string &wish) {
    std::string name = wish;
    for (u64 n = 1; !taken_.insert(name).second; ++n)
      name = wish + "_" + std::to_string(n);
    return name;
  }

private:
  boost::unordered_flat_set<std::string> taken_;
};

class Merger {
public:
  Merger(std::vector<circle::Model> &models, const MergeOptions &options)
      : models_(models), options_(options) {}

  Result<MergeReport> run() {
    Status status = options_.mode == MergeMode::Signatures ? keep_apart() : join();
    if (!status)
      return tl::unexpected(std::move(status.error()));
    metadata();
    // Values of several files: none of them is the origin of all.
    models_[0].origin = nullptr;
    return std::move(report_);
  }

private:
  struct Output {
    ir::OutputInfo info;
    Value *value;
    size_t model;
    std::string name; ///< in its own model
    bool taken = false;
  };

  void rename(const std::string &before, const std::string &after, size_t model) {
    if (before != after)
      report_.renamed.push_back({before, after, model});
  }

  // --- one graph --------------------------------------------------------------------------------

  Status join() {
    ir::Graph &base = *models_[0].graph;
    for (const ir::InputInfo &i : base.inputs())
      input_names_.take(i.name);
    states(base, 0);
    add_outputs(base, 0, returned(base), {});
    if (Op *ret = base.return_op())
      base.erase(ret);
    std::vector<u8> used(options_.connect.size(), 0);
    for (size_t m = 1; m < models_.size(); ++m)
      if (Status s = append(m, used); !s)
        return s;
    for (size_t i = 0; i < used.size(); ++i)
      if (!used[i])
        return usage("toolkit.merge.connect",
                     "no output '" + options_.connect[i].first +
                         "' is followed by a model with an "
                         "input '" +
                         options_.connect[i].second + "'",
                     options_.connect[i].first + "=" + options_.connect[i].second,
                     "`chute inspect` lists inputs and outputs");
    finish(base);
    return {};
  }

  static std::vector<Value *> returned(const ir::Graph &graph) {
    std::vector<Value *> out;
    if (const Op *ret = graph.return_op())
      for (const ir::Use &u : ret->operand_uses())
        out.push_back(u.value());
    return out;
  }

  void add_outputs(const ir::Graph &graph, size_t model, const std::vector<Value *> &values,
                   const boost::unordered_flat_map<std::string, std::string> &inputs) {
    for (const ir::OutputInfo &o : graph.outputs()) {
      Output out{o, o.operand >= 0 ? values[static_cast<size_t>(o.operand)] : nullptr, model,
                 o.name, false};
      const auto target = [&](const auto &map) {
        if (const auto it = map.find(o.target); it != map.end())
          out.info.target = it->second;
      };
      if (o.kind == ir::OutputKind::BufferMutation)
        target(state_names_);
      else if (o.kind == ir::OutputKind::InputMutation)
        target(inputs);
      outputs_.push_back(std::move(out));
    }
  }

  /// Variables of one name in two models are two variables.
  void states(ir::Graph &graph, size_t model) {
    state_names_.clear();
    ir::walk(graph, [&](Op &op) {
      if (op.opcode() != ir::core_op::state)
        return;
      const std::string before(op.attr("name").as_string());
      if (before.empty())
        return;
      const std::string after = variables_.take(before);
      rename(before, after, model);
      state_names_[before] = after;
      graph.set_attr(&op, static_cast<u32>(op.def().attr_index("name")),
                     graph.context().string_attr(after));
    });
  }

  /// Which output every input of model `m` takes; null for none.
  Result<std::vector<Output *>> sources(size_t m, std::vector<u8> &used) {
    const std::vector<ir::InputInfo> &inputs = models_[m].graph->inputs();
    std::vector<Output *> out(inputs.size(), nullptr);
    if (options_.mode != MergeMode::Chain)
      return out;
    const auto latest = [&](const std::string &name) -> Output * {
      for (size_t i = outputs_.size(); i-- > 0;)
        if (outputs_[i].value && outputs_[i].name == name)
          return &outputs_[i];
      return nullptr;
    };
    if (!options_.connect.empty()) {
      for (size_t c = 0; c < options_.connect.size(); ++c)
        for (size_t i = 0; i < inputs.size() && !used[c]; ++i)
          if (inputs[i].value && inputs[i].name == options_.connect[c].second)
            if (Output *source = latest(options_.connect[c].first)) {
              out[i] = source;
              used[c] = 1;
            }
      return out;
    }
    boost::unordered_flat_map<std::string_view, Output *> by_name;
    for (Output &o : outputs_)
      if (o.value)
        by_name.insert_or_assign(o.name, &o);
    bool any = false;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (const auto it = by_name.find(inputs[i].name); inputs[i].value && it != by_name.end()) {
        out[i] = it->second;
        any = true;
      }
    if (any)
      return out;
    std::vector<Output *> before;
    for (Output &o : outputs_)
      if (o.value && o.model == m - 1)
        before.push_back(&o);
    size_t count = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].value && count++ < before.size())
        out[i] = before[count - 1];
    if (count != before.size())
      return usage("toolkit.merge.connect",
                   "no input has the name of an output, and by position " + std::to_string(count) +
                       " inputs meet " + std::to_string(before.size()) + " outputs",
                   "model " + std::to_string(m + 1),
                   "say which feeds which with --connect OUTPUT=INPUT");
    return out;
  }

  Status append(size_t m, std::vector<u8> &used) {
    ir::Graph &base = *models_[0].graph;
    ir::Graph &part = *models_[m].graph;
    states(part, m);
    auto from = sources(m, used);
    if (!from)
      return tl::unexpected(std::move(from.error()));
    std::vector<Value *> arguments(part.body().num_args(), nullptr);
    boost::unordered_flat_map<std::string, std::string> names; // of inputs, before and after
    for (size_t i = 0; i < part.inputs().size(); ++i) {
      ir::InputInfo info = part.inputs()[i];
      if (Output *source = (*from)[i]) {
        if (!same_type(source->value->type(), info.value->type()))
          return usage("toolkit.merge.type",
                       "output '" + source->name + "' is " + type(source->value) + ", but input '" +
                           info.name + "' takes " + type(info.value),
                       "model " + std::to_string(m + 1),
                       "connect ports of one type with --connect");
        source->taken = true;
        arguments[info.value->index()] = source->value;
        report_.connections.push_back({source->name, info.name, m});
        continue;
      }
      if (!info.value) {
        base.inputs().push_back(std::move(info));
        continue;
      }
      const u32 index = info.value->index();
      if (Value *shared = options_.share_inputs ? same_input(base, info) : nullptr) {
        arguments[index] = shared;
        continue;
      }
      const std::string name = input_names_.take(info.name);
      rename(info.name, name, m);
      names[info.name] = name;
      arguments[index] = base.add_argument(base.body(), info.value->type(), info.value->name());
      info.name = name;
      info.value = arguments[index];
      base.inputs().push_back(std::move(info));
    }
    add_outputs(part, m, clone_body(part, base, arguments), names);
    return {};
  }

  static Value *same_input(const ir::Graph &base, const ir::InputInfo &wanted) {
    for (const ir::InputInfo &i : base.inputs())
      if (i.value && i.name == wanted.name && same_type(i.value->type(), wanted.value->type()))
        return i.value;
    return nullptr;
  }

  std::string type(const Value *v) const {
    return ir::print(models_[0].graph->context(), v->type());
  }

  void finish(ir::Graph &base) {
    std::vector<Value *> values;
    std::vector<ir::OutputInfo> infos;
    Names names;
    for (Output &o : outputs_) {
      if (o.taken && !options_.keep_outputs)
        continue;
      const std::string name = names.take(o.name);
      rename(o.name, name, o.model);
      o.info.name = name;
      o.info.operand = o.value ? static_cast<i32>(values.size()) : -1;
      if (o.value)
        values.push_back(o.value);
      infos.push_back(o.info);
    }
    base.append(base.body(), base.create(ir::core_op::ret, values, {}, {}));
    base.outputs() = std::move(infos);
    for (const ir::InputInfo &i : base.inputs())
      report_.inputs.push_back(i.name);
    for (const ir::OutputInfo &o : base.outputs())
      report_.outputs.push_back(o.name);
    if (models_[0].signature_key.empty())
      for (const circle::Model &m : models_)
        if (models_[0].signature_key.empty())
          models_[0].signature_key = m.signature_key;
    keep_one_graph(models_[0]);
  }

  // --- subgraphs with signatures ----------------------------------------------------------------

  Status keep_apart() {
    circle::Model &base = models_[0];
    Names keys;
    std::vector<circle::Signature> signatures;
    for (size_t m = 0; m < models_.size(); ++m) {
      circle::Model &model = models_[m];
      if (model.signatures.empty()) { // it needs a name to be found by
        if (model.signature_key.empty())
          model.signature_key = "serving_default";
        std::vector<std::unique_ptr<ir::Graph>> more = std::move(model.more);
        keep_one_graph(model);
        model.more = std::move(more);
      }
      const auto first = static_cast<u32>(m == 0 ? 0 : base.more.size() + 1);
      for (circle::Signature &s : model.signatures) {
        const std::string key = keys.take(s.key);
        rename(s.key, key, m);
        s.key = key;
        s.graph += first;
        for (const circle::SignaturePort &p : s.inputs)
          report_.inputs.push_back(key + ":" + p.name);
        for (const circle::SignaturePort &p : s.outputs)
          report_.outputs.push_back(key + ":" + p.name);
        signatures.push_back(std::move(s));
      }
      if (m == 0)
        continue;
      base.more.push_back(std::move(model.graph));
      for (auto &g : model.more)
        base.more.push_back(std::move(g));
    }
    base.signatures = std::move(signatures);
    base.signature_key = base.signatures[0].key;
    return {};
  }

  void metadata() {
    Names names;
    auto &all = models_[0].metadata;
    for (const auto &[name, content] : all)
      names.take(name);
    for (size_t m = 1; m < models_.size(); ++m)
      for (auto &[name, content] : models_[m].metadata) {
        if (std::find(all.begin(), all.end(), std::pair(name, content)) != all.end())
          continue;
        const std::string after = names.take(name);
        rename(name, after, m);
        all.emplace_back(after, std::move(content));
      }
  }

  std::vector<circle::Model> &models_;
  const MergeOptions &options_;
  MergeReport report_;
  std::vector<Output> outputs_;
  Names input_names_;
  Names variables_;
  boost::unordered_flat_map<std::string, std::string> state_names_; // of one model
};

} // namespace

Result<MergeReport> merge(std::vector<circle::Model> &models, const MergeOptions &options) {
  if (models.empty())
    return usage("toolkit.merge.connect", "there is nothing to merge", {}, "give model files");
  return Merger(models, options).run();
}

} // namespace chute::toolkit
