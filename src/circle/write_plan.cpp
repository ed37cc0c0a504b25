#include "circle/write_plan.h"

#include "circle/constant_pool.h"
#include "circle/element.h"
#include "circle/file_view.h"
#include "circle/tensor_names.h"
#include "ir/context.h"
#include "ir/walk.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <limits>
#include <map>

namespace chute::circle {

namespace {

using ir::Constant;
using ir::Op;
using ir::Region;
using ir::Type;
using ir::Value;
namespace core_op = ir::core_op;
namespace cs = ::circle;

bool is_zero(const Constant &c) {
  if (!c.has_data || c.num_elements() == 0)
    return false;
  const auto all_zero = [](std::span<const std::byte> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  };
  if (c.is_dense())
    return all_zero(c.bytes());
  return std::all_of(c.strides.begin(), c.strides.end(), [](i64 s) { return s == 0; }) &&
         all_zero({c.data, static_cast<size_t>(ir::element_bytes(c.type.element()))});
}

/// Number of operands that go onto the wire: absent ones at the end may be left out.
u32 written_operands(const Op &op, const WireDef &wire) {
  u32 n = op.num_operands();
  if (op.def().variadic_operands() == 0)
    while (n > wire.always_written && !op.operand(n - 1))
      --n;
  return n;
}

template <class T>
u32 vector_size(const T *vector) {
  return vector ? vector->size() : 0;
}

class Planner {
public:
  Planner(const WriteRequest &request, const FileView *source, WriteStats &stats)
      : request_(request), source_(source), stats_(stats), pool_(request, source, plan_, stats) {
    code_of_.fill(-1);
    if (source_) {
      tensor_of_origin_.assign(request.origin->first_tensor.back(), -1);
      find_source();
    }
  }

  Result<Plan> run() {
    for (const ir::Graph *g : request_.graphs)
      if (Status s = survey(*g); !s)
        return tl::unexpected(s.error());
    for (u32 entry = 0; entry < request_.graphs.size(); ++entry) {
      begin(entry);
      plan_.entries.push_back(static_cast<u32>(plan_.subgraphs.size()));
      next_subgraph_ = plan_.subgraphs.size() + 1;
      plan_.subgraphs.emplace_back().region = &graph_->body();
      // Grows while it runs: breadth first.
      for (size_t i = plan_.entries.back(); i < plan_.subgraphs.size(); ++i)
        if (Status s = plan_subgraph(i); !s)
          return tl::unexpected(s.error());
    }
    plan_metadata();
    if (source_) {
      if (keeps())
        add_unused_buffers();
      arrange(request_, codes_without_operator(), plan_);
    }
    return std::move(plan_);
  }

private:
  void begin(u32 entry) {
    entry_ = entry;
    graph_ = request_.graphs[entry];
    origin_ = source_ ? &request_.origin->graphs[entry] : nullptr;
    tensor_of_.assign(graph_->num_value_ids(), -1);
    pool_.begin(*graph_, origin_);
  }

  // --- the source file -------------------------------------------------------------------------

  /// Every operator code of the source, so that operators that are kept find theirs.
  void find_source() {
    for (u32 i = 0; !request_.compact && i < vector_size(source_->model->operator_codes()); ++i) {
      const cs::OperatorCode &code = *source_->model->operator_codes()->Get(i);
      plan_.codes.push_back(
          {effective_code(code), code.version(),
           code.custom_code() ? code.custom_code()->string_view() : std::string_view()});
      rare_codes_.try_emplace(key_of(plan_.codes.back()), i);
    }
  }

  /// Blobs as they were lie in the buffers that they had.
  void plan_metadata() {
    const auto *before = source_ ? source_->model->metadata() : nullptr;
    for (u32 i = 0; i < request_.metadata.size(); ++i) {
      const auto &[name, content] = request_.metadata[i];
      const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
      u32 buffer = 0;
      if (keeps() && i < vector_size(before)) {
        const cs::Metadata &was = *before->Get(i);
        const auto old = payload(*source_, was.buffer());
        if (was.name() && was.name()->string_view() == name &&
            std::equal(old.begin(), old.end(), bytes.begin(), bytes.end()))
          buffer = pool_.source_buffer(was.buffer());
      }
      if (!buffer) {
        plan_.buffers.push_back({nullptr, bytes.size(), bytes, kNoOrigin, true});
        buffer = static_cast<u32>(plan_.buffers.size());
      }
      plan_.buffers[buffer - 1].metadata = true;
      plan_.metadata_buffers.push_back(buffer);
    }
    for (u32 i = 0; source_ && i < vector_size(source_->model->metadata_buffer()); ++i) {
      const i32 b = source_->model->metadata_buffer()->Get(i);
      if (b >= 0 && static_cast<u32>(b) < vector_size(source_->model->buffers()))
        plan_.legacy_metadata.push_back(pool_.source_buffer(static_cast<u32>(b)));
    }
  }

  void add_unused_buffers() {
    std::vector<bool> used(vector_size(source_->model->buffers()), false);
    const auto mark = [&](u64 b) {
      if (b < used.size())
        used[b] = true;
    };
    for (const cs::SubGraph *g : *source_->model->subgraphs())
      for (u32 t = 0; t < vector_size(g->tensors()); ++t)
        mark(g->tensors()->Get(t)->buffer());
    for (u32 i = 0; i < vector_size(source_->model->metadata()); ++i)
      mark(source_->model->metadata()->Get(i)->buffer());
    for (u32 i = 1; i < used.size(); ++i)
      if (!used[i])
        pool_.source_buffer(i);
  }

  /// Those that the source has for nothing, too.
  std::vector<bool> codes_without_operator() const {
    std::vector<bool> out(vector_size(source_->model->operator_codes()), true);
    for (const cs::SubGraph *g : *source_->model->subgraphs())
      for (u32 o = 0; o < vector_size(g->operators()); ++o)
        if (const u32 code = g->operators()->Get(o)->opcode_index(); code < out.size())
          out[code] = false;
    return out;
  }

  bool keeps() const { return source_ && !request_.compact; }

  /// The tensor that a value was, kNoOrigin when it is new.
  u32 source_tensor(const Value &v) const { return origin_ ? origin_->tensor_of(v) : kNoOrigin; }

  /// The place of a source tensor in what is planned now; null when it was in another subgraph.
  i32 *slot_of(u32 number) {
    if (number == kNoOrigin || number - local_first_ >= local_count_)
      return nullptr;
    return &tensor_of_origin_[number];
  }

  const cs::Tensor &tensor_at(u32 number) const {
    return *source_->model->subgraphs()
                ->Get(local_subgraph_)
                ->tensors()
                ->Get(number - local_first_);
  }

  const cs::Operator *source_op(const Op &op, u32 &number) const {
    number = origin_ ? origin_->op_of(op) : kNoOrigin;
    if (number == kNoOrigin || local_subgraph_ == kNoOrigin)
      return nullptr;
    const u32 first = request_.origin->first_op[local_subgraph_];
    if (number - first >= request_.origin->first_op[local_subgraph_ + 1] - first)
      return nullptr;
    return source_->model->subgraphs()->Get(local_subgraph_)->operators()->Get(number - first);
  }

  /// A tensor that no value stands for, with all that the source says about it.
  i32 verbatim(PlannedSubgraph &g, u32 number) {
    i32 &slot = tensor_of_origin_[number];
    if (slot >= 0)
      return slot;
    const cs::Tensor &in = tensor_at(number);
    slot = add_tensor(g, Type(), pool_.source_buffer(in.buffer()), in.is_variable(), nullptr);
    g.tensors.back().origin = number;
    if (in.name())
      g.tensors.back().name = in.name()->string_view();
    return slot;
  }

  /// Refuses foreign operators, all at once, and counts the types of constants.
  Status survey(const ir::Graph &graph) {
    std::map<std::string_view, std::pair<u64, const Op *>> foreign;
    ir::walk(graph, [&](const Op &op) {
      ++stats_.work.ops_visited;
      if (op.opcode() == core_op::constant) {
        if (op.result()->has_uses())
          pool_.count(*op.attr(0u).as_constant());
      } else if (!is_circle(op.opcode()) && op.opcode() != core_op::state &&
                 op.opcode() != core_op::ret) {
        auto &entry = foreign.try_emplace(op.name(), 0, &op).first->second;
        ++entry.first;
      }
    });
    if (foreign.empty())
      return {};
    std::string list;
    for (const auto &[name, entry] : foreign)
      list +=
          (list.empty() ? "" : ", ") + std::string(name) + " (" + std::to_string(entry.first) + ")";
    const Op *first = foreign.begin()->second.second;
    return fail_at(graph, first->loc(), "circle.write.operator",
                   "operators that are not of the Circle dialect: " + list,
                   std::string(first->name()), "lower the program to Circle first");
  }

  i32 add_tensor(PlannedSubgraph &g, Type type, u32 buffer, bool variable, const Value *source) {
    g.tensors.push_back({type, {}, buffer, variable, kNoOrigin, false});
    sources_.push_back(source);
    return static_cast<i32>(g.tensors.size()) - 1;
  }

  Status check_type(const Value &v, ir::LocId loc) {
    const Type t = v.type();
    if (!t.is_tensor() || !to_wire_type(t.element()))
      return fail_at(*graph_, loc, "circle.write.type",
                     t.is_tensor() ? "Circle has no element type " +
                                         std::string(ir::element_type_name(t.element()))
                                   : "the value is not a tensor",
                     describe(*graph_, &v));
    for (ir::SymInt d : t.shape())
      if (d.is_static() && (d.value() < 0 || d.value() > std::numeric_limits<i32>::max()))
        return fail_at(*graph_, loc, "circle.write.type",
                       "a dimension of " + std::to_string(d.value()) + " does not fit 32 bits",
                       describe(*graph_, &v));
    return {};
  }

  /// The tensor of a used value; constants and variables appear where they are first used.
  Result<i32> tensor_of(PlannedSubgraph &g, const Value *v, const Op &user) {
    const Op *p = v->producer();
    if (p && p->opcode() == core_op::constant) {
      const Constant &c = *p->attr(0u).as_constant();
      // What the source has under two names stays two tensors.
      const u32 number = source_tensor(*v);
      if (i32 *slot = keeps() || !c.has_data ? slot_of(number) : nullptr) {
        if (*slot >= 0 && is_of(g.tensors[static_cast<size_t>(*slot)], v->type()))
          return *slot;
        if (*slot < 0) {
          if (Status s = check_type(*v, p->loc()); !s)
            return tl::unexpected(s.error());
          auto buffer = pool_.stored(c, v);
          if (!buffer)
            return tl::unexpected(buffer.error());
          *slot = add_tensor(g, v->type(), *buffer, false, v);
          set_origin(g.tensors.back(), number, v);
          return *slot;
        }
      }
      auto cls = pool_.classify(c, v);
      if (!cls)
        return cls;
      const auto at = static_cast<size_t>(*cls);
      if (at >= class_tensor_.size())
        class_tensor_.resize(std::max(at + 1, class_tensor_.size() * 2), {0, -1});
      ClassTensor &mine = class_tensor_[at];
      if (mine.subgraph != subgraph_ || mine.tensor < 0) {
        if (Status s = check_type(*v, p->loc()); !s)
          return tl::unexpected(s.error());
        mine = {subgraph_, add_tensor(g, v->type(), pool_.buffer_of_class(*cls), false, v)};
        adopt(g, mine.tensor, source_tensor(*v));
      }
      return mine.tensor;
    }
    const Region *home = p ? p->parent() : v->argument_of();
    if (p && p->opcode() == core_op::state && home == g.region && tensor_of_[v->id()] < 0) {
      // Zeros are what a variable starts with when it has no buffer.
      const Constant &initial = *p->attr(1u).as_constant();
      const u32 number = source_tensor(*v);
      auto buffer = is_zero(initial) ? Result<u32>(slot_of(number) ? empty_buffer(number) : 0u)
                    : keeps()        ? pool_.stored(initial, v)
                                     : pool_.own_buffer(initial, v);
      if (!buffer)
        return tl::unexpected(buffer.error());
      if (Status s = define(g, *v, p->loc(), *buffer, true); !s)
        return tl::unexpected(s.error());
    }
    if (!stored_.empty() && stored_.contains(v))
      return fail_at(*graph_, user.loc(), "circle.write.state",
                     "reads " + describe(*graph_, v) + " after its next content was stored",
                     std::string(user.name()), "run the pass store-state before writing");
    const i32 known = tensor_of_[v->id()];
    if (known < 0 || home != g.region)
      return fail_at(*graph_, user.loc(), "circle.write.capture",
                     "uses " + describe(*graph_, v) + " from outside of its subgraph",
                     std::string(user.name()), "pass the value as an operand");
    return known;
  }

  Status define(PlannedSubgraph &g, const Value &v, ir::LocId loc, u32 buffer = 0,
                bool variable = false) {
    if (Status s = check_type(v, loc); !s)
      return s;
    const u32 number = source_tensor(v);
    i32 *slot = slot_of(number);
    // One tensor may be several inputs of a subgraph.
    if (slot && *slot >= 0 && v.argument_of() &&
        is_of(g.tensors[static_cast<size_t>(*slot)], v.type())) {
      tensor_of_[v.id()] = *slot;
      return {};
    }
    if (slot && !buffer && !variable)
      buffer = empty_buffer(number);
    tensor_of_[v.id()] = add_tensor(g, v.type(), buffer, variable, &v);
    adopt(g, tensor_of_[v.id()], number);
    return {};
  }

  void set_origin(PlannedTensor &t, u32 number, const Value *v) const {
    t.origin = number;
    const Type was = v ? GraphOrigin::at(origin_->type, v->id(), Type()) : Type();
    t.quant_changed = !was || was.quant() != t.type.quant() || was.element() != t.type.element();
  }

  static bool is_of(const PlannedTensor &t, Type type) { return !t.type || t.type == type; }

  void adopt(PlannedSubgraph &g, i32 tensor, u32 number) {
    if (number == kNoOrigin)
      return;
    i32 *slot = slot_of(number);
    if (slot && *slot >= 0)
      return; // its place is taken
    set_origin(g.tensors[static_cast<size_t>(tensor)], number,
               sources_[static_cast<size_t>(tensor)]);
    if (slot)
      *slot = tensor;
  }

  /// Some writers give every tensor a buffer of its own, without content where it is computed.
  u32 empty_buffer(u32 number) {
    return keeps() ? pool_.source_buffer(tensor_at(number).buffer()) : 0u;
  }

  using CodeKey = std::tuple<i32, i32, std::string_view>;
  static CodeKey key_of(const PlannedCode &c) { return {c.code, c.version, c.custom_code}; }

  u32 code_index(const Op &op, const WireDef &wire, const cs::Operator *source) {
    const PlannedCode code{
        wire.code, static_cast<i32>(op.attr(static_cast<u32>(wire.version_attr)).as_int().value()),
        op.opcode() == op::CUSTOM ? op.attr("custom_code").as_string() : std::string_view()};
    if (keeps() && source && key_of(plan_.codes[source->opcode_index()]) == key_of(code))
      return source->opcode_index();
    const bool plain = code.version == 1 && op.opcode() != op::CUSTOM;
    i32 *slot = plain ? &code_of_[ir::index(op.opcode()) - ir::kCircleBase] : nullptr;
    if (slot && *slot >= 0)
      return static_cast<u32>(*slot);
    const auto [it, fresh] =
        rare_codes_.try_emplace(key_of(code), static_cast<u32>(plan_.codes.size()));
    if (fresh)
      plan_.codes.push_back(code);
    if (slot)
      *slot = static_cast<i32>(it->second);
    return it->second;
  }

  Status plan_op(PlannedSubgraph &g, const Op &op) {
    const WireDef &w = wire(op.opcode());
    u32 number = kNoOrigin;
    const cs::Operator *source = source_op(op, number);
    u32 n = written_operands(op, w);
    if (source && op.def().variadic_operands() == 0)
      n = std::max(n, std::min(op.num_operands(), vector_size(source->inputs())));
    g.ops.push_back({&op, code_index(op, w, source), n, 0, source ? number : kNoOrigin});
    for (u32 i = 0; i < n; ++i) {
      const Value *v = op.operand(i);
      if (!v) {
        g.indices.push_back(-1);
        continue;
      }
      auto t = tensor_of(g, v, op);
      if (!t)
        return tl::unexpected(t.error());
      g.indices.push_back(*t);
    }
    for (const Value &r : op.results()) {
      const auto stored = stores_.find(&r);
      const bool plain = stored == stores_.end();
      if (Status s = plain            ? define(g, r, op.loc())
                     : stored->second ? store(g, r, *stored->second, op)
                                      : define(g, r, op.loc(), 0, true);
          !s)
        return s;
      g.indices.push_back(tensor_of_[r.id()]);
    }
    if (op.num_regions()) {
      for (const Region *r : op.regions()) {
        g.callees.push_back(static_cast<u32>(next_subgraph_++));
        pending_.push_back(r);
      }
    }
    if (source && vector_size(source->intermediates())) {
      for (i32 t : *source->intermediates())
        g.indices.push_back(t < 0 ? -1 : verbatim(g, local_first_ + static_cast<u32>(t)));
      g.ops.back().intermediates = source->intermediates()->size();
    } else if (w.stateful) {
      const ir::Attr types = op.attr("intermediates");
      if (types.kind() == ir::AttrKind::List)
        for (ir::Attr t : types.as_list()) {
          if (t.kind() != ir::AttrKind::Type || !t.as_type().is_tensor() ||
              !to_wire_type(t.as_type().element()))
            return fail_at(*graph_, op.loc(), "circle.write.type",
                           "intermediates are a list of tensor types", std::string(op.name()));
          g.indices.push_back(add_tensor(g, t.as_type(), 0, false, op.result()));
          ++g.ops.back().intermediates;
        }
    }
    return {};
  }

  /// The variables that the program writes: by the value that is their next content.
  Status find_stores(const Region &region) {
    stores_.clear();
    stored_.clear();
    if (&region != &graph_->body())
      return {};
    boost::unordered_flat_map<std::string_view, const Op *> states;
    const Op *ret = graph_->return_op();
    for (const ir::OutputInfo &o : graph_->outputs()) {
      if (o.kind != ir::OutputKind::BufferMutation || o.operand < 0)
        continue;
      if (states.empty())
        for (const Op &op : region)
          if (op.opcode() == core_op::state)
            states.emplace(op.attr(0u).as_string(), &op);
      const Value *v = ret->operand(static_cast<u32>(o.operand));
      const auto state = states.find(std::string_view(o.target));
      // One that nothing reads may have lost its core.state: it starts with zeros, unseen.
      const Op *from = state == states.end() ? nullptr : state->second;
      if (!v || !v->producer() || v->producer()->has(ir::trait::kConstant) ||
          v->producer()->opcode() == core_op::state ||
          (from && v->type() != from->result()->type()) || !stores_.emplace(v, from).second)
        return fail(ErrorKind::Failure, "circle.write.state",
                    "the next content of this variable is no operator's own result of its type",
                    o.target, "run the pass store-state before writing");
    }
    return {};
  }

  /// The result of `op` takes the variable's place, which nothing reads afterwards.
  Status store(PlannedSubgraph &g, const Value &v, const Op &state, const Op &op) {
    auto t = tensor_of(g, state.result(), op);
    if (!t)
      return tl::unexpected(t.error());
    tensor_of_[v.id()] = *t;
    stored_.insert(state.result());
    return {};
  }

  Status plan_subgraph(size_t index) {
    subgraph_ = static_cast<u32>(index);
    PlannedSubgraph g;
    g.region = plan_.subgraphs[index].region;
    g.graph = graph_;
    g.entry = entry_;
    enter_source(g);
    sources_.clear();
    pending_.clear();
    g.ops.reserve(g.region->num_ops());
    g.tensors.reserve(g.region->num_ops() + 16);
    g.indices.reserve(g.region->num_ops() * 3);
    for (const Value *a : inputs(*g.region)) {
      if (Status s = define(g, *a, {}); !s)
        return s;
      g.inputs.push_back(tensor_of_[a->id()]);
    }
    if (Status s = find_stores(*g.region); !s)
      return s;
    const Op *terminator = nullptr;
    for (const Op &op : *g.region) {
      if (op.opcode() == core_op::constant || op.opcode() == core_op::state)
        continue; // appear where they are first used
      if (op.opcode() == core_op::ret) {
        terminator = &op;
      } else if (Status s = plan_op(g, op); !s) {
        return s;
      }
    }
    if (!terminator)
      return fail(ErrorKind::Failure, "circle.write.terminator", "a region has no core.return",
                  graph_->name());
    for (const Value *v : outputs(*g.region, *terminator)) {
      auto t = tensor_of(g, v, *terminator);
      if (!t)
        return tl::unexpected(t.error());
      g.outputs.push_back(*t);
    }
    name_tensors(g);
    add_unseen(g);
    plan_.subgraphs[index] = std::move(g);
    for (const Region *r : pending_)
      plan_.subgraphs.emplace_back().region = r;
    return {};
  }

  /// Which subgraph of the source a region was; tensors of a subgraph that is written twice are
  /// found anew.
  void enter_source(PlannedSubgraph &g) {
    g.origin = origin_ ? origin_->subgraph_of(*g.region) : kNoOrigin;
    local_subgraph_ = g.origin;
    local_first_ = local_count_ = 0;
    if (g.origin == kNoOrigin)
      return;
    local_first_ = request_.origin->first_tensor[g.origin];
    local_count_ = request_.origin->first_tensor[g.origin + 1] - local_first_;
    std::fill_n(tensor_of_origin_.begin() + local_first_, local_count_, -1);
  }

  /// Tensors that nothing in the source used, and those that only the quantization of others names.
  void add_unseen(PlannedSubgraph &g) {
    if (g.origin == kNoOrigin)
      return;
    for (u32 i = 0; keeps() && i < local_count_; ++i)
      if (!request_.origin->used[local_first_ + i])
        verbatim(g, local_first_ + i);
    for (size_t i = 0; i < g.tensors.size(); ++i) {
      const u32 number = g.tensors[i].origin;
      if (!slot_of(number))
        continue;
      const cs::QuantizationParameters *q = tensor_at(number).quantization();
      if (const auto *block = q ? q->details_as_BlockwiseQuantization() : nullptr)
        for (i32 t : {block->scales(), block->zero_points()})
          if (t >= 0 && static_cast<u32>(t) < local_count_)
            verbatim(g, local_first_ + static_cast<u32>(t));
    }
  }

  /// Arguments in the caller's order.
  std::vector<const Value *> inputs(const Region &region) const {
    std::vector<const Value *> out;
    if (&region == &graph_->body() && !graph_->inputs().empty()) {
      for (const ir::InputInfo &i : graph_->inputs())
        if (i.value)
          out.push_back(i.value);
    } else {
      out.assign(region.args().begin(), region.args().end());
    }
    return out;
  }

  std::vector<const Value *> outputs(const Region &region, const Op &terminator) const {
    std::vector<const Value *> out;
    if (&region == &graph_->body() && !graph_->outputs().empty()) {
      for (const ir::OutputInfo &o : graph_->outputs())
        if (o.operand >= 0 && o.kind == ir::OutputKind::User)
          out.push_back(terminator.operand(static_cast<u32>(o.operand)));
    } else {
      for (const ir::Use &u : terminator.operand_uses())
        out.push_back(u.value());
    }
    std::erase(out, nullptr);
    return out;
  }

  void name_tensors(PlannedSubgraph &g) {
    const ir::Context &ctx = graph_->context();
    Names names(plan_.own_names, g.tensors.size());
    for (size_t i = 0; g.origin != kNoOrigin && i < g.tensors.size(); ++i)
      if (PlannedTensor &t = g.tensors[i]; slot_of(t.origin) && sources_[i]) {
        const auto *name = tensor_at(t.origin).name();
        const std::string_view was = name ? name->string_view() : std::string_view();
        if (was == ctx.string(sources_[i]->name()))
          t.name = was.data() ? names.keep(was) : names.keep(std::string_view("", 0));
      } else if (t.name.data()) {
        names.keep(t.name);
      }
    if (g.region == &graph_->body())
      for (const ir::InputInfo &i : graph_->inputs())
        if (i.value && !i.name.empty()) {
          PlannedTensor &t = g.tensors[static_cast<size_t>(tensor_of_[i.value->id()])];
          if (!t.name.data())
            t.name = names.unique(i.name);
        }
    // A value's own name comes before one that an operator inherits from the node it was part of.
    for (size_t i = 0; i < g.tensors.size(); ++i)
      if (!g.tensors[i].name.data() && sources_[i] && sources_[i]->name())
        g.tensors[i].name = names.unique(ctx.string(sources_[i]->name()));
    for (size_t i = 0; i < g.tensors.size(); ++i) {
      if (g.tensors[i].name.data() || !g.tensors[i].type)
        continue;
      const Op *p = sources_[i] ? sources_[i]->producer() : nullptr;
      std::string_view base = p ? graph_->locations().node_name(p->loc()) : "arg";
      if (p && p->opcode() == core_op::constant)
        base = "const";
      else if (base.empty())
        base = p->name().substr(p->name().find('.') + 1);
      g.tensors[i].name = names.unique(base);
    }
  }

  const WriteRequest &request_;
  const FileView *source_;
  WriteStats &stats_;
  Plan plan_;
  ConstantPool pool_;
  // The current graph and the subgraph of the source that the current region was.
  u32 entry_ = 0;
  const ir::Graph *graph_ = nullptr;
  const GraphOrigin *origin_ = nullptr;
  u32 local_subgraph_ = kNoOrigin;
  u32 local_first_ = 0;
  u32 local_count_ = 0;
  std::vector<i32> tensor_of_origin_;   // by number: where it is in the current subgraph
  std::vector<i32> tensor_of_;          // by Value::id, within the value's own subgraph
  std::vector<const Value *> sources_;  // of the current subgraph's tensors
  std::vector<const Region *> pending_; // regions found in the current subgraph
  boost::unordered_flat_map<const Value *, const Op *> stores_; // next content -> core.state
  boost::unordered_flat_set<const Value *> stored_;             // variables written so far
  struct ClassTensor {
    u32 subgraph;
    i32 tensor;
  };
  std::vector<ClassTensor> class_tensor_; // by constant class
  u32 subgraph_ = 0;
  size_t next_subgraph_ = 1;
  std::array<i32, kNumOps> code_of_;
  std::map<CodeKey, u32> rare_codes_;
};

} // namespace

Result<Plan> make_plan(const WriteRequest &request, WriteStats &stats) {
  std::optional<FileView> source;
  if (request.origin)
    source = FileView{request.origin->bytes, cs::GetModel(request.origin->bytes.data())};
  return Planner(request, source ? &*source : nullptr, stats).run();
}

} // namespace chute::circle
