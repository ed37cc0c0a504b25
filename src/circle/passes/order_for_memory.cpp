// order-for-memory: runs operators in an order in which fewer activations live at one time.
//
//   %a = exp(%x)  %b = tanh(%x)  %c = sum(%a)  %d = sum(%b)
//                                  →  %a = exp(%x)  %c = sum(%a)  %b = tanh(%x)  %d = sum(%b)
//
// Nothing but the order changes: values are the same bit for bit. The peak is never raised, since
// an order is taken over only if its peak, counted the way `chute plan` counts, is lower. A graph
// whose peak is the lower bound of every order is left. Operators with effects, with random
// results and on variables keep their order among themselves. Cost: O(n log n), and only ranges
// that hold the peak are scheduled.
#include "circle/passes/order_for_memory.h"

#include "circle/activations.h"
#include "circle/passes.h"
#include "ir/walk.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace chute::circle {

using ir::Op;
using ir::Value;

MemoryOrder::MemoryOrder(const ir::Graph &graph, WorkCounters &work) : work_(&work) {
  collect(graph);
  measure();
}

u32 MemoryOrder::storage_of(const Value *v) const { return v ? storage_[v->id()] : kNone; }

void MemoryOrder::collect(const ir::Graph &graph) {
  step_of_.assign(graph.num_op_ids(), kNone);
  storage_.assign(graph.num_value_ids(), kNone);
  const auto add_storage = [&](const Value &v, u32 definer) {
    storage_[v.id()] = static_cast<u32>(storages_.size());
    Storage &s = storages_.emplace_back();
    s.bytes = aligned_bytes(activation_bytes(graph.context().sym(), v.type()));
    s.definer = definer;
    s.last = definer == kNone ? 0 : definer;
    return s.bytes;
  };
  for (const Value *arg : graph.body().args()) {
    const u64 bytes = add_storage(*arg, kNone);
    if (!arg->has_uses())
      unused_inputs_ += bytes;
  }
  const auto work = work_memory(graph, kActivationAlignment, *work_);
  for (Op &op : const_cast<ir::Graph &>(graph).body()) {
    if (!is_step(op))
      continue;
    const auto step = static_cast<u32>(steps_.size());
    step_of_[op.id()] = step;
    steps_.push_back(&op);
    u64 defined = 0, held = 0;
    for (const Value &r : op.results()) {
      const u32 shared = is_view(op) && op.num_operands() ? storage_of(op.operand(0)) : kNone;
      if (shared == kNone)
        defined += add_storage(r, step);
      else
        storage_[r.id()] = shared;
      held += storages_[storage_[r.id()]].bytes;
    }
    defined_.push_back(defined);
    held_.push_back(held);
    const auto own = work.find(&op);
    own_work_.push_back(own == work.end() ? 0 : own->second);
    add_step(op, step);
  }
  if (const Op *ret = graph.return_op())
    for (const ir::Use &u : ret->operand_uses())
      if (const u32 s = storage_of(u.value()); s != kNone)
        storages_[s].output = true;
  // The other direction of needs_.
  const auto n = static_cast<u32>(steps_.size());
  std::vector<u32> count(n + 1, 0);
  for (const u32 p : needs_.items)
    ++count[p + 1];
  std::partial_sum(count.begin(), count.end(), count.begin());
  needed_by_.begin.assign(count.begin(), count.end());
  needed_by_.items.resize(needs_.items.size());
  for (u32 s = 0; s < n; ++s)
    for (const u32 p : needs_[s])
      needed_by_.items[count[p]++] = s;
  left_.assign(storages_.size(), 0);
  who_.assign(storages_.size(), 0);
  live_.assign(storages_.size(), 0);
}

/// Storages that a step touches and steps that it needs.
void MemoryOrder::add_step(Op &op, u32 step) {
  const size_t first_touch = touched_.items.size(), first_need = needs_.items.size();
  bool ordered = !op.has(ir::trait::kPure) || op.has(ir::trait::kEffect) ||
                 op.has(ir::trait::kRandom) || op.num_regions() != 0;
  const auto use = [&](const Value *v) {
    ++work_->ops_visited;
    if (!v)
      return;
    if (const u32 s = storage_[v->id()]; s != kNone) {
      touched_.items.push_back(s);
      storages_[s].last = step;
    }
    const Op *p = v->producer();
    if (p && p->opcode() == ir::core_op::state)
      ordered = true;
    if (p && step_of_[p->id()] != kNone)
      needs_.items.push_back(step_of_[p->id()]);
  };
  for (const ir::Use &u : op.operand_uses())
    use(u.value());
  for (ir::Region *r : op.regions())
    ir::walk(*r, [&](Op &inner) {
      for (const ir::Use &u : inner.operand_uses())
        use(u.value());
    });
  for (const Value &r : op.results())
    touched_.items.push_back(storage_[r.id()]);
  if (ordered) {
    if (last_effect_ != kNone)
      needs_.items.push_back(last_effect_);
    last_effect_ = step;
  }
  const auto unique_tail = [](std::vector<u32> &v, size_t from) {
    const auto begin = v.begin() + static_cast<i64>(from);
    std::sort(begin, v.end());
    v.erase(std::unique(begin, v.end()), v.end());
  };
  unique_tail(touched_.items, first_touch);
  unique_tail(needs_.items, first_need);
  touched_.close();
  needs_.close();
}

/// What lives when, in the order that is there, and what no order can avoid.
void MemoryOrder::measure() {
  const auto n = static_cast<u32>(steps_.size());
  std::vector<u64> ends(n + 1, 0);
  std::vector<u32> narrow_ends(n + 1, 0);
  u64 inputs = 0, outputs = 0;
  for (const Storage &s : storages_) {
    inputs += s.definer == kNone ? s.bytes : 0;
    outputs += s.output ? s.bytes : 0;
    if (!s.output && n) {
      ends[s.last] += s.bytes;
      narrow_ends[s.last] += s.definer != kNone;
    }
  }
  u64 live = inputs;
  bound_ = std::max(inputs, outputs);
  peak_ = bound_;
  u32 narrow = 0;
  std::vector<u32> narrow_starts(n + 1, 0);
  for (const Storage &s : storages_)
    if (s.definer != kNone && !s.output)
      ++narrow_starts[s.definer];
  for (u32 i = 0; i < n; ++i) {
    ++work_->ops_visited;
    crossing_.push_back(live);
    narrow_.push_back(narrow);
    live += defined_[i];
    narrow += narrow_starts[i];
    at_.push_back(live + own_work_[i]);
    peak_ = std::max(peak_, at_.back());
    u64 least = own_work_[i];
    for (const u32 s : touched_[i])
      least += storages_[s].bytes;
    bound_ = std::max(bound_, least);
    live -= ends[i];
    narrow -= narrow_ends[i];
  }
  improved_ = peak_;
}

/// The most that lives while the steps first .. end-1 run in that order.
u64 MemoryOrder::simulate(u32 first, u32 end, std::span<const u32> order) {
  for (const u32 i : order)
    for (const u32 s : touched_[i])
      ++left_[s];
  u64 live = crossing_[first], peak = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    const u32 i = order[k];
    ++work_->ops_visited;
    live += defined_[i];
    peak = std::max(peak, live + own_work_[i]);
    for (const u32 s : touched_[i])
      if (--left_[s] == 0 && dies(s, end))
        live -= storages_[s].bytes;
    if (k == 0 && first == 0)
      live -= unused_inputs_;
  }
  return peak;
}

/// Ends of ranges that one storage at most connects.
std::vector<u32> MemoryOrder::ranges() const {
  std::vector<u32> out;
  for (u32 i = 1; i < steps_.size(); ++i)
    if (narrow_[i] <= 1)
      out.push_back(i);
  out.push_back(static_cast<u32>(steps_.size()));
  return out;
}

namespace {

/// Steps that are ready, the one of least growth first, then in the order that was there.
class Ready {
public:
  explicit Ready(size_t n) : growth_(n, 0), ready_(n, 0), done_(n, 0) {}
  i64 &growth(u32 i) { return growth_[i]; }
  void push(u32 i) {
    ready_[i] = 1;
    heap_.push({growth_[i], i});
  }
  void changed(u32 i) {
    if (ready_[i] && !done_[i])
      heap_.push({growth_[i], i});
  }
  bool pop(u32 &i) {
    while (!heap_.empty()) {
      const auto [growth, step] = heap_.top();
      heap_.pop();
      if (done_[step] || growth != growth_[step])
        continue;
      done_[step] = 1;
      i = step;
      return true;
    }
    return false;
  }
  bool done(u32 i) const { return done_[i]; }

private:
  using Entry = std::pair<i64, u32>;
  std::vector<i64> growth_;
  std::vector<u8> ready_, done_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

} // namespace

/// Of what can run, always what adds least.
std::vector<u32> MemoryOrder::forward(u32 first, u32 end) {
  const u32 n = end - first;
  Ready ready(n);
  std::vector<u32> waits(n, 0), out;
  for (u32 i = first; i < end; ++i) {
    ready.growth(i - first) += static_cast<i64>(defined_[i]);
    for (const u32 p : needs_[i])
      waits[i - first] += p >= first;
    for (const u32 s : touched_[i]) {
      ++left_[s];
      who_[s] ^= i; // the one that is left when one is
    }
  }
  const auto frees = [&](u32 s) {
    ready.growth(who_[s] - first) -= static_cast<i64>(storages_[s].bytes);
    return who_[s] - first;
  };
  for (u32 i = first; i < end; ++i)
    for (const u32 s : touched_[i])
      if (left_[s] == 1 && dies(s, end))
        frees(s);
  for (u32 i = 0; i < n; ++i)
    if (waits[i] == 0)
      ready.push(i);
  for (u32 k; ready.pop(k);) {
    const u32 i = first + k;
    ++work_->ops_visited;
    out.push_back(i);
    for (const u32 s : touched_[i]) {
      --left_[s];
      who_[s] ^= i;
      if (left_[s] == 1 && dies(s, end))
        ready.changed(frees(s));
    }
    for (const u32 u : needed_by_[i])
      if (u < end && --waits[u - first] == 0)
        ready.push(u - first);
  }
  return out; // left_ and who_ are zero again
}

/// The same from the end: of what can run last, what needs least before it.
std::vector<u32> MemoryOrder::backward(u32 first, u32 end) {
  const u32 n = end - first;
  Ready ready(n);
  std::vector<u32> waits(n, 0), out, seen;
  boost::unordered_flat_map<u32, std::vector<u32>> users;
  for (u32 i = first; i < end; ++i) {
    for (const u32 u : needed_by_[i])
      waits[i - first] += u < end;
    i64 &growth = ready.growth(i - first);
    growth -= static_cast<i64>(defined_[i]);
    for (const u32 s : touched_[i]) {
      if (!dies(s, end))
        continue;
      users[s].push_back(i);
      growth += static_cast<i64>(storages_[s].bytes);
    }
  }
  for (u32 i = n; i-- > 0;)
    if (waits[i] == 0)
      ready.push(i);
  for (u32 k; ready.pop(k);) {
    const u32 i = first + k;
    ++work_->ops_visited;
    out.push_back(i);
    for (const u32 s : touched_[i]) {
      if (!dies(s, end) || live_[s])
        continue;
      live_[s] = 1;
      seen.push_back(s);
      for (const u32 user : users[s])
        if (!ready.done(user - first)) {
          ready.growth(user - first) -= static_cast<i64>(storages_[s].bytes);
          ready.changed(user - first);
        }
    }
    for (const u32 p : needs_[i])
      if (p >= first && --waits[p - first] == 0)
        ready.push(p - first);
  }
  for (const u32 s : seen)
    live_[s] = 0;
  std::reverse(out.begin(), out.end());
  return out;
}

/// Depth first from what nothing in the range needs; of a step's operands first the one whose own
/// computation takes most beyond what it leaves (exact for trees: Sethi and Ullman 1970).
std::vector<u32> MemoryOrder::sethi_ullman(u32 first, u32 end) {
  const u32 n = end - first;
  std::vector<u64> most(n, 0);
  Lists needs;
  for (u32 i = first; i < end; ++i) {
    ++work_->ops_visited;
    const size_t from = needs.items.size();
    for (const u32 p : needs_[i])
      if (p >= first)
        needs.items.push_back(p);
    std::stable_sort(needs.items.begin() + static_cast<i64>(from), needs.items.end(),
                     [&](u32 a, u32 b) {
                       return most[a - first] - std::min(most[a - first], held_[a]) >
                              most[b - first] - std::min(most[b - first], held_[b]);
                     });
    needs.close();
    u64 held = 0, top = 0;
    for (const u32 p : needs[i - first]) {
      top = std::max(top, held + most[p - first]);
      held += held_[p];
    }
    most[i - first] = std::max(top, held + defined_[i] + own_work_[i]);
  }
  std::vector<u32> out, stack;
  std::vector<u32> next(n, 0);
  std::vector<u8> state(n, 0);
  for (u32 root = 0; root < n; ++root) {
    bool inner = false;
    for (const u32 u : needed_by_[first + root])
      inner = inner || u < end;
    if (inner)
      continue;
    stack.push_back(root);
    while (!stack.empty()) {
      const u32 k = stack.back();
      if (state[k] == 2) {
        stack.pop_back();
        continue;
      }
      state[k] = 1;
      const std::span<const u32> list = needs[k];
      while (next[k] < list.size() && state[list[next[k]] - first])
        ++next[k];
      if (next[k] < list.size()) {
        stack.push_back(list[next[k]] - first);
        continue;
      }
      state[k] = 2;
      stack.pop_back();
      out.push_back(first + k);
    }
  }
  return out;
}

/// The best of the schedules; empty when none is below `peak`, which is lowered otherwise.
std::vector<u32> MemoryOrder::best_order(u32 first, u32 end, u64 &peak) {
  std::vector<u32> best;
  using Schedule = std::vector<u32> (MemoryOrder::*)(u32, u32);
  for (const Schedule make :
       {&MemoryOrder::forward, &MemoryOrder::sethi_ullman, &MemoryOrder::backward}) {
    if (peak <= bound_)
      break;
    std::vector<u32> order = (this->*make)(first, end);
    if (const u64 now = simulate(first, end, order); now < peak) {
      peak = now;
      best = std::move(order);
    }
  }
  return best;
}

std::vector<MemoryOrder::Change> MemoryOrder::improve() {
  std::vector<Change> changes;
  const auto n = static_cast<u32>(steps_.size());
  if (peak_ <= bound_ || n < 2)
    return changes;
  struct Range {
    u32 first, end;
    u64 peak;
  };
  std::vector<Range> ranges;
  u32 first = 0;
  for (const u32 end : this->ranges()) {
    ranges.push_back({first, end, *std::max_element(at_.begin() + first, at_.begin() + end)});
    first = end;
  }
  // The fullest first, until one is reached that stays below what can not be had lower.
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const Range &a, const Range &b) { return a.peak > b.peak; });
  u64 floor = bound_;
  for (const Range &r : ranges) {
    if (r.peak <= floor)
      break;
    u64 peak = r.peak;
    if (std::vector<u32> order = best_order(r.first, r.end, peak); !order.empty())
      changes.push_back({r.first, std::move(order)});
    floor = std::max(floor, peak);
  }
  if (floor > bound_ && ranges.size() > 1) {
    u64 peak = floor;
    if (std::vector<u32> order = best_order(0, n, peak); !order.empty()) {
      changes = {{0, std::move(order)}};
      floor = peak;
    }
  }
  // Ranges below the final peak may stay as they are.
  std::erase_if(changes, [&](const Change &c) {
    const auto at = at_.begin() + c.first;
    return *std::max_element(at, at + static_cast<i64>(c.order.size())) <= floor;
  });
  improved_ = floor;
  std::sort(changes.begin(), changes.end(),
            [](const Change &a, const Change &b) { return a.first < b.first; });
  return changes;
}

u64 order_bound(const ir::Graph &graph, WorkCounters &work) {
  return MemoryOrder(graph, work).bound();
}

void order_for_memory(pass::PassContext &ctx) {
  MemoryOrder memory(ctx.graph, ctx.counters);
  const std::vector<MemoryOrder::Change> changes = memory.improve();
  // From the back, so that what a range is put before has its final place. Constants between the
  // operators of a range come to lie before all of them.
  Op *anchor = nullptr;
  auto end = static_cast<u32>(memory.steps().size());
  for (size_t c = changes.size(); c-- > 0;) {
    const auto &[first, order] = changes[c];
    if (ctx.rewrite.used && *ctx.rewrite.used >= ctx.rewrite.rewrite_limit)
      return;
    if (const u32 behind = first + static_cast<u32>(order.size()); behind != end)
      anchor = memory.steps()[behind];
    else if (!anchor)
      anchor = ctx.graph.return_op();
    for (const u32 i : order)
      ctx.graph.move_before(memory.steps()[i], anchor);
    anchor = memory.steps()[order.front()];
    end = first;
    ++ctx.counters.rewrites;
    if (ctx.rewrite.used)
      ++*ctx.rewrite.used;
  }
}

} // namespace chute::circle
