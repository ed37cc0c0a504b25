#include "ptq/plan.h"

#include "circle/ops.h"
#include "eval/tensor.h"
#include "ir/op_def.h"
#include "pass/constants.h"

#include <algorithm>
#include <cmath>

namespace chute::ptq {

namespace op = circle::op;
using pass::constant_of;

bool matches_glob(std::string_view pattern, std::string_view text) {
  // Backtracks to the last star alone: quadratic at worst, and no recursion.
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

Range range_of(const ir::Constant &c, float threshold) {
  Range r;
  if (!c.has_data || c.type.element() != ir::ElementType::F32)
    return r;
  const eval::Tensor t = eval::Tensor::of_constant(c);
  const float *f = t.as<float>();
  for (i64 i = 0; i < t.num_elements(); ++i)
    if (std::isfinite(f[i]) && (threshold == 0 || (f[i] > threshold && f[i] < -threshold)))
      r.include({f[i], f[i]});
  return r;
}

namespace {

/// How far below the greatest score of its row a masked one lies: its share of the softmax is at
/// most e^-8 of that one's.
constexpr float kMaskGap = 8;

class Planner {
public:
  Planner(const ir::Graph &graph, const Ranges &ranges, const PlanOptions &options)
      : graph_(graph),
        ranges_(ranges),
        options_(options),
        parent_(graph.num_value_ids()),
        fixed_(graph.num_value_ids()),
        range_(graph.num_value_ids()),
        included_(graph.num_value_ids()) {
    for (u32 i = 0; i < parent_.size(); ++i)
      parent_[i] = i;
    plan_.scheme = options.scheme;
    plan_.per_layer = options.per_layer;
    plan_.quantized.resize(graph.num_op_ids());
    plan_.quant.resize(graph.num_value_ids());
    plan_.mask_depth.resize(graph.num_value_ids());
  }

  Plan run() {
    for (const ir::Op &o : graph_.body())
      decide(o);
    for (const ir::Op &o : graph_.body())
      if (plan_.quantized[o.id()])
        share(o);
    for (const ir::Op &o : graph_.body())
      if (plan_.quantized[o.id()])
        collect(o);
    for (const ir::Op &o : graph_.body())
      deepen(o);
    // From the softmax back to where its masks come from.
    for (const ir::Op *o = graph_.body().back(); o; o = o->previous())
      reach(*o);
    for (const ir::Op &o : graph_.body())
      if (plan_.quantized[o.id()])
        assign(o);
    return std::move(plan_);
  }

private:
  u32 find(u32 i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  u32 group(const ir::Value &v) { return find(v.id()); }

  void decide(const ir::Op &o) {
    bool real = false;
    for (const ir::Use &u : o.operand_uses())
      real = real || is_real(u.value());
    for (const ir::Value &v : o.results())
      real = real || is_real(&v);
    if (!real || o.has(ir::trait::kConstant) || o.opcode() == ir::core_op::ret ||
        o.opcode() == ir::core_op::state)
      return;
    const Rule rule = rule_of(o);
    std::string reason = rule.reason;
    if (rule.treatment != Treatment::Float)
      reason = objection(o, rule);
    if (reason.empty())
      plan_.quantized[o.id()] = true;
    else
      plan_.refused.push_back({&o, std::move(reason)});
  }

  /// What speaks against quantizing this one; empty when nothing does.
  std::string objection(const ir::Op &o, const Rule &rule) const {
    const std::string path = options_.keep_float.empty()
                                 ? std::string()
                                 : graph_.locations().resolve(o.loc()).module_path;
    for (const std::string &pattern : options_.keep_float) {
      const std::string_view op_name = o.name().substr(o.name().find('.') + 1);
      std::string upper(op_name);
      std::transform(upper.begin(), upper.end(), upper.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      bool hit = matches_glob(pattern, path) || matches_glob(pattern, o.name()) ||
                 matches_glob(pattern, upper);
      for (const ir::Value &v : o.results())
        hit = hit || matches_glob(pattern, name_of(graph_, v));
      if (hit)
        return "--keep-float " + pattern;
    }
    for (const ir::Use &u : o.operand_uses()) {
      const ir::Value *v = u.value();
      if (!is_real(v))
        continue;
      if (v->type().element() != ir::ElementType::F32)
        return "its operand " + name_of(graph_, *v) + " is of " +
               std::string(ir::element_type_name(v->type().element()));
      if (const ir::Constant *c = constant_of(v); c && !c->has_data)
        return "its constant " + name_of(graph_, *v) + " has no data";
      else if (!c && !ranges_.of(*v))
        return "its operand " + name_of(graph_, *v) + " was never observed";
    }
    for (const ir::Value &v : o.results()) {
      if (!is_real(&v))
        continue;
      if (v.type().element() != ir::ElementType::F32)
        return "its result is of " + std::string(ir::element_type_name(v.type().element()));
      const Observer *seen = ranges_.of(v);
      if (v.has_uses() && (!seen || seen->seen().empty()) && !ranges_.masks().masked(v))
        return "no number of its result was seen in the calibration run";
    }
    const Roles &roles = rule.roles;
    if (roles.weight < 0 || static_cast<u32>(roles.weight) >= o.num_operands())
      return {};
    const ir::Value *bias = roles.bias >= 0 && static_cast<u32>(roles.bias) < o.num_operands()
                                ? o.operand(static_cast<u32>(roles.bias))
                                : nullptr;
    if (bias && !constant_of(bias))
      return "its bias is computed at run time";
    if (constant_of(o.operand(static_cast<u32>(roles.data))))
      return "its data operand is a constant";
    return {};
  }

  /// Groups of values with the same parameters; a fixed result keeps its own.
  void share(const ir::Op &o) {
    for (const ir::Value &v : o.results())
      if (is_real(&v))
        fixed_[v.id()] = fixed_parameters(graph_.context(), o.name(), *plan_.scheme);
    if (const ir::Value *scores = scores_of(o); scores && !fixed_[group(*scores)]) {
      parent_[group(*o.result())] = group(*scores);
      return;
    }
    if (rule_of(o).treatment != Treatment::Same)
      return;
    u32 moved = 0;
    for (const ir::Use &u : o.operand_uses())
      moved += is_real(u.value());
    const ir::Value *first = nullptr;
    for (const ir::Value &v : o.results())
      if (is_real(&v)) {
        if (first)
          parent_[group(v)] = group(*first);
        else
          first = &v;
      }
    for (const ir::Use &u : o.operand_uses()) {
      if (!first || !is_real(u.value()) || constant_of(u.value()))
        continue;
      const u32 from = group(*u.value());
      const u32 to = group(*first);
      if (from == to || (fixed_[from] && moved > 1))
        continue; // joined with others, it is requantized
      parent_[to] = from;
      if (!fixed_[from])
        fixed_[from] = fixed_[to];
    }
  }

  void include(const ir::Value &v) {
    if (included_[v.id()])
      return;
    included_[v.id()] = true;
    if (const Observer *seen = ranges_.of(v))
      range_[group(v)].include(
          seen->range(plan_.scheme->activation, plan_.scheme->activation_symmetric));
  }

  void collect(const ir::Op &o) {
    const bool same = rule_of(o).treatment == Treatment::Same;
    const ir::Value *result = nullptr;
    for (const ir::Value &v : o.results())
      if (is_real(&v)) {
        include(v);
        result = &v;
      }
    for (const ir::Use &u : o.operand_uses()) {
      if (!is_real(u.value()))
        continue;
      const ir::Constant *c = constant_of(u.value());
      if (!c)
        include(*u.value());
      // The padding value of PADV2 is often the least number there is, and clamps well.
      else if (same && result && o.opcode() != op::PADV2)
        range_[group(*result)].include(range_of(*c, ranges_.masks().threshold(*result)));
    }
  }

  bool masked(const ir::Value *v) const { return is_real(v) && ranges_.masks().masked(*v); }

  /// The operand of a masking addition that is masked by it; null for any other operator. Its
  /// numbers stay what they are or become "nothing", so it shares the result's parameters, and is
  /// rounded once instead of twice.
  const ir::Value *scores_of(const ir::Op &o) const {
    if ((o.opcode() != op::ADD && o.opcode() != op::SUB) || !masked(o.result()))
      return nullptr;
    const ir::Value *scores = nullptr;
    for (const ir::Use &u : o.operand_uses()) {
      const ir::Value *v = u.value();
      if (!is_real(v) || constant_of(v) || masked(v))
        continue;
      if (scores || v->type() != o.result()->type())
        return nullptr;
      scores = v;
    }
    return scores;
  }

  /// Room for "nothing" in the range of a masked value that a softmax takes.
  void deepen(const ir::Op &o) {
    if ((o.opcode() != op::SOFTMAX && o.opcode() != op::LOG_SOFTMAX) || !masked(o.operand(0)))
      return;
    Range &r = range_[group(*o.operand(0))];
    const float top = ranges_.least_top(*o.operand(0));
    if (std::isfinite(top))
      r.include({top - kMaskGap, top});
    else
      r.include({-kMaskGap, 0});
  }

  /// Masks that reach from the top of the scores to their bottom.
  void reach(const ir::Op &o) {
    if ((o.opcode() != op::ADD && o.opcode() != op::SUB) || !masked(o.result()))
      return;
    const Range r = range_[group(*o.result())];
    const float depth = r.empty() ? kMaskGap : std::max(r.hi, 0.0f) - std::min(r.lo, 0.0f);
    plan_.mask_depth[o.result()->id()] = depth;
    for (const ir::Use &u : o.operand_uses())
      if (masked(u.value()))
        range_[group(*u.value())].include({-depth, 0});
  }

  void assign(const ir::Op &o) {
    const auto set = [&](const ir::Value *v) {
      if (!is_real(v) || constant_of(v) || v->type().element() != ir::ElementType::F32)
        return;
      const u32 g = group(*v);
      if (!fixed_[g])
        fixed_[g] = parameters(graph_.context(), range_[g], plan_.scheme->activation,
                               plan_.scheme->activation_symmetric);
      plan_.quant[v->id()] = fixed_[g];
    };
    for (const ir::Value &v : o.results())
      set(&v);
    for (const ir::Use &u : o.operand_uses())
      set(u.value());
  }

  const ir::Graph &graph_;
  const Ranges &ranges_;
  const PlanOptions &options_;
  std::vector<u32> parent_;                     // union-find by Value::id
  std::vector<const ir::Quantization *> fixed_; // by group
  std::vector<Range> range_;                    // by group
  std::vector<bool> included_;                  // by Value::id
  Plan plan_;
};

} // namespace

Plan make_plan(const ir::Graph &graph, const Ranges &ranges, const PlanOptions &options) {
  return Planner(graph, ranges, options).run();
}

} // namespace chute::ptq
