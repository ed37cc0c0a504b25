#include "eval/evaluator.h"

#include "eval/kernel.h"
#include "support/parallel.h"
#include "eval/quantized.h"
#include "eval/symbols.h"
#include "ir/op_def.h"
#include "ir/sym_table.h"

#include <algorithm>
#include <limits>
#include <new>

namespace chute::eval {

namespace {

std::string object_of(const ir::Graph &graph, const ir::Op &op) {
  std::string text;
  if (op.num_results()) {
    const ir::StringId name = op.result()->name();
    text = "%" +
           (name ? std::string(graph.context().string(name)) : std::to_string(op.result()->id()));
    text += " ";
  }
  return text + std::string(op.name());
}

/// Fills in which operator it was and where that came from.
tl::unexpected<Diagnostic> at(const ir::Graph &graph, const ir::Op &op, Diagnostic d) {
  if (d.object.empty())
    d.object = object_of(graph, op);
  const ir::Provenance p = graph.locations().resolve(op.loc());
  d.module_path = p.module_path;
  d.source_line = p.source_line;
  return tl::unexpected(std::move(d));
}
tl::unexpected<Diagnostic> at(const ir::Graph &graph, const ir::Op &op, ErrorKind kind,
                              std::string code, std::string message, std::string hint = {}) {
  return at(graph, op,
            fail(kind, std::move(code), std::move(message), {}, std::move(hint)).value());
}

enum class Control : u8 { None, Cond, While };

Control control_of(const ir::Op &op) {
  if (!op.has(ir::trait::kRegions))
    return Control::None;
  // Not in every build's tables, so by name.
  const std::string_view name = op.name();
  if ((name == "higher_order.cond" || name == "circle.if" || name == "tosa.cond_if") &&
      op.num_regions() == 2)
    return Control::Cond;
  if ((name == "higher_order.while_loop" || name == "circle.while" || name == "tosa.while_loop") &&
      op.num_regions() == 2)
    return Control::While;
  return Control::None;
}

/// The element type a value of this type has as a tensor; None when it has none.
ElementType element_of(ir::Type t) {
  switch (t.kind()) {
  case ir::TypeKind::Tensor: return t.element();
  case ir::TypeKind::Int: return ElementType::I64;
  case ir::TypeKind::Float: return ElementType::F64;
  case ir::TypeKind::Bool: return ElementType::Bool;
  default: return ElementType::None;
  }
}

/// The first symbolic integer of the operator's attributes that has no value yet.
bool attrs_known(const ir::Op &op, const SymbolValues &symbols, ir::SymInt &unknown) {
  for (const ir::Attr a : op.attrs()) {
    if (a.kind() == ir::AttrKind::Int && !symbols.value(a.as_int())) {
      unknown = a.as_int();
      return false;
    }
    if (a.kind() == ir::AttrKind::Ints)
      for (const ir::SymInt v : a.as_ints())
        if (!symbols.value(v)) {
          unknown = v;
          return false;
        }
  }
  return true;
}

/// Runs the kernel of `op` and checks what it produced against the declared types.
Status run_kernel(const ir::Graph &graph, const ir::Op &op, std::span<const Tensor *const> operands,
                  SymbolValues &symbols, std::vector<Tensor> &results) {
  const KernelFn kernel = KernelTable::global().find(op.opcode());
  if (!kernel)
    return at(graph, op, ErrorKind::Unsupported, "eval.no_kernel",
              "the evaluator has no kernel for " + std::string(op.name()),
              "`chute convert` lists every operator without a lowering, and a way out for each");
  ir::SymInt unknown;
  if (!attrs_known(op, symbols, unknown))
    return at(graph, op, ErrorKind::Failure, "eval.symbol",
              "the symbolic size " + graph.context().sym().print(unknown) + " has no value");
  std::vector<ResultType> types;
  for (const ir::Value &v : op.results()) {
    ResultType &t = types.emplace_back();
    t.element = element_of(v.type());
    if (v.type().is_tensor())
      for (const ir::SymInt d : v.type().shape())
        t.shape.push_back(symbols.value(d).value_or(-1));
  }
  results.assign(types.size(), Tensor());
  std::optional<RealOperands> real;
  if (computes_dequantized(op)) {
    real.emplace(op, operands);
    if (Status s = real->load(types); !s)
      return at(graph, op, std::move(s.error()));
    operands = real->operands();
  }
  KernelContext ctx(
      op, operands, types, results,
      [](const void *state, ir::SymInt v) {
        return static_cast<const SymbolValues *>(state)->value(v).value_or(0);
      },
      &symbols);
  if (Status s = kernel(ctx); !s)
    return at(graph, op, std::move(s.error()));
  if (real)
    if (Status s = real->store(types, results); !s)
      return at(graph, op, std::move(s.error()));
  for (u32 i = 0; i < op.num_results(); ++i) {
    const ir::Type type = op.result(i)->type();
    const Tensor &t = results[i];
    if (types[i].element == ElementType::None)
      continue;
    if (!t.defined() || t.element() != types[i].element ||
        t.shape().size() != types[i].shape.size())
      return at(graph, op, ErrorKind::Failure, "eval.result_type",
                "result " + std::to_string(i) + " is not of its declared type");
    if (!type.is_tensor())
      continue;
    for (size_t d = 0; d < t.shape().size(); ++d) {
      const Result<bool> fits =
          symbols.unify(type.shape()[d], t.shape()[d],
                        "dim " + std::to_string(d) + " of result " + std::to_string(i));
      if (!fits) {
        Diagnostic wrong = fits.error();
        wrong.kind = ErrorKind::Failure;
        wrong.code = "eval.result_type";
        return at(graph, op, std::move(wrong));
      }
    }
  }
  return {};
}

class Evaluation {
public:
  Evaluation(const ir::Graph &graph, const EvalOptions &options)
      : graph_(graph),
        options_(options),
        symbols_(graph.context()),
        values_(graph.num_value_ids()),
        pending_(graph.num_value_ids()) {}

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) {
    if (Status s = bind_inputs(inputs); !s)
      return tl::unexpected(s.error());
    frames_.push_back({&graph_.body(), graph_.body().front(), nullptr, false, {}});
    if (Status s = enter(graph_.body(), inputs); !s)
      return tl::unexpected(s.error());
    while (!done_)
      if (Status s = step(); !s)
        return tl::unexpected(s.error());
    return outputs();
  }

private:
  static constexpr u32 kPinned = ~u32{0};

  struct Frame {
    const ir::Region *region;
    const ir::Op *next;
    const ir::Op *control;       ///< the operator that holds the region; null for the body
    bool in_condition;           ///< while_loop: this is the condition's region
    std::vector<Tensor> carried; ///< while_loop: all operands of the current round
  };

  Status bind_inputs(std::span<const Tensor> inputs) {
    const ir::Region &body = graph_.body();
    if (inputs.size() != body.num_args())
      return fail(ErrorKind::Usage, "eval.inputs",
                  "the program takes " + std::to_string(body.num_args()) + " inputs, " +
                      std::to_string(inputs.size()) + " were given");
    struct Open {
      ir::SymInt expression;
      i64 value;
      std::string where;
    };
    std::vector<Open> open;
    for (u32 i = 0; i < body.num_args(); ++i) {
      const ir::Value &arg = *body.arg(i);
      const ElementType element = element_of(arg.type());
      if (element == ElementType::None)
        continue;
      std::string where = "input " + std::to_string(i);
      if (arg.name())
        where += " (" + std::string(graph_.context().string(arg.name())) + ")";
      if (!inputs[i].defined() || inputs[i].element() != element)
        return fail(ErrorKind::Usage, "eval.inputs",
                    where + " has element type " +
                        std::string(ir::element_type_name(inputs[i].element())) +
                        ", the program takes " + std::string(ir::element_type_name(element)));
      const size_t rank = arg.type().is_tensor() ? arg.type().shape().size() : 0;
      if (inputs[i].shape().size() != rank)
        return fail(ErrorKind::Usage, "eval.inputs",
                    where + " has rank " + std::to_string(inputs[i].rank()) +
                        ", the program takes " + std::to_string(rank));
      // A size given as an argument carries its symbol's name.
      if (arg.type().kind() == ir::TypeKind::Int && arg.name())
        if (const auto symbol = symbols_.find(graph_.context().string(arg.name())))
          open.push_back({*symbol, inputs[i].int_at(0), where});
      for (size_t d = 0; d < rank; ++d)
        open.push_back({arg.type().shape()[d], inputs[i].shape()[d],
                        "dim " + std::to_string(d) + " of " + where});
    }
    // Expressions wait for the symbols in them; each round settles at least one or ends.
    while (!open.empty()) {
      std::vector<Open> later;
      for (Open &o : open) {
        const Result<bool> settled = symbols_.unify(o.expression, o.value, o.where);
        if (!settled)
          return tl::unexpected(settled.error());
        if (!*settled)
          later.push_back(std::move(o));
      }
      if (later.size() == open.size())
        return {};
      open = std::move(later);
    }
    return {};
  }

  void set_value(const ir::Value &v, const ir::Region &region, Tensor t) {
    if (options_.on_value && t.defined())
      options_.on_value(v, t);
    u32 uses = 0;
    for (const ir::Use &u : v.uses()) {
      // A region may run many times, so what it captures stays.
      if (u.owner()->parent() != &region) {
        uses = kPinned;
        break;
      }
      ++uses;
    }
    pending_[v.id()] = uses;
    values_[v.id()] = uses ? std::move(t) : Tensor();
  }

  void release_operands(const ir::Op &op) {
    for (const ir::Use &u : op.operand_uses()) {
      if (!u.value())
        continue;
      u32 &pending = pending_[u.value()->id()];
      if (pending != kPinned && pending && --pending == 0)
        values_[u.value()->id()] = Tensor();
    }
  }

  Status enter(const ir::Region &region, std::span<const Tensor> args) {
    if (args.size() != region.num_args())
      return fail(ErrorKind::Failure, "eval.inputs",
                  "a region takes " + std::to_string(region.num_args()) + " arguments and gets " +
                      std::to_string(args.size()));
    for (u32 i = 0; i < region.num_args(); ++i) {
      if (&region != &graph_.body())
        bind_sizes(*region.arg(i), args[i]);
      set_value(*region.arg(i), region, args[i]);
    }
    return {};
  }

  std::vector<Tensor> operand_values(const ir::Op &op, u32 first = 0) const {
    std::vector<Tensor> out;
    for (u32 i = first; i < op.num_operands(); ++i)
      out.push_back(op.operand(i) ? values_[op.operand(i)->id()] : Tensor());
    return out;
  }

  /// A file has symbols of its own for the dimensions of a body's arguments and results. They may
  /// differ from round to round.
  void bind_sizes(const ir::Value &v, const Tensor &t) {
    if (!v.type().is_tensor() || !t.defined() || v.type().rank() != static_cast<int>(t.rank()))
      return;
    for (int d = 0; d < v.type().rank(); ++d)
      if (const ir::SymInt size = v.type().dim(d); size.is_symbolic())
        if (const auto name = graph_.context().sym().symbol_name(size); !name.empty())
          symbols_.define(name, t.shape()[static_cast<size_t>(d)]);
  }

  Status set_results(const ir::Op &op, std::vector<Tensor> results) {
    if (results.size() < op.num_results())
      return at(graph_, op, ErrorKind::Failure, "eval.result_type",
                "the region returns fewer values than the operator has results");
    for (u32 i = 0; i < op.num_results(); ++i) {
      if (op.num_regions())
        bind_sizes(*op.result(i), results[i]);
      set_value(*op.result(i), *op.parent(), std::move(results[i]));
    }
    release_operands(op);
    return {};
  }

  Status push(const ir::Op &control, u32 index, bool in_condition, std::vector<Tensor> args) {
    const ir::Region &region = *control.region(index);
    frames_.push_back({&region, region.front(), &control, in_condition, {}});
    if (Status s = enter(region, args); !s)
      return at(graph_, control, std::move(s.error()));
    frames_.back().carried = std::move(args);
    return {};
  }

  /// A region reached its terminator with `values`.
  Status leave(std::vector<Tensor> values) {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (!frame.control) {
      returned_ = std::move(values);
      done_ = true;
      return {};
    }
    const ir::Op &control = *frame.control;
    if (control_of(control) == Control::Cond)
      return set_results(control, std::move(values));
    if (frame.in_condition) {
      if (values.size() != 1 || values[0].num_elements() != 1)
        return at(graph_, control, ErrorKind::Failure, "eval.kernel",
                  "the loop's condition is not one truth value");
      if (values[0].at(0) != 0)
        return push(control, 1, false, std::move(frame.carried));
      return set_results(control, std::move(frame.carried));
    }
    // The body returns the carried values; further operands stay as they are.
    if (values.size() > frame.carried.size())
      return at(graph_, control, ErrorKind::Failure, "eval.kernel",
                "the loop's body returns more values than the loop carries");
    std::move(values.begin(), values.end(), frame.carried.begin());
    return push(control, 0, true, std::move(frame.carried));
  }

  Status step() {
    Frame &frame = frames_.back();
    const ir::Op *op = frame.next;
    if (!op)
      return fail(ErrorKind::Failure, "eval.kernel", "a region has no core.return");
    frame.next = op->next();
    if (op->opcode() == ir::core_op::ret) {
      std::vector<Tensor> values = operand_values(*op);
      release_operands(*op);
      return leave(std::move(values));
    }
    if (op->opcode() == ir::core_op::constant || op->opcode() == ir::core_op::state)
      return constant(*op);
    if (op->opcode() == ir::core_op::size) {
      const std::optional<i64> v = symbols_.value(op->attr(0).as_int());
      if (!v)
        return at(graph_, *op, ErrorKind::Failure, "eval.symbol",
                  "the symbolic size " + graph_.context().sym().print(op->attr(0).as_int()) +
                      " has no value");
      return set_results(*op, {Tensor::scalar_int(ElementType::I64, *v)});
    }
    switch (control_of(*op)) {
    case Control::Cond: {
      const Tensor pred =
          op->num_operands() && op->operand(0) ? values_[op->operand(0)->id()] : Tensor();
      if (pred.num_elements() != 1)
        return at(graph_, *op, ErrorKind::Failure, "eval.kernel",
                  "the condition is not one truth value");
      return push(*op, pred.at(0) != 0 ? 0 : 1, false, operand_values(*op, 1));
    }
    case Control::While: return push(*op, 0, true, operand_values(*op));
    case Control::None: break;
    }
    std::vector<const Tensor *> operands;
    for (const ir::Use &u : op->operand_uses()) {
      const Tensor *t = u.value() ? &values_[u.value()->id()] : nullptr;
      operands.push_back(t && t->defined() ? t : nullptr);
      if (u.value() && !operands.back() && element_of(u.value()->type()) != ElementType::None)
        return at(graph_, *op, ErrorKind::Failure, "eval.kernel",
                  "an operand is used before it is computed");
    }
    std::vector<Tensor> results;
    if (!op->has(ir::trait::kCheck))
      if (Status s = run_kernel(graph_, *op, operands, symbols_, results); !s)
        return s;
    results.resize(op->num_results());
    bind_numbers(*op, results);
    return set_results(*op, std::move(results));
  }

  /// A number read from a tensor is what later sizes call by the result's name (u0).
  void bind_numbers(const ir::Op &op, const std::vector<Tensor> &results) {
    for (u32 i = 0; i < op.num_results(); ++i) {
      const ir::Value &v = *op.result(i);
      if (v.type().kind() == ir::TypeKind::Int && v.name() && results[i].defined())
        symbols_.define(graph_.context().string(v.name()), results[i].int_at(0));
    }
  }

  Status constant(const ir::Op &op) {
    const bool state = op.opcode() == ir::core_op::state;
    const ir::Constant &c = *op.attr(state ? 1 : 0).as_constant();
    if (state && options_.state) {
      const auto it = options_.state->find(op.attr(0).as_string());
      if (it != options_.state->end()) {
        Shape shape;
        for (const ir::SymInt d : c.type.shape())
          shape.push_back(d.value());
        if (it->second.element() != c.type.element() || it->second.shape() != shape)
          return at(graph_, op, ErrorKind::Usage, "eval.inputs",
                    "the given state " + it->first + " has another type than the buffer");
        return set_results(op, {it->second});
      }
    }
    if (!c.has_data)
      return at(graph_, op, ErrorKind::Unsupported, "eval.no_data",
                "this weight has a shape but no data in the file",
                "export the model with real weights instead of fake or meta tensors");
    if (!op.result()->has_uses())
      return {};
    // Not reported through on_value: nobody asks for weights layer by layer.
    pending_[op.result()->id()] = 0;
    for (const ir::Use &u : op.result()->uses()) {
      u32 &pending = pending_[op.result()->id()];
      pending = u.owner()->parent() != op.parent() || pending == kPinned ? kPinned : pending + 1;
    }
    values_[op.result()->id()] = Tensor::of_constant(c);
    return {};
  }

  Result<std::vector<Tensor>> outputs() {
    if (graph_.outputs().empty())
      return std::move(returned_);
    std::vector<Tensor> out;
    for (const ir::OutputInfo &o : graph_.outputs()) {
      if (o.kind != ir::OutputKind::Literal) {
        if (o.operand < 0 || static_cast<size_t>(o.operand) >= returned_.size())
          return fail(ErrorKind::Failure, "eval.kernel",
                      "output " + o.name + " names no operand of the program's return");
        out.push_back(returned_[static_cast<size_t>(o.operand)]);
        continue;
      }
      switch (o.literal.kind()) {
      case ir::AttrKind::Int:
        out.push_back(
            Tensor::scalar_int(ElementType::I64, symbols_.value(o.literal.as_int()).value_or(0)));
        break;
      case ir::AttrKind::Float:
        out.push_back(Tensor::scalar(ElementType::F64, o.literal.as_float()));
        break;
      case ir::AttrKind::Bool:
        out.push_back(Tensor::scalar_int(ElementType::Bool, o.literal.as_bool()));
        break;
      default: out.emplace_back();
      }
    }
    return out;
  }

  const ir::Graph &graph_;
  const EvalOptions &options_;
  SymbolValues symbols_;
  std::vector<Tensor> values_; // by Value::id
  std::vector<u32> pending_;   // uses that are still to come
  std::vector<Frame> frames_;
  std::vector<Tensor> returned_;
  bool done_ = false;
};

tl::unexpected<Diagnostic> out_of_memory() {
  return fail(ErrorKind::Failure, "eval.memory", "a tensor does not fit into memory", {},
              "evaluate with smaller inputs");
}

} // namespace

bool can_evaluate(const ir::Op &op) {
  return KernelTable::global().find(op.opcode()) || control_of(op) != Control::None ||
         op.has(ir::trait::kCheck) || op.opcode() == ir::core_op::constant ||
         op.opcode() == ir::core_op::state || op.opcode() == ir::core_op::ret ||
         op.opcode() == ir::core_op::size;
}

Result<std::vector<Tensor>> evaluate(const ir::Graph &graph, std::span<const Tensor> inputs,
                                     const EvalOptions &options) {
  Result<std::vector<Tensor>> result;
  try {
    with_threads(options.threads, [&] { result = Evaluation(graph, options).run(inputs); });
  } catch (const std::bad_alloc &) {
    return out_of_memory();
  } catch (const UnknownShape &) {
    return fail(ErrorKind::Failure, "eval.symbol", "the shape of a result is not known");
  }
  return result;
}

Result<std::vector<Tensor>> evaluate_op(const ir::Graph &graph, const ir::Op &op,
                                        std::span<const Tensor *const> operands) {
  std::vector<Tensor> results;
  SymbolValues symbols(graph.context());
  try {
    if (Status s = run_kernel(graph, op, operands, symbols, results); !s)
      return tl::unexpected(s.error());
  } catch (const std::bad_alloc &) {
    return out_of_memory();
  } catch (const UnknownShape &) {
    return fail(ErrorKind::Failure, "eval.symbol", "the shape of a result is not known");
  }
  return results;
}

} // namespace chute::eval
