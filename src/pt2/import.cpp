// The walk over nodes: decoding in pieces, nested graphs, failures.

#include "pt2/import.h"

#include "ir/builder.h"
#include "ir/sym_table.h"

namespace chute::pt2 {

Importer::Importer(ir::Graph &graph, const Document &document, Payloads &payloads,
                   const ReadOptions &options, Diagnostics &diagnostics)
    : graph_(graph),
      ctx_(graph.context()),
      doc_(document),
      payloads_(payloads),
      options_(options),
      diagnostics_(diagnostics),
      metadata_(std::make_shared<NodeMetadata>(document.text, document.owner)),
      region_(&graph.body()) {
  graph_.locations().keep(metadata_);
}

Importer::~Importer() = default;

// --- failures
// --------------------------------------------------------------------------------------

bool Importer::fail(ErrorKind kind, const char *code, std::string message, std::string hint) {
  error_ = Diagnostic();
  error_.kind = kind;
  error_.code = code;
  error_.message = std::move(message);
  error_.hint = std::move(hint);
  error_.object = doc_.member;
  if (current_) {
    ir::Provenance place;
    metadata_->resolve(current_->offset, place);
    error_.module_path = std::move(place.module_path);
    error_.source_line = std::move(place.source_line);
    error_.object =
        doc_.at(current_->offset) + " " +
        std::string((current_->name.empty() ? current_->target : current_->name).substr(0, 200));
  }
  return false;
}

bool Importer::bad_json(u64 offset, std::string message) {
  bad("pt2.json.malformed", std::move(message));
  error_.object = doc_.at(offset);
  return false;
}

bool Importer::bad_scan(const ScanError &e) {
  return bad_json(e.offset, e.message ? e.message : "malformed JSON");
}

bool Importer::bad_decode(std::string_view piece) {
  return bad_json(static_cast<u64>(piece.data() - doc_.text.data()) + decoder_.error_offset(),
                  decoder_.error());
}

// --- scopes
// ----------------------------------------------------------------------------------------

/// A nested graph's names, from construction to destruction. Names are unique per graph only.
class Importer::Scope {
public:
  explicit Scope(Importer &importer)
      : importer_(importer), outer_(importer.scope_), mark_(importer.saved_.size()) {
    syms_.swap(importer.syms_);
    importer.scope_ = ++importer.last_scope_;
    ++importer.depth_;
  }
  ~Scope() {
    for (; importer_.saved_.size() > mark_; importer_.saved_.pop_back()) {
      auto &[id, name] = importer_.saved_.back();
      importer_.names_[id] = name;
    }
    importer_.syms_.swap(syms_);
    importer_.scope_ = outer_;
    --importer_.depth_;
  }
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;

private:
  Importer &importer_;
  u32 outer_;
  size_t mark_;
  SymMap syms_;
};

// --- nodes
// -----------------------------------------------------------------------------------------

namespace {

/// Nested graphs are small programs of their own; this many levels are more than any model has.
constexpr u32 kMaxNesting = 24;

} // namespace

bool Importer::nodes(const NodeTable &table) {
  node_count_ += table.nodes.size();
  const auto prefetch_names = [&](size_t node) {
    const u32 last = node + 1 < table.nodes.size() ? table.nodes[node + 1].name
                                                   : static_cast<u32>(table.names.size());
    for (u32 i = table.nodes[node].name; i < last; ++i)
      if (table.names[i].id < names_.size())
        __builtin_prefetch(&names_[table.names[i].id]);
  };
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < table.nodes.size(); ++i) {
    if (i + kAhead < table.nodes.size() && table.nodes[i + kAhead].form != NodeRecord::kDecode)
      prefetch_names(i + kAhead);
    const NodeRecord &r = table.nodes[i];
    if (r.form == NodeRecord::kDecode) {
      // Bodies of nested graphs come through here again while this node is under way.
      Decoded own;
      Decoded &d = depth_ == 0 ? decoded_ : own;
      d.clear();
      const std::string_view text = table.text(doc_.text, r);
      if (!decoder_.node(text, r.offset, d))
        return bad_json(r.offset + decoder_.error_offset(),
                        "nodes[" + std::to_string(i) + "]: " + decoder_.error());
      if (!node(d, d.nodes[0]))
        return false;
      continue;
    }
    if (plans_.size() <= r.form)
      plans_.resize(forms_.size());
    NodeForm &form = forms_[r.form];
    std::unique_ptr<Plan> &known = plans_[r.form];
    if (known) {
      const Outcome outcome = planned(form, *known, table, r);
      if (outcome == Outcome::Done)
        continue;
      if (outcome == Outcome::Failed)
        return false;
    }
    fill(form, table, r, ctx_);
    if (!node(form.example, form.node()))
      return false;
    if (!known) {
      known = std::make_unique<Plan>();
      plan(form, *known);
    }
  }
  return true;
}

bool Importer::node(const Decoded &d, const DecodedNode &n) {
  const DecodedNode *outer = current_;
  const ir::LocId outer_loc = loc_;
  current_ = &n;
  std::string_view name = n.name;
  if (name.empty() && n.num_outputs > 0) {
    const Item &first = d.outputs[n.first_output];
    if (first.tag == ArgTag::Tensor || first.tag == ArgTag::SymInt)
      name = first.string();
  }
  loc_ = graph_.locations().add(ctx_.intern(name), metadata_.get(), n.offset);
  Target &t = target(n.target);
  Outcome outcome = Outcome::Fallback;
  if (only_sizes(d, n, t)) {
    outcome = Outcome::Done;
  } else {
    switch (t.kind) {
    case Target::Kind::Registered:
      outcome = registered(t, d, n);
      // Other libraries' operators change their signatures, and only aten's names are reserved: a
      // node that does not fit the row stays as it is.
      if (outcome == Outcome::Failed && error_.code.starts_with("pt2.node.") &&
          !t.name.starts_with("aten."))
        outcome = Outcome::Fallback;
      break;
    case Target::Kind::ControlFlow: outcome = control_flow(t, d, n); break;
    case Target::Kind::Inline:
    case Target::Kind::Autocast:
      outcome = inline_graph(d, n) ? Outcome::Done : Outcome::Failed;
      break;
    case Target::Kind::Unregistered:
      if (Target *meant = overload(t, d, n))
        outcome = registered(*meant, d, n);
      else
        outcome = float_arithmetic(d, n, t);
      break;
    }
  }
  const bool ok =
      outcome == Outcome::Done || (outcome == Outcome::Fallback && unregistered(t, d, n));
  if (ok) {
    current_ = outer;
    loc_ = outer_loc;
  }
  return ok;
}

// --- nested graphs
// ---------------------------------------------------------------------------------

namespace {

const Item *find_graph(const Decoded &d, const DecodedNode &n, u32 &index) {
  for (index = 0; index < n.num_inputs; ++index)
    if (const Item &item = d.inputs[n.first_input + index].value; item.tag == ArgTag::Graph)
      return &item;
  return nullptr;
}

} // namespace

/// The body's inputs are names for the node's operands, its outputs become the node's results.
bool Importer::inline_graph(const Decoded &d, const DecodedNode &n) {
  u32 at = 0;
  const Item *graph = find_graph(d, n, at);
  if (!graph)
    return bad("pt2.node.argument", "the operator has no graph");
  if (depth_ >= kMaxNesting)
    return bad("pt2.graph.nesting", "graphs are nested too deeply");
  const u32 first = at + 1, count = n.num_inputs - first;
  Values operands;
  std::vector<ir::Attr> literals(count);
  for (u32 i = 0; i < count; ++i) {
    const Item &item = d.inputs[n.first_input + first + i].value;
    operands.push_back(nullptr);
    if (item.tag == ArgTag::Tensor || item.tag == ArgTag::CustomObj) {
      if (!(operands.back() = value(item.string())))
        return false;
    } else if (item.tag == ArgTag::SymInt || item.tag == ArgTag::SymBool ||
               item.tag == ArgTag::Int || item.tag == ArgTag::Float || item.tag == ArgTag::Bool) {
      if (!sym_attr(item, literals[i]))
        return false;
    }
  }
  Values results;
  {
    GraphText text;
    if (!graph_text(static_cast<u64>(graph->s - doc_.text.data()), text))
      return false;
    if (text.inputs.size() != count)
      return bad("pt2.graph.inputs", "the nested graph takes " +
                                         std::to_string(text.inputs.size()) + " inputs, given " +
                                         std::to_string(count));
    const Scope scope(*this);
    if (!values(text))
      return false;
    for (u32 i = 0; i < count; ++i) {
      scratch_.clear();
      Item item;
      const std::string_view json = doc_.slice(text.inputs[i]);
      if (!decoder_.argument(json, scratch_, item))
        return bad_decode(json);
      if (operands[i] && (item.tag == ArgTag::Tensor || item.tag == ArgTag::CustomObj)) {
        if (!bind(item.string(), operands[i]))
          return false;
      } else if (item.tag == ArgTag::SymInt && !literals[i].is_none()) {
        // The nested graph's own table may have said the same already.
        syms_.try_emplace(ctx_.intern(item.string()).id, literals[i]);
      }
    }
    const ir::ElementType outer_autocast = autocast_;
    if (target(n.target).kind == Target::Kind::Autocast)
      autocast_ = autocast_element(d, n, at);
    const bool imported = nodes(text.nodes);
    autocast_ = outer_autocast;
    if (!imported)
      return false;
    for (const Extent &e : text.outputs) {
      scratch_.clear();
      Item item;
      const std::string_view json = doc_.slice(e);
      if (!decoder_.argument(json, scratch_, item))
        return bad_decode(json);
      results.push_back(nullptr);
      if (item.tag == ArgTag::Tensor || item.tag == ArgTag::CustomObj) {
        if (!(results.back() = value(item.string())))
          return false;
      }
    }
  }
  // One result for each output; a size keeps its own recorded value.
  u32 index = 0;
  for (u32 o = 0; o < n.num_outputs; ++o) {
    const Item &out = d.outputs[n.first_output + o];
    const u32 many = out.tag == ArgTag::Tensors ? out.count : 1;
    for (u32 k = 0; k < many; ++k, ++index) {
      const Item &item = out.tag == ArgTag::Tensors ? d.items[out.first + k] : out;
      if (item.tag != ArgTag::Tensor && item.tag != ArgTag::CustomObj)
        continue;
      if (index >= results.size() || !results[index])
        return bad("pt2.graph.outputs",
                   "the nested graph has no value for output " + std::to_string(index));
      if (!bind(item.string(), results[index]))
        return false;
    }
  }
  return true;
}

ir::Region *Importer::region(std::string_view json) {
  if (depth_ >= kMaxNesting) {
    bad("pt2.graph.nesting", "graphs are nested too deeply");
    return nullptr;
  }
  GraphText text;
  if (!graph_text(static_cast<u64>(json.data() - doc_.text.data()), text))
    return nullptr;
  const Scope scope(*this);
  ir::Region *outer = region_;
  decltype(scalars_) outer_scalars;
  std::swap(outer_scalars, scalars_);
  ir::Region *inner = graph_.create_region();
  region_ = inner;
  const auto body = [&] {
    if (!values(text))
      return false;
    for (const Extent &e : text.inputs) {
      scratch_.clear();
      Item item;
      if (!decoder_.argument(doc_.slice(e), scratch_, item))
        return bad_decode(doc_.slice(e));
      ir::Type type = ctx_.int_type();
      ir::StringId name;
      switch (item.tag) {
      case ArgTag::Tensor:
        name = ctx_.intern(item.string());
        if (Name *n = find(item.string()); n && n->type)
          type = n->type;
        else
          return bad("pt2.value.no_type", "a nested graph's input has no recorded type");
        break;
      case ArgTag::SymInt: {
        name = ctx_.intern(item.string());
        ir::Attr known;
        if (!sym_attr(item, known))
          return false;
        if (known.kind() == ir::AttrKind::Int && known.as_int().is_symbolic())
          if (const auto symbol = ctx_.sym().symbol_name(known.as_int()); !symbol.empty())
            name = ctx_.intern(symbol);
        break;
      }
      case ArgTag::CustomObj:
        type = ctx_.opaque_type();
        name = ctx_.intern(item.string());
        break;
      case ArgTag::None: type = ctx_.none_type(); break;
      case ArgTag::Float:
      case ArgTag::SymFloat: type = ctx_.float_type(); break;
      case ArgTag::Bool:
      case ArgTag::SymBool: type = ctx_.bool_type(); break;
      default: break;
      }
      ir::Value *argument = graph_.add_argument(*inner, type, name);
      if ((item.tag == ArgTag::Tensor || item.tag == ArgTag::CustomObj ||
           item.tag == ArgTag::SymFloat) &&
          !bind(item.string(), argument))
        return false;
    }
    if (!nodes(text.nodes))
      return false;
    Values results;
    for (const Extent &e : text.outputs) {
      scratch_.clear();
      Item item;
      if (!decoder_.argument(doc_.slice(e), scratch_, item))
        return bad_decode(doc_.slice(e));
      ir::Value *result = nullptr;
      if (item.tag == ArgTag::Tensor || item.tag == ArgTag::CustomObj) {
        result = value(item.string());
      } else if (item.tag == ArgTag::None) {
        results.push_back(nullptr);
        continue;
      } else if (ir::Attr a; item.tag == ArgTag::Int || item.tag == ArgTag::Bool ||
                             item.tag == ArgTag::SymInt || item.tag == ArgTag::SymBool) {
        result = sym_attr(item, a) ? size_value(a, {}) : nullptr;
      } else {
        return fail(ErrorKind::Unsupported, "pt2.graph.outputs",
                    "a nested graph returns something that is neither a tensor nor a size");
      }
      if (!result)
        return false;
      results.push_back(result);
    }
    graph_.append(*inner,
                  graph_.create(ir::core_op::ret, {results.data(), results.size()}, {}, {}, loc_));
    return true;
  };
  const bool ok = body();
  region_ = outer;
  std::swap(outer_scalars, scalars_);
  return ok ? inner : nullptr;
}

} // namespace chute::pt2
