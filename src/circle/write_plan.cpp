#include "circle/write_plan.h"

#include "circle/element.h"
#include "ir/context.h"
#include "ir/walk.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <limits>
#include <map>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::circle {

namespace {

using ir::Constant;
using ir::Op;
using ir::Region;
using ir::Type;
using ir::Value;
namespace core_op = ir::core_op;

struct TextHash {
  using is_avalanching = void;
  size_t operator()(std::string_view v) const { return XXH3_64bits(v.data(), v.size()); }
};

std::string describe(const ir::Graph &graph, const Value *v) {
  std::string text = "%" + std::string(graph.context().string(v->name()));
  if (text.size() == 1)
    text += std::to_string(v->id());
  if (const Op *p = v->producer())
    text += " " + std::string(p->name());
  return text;
}

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

/// A failure at an operator, with where it came from.
tl::unexpected<Diagnostic> fail_at(const ir::Graph &graph, ir::LocId loc, std::string code,
                                   std::string message, std::string object, std::string hint = {}) {
  Diagnostic d;
  d.kind = ErrorKind::Unsupported;
  d.code = std::move(code);
  d.message = std::move(message);
  d.object = std::move(object);
  d.hint = std::move(hint);
  const ir::Provenance p = graph.locations().resolve(loc);
  d.module_path = p.module_path;
  d.source_line = p.source_line;
  return tl::unexpected<Diagnostic>(std::move(d));
}

/// Decides which constants share a tensor or a buffer.
class ConstantPool {
public:
  ConstantPool(const ir::Graph &graph, Plan &plan, WriteStats &stats)
      : graph_(graph), plan_(plan), stats_(stats) {
    const size_t n = graph.constants().size();
    tensor_class_.assign(n, -1);
    buffer_.assign(n, 0);
    class_buffer_.reserve(n);
  }

  /// First pass: how many constants have a type. Only those that are not alone need a hash.
  void count(const Constant &c) {
    const u32 id = base_type(c).id();
    if (id >= type_count_.size())
      type_count_.resize(id + 1, 0);
    if (counted_.insert(&c).second)
      ++type_count_[id];
  }

  /// The class of a constant: equal ones have the same, of equal type and content. The type is that
  /// of the value, which may carry quantization that the stored bytes do not name.
  Result<i32> classify(const Constant &c, const Value *at) {
    i32 &known = tensor_class_[c.id];
    const bool plain = at->type() == c.type;
    if (plain && known >= 0)
      return known;
    if (!c.has_data && c.num_elements() > 0)
      return fail_at(graph_, at->producer()->loc(), "circle.write.no_data",
                     "the constant has a shape but no bytes (saved with fake or meta weights)",
                     describe(graph_, at), "export the program with its real weights");
    u32 &stored = buffer_[c.id];
    if (stored == 0) {
      auto buffer = buffer_of(c, at);
      if (!buffer)
        return tl::unexpected(buffer.error());
      stored = *buffer;
    }
    const auto [it, fresh] = classes_.try_emplace(std::pair(at->type().id(), stored),
                                                  static_cast<i32>(class_buffer_.size()));
    if (fresh)
      class_buffer_.push_back(stored);
    else if (plain)
      ++stats_.constants_shared;
    if (plain)
      known = it->second;
    return it->second;
  }
  u32 buffer_of_class(i32 c) const { return class_buffer_[static_cast<size_t>(c)]; }

  /// A buffer that nothing shares: the initial content of a variable.
  Result<u32> own_buffer(const Constant &c, const Value *at) {
    const auto bytes = wire_bytes(c.type.element(), c.num_elements());
    if (!bytes || !c.has_data)
      return fail_at(graph_, at->producer()->loc(), "circle.write.type",
                     "a constant of type " + std::string(ir::element_type_name(c.type.element())) +
                         " has no bytes that Circle can store",
                     describe(graph_, at));
    plan_.buffers.push_back({&c, *bytes});
    plan_.payload_bytes += *bytes;
    return static_cast<u32>(plan_.buffers.size());
  }

private:
  Type base_type(const Constant &c) const {
    return c.type.quant() ? graph_.context().with_quant(c.type, nullptr) : c.type;
  }

  Result<u32> buffer_of(const Constant &c, const Value *at) {
    if (type_count_[base_type(c).id()] == 1)
      return own_buffer(c, at);
    const ir::ContentHash &hash = c.hash(&stats_.work.bytes_hashed);
    const auto [it, fresh] = by_hash_.try_emplace({hash.low, hash.high}, 0u);
    if (fresh) {
      auto buffer = own_buffer(c, at);
      if (!buffer)
        return buffer;
      it->second = *buffer;
    }
    return it->second;
  }

  struct PairHash {
    using is_avalanching = void;
    size_t operator()(const std::pair<u64, u64> &p) const { return p.first ^ p.second; }
    size_t operator()(const std::pair<u32, u32> &p) const {
      return (static_cast<u64>(p.first) << 32 | p.second) * 0x9E3779B97F4A7C15ull;
    }
  };

  const ir::Graph &graph_;
  Plan &plan_;
  WriteStats &stats_;
  std::vector<u32> type_count_; // by Type::id
  boost::unordered_flat_set<const Constant *> counted_;
  std::vector<i32> tensor_class_; // by Constant::id
  std::vector<u32> buffer_;       // by Constant::id; 0 is not decided
  std::vector<u32> class_buffer_; // by class
  boost::unordered_flat_map<std::pair<u64, u64>, u32, PairHash> by_hash_;
  boost::unordered_flat_map<std::pair<u32, u32>, i32, PairHash> classes_;
};

/// Gives the tensors of one subgraph distinct names.
class Names {
public:
  Names(std::deque<std::string> &own, size_t expected) : own_(own) { taken_.reserve(expected); }

  std::string_view unique(std::string_view base) {
    if (base.empty())
      base = "tensor";
    if (taken_.insert(base).second)
      return base;
    u32 &next = next_suffix_[base];
    std::string candidate;
    do {
      candidate.assign(base);
      candidate += '_';
      candidate += std::to_string(++next);
    } while (taken_.contains(candidate));
    own_.push_back(std::move(candidate));
    taken_.insert(own_.back());
    return own_.back();
  }

private:
  std::deque<std::string> &own_;
  boost::unordered_flat_set<std::string_view, TextHash> taken_;
  boost::unordered_flat_map<std::string_view, u32, TextHash> next_suffix_;
};

class Planner {
public:
  Planner(const ir::Graph &graph, WriteStats &stats)
      : graph_(graph), stats_(stats), pool_(graph, plan_, stats) {
    tensor_of_.assign(graph.num_value_ids(), -1);
    plan_.op_code.assign(graph.num_op_ids(), 0);
    code_of_.fill(-1);
  }

  Result<Plan> run() {
    if (Status s = survey(); !s)
      return tl::unexpected(s.error());
    plan_.subgraphs.emplace_back().region = &graph_.body();
    // Grows while it runs: breadth first.
    for (size_t i = 0; i < plan_.subgraphs.size(); ++i)
      if (Status s = plan_subgraph(i); !s)
        return tl::unexpected(s.error());
    return std::move(plan_);
  }

private:
  /// Refuses foreign operators, all at once, and counts the types of constants.
  Status survey() {
    std::map<std::string_view, std::pair<u64, const Op *>> foreign;
    ir::walk(graph_, [&](const Op &op) {
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
    return fail_at(graph_, first->loc(), "circle.write.operator",
                   "operators that are not of the Circle dialect: " + list,
                   std::string(first->name()), "lower the program to Circle first");
  }

  i32 add_tensor(PlannedSubgraph &g, Type type, u32 buffer, bool variable, const Value *source) {
    g.tensors.push_back({type, {}, buffer, variable});
    sources_.push_back(source);
    return static_cast<i32>(g.tensors.size()) - 1;
  }

  Status check_type(const Value &v, ir::LocId loc) {
    const Type t = v.type();
    if (!t.is_tensor() || !to_wire_type(t.element()))
      return fail_at(graph_, loc, "circle.write.type",
                     t.is_tensor() ? "Circle has no element type " +
                                         std::string(ir::element_type_name(t.element()))
                                   : "the value is not a tensor",
                     describe(graph_, &v));
    for (ir::SymInt d : t.shape())
      if (d.is_static() && (d.value() < 0 || d.value() > std::numeric_limits<i32>::max()))
        return fail_at(graph_, loc, "circle.write.type",
                       "a dimension of " + std::to_string(d.value()) + " does not fit 32 bits",
                       describe(graph_, &v));
    return {};
  }

  /// The tensor of a used value; constants and variables appear where they are first used.
  Result<i32> tensor_of(PlannedSubgraph &g, const Value *v, const Op &user) {
    const Op *p = v->producer();
    if (p && p->opcode() == core_op::constant) {
      auto cls = pool_.classify(*p->attr(0u).as_constant(), v);
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
      }
      return mine.tensor;
    }
    const Region *home = p ? p->parent() : v->argument_of();
    if (p && p->opcode() == core_op::state && home == g.region && tensor_of_[v->id()] < 0) {
      // Zeros are what a variable starts with when it has no buffer.
      const Constant &initial = *p->attr(1u).as_constant();
      auto buffer = is_zero(initial) ? Result<u32>(0u) : pool_.own_buffer(initial, v);
      if (!buffer)
        return tl::unexpected(buffer.error());
      if (Status s = define(g, *v, p->loc(), *buffer, true); !s)
        return tl::unexpected(s.error());
    }
    const i32 known = tensor_of_[v->id()];
    if (known < 0 || home != g.region)
      return fail_at(graph_, user.loc(), "circle.write.capture",
                     "uses " + describe(graph_, v) + " from outside of its subgraph",
                     std::string(user.name()), "pass the value as an operand");
    return known;
  }

  Status define(PlannedSubgraph &g, const Value &v, ir::LocId loc, u32 buffer = 0,
                bool variable = false) {
    if (Status s = check_type(v, loc); !s)
      return s;
    tensor_of_[v.id()] = add_tensor(g, v.type(), buffer, variable, &v);
    return {};
  }

  u32 code_index(const Op &op, const WireDef &wire) {
    const auto version =
        static_cast<i32>(op.attr(static_cast<u32>(wire.version_attr)).as_int().value());
    const bool custom = op.opcode() == op::CUSTOM;
    const auto add = [&] {
      plan_.codes.push_back(
          {wire.code, version, custom ? op.attr("custom_code").as_string() : std::string_view()});
      return static_cast<u32>(plan_.codes.size() - 1);
    };
    if (version == 1 && !custom) {
      i32 &slot = code_of_[ir::index(op.opcode()) - ir::kCircleBase];
      if (slot < 0)
        slot = static_cast<i32>(add());
      return static_cast<u32>(slot);
    }
    const auto key = std::tuple(wire.code, version,
                                custom ? op.attr("custom_code").as_string() : std::string_view());
    if (const auto it = rare_codes_.find(key); it != rare_codes_.end())
      return it->second;
    return rare_codes_.emplace(key, add()).first->second;
  }

  Status plan_op(PlannedSubgraph &g, const Op &op) {
    const WireDef &w = wire(op.opcode());
    g.ops.push_back(&op);
    plan_.op_code[op.id()] = code_index(op, w);
    const u32 n = written_operands(op, w);
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
      if (Status s = define(g, r, op.loc()); !s)
        return s;
      g.indices.push_back(tensor_of_[r.id()]);
    }
    if (op.num_regions()) {
      g.region_starts.push_back(static_cast<u32>(next_subgraph_));
      next_subgraph_ += op.num_regions();
      for (const Region *r : op.regions())
        pending_.push_back(r);
    }
    if (w.stateful) {
      const ir::Attr types = op.attr("intermediates");
      if (types.kind() == ir::AttrKind::List)
        for (ir::Attr t : types.as_list()) {
          if (t.kind() != ir::AttrKind::Type || !t.as_type().is_tensor() ||
              !to_wire_type(t.as_type().element()))
            return fail_at(graph_, op.loc(), "circle.write.type",
                           "intermediates are a list of tensor types", std::string(op.name()));
          g.indices.push_back(add_tensor(g, t.as_type(), 0, false, op.result()));
        }
    }
    return {};
  }

  Status plan_subgraph(size_t index) {
    subgraph_ = static_cast<u32>(index);
    if (index == 0)
      next_subgraph_ = 1;
    PlannedSubgraph g;
    g.region = plan_.subgraphs[index].region;
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
                  graph_.name());
    for (const Value *v : outputs(*g.region, *terminator)) {
      auto t = tensor_of(g, v, *terminator);
      if (!t)
        return tl::unexpected(t.error());
      g.outputs.push_back(*t);
    }
    name_tensors(g);
    plan_.subgraphs[index] = std::move(g);
    for (const Region *r : pending_)
      plan_.subgraphs.emplace_back().region = r;
    return {};
  }

  /// Arguments in the caller's order.
  std::vector<const Value *> inputs(const Region &region) const {
    std::vector<const Value *> out;
    if (&region == &graph_.body() && !graph_.inputs().empty()) {
      for (const ir::InputInfo &i : graph_.inputs())
        if (i.value)
          out.push_back(i.value);
    } else {
      out.assign(region.args().begin(), region.args().end());
    }
    return out;
  }

  std::vector<const Value *> outputs(const Region &region, const Op &terminator) const {
    std::vector<const Value *> out;
    if (&region == &graph_.body() && !graph_.outputs().empty()) {
      for (const ir::OutputInfo &o : graph_.outputs())
        if (o.operand >= 0)
          out.push_back(terminator.operand(static_cast<u32>(o.operand)));
    } else {
      for (const ir::Use &u : terminator.operand_uses())
        out.push_back(u.value());
    }
    std::erase(out, nullptr);
    return out;
  }

  void name_tensors(PlannedSubgraph &g) {
    const ir::Context &ctx = graph_.context();
    Names names(plan_.own_names, g.tensors.size());
    if (g.region == &graph_.body())
      for (const ir::InputInfo &i : graph_.inputs())
        if (i.value && !i.name.empty()) {
          PlannedTensor &t = g.tensors[static_cast<size_t>(tensor_of_[i.value->id()])];
          if (t.name.empty())
            t.name = names.unique(i.name);
        }
    // A value's own name comes before one that an operator inherits from the node it was part of.
    for (size_t i = 0; i < g.tensors.size(); ++i)
      if (g.tensors[i].name.empty() && sources_[i] && sources_[i]->name())
        g.tensors[i].name = names.unique(ctx.string(sources_[i]->name()));
    for (size_t i = 0; i < g.tensors.size(); ++i) {
      if (!g.tensors[i].name.empty())
        continue;
      const Op *p = sources_[i] ? sources_[i]->producer() : nullptr;
      std::string_view base = p ? graph_.locations().node_name(p->loc()) : "arg";
      if (p && p->opcode() == core_op::constant)
        base = "const";
      else if (base.empty())
        base = p->name().substr(p->name().find('.') + 1);
      g.tensors[i].name = names.unique(base);
    }
  }

  const ir::Graph &graph_;
  WriteStats &stats_;
  Plan plan_;
  ConstantPool pool_;
  std::vector<i32> tensor_of_;          // by Value::id, within the value's own subgraph
  std::vector<const Value *> sources_;  // of the current subgraph's tensors
  std::vector<const Region *> pending_; // regions found in the current subgraph
  struct ClassTensor {
    u32 subgraph;
    i32 tensor;
  };
  std::vector<ClassTensor> class_tensor_; // by constant class
  u32 subgraph_ = 0;
  size_t next_subgraph_ = 1;
  std::array<i32, kNumOps> code_of_;
  std::map<std::tuple<i32, i32, std::string_view>, u32> rare_codes_;
};

} // namespace

u32 written_operands(const Op &op, const WireDef &wire) {
  u32 n = op.num_operands();
  if (op.def().variadic_operands() == 0)
    while (n > wire.always_written && !op.operand(n - 1))
      --n;
  return n;
}

Result<Plan> make_plan(const ir::Graph &graph, WriteStats &stats) {
  return Planner(graph, stats).run();
}

} // namespace chute::circle
