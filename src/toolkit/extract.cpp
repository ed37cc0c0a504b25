#include "toolkit/extract.h"

#include "ir/walk.h"
#include "toolkit/selection.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

namespace chute::toolkit {

namespace {

using ir::Op;
using ir::Value;

bool is_leaf(const Op &op) {
  return op.opcode() == ir::core_op::constant || op.opcode() == ir::core_op::state;
}

/// The operator of the body that an operator is, or lies inside of.
const Op *outermost(const ir::Graph &graph, const Op *op) {
  while (op->parent() != &graph.body())
    op = op->parent()->parent_op();
  return op;
}

class Extractor {
public:
  Extractor(ir::Graph &graph, std::vector<Op *> ops, const std::vector<u8> &flags,
            ExtractReport &report)
      : graph_(graph), ops_(std::move(ops)), report_(report) {
    kept_.assign(graph.num_op_ids(), 0);
    for (size_t i = 0; i < ops_.size(); ++i)
      if (flags[i]) {
        kept_[ops_[i]->id()] = 1;
        report.positions.push_back(i);
      }
    report.operators = report.positions.size();
    report.operators_before = ops_.size();
  }

  void run() {
    find_boundary();
    find_outputs();
    set_inputs();
    set_outputs();
    erase_rest();
    prune_arguments();
  }

private:
  /// Values that kept operators take from outside, in order of first use.
  void find_boundary() {
    std::vector<u8> seen(graph_.num_value_ids(), 0);
    const auto visit = [&](Value *v) {
      ++report_.work.ops_visited;
      if (!v || seen[v->id()])
        return;
      seen[v->id()] = 1;
      const Op *p = v->producer();
      if (p ? is_leaf(*p) || kept_[p->id()] || p->parent() != &graph_.body()
            : v->argument_of() != &graph_.body())
        return;
      boundary_.push_back(v);
    };
    for (Op *op : ops_) {
      if (!kept_[op->id()])
        continue;
      for (const ir::Use &u : op->operand_uses())
        visit(u.value());
      for (ir::Region *r : op->regions())
        ir::walk(*r, [&](Op &inner) {
          for (const ir::Use &u : inner.operand_uses())
            visit(u.value());
        });
    }
  }

  /// Before anything changes, since uses decide.
  void find_outputs() {
    boost::unordered_flat_map<const Value *, std::string> output_name;
    const Op *ret = graph_.return_op();
    for (const ir::OutputInfo &o : graph_.outputs())
      if (ret && o.operand >= 0)
        output_name.try_emplace(ret->operand(static_cast<u32>(o.operand)), o.name);
    for (Op *op : ops_) {
      if (!kept_[op->id()])
        continue;
      bool any_used = false;
      for (Value &r : op->results())
        any_used = any_used || r.has_uses();
      for (Value &r : op->results()) {
        bool outside = !r.has_uses() && !any_used;
        for (const ir::Use &u : r.uses()) {
          ++report_.work.ops_visited;
          if (kept_[outermost(graph_, u.owner())->id()])
            continue;
          outside = true;
          break;
        }
        if (outside) {
          outputs_.push_back(&r);
          const auto name = output_name.find(&r);
          output_names_.push_back(name == output_name.end() ? std::string() : name->second);
        }
      }
    }
  }

  std::string unique(std::string name, boost::unordered_flat_set<std::string> &taken,
                     std::string_view base) {
    if (name.empty())
      name = base;
    std::string candidate = name;
    for (u64 n = 1; !taken.insert(candidate).second; ++n)
      candidate = name + "_" + std::to_string(n);
    return candidate;
  }

  std::string_view name_of(const Value &v) const { return graph_.context().string(v.name()); }

  void set_inputs() {
    std::vector<u8> wanted(graph_.num_value_ids(), 0);
    for (const Value *v : boundary_)
      wanted[v->id()] = 1;
    std::vector<ir::InputInfo> inputs;
    boost::unordered_flat_set<std::string> taken;
    for (ir::InputInfo &info : graph_.inputs())
      if (info.value && wanted[info.value->id()]) {
        wanted[info.value->id()] = 0;
        taken.insert(info.name);
        inputs.push_back(std::move(info));
      }
    for (Value *v : boundary_) {
      if (!wanted[v->id()])
        continue;
      ir::InputInfo info;
      info.name = unique(std::string(name_of(*v)), taken, "in");
      info.value = v->argument_of() ? v : argument_for(v);
      inputs.push_back(std::move(info));
    }
    graph_.inputs() = std::move(inputs);
    for (const ir::InputInfo &i : graph_.inputs())
      report_.inputs.push_back(i.name);
  }

  /// An argument that takes the place of `v` in what is kept.
  Value *argument_for(Value *v) {
    Value *arg = graph_.add_argument(graph_.body(), v->type(), v->name());
    for (ir::Use &u : v->uses()) {
      ++report_.work.ops_visited;
      if (kept_[outermost(graph_, u.owner())->id()])
        graph_.set_operand(u.owner(), u.operand_index(), arg);
    }
    return arg;
  }

  void set_outputs() {
    if (Op *ret = graph_.return_op())
      graph_.erase(ret);
    graph_.append(graph_.body(), graph_.create(ir::core_op::ret, outputs_, {}, {}));
    std::vector<ir::OutputInfo> outputs;
    boost::unordered_flat_set<std::string> taken;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      ir::OutputInfo info;
      info.name =
          unique(output_names_[i].empty() ? std::string(name_of(*outputs_[i])) : output_names_[i],
                 taken, "out");
      info.operand = static_cast<i32>(i);
      report_.outputs.push_back(info.name);
      outputs.push_back(std::move(info));
    }
    graph_.outputs() = std::move(outputs);
  }

  void erase_rest() {
    for (Op *op = graph_.body().back(), *previous = nullptr; op; op = previous) {
      previous = op->previous();
      if (op->opcode() == ir::core_op::ret || (!is_leaf(*op) && kept_[op->id()]))
        continue;
      if (is_leaf(*op) && op->result()->has_uses())
        continue;
      graph_.erase(op);
    }
  }

  void prune_arguments() {
    std::vector<u8> wanted(graph_.num_value_ids(), 0);
    for (const ir::InputInfo &i : graph_.inputs())
      wanted[i.value->id()] = 1;
    for (u32 i = graph_.body().num_args(); i-- > 0;)
      if (!wanted[graph_.body().arg(i)->id()])
        graph_.erase_argument(graph_.body(), i);
  }

  ir::Graph &graph_;
  std::vector<Op *> ops_;
  ExtractReport &report_;
  std::vector<u8> kept_; // by Op::id
  std::vector<Value *> boundary_;
  std::vector<Value *> outputs_;
  std::vector<std::string> output_names_;
};

} // namespace

std::vector<Op *> numbered_ops(ir::Graph &graph) {
  std::vector<Op *> out;
  for (Op &op : graph.body())
    if (!is_leaf(op) && op.opcode() != ir::core_op::ret)
      out.push_back(&op);
  return out;
}

Result<ExtractReport> extract(ir::Graph &graph, const Selection &selection) {
  ExtractReport report;
  std::vector<Op *> ops = numbered_ops(graph);
  auto flags = select_ops(graph, ops, selection, report.work);
  if (!flags)
    return tl::unexpected(std::move(flags.error()));
  Extractor(graph, std::move(ops), *flags, report).run();
  return report;
}

} // namespace chute::toolkit
