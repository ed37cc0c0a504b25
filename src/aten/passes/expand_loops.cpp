// expand-loops: map and scan become while_loop, the one loop that targets have.
//
//   scan(c…, x…, e…) {B: c, x[k], e → c', y}
//     → while_loop(i = 0, c…, s = zeros…; x…, e…)
//         {i < n}
//         {c', y = B(c…, x[i]…, e…); i + 1, c'…, where(k == i, y, s)…}
//   map is a scan that carries nothing.
//
// n is the size of dimension 0 of every x, read from the loop's own argument when it is not known.
// A stack takes one row per round by comparison with the row numbers, which every runtime has, not
// by a scatter. The operators of B are moved, not copied: cost is linear. Nested ones are found by
// the walk, inner ones first.
#include "aten/ops.h"
#include "aten/passes/passes.h"
#include "ir/builder.h"
#include "ir/context.h"
#include "ir/walk.h"
#include "pass/move_body.h"

#include <vector>

namespace chute::aten {

namespace {

using ir::Attr;
using ir::ElementType;
using ir::Op;
using ir::Region;
using ir::SymInt;
using ir::Type;
using ir::Value;
using Values = std::vector<Value *>;

class Loop {
public:
  Loop(ir::Graph &graph, Op &op) : graph_(graph), ctx_(graph.context()), op_(op) {
    const bool scan = op.opcode() == aten::op::ho_scan;
    carried_ = scan ? operands(0) : Values{};
    xs_ = operands(scan ? 1 : 0);
    extra_ = operands(scan ? 2 : 1);
  }

  /// False when the operator is not what the exporter writes: it is refused later, by name.
  bool run() {
    Region &body = *op_.region(0);
    if (xs_.empty() || op_.num_results() < carried_.size() ||
        body.num_args() != carried_.size() + xs_.size() + extra_.size() || !body.back() ||
        body.back()->num_operands() != op_.num_results())
      return false;
    for (const Value *x : xs_)
      if (!x->type().is_tensor() || x->type().rank() == 0)
        return false;
    ir::Builder b(graph_, *op_.parent(), &op_);
    b.set_loc(op_.loc());
    Values all{number(b, 0)};
    all.insert(all.end(), carried_.begin(), carried_.end());
    for (u32 r = static_cast<u32>(carried_.size()); r < op_.num_results(); ++r) {
      const Type t = op_.result(r)->type();
      all.push_back(
          b.create(aten::op::full, std::span<Value *const>(),
                   std::initializer_list<ir::NamedAttr>{{"size", ctx_.ints_attr(t.shape())},
                                                        {"fill_value", Attr::of_int(0)},
                                                        {"dtype", Attr::of_element(t.element())}}));
    }
    const auto looping = static_cast<i64>(all.size());
    all.insert(all.end(), xs_.begin(), xs_.end());
    all.insert(all.end(), extra_.begin(), extra_.end());
    std::vector<Type> types;
    for (const Value *v : std::span(all).first(static_cast<size_t>(looping)))
      types.push_back(v->type());
    Region *regions[] = {condition(all), step(all, static_cast<size_t>(looping))};
    const SymInt segments[] = {looping, static_cast<i64>(all.size()) - looping};
    const ir::NamedAttr attrs[] = {{"segments", ctx_.ints_attr(segments)}};
    Op *loop = b.create_typed(aten::op::ho_while_loop, all, attrs, types, regions);
    for (u32 r = 0; r < op_.num_results(); ++r) {
      if (op_.result(r)->name())
        graph_.set_name(loop->result(r + 1), op_.result(r)->name());
      graph_.replace_all_uses(op_.result(r), loop->result(r + 1));
    }
    graph_.erase(&op_);
    return true;
  }

private:
  Values operands(u32 segment) const {
    const Op::Segment s = op_.segment(segment);
    Values out;
    for (u32 i = 0; i < s.count; ++i)
      out.push_back(op_.operand(s.first + i));
    return out;
  }

  Value *number(ir::Builder &b, i64 v) const {
    return b.constant(
        graph_.add_copy(ctx_.tensor_type(ElementType::I64, {}), std::as_bytes(std::span(&v, 1))));
  }

  Values arguments(Region &region, const Values &like) const {
    Values out;
    for (const Value *v : like)
      out.push_back(graph_.add_argument(region, v->type()));
    return out;
  }

  SymInt rounds() const { return xs_[0]->type().dim(0); }

  Region *condition(const Values &all) const {
    Region *region = graph_.create_region();
    const Values args = arguments(*region, all);
    ir::Builder b(graph_, *region);
    b.set_loc(op_.loc());
    Value *n = rounds().is_static() ? number(b, rounds().value())
                                    : b.create(aten::op::scalar_tensor, std::span<Value *const>(),
                                               std::initializer_list<ir::NamedAttr>{
                                                   {"s", Attr::of_int(rounds())},
                                                   {"dtype", Attr::of_element(ElementType::I64)}});
    Value *const more[] = {b.create(aten::op::lt_Tensor, {args[0], n})};
    b.ret(more);
    return region;
  }

  Region *step(const Values &all, size_t looping) const {
    Region *region = graph_.create_region();
    const Values args = arguments(*region, all);
    Op *end = graph_.create(ir::core_op::ret, {}, {}, {}); // what operators are put before
    graph_.append(*region, end);
    ir::Builder b(graph_, *region, end);
    b.set_loc(op_.loc());
    Value *i = args[0];
    const SymInt one[] = {1};
    Value *at = b.create(aten::op::view, {i}, {{"size", ctx_.ints_attr(one)}});
    Values given(args.begin() + 1, args.begin() + 1 + static_cast<i64>(carried_.size()));
    for (size_t k = 0; k < xs_.size(); ++k) {
      Value *row =
          b.create(aten::op::index_select, {args[looping + k], at}, {{"dim", Attr::of_int(0)}});
      given.push_back(b.create(aten::op::view, {row},
                               {{"size", ctx_.ints_attr(xs_[k]->type().shape().subspan(1))}}));
    }
    given.insert(given.end(), args.end() - static_cast<i64>(extra_.size()), args.end());
    const Values made = pass::move_body(graph_, *op_.region(0), given, end);
    Values next{b.create(aten::op::add_Tensor, {i, number(b, 1)})};
    next.insert(next.end(), made.begin(), made.begin() + static_cast<i64>(carried_.size()));
    for (size_t r = carried_.size(); r < made.size(); ++r)
      next.push_back(stacked(b, args[1 + r], made[r], i));
    b.ret(next);
    graph_.erase(end);
    return region;
  }

  /// `stack` with row i replaced.
  Value *stacked(ir::Builder &b, Value *stack, Value *row, Value *i) const {
    const Type t = stack->type();
    Value *numbers = b.create(
        aten::op::arange_start_step, std::span<Value *const>(),
        std::initializer_list<ir::NamedAttr>{{"start", Attr::of_int(0)},
                                             {"end", Attr::of_int(rounds())},
                                             {"step", Attr::of_int(1)},
                                             {"dtype", Attr::of_element(ElementType::I64)}});
    Value *here = b.create(aten::op::eq_Tensor, {numbers, i});
    std::vector<SymInt> column(static_cast<size_t>(t.rank()), 1),
        one(t.shape().begin(), t.shape().end());
    column[0] = rounds();
    one[0] = 1;
    here = b.create(aten::op::view, {here}, {{"size", ctx_.ints_attr(column)}});
    row = b.create(aten::op::view, {row}, {{"size", ctx_.ints_attr(one)}});
    if (t.element() == ElementType::Bool) { // which onert selects by nothing
      Value *elsewhere = b.create(aten::op::logical_not, {here});
      return b.create(aten::op::logical_or, {b.create(aten::op::logical_and, {here, row}),
                                             b.create(aten::op::logical_and, {elsewhere, stack})});
    }
    return b.create(aten::op::where_self, {here, row, stack});
  }

  ir::Graph &graph_;
  ir::Context &ctx_;
  Op &op_;
  Values carried_, xs_, extra_;
};

} // namespace

void expand_loops_pass(pass::PassContext &ctx) {
  std::vector<Op *> found; // outer ones first
  ir::walk(ctx.graph, [&](Op &op) {
    ++ctx.counters.ops_visited;
    if ((op.opcode() == op::ho_map || op.opcode() == op::ho_scan) && op.num_regions() == 1)
      found.push_back(&op);
  });
  for (size_t i = found.size(); i-- > 0;)
    ctx.counters.rewrites += Loop(ctx.graph, *found[i]).run() ? 1 : 0;
}

} // namespace chute::aten
