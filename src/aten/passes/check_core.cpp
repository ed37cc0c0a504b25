// check-core: the report of what no rule could reduce.
//
// Changes nothing. One error per operator, with the number of its occurrences, the module and
// source line of the first, further places in the message, and the nearest way out; in order of
// first occurrence.
#include "aten/ops.h"
#include "aten/passes/passes.h"
#include "ir/walk.h"
#include "pass/pass.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <string>

namespace chute::aten {

namespace {

constexpr ir::OpCode kCore[] = {
#define CORE(name) op::name,
#include "aten/passes/core_ops.def"
#undef CORE
};

/// By opcode: whether `check-core` lets it be.
const std::bitset<ir::kMaxOpCode> &core_set() {
  static const std::bitset<ir::kMaxOpCode> set = [] {
    std::bitset<ir::kMaxOpCode> s;
    for (ir::OpCode c : kCore)
      s.set(ir::index(c));
    for (const ir::OpDef *def : ir::Registry::global().all()) {
      const u16 code = ir::index(def->opcode);
      // Quantization and other libraries' operators belong to other stages.
      const bool other =
          !def->name.starts_with("aten.") || def->name.find("fake_quantize") != def->name.npos;
      if (code < ir::kAtenBase || code >= ir::kCircleBase || other)
        s.set(code);
    }
    s.reset(ir::index(ir::core_op::unregistered));
    return s;
  }();
  return set;
}

bool contains_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view p) { return name.find(p) != name.npos; });
}

std::string way_out(const ir::Op &op) {
  const bool registered = op.opcode() != ir::core_op::unregistered;
  const std::string_view name = registered ? op.name() : op.attr(0).as_string();
  if (!name.starts_with("aten.") && !registered)
    return "express the custom operator with ATen operators, or keep it out of the exported part";
  if (contains_any(name, {"dropout", "rrelu"}))
    return "call model.eval() before torch.export.export";
  if (op.has(ir::trait::kRandom) || contains_any(name, {"rand", "bernoulli", "multinomial"}))
    return "pass the random tensor in as an input of the model";
  if (contains_any(name, {"nonzero", "masked_select", "unique", "item", "_local_scalar_dense",
                          "where.default", "repeat_interleave.Tensor", "bincount", "combinations"}))
    return "its result's size or value depends on data: rewrite with a mask over a fixed size";
  if (name.find("_rfft") != name.npos || name.find("fft_r2c") != name.npos)
    return "compute with real and imaginary parts as separate real tensors; the spectrum of a "
           "whole real tensor of up to 2048 "
           "points a dimension may be read by abs, real, imag and view_as_real";
  if (contains_any(name, {"fft", "stft", "complex", "polar", "conj", "angle", "imag", "real"}))
    return "compute with real and imaginary parts as separate real tensors";
  if (contains_any(name, {"loss", "cross_entropy", "kl_div"}))
    return "export the model without its loss";
  if (op.num_regions())
    return "export with the branch or loop resolved, or unrolled in Python";
  return "rewrite it with supported operators (docs/core-aten.md lists the core), or export with "
         "run_decompositions()";
}

struct Finding {
  const ir::Op *first = nullptr;
  u64 count = 0;
  std::vector<std::string> places;
};

constexpr size_t kPlaces = 3;

} // namespace

bool is_core(const ir::Op &op) { return core_set()[ir::index(op.opcode())]; }
bool is_core(ir::OpCode opcode) { return core_set()[ir::index(opcode)]; }

void check_core_pass(pass::PassContext &ctx) {
  if (!ctx.graph.has_any([](ir::OpCode code) { return !is_core(code); }))
    return;
  std::vector<Finding> findings;
  std::map<std::string, size_t, std::less<>> by_name;
  ir::walk(ctx.graph, [&](ir::Op &op) {
    ++ctx.counters.ops_visited;
    if (is_core(op))
      return;
    std::string name(op.name());
    if (op.opcode() == ir::core_op::unregistered)
      name = op.attr(0).as_string();
    const auto [it, fresh] = by_name.emplace(std::move(name), findings.size());
    if (fresh)
      findings.push_back({&op, 0, {}});
    Finding &f = findings[it->second];
    if (f.count++ == 0 || f.places.size() >= kPlaces)
      return;
    const Diagnostic d = pass::at_op(ctx.graph, op, ErrorKind::Unsupported, "", "");
    std::string place = d.object.substr(0, d.object.find(' '));
    if (!d.module_path.empty() || !d.source_line.empty())
      place += " (" + d.module_path + (d.module_path.empty() ? "" : ", ") + d.source_line + ")";
    f.places.push_back(std::move(place));
  });
  for (const Finding &f : findings) {
    std::string message = "no lowering to the core operators";
    if (f.count > 1) {
      message += "; " + std::to_string(f.count) + " occurrences, also at ";
      for (size_t i = 0; i < f.places.size(); ++i)
        message += (i ? ", " : "") + f.places[i];
      if (f.count - 1 > f.places.size())
        message += ", …";
    }
    ctx.diagnostics.add(pass::at_op(ctx.graph, *f.first, ErrorKind::Unsupported, "aten.unsupported",
                                    std::move(message), way_out(*f.first)));
  }
}

} // namespace chute::aten
