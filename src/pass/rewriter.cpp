#include "pass/rewriter.h"

#include "ir/constant_pool.h"
#include "ir/op_check.h"
#include "ir/walk.h"
#include "support/check.h"

#include <algorithm>
#include <array>

namespace chute::pass {

using ir::Op;
using ir::Value;

void PatternSet::add(Pattern p) {
  CHUTE_CHECK(patterns_.size() < 65535, "too many patterns");
  if (by_opcode_.empty()) {
    by_opcode_.resize(ir::kMaxOpCode);
    wanted_.resize(ir::kMaxOpCode);
  }
  const auto id = static_cast<u16>(patterns_.size());
  for (ir::OpCode root : p.roots) {
    by_opcode_[ir::index(root)].push_back(id);
    wanted_[ir::index(root)] = 1;
  }
  patterns_.push_back(std::move(p));
}

void PatternSet::add_for_trait(std::string_view name, ir::trait::Set traits, RewriteFn apply) {
  Pattern p{name, {}, apply};
  for (const ir::OpDef *def : ir::Registry::global().all())
    if (def->has(traits))
      p.roots.push_back(def->opcode);
  add(std::move(p));
}

std::span<const u16> PatternSet::for_opcode(ir::OpCode code) const {
  if (by_opcode_.empty())
    return {};
  return by_opcode_[ir::index(code)];
}

namespace {

/// Operators that may vanish when nothing uses their results.
bool is_removable(ir::trait::Set traits) {
  constexpr ir::trait::Set kKeeps =
      ir::trait::kEffect | ir::trait::kInPlace | ir::trait::kTerminator | ir::trait::kCheck;
  return (traits & (ir::trait::kPure | ir::trait::kRandom)) && !(traits & kKeeps);
}

bool is_unused(const Op &op) {
  for (const Value &v : op.results())
    if (v.has_uses())
      return false;
  return op.num_results() > 0;
}

} // namespace

bool is_dead(const Op &op) { return is_removable(op.traits()) && is_unused(op); }

class Driver final : public ir::Listener {
public:
  Driver(ir::Graph &graph, const PatternSet &patterns, Diagnostics &diagnostics,
         WorkCounters &counters, const RewriteOptions &options, std::vector<PatternStats> *stats,
         void *user)
      : graph_(graph),
        patterns_(patterns),
        diagnostics_(diagnostics),
        counters_(counters),
        options_(options),
        rewriter_(graph, diagnostics, user) {
    rewriter_.driver_ = this;
    local_.resize(patterns.patterns().size());
    for (size_t i = 0; i < local_.size(); ++i)
      local_[i].name = patterns.patterns()[i].name;
    out_stats_ = stats;
  }

  bool run() {
    place_.assign(graph_.num_op_ids(), kAhead);
    cursor_ = graph_.body().front();
    ir::Listener *before = graph_.set_listener(this);
    CHUTE_CHECK(!before, "a rewriter runs already");
    const u64 budget = options_.budget_per_op * (graph_.num_ops() + 16);
    for (bool stopped = false; !stopped;) {
      Op *op = take();
      if (!op)
        break;
      current_ = place_[op->id()] == kAhead ? op : nullptr;
      place_[op->id()] = kSeen;
      ++counters_.ops_visited;
      stopped = !visit(*op, budget);
    }
    graph_.set_listener(before);
    if (out_stats_)
      out_stats_->insert(out_stats_->end(), local_.begin(), local_.end());
    return changed_;
  }

  void enqueue(Op &op) {
    if (place(op) == kSeen)
      push(op);
  }

  /// Constants made for operators that the cursor shows come before all that it will show: those
  /// may share them. What comes from the worklist lies anywhere.
  ir::ConstantPool *pool_before(const Op &op) { return &op == current_ ? &pool_ : nullptr; }

  void reject(std::string_view reason) {
    auto &list = local_[current_pattern_].rejections;
    for (auto &[text, count] : list)
      if (text == reason) {
        ++count;
        return;
      }
    list.emplace_back(reason, 1);
  }

  // --- ir::Listener
  void inserted(Op &op) override {
    // An operator that was there from the start may come to lie behind the cursor.
    const auto add = [&](Op &o) {
      if (place(o) < kQueued)
        push(o);
    };
    add(op);
    for (ir::Region *region : op.regions())
      ir::walk(*region, add);
  }
  void moving(Op &op) override { leave(op); }
  void operand_changed(Op &op) override {
    if (patterns_.wants(op.opcode()) && op.parent())
      enqueue(op);
  }
  void uses_changed(Value &value) override {
    const bool unused = !value.has_uses();
    if (!unused && !value.has_one_use())
      return;
    // One without a pattern is looked at when it may be dead.
    Op *producer = value.producer();
    if (producer && (unused || patterns_.wants(producer->opcode())) && producer->parent())
      enqueue(*producer);
    if (unused)
      return;
    // Rules that need a single use are rooted at the user.
    Op *user = value.first_use()->owner();
    if (patterns_.wants(user->opcode()) && user->parent())
      enqueue(*user);
  }
  void erased(Op &op) override {
    leave(op);
    if (current_ == &op)
      current_ = nullptr;
    if (op.opcode() == ir::core_op::constant)
      pool_.erased(op);
    if (u32 &p = place(op); p >= kQueued) {
      worklist_[p - kQueued] = nullptr;
      p = kSeen;
    }
  }

private:
  // Where an operator is, by id. Those from kQueued on are positions in the worklist.
  static constexpr u32 kAhead = 0, kSeen = 1, kQueued = 2;

  u32 &place(const Op &op) {
    if (op.id() >= place_.size())
      place_.resize(std::max<size_t>(graph_.num_op_ids(), place_.size() * 2), kSeen);
    return place_[op.id()];
  }
  void push(Op &op) {
    ++counters_.enqueues;
    worklist_.push_back(&op);
    place(op) = static_cast<u32>(worklist_.size() - 1) + kQueued;
  }
  /// What was touched goes first, the newest before the others; then the graph in program order, an
  /// operator before those of its regions.
  Op *take() {
    while (!worklist_.empty()) {
      Op *op = worklist_.back();
      worklist_.pop_back();
      if (op)
        return op;
    }
    while (cursor_) {
      Op *op = cursor_;
      cursor_ = op->num_regions() ? first_inside(*op, 0) : nullptr;
      if (!cursor_)
        cursor_ = after(*op);
      Op::prefetch(cursor_);
      if (place(*op) == kAhead)
        return op;
    }
    return nullptr;
  }
  void leave(const Op &op) {
    if (cursor_ == &op)
      cursor_ = after(op);
  }
  static Op *first_inside(const Op &op, u32 region) {
    for (; region < op.num_regions(); ++region)
      if (Op *first = op.region(region)->front())
        return first;
    return nullptr;
  }
  /// The operator behind `op` and its regions; null at the graph's end.
  static Op *after(const Op &op) {
    for (const Op *o = &op; o;) {
      if (o->next())
        return o->next();
      const ir::Region *region = o->parent();
      o = region->parent_op();
      for (u32 i = 0; o && i < o->num_regions(); ++i)
        if (o->region(i) == region)
          if (Op *first = first_inside(*o, i + 1))
            return first;
    }
    return nullptr;
  }

  /// Drops what was queued since the worklist had this length, newest first, and erases what a rule
  /// built and left unused. A rule that built something, found that it does not fit and took it
  /// away again has touched the uses of its operands: queueing for that would show it the same
  /// operator for ever.
  void forget_from(size_t length) {
    while (worklist_.size() > length) {
      Op *op = worklist_.back();
      worklist_.pop_back();
      if (!op)
        continue;
      place_[op->id()] = kSeen;
      if (is_dead(*op))
        graph_.erase(op);
    }
  }

  /// False when the run has to stop.
  bool visit(Op &op, u64 budget) {
    if (is_dead(op)) {
      graph_.erase(&op);
      changed_ = true;
      return true;
    }
    for (u16 id : patterns_.for_opcode(op.opcode())) {
      if (options_.used && *options_.used >= options_.rewrite_limit)
        return false;
      ++counters_.patterns_tried;
      ++local_[id].tried;
      current_pattern_ = id;
      const size_t queued = worklist_.size();
      if (!patterns_.patterns()[id].apply(op, rewriter_)) {
        forget_from(queued);
        continue;
      }
      changed_ = true;
      ++local_[id].rewrites;
      ++counters_.rewrites;
      if (options_.used)
        ++*options_.used;
      recent_[rewrites_++ % recent_.size()] = id;
      if (rewrites_ > budget)
        return report_loop();
      return true;
    }
    return true;
  }

  bool report_loop() {
    // The two patterns seen most among the last rewrites are those that undo each other.
    std::vector<u64> seen(local_.size(), 0);
    for (u16 id : recent_)
      ++seen[id];
    const auto most = [&] {
      const auto it = std::max_element(seen.begin(), seen.end());
      const std::string name(local_[static_cast<size_t>(it - seen.begin())].name);
      *it = 0;
      return name;
    };
    const std::string first = most();
    const bool alone = *std::max_element(seen.begin(), seen.end()) == 0;
    Diagnostic d;
    d.code = "rewrite.loop";
    d.message = "rewrites do not end after " + std::to_string(rewrites_) + ": '" + first + "'" +
                (alone ? " undoes itself" : " and '" + most() + "' undo each other");
    d.hint = "this is a fault in chute; --stop-after N narrows it to one rewrite";
    diagnostics_.add(std::move(d));
    return false;
  }

  ir::Graph &graph_;
  const PatternSet &patterns_;
  Diagnostics &diagnostics_;
  WorkCounters &counters_;
  const RewriteOptions &options_;
  Rewriter rewriter_;
  std::vector<Op *> worklist_;
  std::vector<u32> place_; // by operator id
  ir::ConstantPool pool_;
  Op *current_ = nullptr; // the one being visited, when the cursor showed it
  Op *cursor_ = nullptr;  // the next one that was there from the start
  std::vector<PatternStats> local_;
  std::vector<PatternStats> *out_stats_;
  std::array<u16, 64> recent_{};
  u64 rewrites_ = 0;
  u16 current_pattern_ = 0;
  bool changed_ = false;
};

ir::Builder Rewriter::before(Op &op) {
  ir::Builder b(graph_, *op.parent(), &op);
  b.set_loc(op.loc());
  b.set_pool(driver_->pool_before(op));
  return b;
}

void Rewriter::replace(Op &op, std::span<Value *const> values) {
  CHUTE_CHECK(values.size() == op.num_results(), "one value per result");
  for (u32 i = 0; i < op.num_results(); ++i) {
    Value *from = op.result(i);
    if (!values[i]) {
      CHUTE_CHECK(!from->has_uses(), "a used result needs a replacement");
      continue;
    }
    Op *producer = values[i]->producer();
    if (from->name() && !values[i]->name() && producer)
      graph_.set_name(values[i], from->name());
    graph_.replace_all_uses(from, values[i]);
  }
  graph_.erase(&op);
}

void Rewriter::reject(std::string_view reason) { driver_->reject(reason); }
void Rewriter::enqueue(Op &op) { driver_->enqueue(op); }

bool run_patterns(ir::Graph &graph, const PatternSet &patterns, Diagnostics &diagnostics,
                  WorkCounters &counters, const RewriteOptions &options,
                  std::vector<PatternStats> *stats, void *user) {
  return Driver(graph, patterns, diagnostics, counters, options, stats, user).run();
}

Diagnostic at_op(const ir::Graph &graph, const Op &op, ErrorKind kind, std::string code,
                 std::string message, std::string hint) {
  return ir::op_diagnostic(graph, op, kind, std::move(code), std::move(message), std::move(hint));
}

} // namespace chute::pass
