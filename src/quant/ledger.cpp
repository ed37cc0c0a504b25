#include "quant/ledger.h"

#include "ir/walk.h"
#include "quant/params.h"
#include "support/diag.h"

#include <algorithm>
#include <cstdio>

namespace chute::quant {

namespace {

thread_local Ledger *g_active = nullptr;

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

std::string field(std::string_view key, std::string_view value, bool last = false) {
  return json_quote(key) + ":" + json_quote(value) + (last ? "" : ",");
}

} // namespace

std::string describe(ir::Type t) {
  if (!t || !t.is_tensor())
    return "reals";
  std::string text(ir::element_type_name(t.element()));
  if (is_mx(t))
    return text + ", blocks of " + std::to_string(t.quant()->block_size) + " along dimension " +
           std::to_string(t.quant()->axis);
  if (!is_affine(t))
    return text;
  const Quantization &q = *t.quant();
  if (is_per_tensor(t))
    return text + ", scale " + number(q.scales[0]) + ", zero point " +
           std::to_string(q.zero_points[0]);
  const auto [least, most] = std::minmax_element(q.scales.begin(), q.scales.end());
  return text + ", " + std::to_string(q.scales.size()) + " scales along dimension " +
         std::to_string(q.axis) + " (" + number(*least) + " to " + number(*most) + ")";
}

Ledger *Ledger::active() { return g_active; }
Ledger::Scope::Scope(Ledger *ledger) : before_(g_active) { g_active = ledger; }
Ledger::Scope::~Scope() { g_active = before_; }

Ledger::Place Ledger::place_of(const ir::Graph &graph, const ir::Op &op) {
  const ir::Provenance from = graph.locations().resolve(op.loc());
  Place p;
  if (op.num_results() && op.result()->name())
    p.name = graph.context().string(op.result()->name());
  else if (!from.nodes.empty())
    p.name = from.nodes.front();
  p.op = op.name();
  p.module = from.module_path;
  p.source = from.source_line;
  return p;
}

void Ledger::site(const ir::Graph &graph, const ir::Op &op, const ir::Value *stored,
                  std::string_view reason) {
  Site s;
  s.place = place_of(graph, op);
  s.reason = reason;
  if (stored) {
    s.parameters = describe(stored->type());
    s.value = stored->id();
  }
  sites_.push_back(std::move(s));
}

Ledger::Pending::Pending(const ir::Graph &graph, const std::vector<const ir::Op *> &ops) {
  for (const ir::Op *op : ops)
    ops_.emplace_back(op->id(), place_of(graph, *op));
}

void Ledger::dropped(const Pending &pending, const std::vector<bool> &kept,
                     std::string_view reason) {
  for (const auto &[id, place] : pending.ops_)
    if (!kept[id]) {
      Site s;
      s.place = place;
      s.reason = reason;
      sites_.push_back(std::move(s));
    }
}

void Ledger::moved(const ir::Value *from, const ir::Value *to) {
  if (from != to)
    moved_[from->id()] = to->id();
}

void Ledger::change(const ir::Graph &graph, const ir::Op &op, Change what, ir::Type from,
                    ir::Type to) {
  changes_.push_back({what, place_of(graph, op), describe(from), describe(to)});
}

void Ledger::left(const ir::Op &op, std::string_view reason) { reasons_[op.id()] = reason; }

/// The last value of a chain; values are never moved in a circle, since each move erases its first.
u32 Ledger::now(u32 value) const {
  for (auto it = moved_.find(value); it != moved_.end(); it = moved_.find(value))
    value = it->second;
  return value;
}

void Ledger::finish(const ir::Graph &graph) {
  std::vector<const ir::Value *> values(graph.num_value_ids(), nullptr);
  const auto note = [&](const ir::Value &v) { values[v.id()] = &v; };
  for (const ir::Value *v : graph.body().args())
    note(*v);
  ir::walk(graph, [&](const ir::Op &op) {
    for (const ir::Region *r : op.regions())
      for (const ir::Value *v : r->args())
        note(*v);
    for (const ir::Value &v : op.results()) {
      note(v);
      if (!v.type().is_tensor() || v.type().element() != ElementType::F32 ||
          op.has(ir::trait::kConstant))
        continue;
      const auto why = reasons_.find(op.id());
      Real r{place_of(graph, op), {}};
      if (why != reasons_.end())
        r.reason = why->second;
      else if (op.name().ends_with(".dequantize"))
        r.reason = "the operators that read it compute on reals";
      else
        r.reason = "no quantization in the program follows it";
      reals_.push_back(std::move(r));
    }
  });
  for (Site &s : sites_) {
    if (s.value == ~0u) {
      s.fate = "dropped";
      continue;
    }
    const u32 id = now(s.value);
    const ir::Value *v = id < values.size() ? values[id] : nullptr;
    if (!v) {
      s.fate = "merged";
      s.reason = "an equal tensor carries it, or nothing reads it";
      continue;
    }
    const ir::Op *p = v->producer();
    s.fate = !p                                 ? "input"
             : p->has(ir::trait::kConstant)     ? "constant"
             : p->name().ends_with(".quantize") ? "explicit"
                                                : "result";
    s.tensor = v->name() ? std::string(graph.context().string(v->name()))
               : p       ? place_of(graph, *p).name
                         : std::string();
    if (const std::string is = describe(v->type()); is != s.parameters)
      s.reason = "stored as " + is;
  }
}

const char *Ledger::text_of(Change c) const {
  switch (c) {
  case Change::Widened: return "widened";
  case Change::Requantized: return "requantized";
  case Change::Chosen: return "chosen";
  case Change::Bias: return "bias";
  case Change::Rounding: return "range";
  }
  return "";
}

std::string Ledger::to_json() const {
  const auto place = [](const Place &p) {
    return field("name", p.name) + field("operator", p.op) + field("module", p.module) +
           field("source", p.source);
  };
  std::string out = "{\n\"parameters\":[";
  for (size_t i = 0; i < sites_.size(); ++i) {
    const Site &s = sites_[i];
    out += std::string(i ? "," : "") + "\n{" + place(s.place) + field("parameters", s.parameters) +
           field("fate", s.fate) + field("tensor", s.tensor) + field("reason", s.reason, true) +
           "}";
  }
  out += "],\n\"changes\":[";
  for (size_t i = 0; i < changes_.size(); ++i) {
    const Changed &c = changes_[i];
    out += std::string(i ? "," : "") + "\n{" + field("change", text_of(c.what)) + place(c.place) +
           field("from", c.from) + field("to", c.to, true) + "}";
  }
  out += "],\n\"reals\":[";
  for (size_t i = 0; i < reals_.size(); ++i)
    out += std::string(i ? "," : "") + "\n{" + place(reals_[i].place) +
           field("reason", reals_[i].reason, true) + "}";
  return out + "]\n}\n";
}

std::string Ledger::to_text() const {
  std::string out;
  const auto place = [](const Place &p) {
    std::string text = (p.name.empty() ? "" : "%" + p.name + " ") + p.op;
    if (!p.module.empty() || !p.source.empty())
      text += " (" + p.module + (p.module.empty() || p.source.empty() ? "" : ", ") + p.source + ")";
    return text;
  };
  out += std::to_string(sites_.size()) + " places of the program quantize\n";
  for (const Site &s : sites_) {
    out +=
        "  " + place(s.place) + ": " + (s.parameters.empty() ? "" : s.parameters + "; ") + s.fate;
    out += (s.tensor.empty() ? "" : " %" + s.tensor) + (s.reason.empty() ? "" : ": " + s.reason);
    out += "\n";
  }
  out += std::to_string(changes_.size()) + " parameters are not the program's own\n";
  for (const Changed &c : changes_)
    out += "  " + place(c.place) + ": " + text_of(c.what) + ": " + c.from + " -> " + c.to + "\n";
  out += std::to_string(reals_.size()) + " tensors are reals\n";
  for (const Real &r : reals_)
    out += "  " + place(r.place) + ": " + r.reason + "\n";
  return out;
}

} // namespace chute::quant
