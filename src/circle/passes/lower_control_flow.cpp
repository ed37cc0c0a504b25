// lower-control-flow: torch.cond and while_loop become Circle's IF and WHILE.
//
//   cond(c, x…) {A} {B}, c a constant          → the operators of A or B
//   cond(c, x…) {A} {B}                        → circle.if(c, x…) {A} {B}
//   while_loop(carried…, extra…) {C} {D}       → circle.while(carried…, extra…) {C} {D'}
//
// WHILE hands all of its operands from round to round, so D' returns what D does and then its
// `extra` arguments as they came; the loop has results for them that nothing uses. Regions keep
// their operators, which are moved, not copied: cost is linear. Nested ones are found by the walk.
#include "aten/ops.h"
#include "circle/ops.h"
#include "circle/passes.h"
#include "ir/builder.h"
#include "ir/context.h"
#include "ir/element_convert.h"
#include "ir/walk.h"
#include "pass/move_body.h"

#include <optional>
#include <vector>

namespace chute::circle {

namespace {

using ir::Op;
using ir::Region;
using ir::Type;
using ir::Value;

class ControlFlow {
public:
  explicit ControlFlow(pass::PassContext &ctx) : ctx_(ctx), graph_(ctx.graph) {}

  void run() {
    if (!graph_.count(aten::op::ho_cond) && !graph_.count(aten::op::ho_while_loop))
      return;
    std::vector<Op *> found; // outer ones first
    ir::walk(graph_, [&](Op &op) {
      ++ctx_.counters.ops_visited;
      if (op.opcode() == aten::op::ho_cond || op.opcode() == aten::op::ho_while_loop)
        found.push_back(&op);
    });
    // Inner ones first: a region that is dropped takes what it holds along.
    for (size_t i = found.size(); i-- > 0;) {
      if (found[i]->num_regions() != 2)
        continue;
      ++ctx_.counters.rewrites;
      if (found[i]->opcode() == aten::op::ho_cond)
        cond(*found[i]);
      else
        loop(*found[i]);
    }
  }

private:
  static std::optional<bool> known(const Value *v) {
    const Op *p = v->producer();
    if (!p || p->opcode() != ir::core_op::constant)
      return {};
    const ir::Constant &c = *p->attr(0u).as_constant();
    if (!c.has_data || c.num_elements() != 1)
      return {};
    std::vector<std::byte> bytes(c.dense_bytes());
    c.copy_dense(bytes.data());
    return ir::load_element(c.type.element(), bytes.data()) != 0;
  }

  /// A new region with the content of `from`; `extra` arguments are returned as well.
  Region *moved(Region &from, u32 extra) {
    Region *to = graph_.create_region();
    std::vector<Value *> arguments;
    for (Value *a : from.args())
      arguments.push_back(graph_.add_argument(*to, a->type(), a->name()));
    Op *end = graph_.create(ir::core_op::ret, {}, {}, {});
    graph_.append(*to, end);
    std::vector<Value *> returned = pass::move_body(graph_, from, arguments, end);
    returned.insert(returned.end(), arguments.end() - extra, arguments.end());
    ir::Builder b(graph_, *to, end);
    b.ret(returned);
    graph_.erase(end);
    return to;
  }

  void replace(Op &op, const std::vector<Value *> &values) {
    for (u32 i = 0; i < op.num_results(); ++i) {
      Value *v = values[i];
      if (op.result(i)->name() && !v->name() && v->producer())
        graph_.set_name(v, op.result(i)->name());
      graph_.replace_all_uses(op.result(i), v);
    }
    graph_.erase(&op);
  }

  void cond(Op &op) {
    std::vector<Value *> operands;
    for (const ir::Use &use : op.operand_uses())
      operands.push_back(use.value());
    if (const auto taken = known(operands[0])) {
      operands.erase(operands.begin());
      replace(op, pass::move_body(graph_, *op.region(*taken ? 0 : 1), operands, &op));
      return;
    }
    Region *regions[] = {moved(*op.region(0), 0), moved(*op.region(1), 0)};
    create(op, circle::op::IF, operands, {}, regions);
  }

  void loop(Op &op) {
    std::vector<Value *> operands;
    std::vector<Type> extra;
    for (const ir::Use &use : op.operand_uses())
      operands.push_back(use.value());
    const u32 more = op.segment(1).count;
    for (size_t i = operands.size() - more; i < operands.size(); ++i)
      extra.push_back(operands[i]->type());
    Region *regions[] = {moved(*op.region(0), 0), moved(*op.region(1), more)};
    create(op, circle::op::WHILE, operands, extra, regions);
  }

  void create(Op &op, ir::OpCode code, const std::vector<Value *> &operands,
              const std::vector<Type> &more, std::span<Region *const> regions) {
    std::vector<Type> types;
    for (const Value &r : op.results())
      types.push_back(r.type());
    types.insert(types.end(), more.begin(), more.end());
    ir::Builder b(graph_, *op.parent(), &op);
    b.set_loc(op.loc());
    Op *made = b.create_typed(code, operands, {}, types, regions);
    std::vector<Value *> values;
    for (Value &r : made->results())
      values.push_back(&r);
    replace(op, values);
  }

  pass::PassContext &ctx_;
  ir::Graph &graph_;
};

} // namespace

void lower_control_flow(pass::PassContext &ctx) { ControlFlow(ctx).run(); }

} // namespace chute::circle
