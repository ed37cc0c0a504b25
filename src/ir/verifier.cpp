#include "ir/verifier.h"

#include "ir/op_check.h"
#include "ir/text.h"
#include "ir/text_writer.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace chute::ir {

namespace {

class Verifier {
public:
  Verifier(const Graph &graph, Diagnostics &diagnostics, const VerifyOptions &options)
      : graph_(graph),
        diagnostics_(diagnostics),
        options_(options),
        state_(graph.num_value_ids(), Unseen),
        uses_(graph.num_value_ids(), 0) {}

  void run() {
    walk();
    if (stop_)
      return;
    for (const Value *v : values_)
      check_use_count(*v);
    check_interface();
  }

private:
  enum State : u8 { Unseen, Visible, OutOfScope };

  void report(Diagnostic d) {
    diagnostics_.add(std::move(d));
    stop_ = ++findings_ >= options_.max_findings;
  }
  void at(const Op &op, std::string code, std::string message, std::string hint = {}) {
    report(op_diagnostic(graph_, op, ErrorKind::Failure, std::move(code), std::move(message),
                         std::move(hint)));
  }
  void at_graph(std::string code, std::string object, std::string message) {
    Diagnostic d;
    d.code = std::move(code);
    d.object = std::move(object);
    d.message = std::move(message);
    report(std::move(d));
  }
  std::string value_text(const Value &v) const {
    if (v.name())
      return "%" + std::string(graph_.context().string(v.name()));
    return "%#" + std::to_string(v.id());
  }

  void walk();
  void enter(const Region &region, const Op *owner);
  void leave(const Region &region);
  void check_op(const Op &op, const Region &region);
  void check_operands_defined(const Op &op);
  void check_attrs(const Op &op);
  void check_results(const Op &op);
  void check_inferred(const Op &op);
  void check_terminator(const Op &op);
  void check_use_count(const Value &v);
  void check_interface();
  void check_constant(const Op &op, const Constant &c);
  struct TypeVerdict {
    bool known = false;
    std::string code;
    std::string fault; ///< empty: the type is fine
  };
  /// Computed once per type.
  const TypeVerdict &verdict(Type t);
  void check_type(const Op *op, const Value &v);
  void define(const Value &v);

  const Graph &graph_;
  Diagnostics &diagnostics_;
  const VerifyOptions &options_;
  std::vector<u8> state_;             // by Value::id
  std::vector<u32> uses_;             // operand slots seen per value
  std::vector<const Value *> values_; // every value, for the count of uses
  std::vector<TypeVerdict> verdicts_; // by Type::id
  size_t findings_ = 0;
  bool stop_ = false;
};

bool has_size(SymInt dim, i64 expected) { return dim.is_symbolic() || dim.value() == expected; }

/// Why the type means nothing, or empty.
std::string find_type_fault(Type t, std::string &code) {
  if (!t.is_tensor())
    return {};
  for (SymInt d : t.shape())
    if (d.is_static() && d.value() < 0) {
      code = "ir.type.dim";
      return "negative dimension";
    }
  const Quantization *q = t.quant();
  if (!q)
    return {};
  code = "ir.type.quant";
  const bool by_axis = q->kind != QuantKind::PerTensor;
  if (by_axis && (q->axis < 0 || q->axis >= t.rank()))
    return "the axis of the quantization is not one of the tensor";
  if ((q->kind == QuantKind::Block || q->kind == QuantKind::MX) && q->block_size <= 0)
    return "blocks of the quantization have no size";
  if (q->kind == QuantKind::MX)
    return q->scales.empty() && q->zero_points.empty() ? "" : "MX types carry no scales";
  if (q->scales.size() != q->zero_points.size())
    return "scales and zero points differ in number";
  for (float s : q->scales)
    if (!(s >= 0.0f) || std::isinf(s))
      return "a scale is negative or not finite";
  const auto n = static_cast<i64>(q->scales.size());
  if (q->kind == QuantKind::PerTensor)
    return n == 1 ? "" : "per-tensor quantization has one scale";
  const SymInt extent = t.dim(q->axis);
  if (q->kind == QuantKind::PerChannel)
    return has_size(extent, n) ? "" : "per-channel quantization has one scale per channel";
  i64 blocks = 1;
  for (int i = 0; i < t.rank(); ++i) {
    const SymInt d = t.dim(i);
    if (d.is_symbolic())
      return {};
    const i64 here = i == q->axis ? (d.value() + q->block_size - 1) / q->block_size : d.value();
    if (__builtin_mul_overflow(blocks, here, &blocks))
      return "too many blocks";
  }
  return blocks == n ? "" : "block quantization has one scale per block";
}

const Verifier::TypeVerdict &Verifier::verdict(Type t) {
  if (verdicts_.size() <= t.id())
    verdicts_.resize(t.id() + 1);
  TypeVerdict &v = verdicts_[t.id()];
  if (!v.known) {
    v.known = true;
    v.fault = find_type_fault(t, v.code);
  }
  return v;
}

void Verifier::check_type(const Op *op, const Value &v) {
  if (!v.type()) {
    if (op)
      at(*op, "ir.type.missing", "result " + std::to_string(v.index()) + " has no type");
    else
      at_graph("ir.type.missing", value_text(v), "argument without a type");
    return;
  }
  if (const TypeVerdict &found = verdict(v.type()); !found.fault.empty()) {
    const std::string message = found.fault + " in " + print(graph_.context(), v.type());
    if (op)
      at(*op, found.code, message);
    else
      at_graph(found.code, value_text(v), message);
  }
}

void Verifier::define(const Value &v) {
  if (v.id() >= state_.size() || state_[v.id()] != Unseen)
    return at_graph("ir.op.link", value_text(v), "two values share an id");
  state_[v.id()] = Visible;
  values_.push_back(&v);
}

void Verifier::enter(const Region &region, const Op *owner) {
  if (region.parent_op() != owner)
    at_graph("ir.region.parent", owner ? std::string(owner->name()) : graph_.name(),
             "a region belongs to another operator than the one that holds it");
  for (u32 i = 0; i < region.num_args(); ++i) {
    const Value &arg = *region.arg(i);
    define(arg);
    if (arg.argument_of() != &region || arg.index() != i)
      at_graph("ir.region.parent", value_text(arg), "an argument is not linked to its region");
    check_type(nullptr, arg);
  }
  if (region.empty()) {
    if (owner)
      at(*owner, "ir.terminator", "a region is empty");
    else
      at_graph("ir.terminator", graph_.name(), "the graph has no operators");
  }
}

void Verifier::leave(const Region &region) {
  for (const Value *arg : region.args())
    state_[arg->id()] = OutOfScope;
  size_t count = 0;
  for (const Op *op = region.front(); op && count <= region.num_ops(); op = op->next(), ++count)
    for (const Value &r : op->results())
      state_[r.id()] = OutOfScope;
  if (count != region.num_ops())
    at_graph("ir.op.link", graph_.name(), "a region counts its operators wrongly");
}

// An operator before those of its regions; the stack holds the operators whose regions are open.
void Verifier::walk() {
  struct Frame {
    const Region *region;
    const Op *op; // next one to look at
    const Op *owner;
    u32 next_region; // of `owner`
  };
  std::vector<Frame> stack;
  enter(graph_.body(), nullptr);
  stack.push_back({&graph_.body(), graph_.body().front(), nullptr, 0});
  while (!stack.empty() && !stop_) {
    Frame &top = stack.back();
    if (top.op) {
      const Op &op = *top.op;
      check_op(op, *top.region);
      top.op = op.next();
      if (op.num_regions()) {
        enter(*op.region(0), &op);
        stack.push_back({op.region(0), op.region(0)->front(), &op, 1});
      } else {
        check_results(op);
      }
      continue;
    }
    leave(*top.region);
    if (!top.owner)
      return;
    const Op &owner = *top.owner;
    if (top.next_region < owner.num_regions()) {
      const Region &next = *owner.region(top.next_region++);
      enter(next, &owner);
      top.region = &next;
      top.op = next.front();
      continue;
    }
    stack.pop_back();
    check_results(owner);
  }
}

void Verifier::check_op(const Op &op, const Region &region) {
  if (op.parent() != &region || (op.next() ? op.next()->previous() != &op : region.back() != &op) ||
      (op.previous() ? op.previous()->next() != &op : region.front() != &op))
    at_graph("ir.op.link", graph_.name(), "the list of operators is broken");
  if (!Registry::global().known(op.opcode()))
    return at_graph("ir.op.unknown", graph_.name(),
                    "opcode " + std::to_string(index(op.opcode())) + " is in no table");
  check_operands_defined(op);
  check_attrs(op);
  if (op.num_regions() && !op.has(trait::kRegions))
    at(op, "ir.region.unexpected", "holds regions, which its table does not declare");
  check_terminator(op);
}

void Verifier::check_operands_defined(const Op &op) {
  const auto slots = op.operand_uses();
  for (u32 i = 0; i < slots.size(); ++i) {
    const Use &use = slots[i];
    if (use.owner() != &op)
      at(op, "ir.use.link", "operand " + std::to_string(i) + " does not know its operator");
    const Value *v = use.value();
    if (!v)
      continue;
    if (v->id() >= state_.size()) {
      at(op, "ir.use.link", "operand " + std::to_string(i) + " is a value of another graph");
      continue;
    }
    ++uses_[v->id()];
    if (state_[v->id()] == Visible)
      continue;
    at(op, "ir.use.order",
       "uses " + value_text(*v) +
           (state_[v->id()] == Unseen ? " before its definition" : " outside of its region"));
  }
}

void Verifier::check_attrs(const Op &op) {
  const OpDef &def = op.def();
  if (op.num_attrs() != def.attrs.size())
    return at(op, "ir.attr.count",
              "has " + std::to_string(op.num_attrs()) + " attributes, its table " +
                  std::to_string(def.attrs.size()));
  bool complete = true;
  for (size_t i = 0; i < op.attrs().size(); ++i) {
    const Attr a = op.attr(static_cast<u32>(i));
    if (const Status s = check_attr(def, i, a); !s) {
      at(op, s.error().code, s.error().message);
      complete = false;
    }
    const auto nested = [&](Attr leaf) {
      if (leaf.kind() == AttrKind::Constant)
        check_constant(op, *leaf.as_constant());
      else if (leaf.kind() == AttrKind::Operand && leaf.as_index() >= op.num_operands())
        at(op, "ir.attr.operand", "refers to operand " + std::to_string(leaf.as_index()));
      else if (leaf.kind() == AttrKind::Region && leaf.as_index() >= op.num_regions())
        at(op, "ir.attr.region", "refers to region " + std::to_string(leaf.as_index()));
    };
    if (a.kind() >= AttrKind::Constant)
      for_each_nested(a, nested);
  }
  if (!complete)
    return;
  if (const Status s = check_operands(op); !s)
    at(op, s.error().code, s.error().message);
  else if (def.verify)
    if (const Status own = def.verify(op, graph_); !own)
      at(op, own.error().code, own.error().message, own.error().hint);
}

void Verifier::check_constant(const Op &op, const Constant &c) {
  const auto &all = graph_.constants();
  if (c.id >= all.size() || &all[c.id] != &c)
    return at(op, "ir.constant.owner", "holds a constant of another graph");
  if (!c.type || !c.type.is_tensor() || !c.type.has_static_shape() ||
      !verdict(c.type).fault.empty())
    return at(op, "ir.constant.type", "a constant has a tensor type with a static shape");
  const i64 n = c.num_elements();
  if (c.has_data && !c.data && n > 0 && element_bytes(c.type.element()) > 0)
    at(op, "ir.constant.range", "a constant has no bytes");
  if (!c.strides.empty() &&
      (c.strides.size() != c.type.shape().size() ||
       std::any_of(c.strides.begin(), c.strides.end(), [](i64 s) { return s < 0; })))
    at(op, "ir.constant.range", "strides of a constant do not fit its shape");
  if (op.has(trait::kConstant) && op.num_results() == 1 && op.result()->type()) {
    const Type t = op.result()->type();
    if (!t.is_tensor() || t.element() != c.type.element() ||
        !std::equal(t.shape().begin(), t.shape().end(), c.type.shape().begin(),
                    c.type.shape().end()))
      at(op, "ir.constant.type",
         "yields " + print(graph_.context(), t) + " but holds " + print(graph_.context(), c.type));
  }
}

void Verifier::check_results(const Op &op) {
  if (!Registry::global().known(op.opcode()))
    return;
  const OpDef &def = op.def();
  const bool variadic =
      std::any_of(def.results.begin(), def.results.end(), [](auto &r) { return r.variadic; });
  if (!variadic && op.num_results() != def.results.size())
    at(op, "ir.result.count",
       "has " + std::to_string(op.num_results()) + " results, its table " +
           std::to_string(def.results.size()));
  for (u32 i = 0; i < op.num_results(); ++i) {
    const Value &r = *op.result(i);
    if (r.producer() != &op || r.index() != i)
      at(op, "ir.op.link", "result " + std::to_string(i) + " does not know its operator");
    define(r);
    check_type(&op, r);
  }
  if (options_.check_inference && !stop_ && def.infer)
    check_inferred(op);
}

void Verifier::check_inferred(const Op &op) {
  if (op.num_attrs() != op.def().attrs.size() || !check_operands(op))
    return;
  for (const Use &use : op.operand_uses())
    if (use.value() && !use.value()->type())
      return;
  std::vector<Type> types;
  const Status s = op.def().infer(op, const_cast<Graph &>(graph_), types);
  if (!s) {
    if (s.error().code != "aten.infer.none")
      at(op, "ir.infer.error", s.error().message);
    return;
  }
  if (types.size() != op.num_results())
    return at(op, "ir.infer.mismatch",
              "declares " + std::to_string(op.num_results()) + " results, inference gives " +
                  std::to_string(types.size()));
  for (u32 i = 0; i < op.num_results(); ++i) {
    const Type declared = op.result(i)->type(), inferred = types[i];
    if (!declared || declared == inferred)
      continue;
    bool same = inferred && declared.kind() == inferred.kind() &&
                declared.element() == inferred.element() && declared.rank() == inferred.rank();
    for (int d = 0; same && d < declared.rank(); ++d)
      same = declared.dim(d).is_symbolic() || has_size(inferred.dim(d), declared.dim(d).value());
    if (!same)
      at(op, "ir.infer.mismatch",
         "declares " + print(graph_.context(), declared) + ", inference gives " +
             print(graph_.context(), inferred));
  }
}

void Verifier::check_terminator(const Op &op) {
  const bool last = op.next() == nullptr;
  if (op.has(trait::kTerminator) != last)
    at(op, "ir.terminator",
       last ? "ends a region but is no terminator" : "a terminator stands before the end");
}

void Verifier::check_use_count(const Value &v) {
  // A cycle in a broken list ends at the number of operands that there are.
  size_t n = 0;
  const size_t limit = static_cast<size_t>(uses_[v.id()]) + 1;
  for (const Use *u = v.first_use(); u && n < limit; u = u->next(), ++n)
    if (u->value() != &v)
      return at_graph("ir.use.link", value_text(v), "its list holds a use of another value");
  if (n != uses_[v.id()] && !stop_)
    at_graph("ir.use.link", value_text(v),
             "its list of uses and the operands that name it differ in number");
}

void Verifier::check_interface() {
  std::vector<u8> seen(graph_.body().num_args(), 0);
  for (const InputInfo &i : graph_.inputs()) {
    const std::string object = "input '" + i.name + "'";
    if ((i.kind == InputKind::Literal) == (i.value != nullptr))
      at_graph("ir.interface.input", object, "a literal has no value, any other input has one");
    if (!i.value)
      continue;
    if (i.value->argument_of() != &graph_.body() || i.value->index() >= seen.size() ||
        graph_.body().arg(i.value->index()) != i.value)
      at_graph("ir.interface.input", object, "its value is no argument of the graph");
    else if (seen[i.value->index()]++)
      at_graph("ir.interface.input", object, "its value is another input's too");
  }
  std::set<std::string_view> names;
  for (const InputInfo &i : graph_.inputs())
    names.insert(i.name);
  const Op *ret = graph_.return_op();
  for (const OutputInfo &o : graph_.outputs()) {
    const std::string object = "output '" + o.name + "'";
    if (o.kind == OutputKind::Literal) {
      if (o.operand != -1)
        at_graph("ir.interface.output", object, "a literal has no value");
      continue;
    }
    if (!ret || o.operand < 0 || static_cast<u32>(o.operand) >= ret->num_operands() ||
        !ret->operand(static_cast<u32>(o.operand)))
      at_graph("ir.interface.output", object, "no operand of the return gives its value");
    if (o.kind == OutputKind::InputMutation && !names.contains(o.target))
      at_graph("ir.interface.target", object, "mutates '" + o.target + "', which is no input");
  }
}

} // namespace

void verify(const Graph &graph, Diagnostics &diagnostics, const VerifyOptions &options) {
  Verifier(graph, diagnostics, options).run();
}

} // namespace chute::ir
