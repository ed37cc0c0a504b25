// fold-quantize: float operators between DEQUANTIZE and QUANTIZE become operators on integers.
//
//   quantize(op(dequantize(a), dequantize(b), constant)) → op(a, b, constant as integers)
//   op(dequantize(a)) that only moves elements           → dequantize(op(a))
//   quantize(dequantize(q)), equal types                 → q
//   quantize(dequantize(q)), others                      → quantize(q), integers to integers
//   quantize(constant)                                   → constant of integers
//   quantize(dequantize(constant with many scales))      → constant of integers
//   quantize(concatenation(…))                           → concatenation(quantize(…))
//
// Read with real arithmetic between the stored values, the graph computes what it computed before:
//   * weights keep their own parameters; a bias becomes i32 (8-bit inputs) or i64 (16-bit) with
//     scale = input scale × weight scale, where its numbers fit
//   * a constant operand without parameters is stored when the type holds its numbers exactly, or
//     with 16 bits; otherwise the operator stays on reals
//   * operators compute in one type: narrower inputs are requantized without loss, a narrower
//     result is requantized afterwards
//   * a result quantized in several ways takes the finest, and the others are requantized from it
// What has no such form keeps QUANTIZE and DEQUANTIZE around operators on reals.
//
// Cost: one walk in order; each operator is changed at most once, in place. What a change leaves
// unused goes at once, so that no later pass goes through it.
#include "circle/legalize/emit.h"
#include "circle/passes.h"
#include "circle/quantize/convert_op.h"
#include "circle/quantize/storage.h"
#include "pass/erase_unused.h"
#include "quant/ledger.h"
#include "quant/params.h"

namespace chute::circle {

namespace {

using ir::Op;
using ir::Value;
using quant::is_per_tensor;

constexpr const char *kManyScales = "its operand has a scale for each channel or block";

class Folder {
public:
  explicit Folder(pass::PassContext &ctx) : ctx_(ctx), graph_(ctx.graph), convert_(ctx) {}

  void run() {
    std::vector<ir::Region *> regions{&graph_.body()};
    while (!regions.empty()) {
      ir::Region *r = regions.back();
      regions.pop_back();
      for (Op *op = r->front(), *next = nullptr; op; op = next) {
        next = op->next();
        ++ctx_.counters.ops_visited;
        regions.insert(regions.end(), op->regions().begin(), op->regions().end());
        visit(*op);
        drain();
      }
    }
    convert_.report();
  }

private:
  void visit(Op &op) {
    if (is_quantize(op))
      return quantize(op);
    const RoleInfo role = role_of(op);
    if (role.role == Role::Move || role.role == Role::Order || role.role == Role::Negate ||
        role.role == Role::Index)
      sink(op, role);
  }

  void drain() {
    while (!pending_.empty()) {
      Op *q = pending_.back();
      pending_.pop_back();
      quantize(*q);
    }
  }

  void replace(Op &q, Value *v) {
    Value *old = q.result();
    if (old->name() && !v->name())
      graph_.set_name(v, old->name());
    if (ledger_)
      ledger_->moved(old, v);
    graph_.replace_all_uses(old, v);
    Value *x = q.operand(0);
    graph_.erase(&q);
    pass::erase_if_unused(graph_, x);
    ++ctx_.counters.rewrites;
  }

  // --- DEQUANTIZE sinks through operators that move elements -------------------------------------
  /// The stored form of an element operand: behind its DEQUANTIZE, or a constant on the same grid.
  Value *stored_like(Op &op, Value *v, ir::Type like) {
    if (Value *q = stored(v))
      return q->type().element() == like.element() && q->type().quant() == like.quant() ? q
                                                                                        : nullptr;
    return convert_.constant_on_grid(op, v, like);
  }

  void sink(Op &op, const RoleInfo &role) {
    Value *first = nullptr;
    u32 where = 0;
    for (u32 i = 0; i < op.num_operands() && !first; ++i)
      if (is_data(role, i) && (first = stored(op.operand(i))))
        where = i;
    if (!first)
      return;
    if (role.role != Role::Move && role.role != Role::Index && only_quantized(op.result()))
      return; // integer arithmetic may give the next parameters at once
    const ir::Type like = first->type();
    if (role.role == Role::Negate && !convert_.is_symmetric(like))
      return;
    if (role.role != Role::Move && !is_per_tensor(like))
      return convert_.left(op, kManyScales);
    const ir::Quantization *moved = moved_quantization(graph_.context(), op, where, like.quant());
    if (!moved && role.role != Role::Index)
      return convert_.left(op, kManyScales);
    operands_.clear();
    for (u32 i = 0; i < op.num_operands(); ++i) {
      Value *v = op.operand(i);
      if (v && is_data(role, i) && !(v = stored_like(op, v, like)))
        return; // a QUANTIZE that follows may still join them
      operands_.push_back(v);
    }
    // Asked while the operand is still real: a move between two element types is none.
    const ir::Constant *whole = role.role == Role::Move ? constant_of(first) : nullptr;
    const std::vector<const ir::Constant *> parts =
        whole ? moved_constants(graph_, op, *whole, moved) : std::vector<const ir::Constant *>();
    ++ctx_.counters.rewrites;
    if (!parts.empty())
      return fold_constant(op, first, parts);
    for (u32 i = 0; i < op.num_operands(); ++i)
      if (Value *before = op.operand(i); operands_[i] != before) {
        graph_.set_operand(&op, i, operands_[i]);
        pass::erase_if_unused(graph_, before);
      }
    if (role.role == Role::Index)
      return;
    for (Value &v : op.results()) {
      if (!is_real(&v))
        continue;
      graph_.set_type(&v, quant::stored_type(graph_.context(), v.type(), like.element(), moved));
      if (v.has_uses())
        dequantize_uses(graph_, &v);
    }
  }

  /// A stored constant that is only seen in another arrangement becomes that arrangement.
  void fold_constant(Op &op, const Value *whole, std::span<const ir::Constant *const> parts) {
    ir::Builder b(graph_, *op.parent(), &op);
    b.set_loc(op.loc());
    for (u32 i = 0; i < op.num_results(); ++i) {
      Value *part = b.constant(parts[i]);
      if (ledger_)
        ledger_->moved(whole, part);
      const ir::Type real = op.result(i)->type();
      Op *d = b.create_typed(op::DEQUANTIZE, std::span(&part, 1), {}, std::span(&real, 1));
      graph_.replace_all_uses(op.result(i), d->result());
    }
    graph_.erase(&op);
  }

  // --- QUANTIZE meets what makes its operand -----------------------------------------------------
  void quantize(Op &q) {
    Value *x = q.operand(0);
    const ir::Type type = q.result()->type();
    if (!q.result()->has_uses())
      return pass::erase_unused(graph_, q, [](Op &) {});
    if (x->type() == type)
      return replace(q, x);
    if (Value *s = stored(x)) {
      if (s->type() == type)
        return replace(q, s);
      if (is_per_tensor(s->type()) && is_per_tensor(type)) {
        graph_.set_operand(&q, 0, s);
        pass::erase_if_unused(graph_, x);
        if (ledger_)
          ledger_->change(graph_, q, quant::Ledger::Change::Requantized, s->type(), type);
        ++ctx_.counters.rewrites;
      } else if (Value *c = x->has_one_use() ? convert_.requantized(q, s, type) : nullptr) {
        return replace(q, c);
      }
      return;
    }
    if (Value *c = convert_.constant(q, x, type))
      return replace(q, c);
    Op *p = x->producer();
    if (!p || !is_real(x) || p->num_results() != 1 || !only_quantized(x))
      return;
    if (role_of(*p).role == Role::Move)
      join(*p, type);
    else
      convert_.to_integers(*p);
    if (x->type() == type)
      replace(q, x);
  }

  /// quantize(concatenation(…)): each operand is quantized, where that puts integers together that
  /// are there already.
  void join(Op &p, ir::Type type) {
    const RoleInfo role = role_of(p);
    if (!is_per_tensor(type) || common_quantization(p.result()) != type)
      return;
    bool worthwhile = false;
    for (u32 i = 0; i < p.num_operands(); ++i)
      if (Value *v = p.operand(i); v && is_data(role, i)) {
        if (!is_real(v))
          return;
        worthwhile = worthwhile || stored(v) || convert_.may_convert(v);
      }
    if (!worthwhile)
      return;
    for (u32 i = 0; i < p.num_operands(); ++i)
      if (Value *v = p.operand(i); v && is_data(role, i)) {
        const ir::Type t =
            quant::stored_type(graph_.context(), v->type(), type.element(), type.quant());
        Value *q = make_quantize(graph_, p, v, t);
        graph_.set_operand(&p, i, q);
        pending_.push_back(q->producer());
      }
    graph_.set_type(p.result(), type); // the QUANTIZE operators over it change nothing now
    ++ctx_.counters.rewrites;
  }

  pass::PassContext &ctx_;
  ir::Graph &graph_;
  quant::Ledger *ledger_ = quant::Ledger::active();
  OpConverter convert_;
  std::vector<Op *> pending_; ///< QUANTIZE operators made by `join`
  std::vector<Value *> operands_;
};

} // namespace

void fold_quantize(pass::PassContext &ctx) { Folder(ctx).run(); }

} // namespace chute::circle
