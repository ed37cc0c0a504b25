// functionalize: programs that write in place become programs of values.
//
// Every tensor is a view of a base. A base counts its versions; a view remembers how it reads its
// parent (view_step.h) and for which version of the base its current value was made. A write gives
// the view a new value, carries it to the base through the inverse of each step (slice_scatter,
// permute, …) and bumps the version. A later read of another view of that base rebuilds it, once
// per version. So the work is one step per operator, and one per view and change that somebody
// reads.
//
//   %v = aten.slice.Tensor(%x) {0:2}          %v  = aten.slice.Tensor(%x)
//   %w = aten.add_.Tensor(%v, %y)        →    %w  = aten.add.Tensor(%v, %y)
//   core.return(%x)                           %x1 = aten.slice_scatter(%x, %w)
//                                             core.return(%x1)
//
// Buffers that end up changed are outputs of kind BufferMutation, user inputs of kind
// InputMutation, both before the user's outputs. A state that nothing changes any more becomes a
// constant: batch counters and running statistics of a batch norm in training mode mean nothing at
// inference and are dropped.
//
// Reports `aten.functionalize.unsupported` where a write has no functional form.
#include "aten/ops.h"
#include "aten/passes/passes.h"
#include "aten/passes/view_step.h"
#include "ir/walk.h"
#include "pass/pass.h"

#include <algorithm>
#include <string>

namespace chute::aten {

namespace {

using ir::Op;
using ir::Type;
using ir::Value;

bool writes(const ir::OpDef &def) {
  if (def.has(ir::trait::kInPlace))
    return !def.has(ir::trait::kNoOp) && !def.has(ir::trait::kMovement);
  const auto &operands = def.operands;
  return !operands.empty() && operands.back().name == "out";
}

/// squeeze_, transpose_, detach_: the tensor keeps its elements, so this is a view by another name.
bool renames_in_place(const ir::OpDef &def) {
  return def.has(ir::trait::kInPlace | ir::trait::kMovement);
}

/// "aten.add_.Tensor" to "aten.add.Tensor"; "aten.add.out" likewise. Null when there is none.
const ir::OpDef *functional_form(const Op &op) {
  std::string name(op.name());
  const size_t dot = name.rfind('.');
  if (dot > 0 && name[dot - 1] == '_')
    name.erase(dot - 1, 1);
  const ir::Registry &registry = ir::Registry::global();
  if (name.ends_with(".out")) {
    name.resize(name.size() - 3);
    const ir::OpDef *tensor = registry.find(name + "Tensor");
    return tensor ? tensor : registry.find(name + "default");
  }
  const ir::OpDef *same = registry.find(name);
  const auto &operands = op.def().operands;
  if (same && same->operands.size() == operands.size() &&
      (operands.empty() || same->operands[0].name == operands[0].name))
    return same;
  // pow_.Scalar is pow.Tensor_Scalar: pow.Scalar has the number first.
  const size_t overload = name.rfind('.') + 1;
  if (const ir::OpDef *full =
          registry.find(name.substr(0, overload) + "Tensor_" + name.substr(overload)))
    return full;
  if (!same && name.ends_with(".Tensor")) // floor_divide_.Tensor is floor_divide.default
    return registry.find(name.substr(0, overload) + "default");
  if (same || !name.ends_with(".default"))
    return same;
  return registry.find(name.substr(0, name.size() - 7) + "int"); // transpose_ is transpose.int
}

class Functionalizer {
public:
  Functionalizer(pass::PassContext &ctx, ir::Region &region, bool is_body)
      : ctx_(ctx),
        graph_(ctx.graph),
        region_(region),
        is_body_(is_body),
        builder_(graph_, region) {}

  void run() {
    for (Op &op : region_) {
      ++ctx_.counters.ops_visited;
      builder_.set_insertion(region_, &op);
      builder_.set_loc(op.loc());
      visit(op);
    }
    finish();
    for (size_t i = dead_.size(); i-- > 0;) {
      bool used = false; // only where an error stopped the walk
      for (const Value &r : dead_[i]->results())
        used |= r.has_uses();
      if (!used)
        graph_.erase(dead_[i]);
    }
  }

private:
  struct Base {
    Value *origin = nullptr;
    u32 version = 0;
  };
  /// One way of looking at a base. Entry 0 stands for "none".
  struct Alias {
    u32 base = 0;
    u32 parent = 0; ///< 0: this is the base itself
    u32 version = 0;
    Value *now = nullptr;
    Type type;
    ViewStep step;
    Strides strides;
  };

  /// A tensor from outside of the program and its content at the end.
  struct Mutation {
    ir::OutputInfo info;
    Value *value = nullptr;
    u32 argument = 0; ///< position among the inputs
  };

  u32 find(Value *v) const { return v->id() < of_.size() ? of_[v->id()] : 0; }
  void bind(Value *v, u32 alias) {
    if (v->id() >= of_.size())
      of_.resize(std::max<size_t>(graph_.num_value_ids(), v->id() + 1), 0);
    of_[v->id()] = alias;
  }

  u32 alias_of(Value *v) {
    if (const u32 known = find(v))
      return known;
    bases_.push_back({v, 0});
    Alias a;
    a.base = static_cast<u32>(bases_.size() - 1);
    a.now = v;
    a.type = v->type();
    a.strides = dense_strides(graph_.context(), a.type);
    aliases_.push_back(std::move(a));
    bind(v, static_cast<u32>(aliases_.size() - 1));
    return static_cast<u32>(aliases_.size() - 1);
  }

  /// The value of a view at this point of the program.
  Value *read(u32 alias) {
    std::vector<u32> stale;
    u32 at = alias;
    while (aliases_[at].version != bases_[aliases_[at].base].version) {
      stale.push_back(at);
      at = aliases_[at].parent; // the base itself is never stale
    }
    for (size_t i = stale.size(); i-- > 0;) {
      Alias &a = aliases_[stale[i]];
      Value *made = apply_step(builder_, a.step, aliases_[a.parent].now, a.type);
      if (!made)
        return nullptr;
      a.now = made;
      a.version = bases_[a.base].version;
    }
    return aliases_[alias].now;
  }

  /// `value` becomes the content of the view, and of everything that it is a view of.
  bool write(u32 alias, Value *value) {
    std::vector<std::pair<u32, Value *>> changed{{alias, value}};
    for (u32 at = alias; aliases_[at].parent;) {
      const u32 parent = aliases_[at].parent;
      Value *whole = read(parent);
      value = whole ? write_back(builder_, aliases_[at].step, whole, value) : nullptr;
      if (!value)
        return false;
      changed.emplace_back(parent, value);
      at = parent;
    }
    const u32 version = ++bases_[aliases_[alias].base].version;
    for (const auto &[a, v] : changed) {
      aliases_[a].now = v;
      aliases_[a].version = version;
    }
    return true;
  }

  void unsupported(const Op &op, std::string why, std::string hint) {
    ctx_.diagnostics.add(pass::at_op(graph_, op, ErrorKind::Unsupported,
                                     "aten.functionalize.unsupported", std::move(why),
                                     std::move(hint)));
  }

  void visit(Op &op) {
    if (op.opcode() == ir::core_op::state)
      alias_of(op.result());
    const bool changes = writes(op.def());
    const u32 num = op.num_operands();
    targets_.assign(num, 0);
    for (u32 i = 0; i < num; ++i) {
      Value *v = op.operand(i);
      if (!v || !v->type().is_tensor())
        continue;
      targets_[i] = find(v);
      if (!targets_[i])
        continue;
      Value *now = read(targets_[i]);
      if (!now)
        return unsupported(
            op, "reads a view whose base was written in place, and which can not be rebuilt",
            "clone the tensor before writing to it");
      if (now != v)
        graph_.set_operand(&op, i, now);
    }
    if (changes)
      return apply_write(op);
    if (op.has(ir::trait::kView) || renames_in_place(op.def()) || op.has(ir::trait::kNoOp))
      add_views(op);
  }

  void add_views(Op &op) {
    if (op.num_operands() == 0 || !op.operand(0) || !op.operand(0)->type().is_tensor())
      return;
    Op *view = &op;
    if (renames_in_place(op.def())) {
      const ir::OpDef *form = functional_form(op);
      view = form ? clone_as(op, *form, op.operand(0), {op.result()->type()}) : nullptr;
      if (!view)
        return unsupported(op, "has no functional form", "write the model without it");
      dead_.push_back(&op);
    }
    const u32 parent = targets_[0] ? targets_[0] : alias_of(op.operand(0));
    for (u32 i = 0; i < op.num_results(); ++i) {
      Strides strides;
      ViewStep step = view_step(graph_.context(), *view, i, aliases_[parent].strides, strides);
      if (step.kind == ViewStep::Kind::Copy) {
        if (view != &op)
          bind(op.result(i), alias_of(view->result(i)));
        continue;
      }
      if (step.kind == ViewStep::Kind::Same && op.result(i)->type() == aliases_[parent].type) {
        bind(op.result(i), parent);
        continue;
      }
      Alias a;
      a.base = aliases_[parent].base;
      a.parent = parent;
      a.version = bases_[a.base].version;
      a.now = view->result(i);
      a.type = op.result(i)->type();
      a.step = std::move(step);
      a.strides = std::move(strides);
      aliases_.push_back(std::move(a));
      bind(op.result(i), static_cast<u32>(aliases_.size() - 1));
    }
  }

  /// `op` as the operator `def`, its first operand replaced; types inferred when none are given.
  Op *clone_as(Op &op, const ir::OpDef &def, Value *self, std::vector<Type> types) {
    std::vector<Value *> operands;
    for (const ir::Use &use : op.operand_uses())
      operands.push_back(use.value());
    if (!operands.empty())
      operands[0] = self;
    if (op.def().operands.back().name == "out")
      operands.pop_back();
    std::vector<ir::NamedAttr> attrs;
    for (u32 i = 0; i < op.num_attrs(); ++i)
      if (def.attr_index(op.def().attrs[i].name) >= 0)
        attrs.push_back({op.def().attrs[i].name, op.attr(i)});
    if (!types.empty())
      return builder_.create_typed(def.opcode, operands, attrs, types);
    Result<Op *> made = builder_.try_create(def.opcode, operands, attrs);
    return made ? *made : nullptr;
  }

  /// `value` converted and repeated to a type.
  Value *fit(Value *value, Type type) {
    ir::Context &ctx = graph_.context();
    if (value->type().element() != type.element()) {
      const Type cast = ctx.with_element(value->type(), type.element());
      const ir::NamedAttr dtype{"dtype", ir::Attr::of_element(type.element())};
      value = builder_.create_typed(op::u_to_copy, {&value, 1}, {&dtype, 1}, {&cast, 1})->result();
    }
    if (value->type() != type) {
      const ir::NamedAttr size{"size", ctx.ints_attr(type.shape())};
      value = builder_.create_typed(op::expand, {&value, 1}, {&size, 1}, {&type, 1})->result();
    }
    return value;
  }

  void apply_write(Op &op) {
    const bool out = op.def().operands.back().name == "out";
    const u32 slot = out ? op.num_operands() - 1 : 0;
    const u32 target = targets_[slot] ? targets_[slot] : alias_of(op.operand(slot));
    const Type type = aliases_[target].type;
    Value *value = nullptr;
    if (op.opcode() == op::copy_) {
      value = fit(op.operand(1), type);
      if (value != op.operand(1))
        graph_.set_name(value, op.result()->name());
    } else {
      const ir::OpDef *form = functional_form(op);
      if (!form)
        return unsupported(op, "writes in place and has no functional form",
                           "write the model without it");
      const bool keeps = form->has(ir::trait::kSameType) && !out;
      Op *made =
          clone_as(op, *form, op.operand(0), keeps ? std::vector<Type>{type} : std::vector<Type>{});
      if (!made) // operators whose result types only the importer knows
        made = clone_as(op, *form, op.operand(0), {type});
      if (op.num_results() && op.result()->name())
        graph_.set_name(made->result(), op.result()->name());
      value = fit(made->result(), type);
    }
    if (!write(target, value))
      return unsupported(op, "writes through a view that chute can not write back",
                         "clone the view, or write to the tensor itself");
    if (op.num_results())
      bind(op.result(), target);
    dead_.push_back(&op);
  }

  void finish();
  void add_mutations(std::vector<Mutation> &mutations);
  void freeze_states();
  std::string input_name(const Value *argument) const {
    for (const ir::InputInfo &in : graph_.inputs())
      if (in.value == argument)
        return in.name;
    return std::string(graph_.context().string(argument->name()));
  }

  pass::PassContext &ctx_;
  ir::Graph &graph_;
  ir::Region &region_;
  const bool is_body_;
  ir::Builder builder_;
  std::vector<Base> bases_;
  std::vector<Alias> aliases_ = std::vector<Alias>(1);
  std::vector<u32> of_;      // by value id: its alias, 0 for none
  std::vector<u32> targets_; // aliases of the visited operator's operands
  std::vector<Op *> dead_;
};

/// Counters of training that no inference reads.
bool is_training_counter(std::string_view name) { return name.ends_with("num_batches_tracked"); }

void Functionalizer::finish() {
  std::vector<Mutation> buffers, inputs;
  for (u32 i = 1; i < aliases_.size(); ++i) {
    const Alias &a = aliases_[i];
    Base &base = bases_[a.base];
    if (a.parent || base.version == 0)
      continue;
    Op *producer = base.origin->producer();
    const bool constant = producer && producer->opcode() == ir::core_op::constant;
    const bool state = producer && producer->opcode() == ir::core_op::state;
    if (producer && !constant && !state)
      continue;
    if (!is_body_) {
      if (Op *owner = region_.parent_op())
        unsupported(*owner, "a branch or loop body writes to a tensor from outside of it",
                    "return the new value instead");
      continue;
    }
    ir::OutputInfo info;
    if (!producer) {
      info.kind = ir::OutputKind::InputMutation;
      info.target = input_name(base.origin);
      info.name = info.target;
      inputs.push_back({std::move(info), a.now, base.origin->index()});
      continue;
    }
    info.kind = ir::OutputKind::BufferMutation;
    info.target = state ? std::string(producer->attr("name").as_string())
                        : std::string(graph_.context().string(base.origin->name()));
    info.name = info.target;
    if (is_training_counter(info.target))
      continue;
    if (constant) { // readers of the initial content read it through a state of that name
      builder_.set_insertion(region_, producer);
      const ir::NamedAttr attrs[] = {{"name", graph_.context().string_attr(info.target)},
                                     {"value", producer->attr("value")}};
      const Type type = base.origin->type();
      Value *made = builder_.create_typed(ir::core_op::state, {}, attrs, {&type, 1})->result();
      graph_.set_name(made, base.origin->name());
      graph_.set_name(base.origin, {});
      graph_.replace_all_uses(base.origin, made);
    }
    buffers.push_back({std::move(info), a.now, 0});
  }
  if (!is_body_)
    return;
  std::stable_sort(inputs.begin(), inputs.end(),
                   [](const auto &a, const auto &b) { return a.argument < b.argument; });
  buffers.insert(buffers.end(), inputs.begin(), inputs.end());
  if (!buffers.empty())
    add_mutations(buffers);
  freeze_states();
}

/// The changed tensors become the first operands of the return and the first outputs.
void Functionalizer::add_mutations(std::vector<Mutation> &mutations) {
  Op *old = graph_.return_op();
  if (!old)
    return;
  std::vector<Value *> values;
  std::vector<ir::OutputInfo> infos;
  for (Mutation &m : mutations) {
    m.info.operand = static_cast<i32>(values.size());
    infos.push_back(std::move(m.info));
    values.push_back(m.value);
  }
  const auto shift = static_cast<i32>(values.size());
  for (const ir::Use &use : old->operand_uses())
    values.push_back(use.value());
  for (ir::OutputInfo &o : graph_.outputs())
    if (o.operand >= 0)
      o.operand += shift;
  graph_.outputs().insert(graph_.outputs().begin(), infos.begin(), infos.end());
  builder_.set_insertion(region_, old);
  builder_.set_loc(old->loc());
  builder_.ret(values);
  graph_.erase(old);
}

void Functionalizer::freeze_states() {
  std::vector<std::string_view> written;
  for (const ir::OutputInfo &o : graph_.outputs())
    if (o.kind == ir::OutputKind::BufferMutation)
      written.push_back(o.target);
  std::sort(written.begin(), written.end());
  for (const Base &base : bases_) {
    Op *op = base.origin->producer();
    if (!op || op->opcode() != ir::core_op::state ||
        std::binary_search(written.begin(), written.end(), op->attr("name").as_string()))
      continue;
    builder_.set_insertion(region_, op);
    builder_.set_loc(op->loc());
    Value *made = builder_.constant(op->attr("value").as_constant(), base.origin->name());
    graph_.replace_all_uses(base.origin, made);
    dead_.push_back(op);
  }
}

} // namespace

void functionalize_pass(pass::PassContext &ctx) {
  ir::Graph &graph = ctx.graph;
  if (!graph.has_any([](ir::OpCode code) {
        const ir::OpDef &def = ir::Registry::row(code);
        return writes(def) || renames_in_place(def) || code == ir::core_op::state;
      }))
    return;
  std::vector<ir::Region *> nested;
  ir::walk(graph, [&](Op &op) {
    for (ir::Region *r : op.regions())
      nested.push_back(r);
  });
  Functionalizer(ctx, graph.body(), true).run();
  for (ir::Region *r : nested)
    Functionalizer(ctx, *r, false).run();
}

} // namespace chute::aten
