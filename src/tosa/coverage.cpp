#include "tosa/coverage.h"

#include "ir/context.h"
#include "ir/walk.h"
#include "tosa/ops.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <numeric>

namespace chute::tosa {

namespace {

std::string describe(const ir::Op &op) {
  std::string text(wire(op.opcode()).id);
  if (op.num_results() == 0)
    return text;
  const ir::Type t = op.result()->type();
  text += ' ';
  for (int i = 0; i < t.rank(); ++i)
    text += (i ? "x" : "") + (t.dim(i).is_static() ? std::to_string(t.dim(i).value()) : "?");
  return text + (t.rank() ? " " : "") + std::string(ir::element_type_name(t.element()));
}

/// Operators of the outermost region, each with the row of its node.
struct Member {
  const ir::Op *op;
  size_t row;
  u32 level = 0; ///< how often some path to it has come back to the target
};

/// Sets of members, by union-find.
class Sets {
public:
  explicit Sets(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t root(size_t i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) {
    parent_[std::max(root(a), root(b))] = std::min(root(a), root(b));
  }

private:
  std::vector<size_t> parent_;
};

/// Neighbours on the target are one partition unless a path between them runs over the CPU: such a
/// path raises the level.
void partition(std::vector<Member> &members, Coverages &out) {
  boost::unordered_flat_map<const ir::Op *, size_t> index;
  const auto on_target = [&](const Member &m) { return !out.rows[m.row].failed; };
  Sets sets(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    Member &m = members[i];
    index.emplace(m.op, i);
    const auto each_producer = [&](auto &&visit) {
      for (const ir::Use &u : m.op->operand_uses())
        if (const ir::Op *p = u.value() ? u.value()->producer() : nullptr)
          if (const auto at = index.find(p); at != index.end())
            visit(at->second);
    };
    each_producer([&](size_t p) {
      const bool returns = on_target(m) && !on_target(members[p]);
      m.level = std::max(m.level, members[p].level + (returns ? 1 : 0));
    });
    each_producer([&](size_t p) {
      if (on_target(m) && on_target(members[p]) && members[p].level == m.level)
        sets.join(i, p);
    });
  }
  boost::unordered_flat_map<size_t, int> numbers;
  for (size_t i = 0; i < members.size(); ++i) {
    if (!on_target(members[i]))
      continue;
    const auto [at, fresh] =
        numbers.try_emplace(sets.root(i), static_cast<int>(out.partitions.size()));
    if (fresh)
      out.partitions.emplace_back();
    Partition &p = out.partitions[static_cast<size_t>(at->second)];
    ++p.operators;
    Coverage &row = out.rows[members[i].row];
    if (row.partition < 0) {
      row.partition = at->second;
      ++p.nodes;
    }
  }
}

} // namespace

Coverages coverage(const ir::Graph &graph, const Target &target, std::optional<Npu> npu) {
  Coverages out;
  std::vector<Member> members;
  boost::unordered_flat_map<std::string, size_t> index;
  ir::walk(graph, [&](const ir::Op &op) {
    if (!is_tosa(op.opcode()))
      return;
    const ir::Provenance from = graph.locations().resolve(op.loc());
    const std::string node = from.nodes.empty() ? std::string() : from.nodes.front();
    const auto [at, fresh] = index.try_emplace(node, out.rows.size());
    if (fresh)
      out.rows.push_back({node, from.module_path, {}, {}, -1});
    Coverage &row = out.rows[at->second];
    row.emitted.push_back(describe(op));
    if (!row.failed)
      row.failed = check_operator(op, target);
    if (!row.failed && npu)
      row.failed = check_npu(op, *npu);
    if (op.parent() == &graph.body())
      members.push_back({&op, at->second});
  });
  partition(members, out);
  return out;
}

} // namespace chute::tosa
