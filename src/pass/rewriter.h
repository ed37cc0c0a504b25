#pragma once

#include "ir/builder.h"
#include "ir/graph.h"
#include "support/counters.h"
#include "support/result.h"

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace chute::pass {

class Rewriter;

/// What a pattern did with an operator it was shown.
using RewriteFn = bool (*)(ir::Op &op, Rewriter &rw);

/// One rewrite. `roots` are the opcodes it can match; the driver shows it nothing else. `apply`
/// first decides, reading only; then either changes the graph through `rw` and returns true, or
/// changes nothing and returns false (with rw.reject("reason") where a near miss deserves a line in
/// --stats).
/// What a pattern built to find out is erased again when it returns false.
struct Pattern {
  std::string_view name; ///< kebab-case, unique within a pass
  std::vector<ir::OpCode> roots;
  RewriteFn apply = nullptr;
};

/// Patterns indexed by root opcode; those of one opcode are tried in order of addition.
class PatternSet {
public:
  void add(std::string_view name, std::initializer_list<ir::OpCode> roots, RewriteFn apply) {
    add({name, std::vector<ir::OpCode>(roots), apply});
  }
  void add(Pattern p);
  /// Shown every operator whose table row has all of `traits` (constant folding, DCE-like rules).
  void add_for_trait(std::string_view name, ir::trait::Set traits, RewriteFn apply);
  std::span<const u16> for_opcode(ir::OpCode code) const;
  /// Whether some pattern is rooted at that opcode.
  bool wants(ir::OpCode code) const { return !wanted_.empty() && wanted_[ir::index(code)]; }
  const std::vector<Pattern> &patterns() const { return patterns_; }

private:
  std::vector<Pattern> patterns_;
  std::vector<std::vector<u16>> by_opcode_;
  std::vector<u8> wanted_; // by opcode: small enough to stay in the nearest cache
};

/// Per-pattern record of one run, for --stats.
struct PatternStats {
  std::string_view name;
  u64 tried = 0;
  u64 rewrites = 0;
  std::vector<std::pair<std::string_view, u64>>
      rejections; ///< reason, count; in order of first use
};

struct RewriteOptions {
  /// Rewrites allowed before the run stops (bisecting); shared over passes through `used`.
  u64 rewrite_limit = ~u64{0};
  u64 *used = nullptr;
  /// Rewrites per operator present at the start, after which the run is declared a loop.
  u64 budget_per_op = 64;
};

/// The worklist driver and the one door for changes. Goes through the graph once; every change
/// enqueues the operators it touched and their users, as far as a pattern is rooted at them; ends
/// when the worklist is empty. Unused operators without effect are erased on the way. Total cost:
/// operators + changes. A graph without any root is not gone through.
class Rewriter {
public:
  ir::Graph &graph() { return graph_; }
  ir::Context &context() { return graph_.context(); }
  void *user() const { return user_; } ///< the pass's own state, given to run_patterns

  /// A builder that inserts before `op` and gives new operators its provenance.
  ir::Builder before(ir::Op &op);

  /// Replaces all results and erases `op`. One value per result (null where the result is unused).
  /// A result's source name moves to the value that replaces it when that has none.
  void replace(ir::Op &op, std::span<ir::Value *const> values);
  void replace(ir::Op &op, ir::Value *value) {
    replace(op, std::span<ir::Value *const>(&value, 1));
  }
  /// `op` is erased if unused; otherwise this is a fault.
  void erase(ir::Op &op) { graph_.erase(&op); }
  /// Records why a near miss did not match.
  void reject(std::string_view reason);
  /// Reports a problem that stops the pipeline after the run (an operator that can not be
  /// lowered…).
  void error(Diagnostic d) { diagnostics_.add(std::move(d)); }
  /// Looks at `op` again later though nothing about it changed.
  void enqueue(ir::Op &op);

private:
  friend class Driver;
  Rewriter(ir::Graph &graph, Diagnostics &diagnostics, void *user)
      : graph_(graph), diagnostics_(diagnostics), user_(user) {}
  ir::Graph &graph_;
  Diagnostics &diagnostics_;
  void *user_;
  class Driver *driver_ = nullptr;
};

/// Runs the patterns over the whole graph, regions included, to a fixed point. Errors go to
/// `diagnostics`; a loop of rewrites is `rewrite.loop` and names the patterns that undo each other.
/// Returns whether anything changed.
bool run_patterns(ir::Graph &graph, const PatternSet &patterns, Diagnostics &diagnostics,
                  WorkCounters &counters, const RewriteOptions &options = {},
                  std::vector<PatternStats> *stats = nullptr, void *user = nullptr);

/// Whether nothing is lost when `op` is erased: no result is used, and it does nothing else.
bool is_dead(const ir::Op &op);

/// A Diagnostic with the operator's name, value name, module path and source line filled in.
Diagnostic at_op(const ir::Graph &graph, const ir::Op &op, ErrorKind kind, std::string code,
                 std::string message, std::string hint = {});

} // namespace chute::pass
