#include "toolkit/plan.h"

#include "circle/activations.h"
#include "circle/ops.h"
#include "circle/passes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace chute::toolkit {

namespace {

using ir::Op;
using ir::Value;

constexpr u64 kNever = ~u64{0};
/// Pairs of tensors that live together, per tensor, up to which every pair is looked at.
constexpr u64 kMostPairs = 256;

class Lives {
public:
  Lives(const ir::Graph &graph, const PlanOptions &options, PlanReport &report)
      : graph_(graph), options_(options), report_(report) {
    slot_.assign(graph.num_value_ids(), kNone);
    step_.assign(graph.num_op_ids(), 0);
  }

  void run() {
    region_peak_ = circle::work_memory(graph_, options_.alignment, report_.work);
    u64 steps = 0;
    for (const Op &op : graph_.body()) {
      step_[op.id()] = steps;
      if (circle::is_step(op)) {
        report_.steps.emplace_back(op.name());
        ++steps;
      }
    }
    end_ = steps ? steps - 1 : 0;
    for (const Value *arg : graph_.body().args()) {
      PlanTensor &t = define(*arg, 0, "input");
      t.input = true;
    }
    for (const Op &op : graph_.body())
      visit(op);
    if (const Op *ret = graph_.return_op())
      for (const ir::Use &u : ret->operand_uses())
        if (u.value() && slot_[u.value()->id()] != kNone)
          report_.tensors[slot_[u.value()->id()]].output = true;
  }

private:
  static constexpr u32 kNone = ~u32{0};

  u64 bytes_of(ir::Type t) {
    bool dynamic = false;
    const u64 bytes = circle::activation_bytes(graph_.context().sym(), t, &dynamic);
    report_.dynamic += dynamic;
    return bytes;
  }

  u64 aligned(u64 bytes) const { return circle::aligned_bytes(bytes, options_.alignment); }

  /// The last step that reads a value, as far as the body goes; its own step without readers.
  u64 last_use(const Value &v, u64 defined) {
    u64 last = defined;
    for (const ir::Use &u : v.uses()) {
      ++report_.work.ops_visited;
      const Op *owner = u.owner();
      while (owner->parent() != &graph_.body())
        owner = owner->parent()->parent_op();
      last = std::max(last, owner->has(ir::trait::kTerminator) ? end_ : step_[owner->id()]);
    }
    return last;
  }

  PlanTensor &define(const Value &v, u64 step, std::string_view op) {
    slot_[v.id()] = static_cast<u32>(report_.tensors.size());
    PlanTensor &t = report_.tensors.emplace_back();
    t.name = graph_.context().string(v.name());
    t.op = op;
    t.bytes = bytes_of(v.type());
    t.aligned = aligned(t.bytes);
    t.first = step;
    t.last = last_use(v, step);
    return t;
  }

  /// The slot whose memory a result may take over; kNone for none.
  u32 shared_slot(const Op &op, const Value &result) {
    const auto slot = [&](const Value *v) { return v ? slot_[v->id()] : kNone; };
    if (options_.alias_views && circle::is_view(op) && op.num_operands())
      return slot(op.operand(0));
    if (!options_.in_place || !op.has(ir::trait::kElementwise) || op.num_results() != 1)
      return kNone;
    const u64 bytes = bytes_of(result.type());
    for (const ir::Use &u : op.operand_uses()) {
      const u32 s = slot(u.value());
      if (s == kNone)
        continue;
      const PlanTensor &t = report_.tensors[s];
      if (!t.input && t.bytes == bytes && t.last == step_[op.id()])
        return s;
    }
    return kNone;
  }

  void visit(const Op &op) {
    ++report_.work.ops_visited;
    if (op.has(ir::trait::kConstant)) {
      report_.constants += op.attr(0u).as_constant()->dense_bytes();
      return;
    }
    if (op.opcode() == ir::core_op::state) {
      report_.variables += bytes_of(op.result()->type());
      return;
    }
    if (!circle::is_step(op))
      return;
    const u64 step = step_[op.id()];
    for (const Value &r : op.results()) {
      const u32 shared = shared_slot(op, r);
      if (shared == kNone) {
        define(r, step, op.name());
        continue;
      }
      slot_[r.id()] = shared;
      PlanTensor &t = report_.tensors[shared];
      t.last = std::max(t.last, last_use(r, step));
      ++t.aliases;
      ++report_.aliased;
    }
    if (const auto it = region_peak_.find(&op); it != region_peak_.end() && it->second) {
      PlanTensor &t = report_.tensors.emplace_back();
      t.op = "work memory of " + std::string(op.name());
      t.bytes = t.aligned = it->second;
      t.first = t.last = step;
    }
  }

  const ir::Graph &graph_;
  const PlanOptions &options_;
  PlanReport &report_;
  std::vector<u32> slot_; // by Value::id: index into report_.tensors
  std::vector<u64> step_; // by Op::id
  boost::unordered_flat_map<const Op *, u64> region_peak_;
  u64 end_ = 0;
};

void profile(PlanReport &report) {
  std::vector<i64> change(report.steps.size() + 1, 0);
  for (const PlanTensor &t : report.tensors) {
    report.total += t.aligned;
    if (report.steps.empty())
      continue;
    change[t.first] += static_cast<i64>(t.aligned);
    change[t.last + 1] -= static_cast<i64>(t.aligned);
  }
  i64 now = 0;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    now += change[i];
    report.live.push_back(static_cast<u64>(now));
    if (static_cast<u64>(now) > report.lower_bound) {
      report.lower_bound = static_cast<u64>(now);
      report.peak_step = i;
    }
  }
  if (report.steps.empty())
    report.lower_bound = report.total;
}

/// Pairs of tensors that live at the same time.
u64 count_pairs(const std::vector<PlanTensor> &tensors) {
  std::vector<u64> starts, ends;
  for (const PlanTensor &t : tensors) {
    starts.push_back(t.first);
    ends.push_back(t.last);
  }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  u64 pairs = 0, over = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    while (over < ends.size() && ends[over] < starts[i])
      ++over;
    pairs += i - over;
  }
  return pairs;
}

struct Placement {
  std::vector<u64> offsets;
  u64 arena = 0;
};

/// Tensors that were placed, by time: a segment tree over steps in whose nodes they are listed.
class Placed {
public:
  explicit Placed(u64 steps) {
    while (size_ < steps)
      size_ *= 2;
    covering_.resize(2 * size_);
    below_.resize(2 * size_);
  }
  void add(u32 tensor, u64 first, u64 last) {
    for (u64 l = first + size_, r = last + size_ + 1; l < r; l /= 2, r /= 2) {
      if (l & 1)
        list(l++, tensor);
      if (r & 1)
        list(--r, tensor);
    }
  }
  /// Calls `visit` with tensors whose life meets [first, last]; some more than once.
  template <class Visit>
  void overlapping(u64 first, u64 last, Visit &&visit) {
    for (u64 l = first + size_, r = last + size_ + 1; l < r; l /= 2, r /= 2) {
      if (l & 1)
        inside(l++, visit);
      if (r & 1)
        inside(--r, visit);
    }
    // Nodes above the range's ends cover them.
    for (u64 n = (first + size_) / 2; n; n /= 2)
      for (u32 t : covering_[n])
        visit(t);
    for (u64 n = (last + size_) / 2; n; n /= 2)
      for (u32 t : covering_[n])
        visit(t);
  }

private:
  void list(u64 node, u32 tensor) {
    covering_[node].push_back(tensor);
    for (u64 n = node; n; n /= 2)
      below_[n] = 1;
  }
  template <class Visit>
  void inside(u64 node, Visit &visit) {
    std::vector<u64> stack{node};
    while (!stack.empty()) {
      const u64 n = stack.back();
      stack.pop_back();
      if (!below_[n])
        continue;
      for (u32 t : covering_[n])
        visit(t);
      if (n < size_) {
        stack.push_back(2 * n + 1);
        stack.push_back(2 * n);
      }
    }
  }
  u64 size_ = 1;
  std::vector<std::vector<u32>> covering_;
  std::vector<u8> below_; // whether anything is listed in the node or under it
};

Placement largest_first(const std::vector<PlanTensor> &tensors, u64 steps, WorkCounters &work) {
  Placement out;
  out.offsets.assign(tensors.size(), 0);
  std::vector<u32> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](u32 a, u32 b) { return tensors[a].aligned > tensors[b].aligned; });
  Placed placed(std::max<u64>(steps, 1));
  std::vector<u32> seen(tensors.size(), 0);
  std::vector<std::pair<u64, u64>> taken; // offset, end
  u32 round = 0;
  for (u32 i : order) {
    const PlanTensor &t = tensors[i];
    if (t.aligned == 0)
      continue;
    taken.clear();
    ++round;
    placed.overlapping(t.first, t.last, [&](u32 other) {
      ++work.ops_visited;
      if (seen[other] == round)
        return;
      seen[other] = round;
      taken.emplace_back(out.offsets[other], out.offsets[other] + tensors[other].aligned);
    });
    std::sort(taken.begin(), taken.end());
    // The smallest gap that is large enough wastes least.
    u64 best = kNever, best_size = kNever, end = 0;
    for (const auto &[from, to] : taken) {
      if (from > end && from - end >= t.aligned && from - end < best_size) {
        best = end;
        best_size = from - end;
      }
      end = std::max(end, to);
    }
    out.offsets[i] = best == kNever ? end : best;
    out.arena = std::max(out.arena, out.offsets[i] + t.aligned);
    placed.add(i, t.first, t.last);
  }
  return out;
}

Placement in_order(const std::vector<PlanTensor> &tensors, WorkCounters &work) {
  Placement out;
  out.offsets.assign(tensors.size(), 0);
  std::vector<u32> by_end(tensors.size()), by_start(tensors.size());
  std::iota(by_end.begin(), by_end.end(), 0);
  by_start = by_end;
  std::stable_sort(by_start.begin(), by_start.end(), [&](u32 a, u32 b) {
    return std::pair(tensors[a].first, ~tensors[a].aligned) <
           std::pair(tensors[b].first, ~tensors[b].aligned);
  });
  std::stable_sort(by_end.begin(), by_end.end(),
                   [&](u32 a, u32 b) { return tensors[a].last < tensors[b].last; });
  std::map<u64, u64> gaps;             // offset -> size
  std::set<std::pair<u64, u64>> sizes; // the same as (size, offset)
  const auto insert_gap = [&](u64 offset, u64 size) {
    gaps[offset] = size;
    sizes.insert({size, offset});
  };
  const auto erase_gap = [&](std::map<u64, u64>::iterator it) {
    sizes.erase({it->second, it->first});
    return gaps.erase(it);
  };
  const auto release = [&](u64 offset, u64 size) {
    auto next = gaps.lower_bound(offset);
    if (next != gaps.end() && next->first == offset + size) {
      size += next->second;
      next = erase_gap(next);
    }
    if (next != gaps.begin())
      if (const auto before = std::prev(next); before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        erase_gap(before);
      }
    insert_gap(offset, size);
  };
  size_t over = 0;
  for (u32 i : by_start) {
    const PlanTensor &t = tensors[i];
    ++work.ops_visited;
    for (; over < by_end.size() && tensors[by_end[over]].last < t.first; ++over)
      if (const PlanTensor &done = tensors[by_end[over]]; done.aligned)
        release(out.offsets[by_end[over]], done.aligned);
    if (t.aligned == 0)
      continue;
    if (const auto fit = sizes.lower_bound({t.aligned, 0}); fit != sizes.end()) {
      const auto [size, offset] = *fit;
      erase_gap(gaps.find(offset));
      out.offsets[i] = offset;
      if (size > t.aligned)
        insert_gap(offset + t.aligned, size - t.aligned);
      continue;
    }
    // Grow, over a gap at the end if there is one.
    u64 offset = out.arena;
    if (!gaps.empty())
      if (const auto last = std::prev(gaps.end()); last->first + last->second == out.arena) {
        offset = last->first;
        erase_gap(last);
      }
    out.offsets[i] = offset;
    out.arena = offset + t.aligned;
  }
  return out;
}

} // namespace

PlanReport plan(const ir::Graph &graph, const PlanOptions &options) {
  PlanReport report;
  Lives(graph, options, report).run();
  profile(report);
  Placement best = in_order(report.tensors, report.work);
  report.method = "in order of time";
  if (count_pairs(report.tensors) <= kMostPairs * (report.tensors.size() + 64)) {
    Placement other = largest_first(report.tensors, report.steps.size(), report.work);
    if (other.arena <= best.arena) {
      best = std::move(other);
      report.method = "greedy by size";
    }
  }
  report.arena = best.arena;
  for (size_t i = 0; i < report.tensors.size(); ++i)
    report.tensors[i].offset = best.offsets[i];
  return report;
}

OrderReport plan_in_another_order(ir::Graph &graph, const PlanReport &before,
                                  const PlanOptions &options) {
  OrderReport out;
  out.order_bound = circle::order_bound(graph, out.plan.work);
  Diagnostics none;
  const pass::Settings settings;
  WorkCounters work;
  pass::PassContext ctx{graph, none, work, settings, {}, nullptr};
  circle::order_for_memory(ctx);
  out.plan = plan(graph, options);
  out.plan.work += work;
  out.better = out.plan.lower_bound < before.lower_bound;
  return out;
}

} // namespace chute::toolkit
