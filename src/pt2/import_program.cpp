// The program around the graph: versions, symbol ranges, signature, inputs and outputs.

#include "pt2/import.h"

#include "ir/sym_table.h"

#include <boost/unordered/unordered_flat_set.hpp>
#include <charconv>

namespace chute::pt2 {

using ir::Attr;
using ir::AttrKind;
using Kind = Spec::Kind;

namespace {

/// A JSON integer that fits; nullopt for null, Infinity, fractions.
std::optional<i64> integer(std::string_view text) {
  i64 v = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(v) : std::nullopt;
}

bool is_state(Kind k) {
  return k == Kind::Buffer || k == Kind::Parameter || k == Kind::TensorConstant;
}

Payloads::Section section_of(const Spec &s) {
  return s.kind == Kind::Parameter || (s.kind == Kind::Buffer && s.persistent)
             ? Payloads::Section::Weights
             : Payloads::Section::Constants;
}

} // namespace

Status Importer::run(Summary &summary) {
  if (program(summary))
    return {};
  return tl::unexpected(std::move(error_));
}

bool Importer::program(Summary &summary) {
  ScanError e;
  GraphText text;
  std::optional<u64> graph, signature_at, constraints;
  const auto skip = [&](u64 at) { return skip_value(doc_.text, at, e); };
  bool failed = false; // with error_ set, as opposed to a scan error in `e`
  const auto end =
      walk_object(doc_.text, skip_space(doc_.text, 0), e,
                  [&](std::string_view key, u64 at) -> std::optional<u64> {
                    if (key == "graph_module")
                      return walk_object(doc_.text, at, e,
                                         [&](std::string_view k, u64 v) -> std::optional<u64> {
                                           if (k == "graph") {
                                             graph = v;
                                             const auto after = graph_text(v, text);
                                             failed |= !after;
                                             return after;
                                           }
                                           if (k == "signature")
                                             signature_at = v;
                                           return skip(v);
                                         });
                    if (key == "range_constraints")
                      constraints = at;
                    else if (!header(key, at, summary)) {
                      failed = true;
                      return std::nullopt;
                    }
                    return skip(at);
                  });
  if (!end)
    return failed ? false : bad_scan(e);
  if (!graph || !signature_at)
    return bad("pt2.json.malformed", "the program has no graph or no signature");
  if (summary.schema_major != 7 && summary.schema_major != 8)
    return fail(ErrorKind::Unsupported, "pt2.archive.schema",
                "the program's schema version " + std::to_string(summary.schema_major) + "." +
                    std::to_string(summary.schema_minor) + " is not known",
                "files of torch 2.5 to 2.15 have versions 7 and 8");
  training_ = summary.is_training_dialect() || summary.verifiers.empty();
  const bool ok =
      (!constraints || ranges(*constraints)) && values(text) && signature(*signature_at, text);
  summary.json_bytes = doc_.text.size();
  summary.nodes = node_count_;
  return ok;
}

bool Importer::header(std::string_view key, u64 at, Summary &summary) {
  ScanError e;
  const auto string_at = [&](u64 offset, std::string &out) {
    const auto end = skip_value(doc_.text, offset, e);
    if (!end)
      return bad_scan(e);
    const std::string_view raw = doc_.text.substr(offset, *end - offset);
    if (raw.size() >= 2 && raw.front() == '"')
      out = unescape(raw.substr(1, raw.size() - 2)).value_or(std::string());
    return true;
  };
  if (key == "torch_version")
    return string_at(at, summary.torch_version);
  if (key == "verifiers") {
    if (at < doc_.text.size() && doc_.text[at] != '[')
      return true;
    const auto list = scan_array(doc_.text, at, e);
    if (!list)
      return bad_scan(e);
    for (const Extent &x : *list)
      if (!string_at(x.offset, summary.verifiers.emplace_back()))
        return false;
  } else if (key == "schema_version") {
    const auto members = scan_object(doc_.text, at, e);
    if (!members)
      return bad_scan(e);
    for (const Member &m : *members) {
      const auto v = integer(doc_.slice(m.value));
      if (!v || *v < 0 || *v > 10000)
        return bad_json(m.value.offset, "a version number is malformed");
      (m.key == "major" ? summary.schema_major : summary.schema_minor) = static_cast<int>(*v);
    }
  }
  return true;
}

bool Importer::ranges(u64 offset) {
  ScanError e;
  const auto symbols = scan_object(doc_.text, offset, e);
  if (!symbols)
    return bad_scan(e);
  for (const Member &s : *symbols) {
    const auto bounds = scan_object(doc_.text, s.value.offset, e);
    if (!bounds)
      return bad_scan(e);
    ir::SymRange range{std::numeric_limits<i64>::min(), std::numeric_limits<i64>::max()};
    for (const Member &b : *bounds)
      if (const auto v = integer(doc_.slice(b.value)))
        (b.key == "min_val" ? range.min : range.max) = *v;
    // A key is a symbol's name; derived dimensions (2*s0) constrain nothing new.
    bool plain_name = !s.key.empty();
    for (const char c : s.key)
      plain_name &=
          (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (plain_name)
      ctx_.sym().set_range(ctx_.sym().symbol(s.key), range);
  }
  return true;
}

std::optional<u64> Importer::graph_text(u64 offset, GraphText &out) {
  ScanError e;
  out.offset = offset;
  bool has_nodes = false;
  const auto end =
      walk_object(doc_.text, offset, e, [&](std::string_view key, u64 at) -> std::optional<u64> {
        u64 after = 0;
        const auto list = [&](std::vector<Extent> &to) -> std::optional<u64> {
          auto v = scan_array(doc_.text, at, e, &after);
          if (!v)
            return std::nullopt;
          to = std::move(*v);
          return after;
        };
        const auto table = [&](std::vector<Member> &to) -> std::optional<u64> {
          auto v = scan_object(doc_.text, at, e, &after);
          if (!v)
            return std::nullopt;
          to = std::move(*v);
          return after;
        };
        if (key == "nodes") {
          has_nodes = true;
          return node_table(at, out.nodes, e);
        }
        if (key == "inputs")
          return list(out.inputs);
        if (key == "outputs")
          return list(out.outputs);
        if (key == "tensor_values")
          return tensor_table(at, out.tensor_values, e);
        if (key == "sym_int_values")
          return table(out.sym_int_values);
        if (key == "sym_bool_values")
          return table(out.sym_bool_values);
        if (key == "sym_float_values")
          return table(out.sym_float_values);
        return skip_value(doc_.text, at, e);
      });
  if (!end) {
    bad_scan(e);
    return std::nullopt;
  }
  if (!has_nodes) {
    bad_json(offset, "a graph has no nodes");
    return std::nullopt;
  }
  // The IR counts values in 32 bits.
  constexpr size_t kMany = std::numeric_limits<u32>::max() / 2;
  if (out.nodes.nodes.size() >= kMany || out.nodes.names.size() >= kMany ||
      out.nodes.numbers.size() >= kMany) {
    bad_json(offset, "the graph has too many nodes");
    return std::nullopt;
  }
  return end;
}

// --- signature
// -------------------------------------------------------------------------------------

bool Importer::signature(u64 offset, const GraphText &text) {
  ScanError e;
  std::vector<InputSpec> input_specs;
  std::vector<Extent> outputs_of;
  bool failed = false; // with error_ set
  const auto end =
      walk_object(doc_.text, offset, e, [&](std::string_view key, u64 at) -> std::optional<u64> {
        if (key == "input_specs") {
          input_specs.clear();
          return walk_array(doc_.text, at, e, [&](u64 element) {
            return input_spec(element, input_specs.emplace_back(), e, failed);
          });
        }
        if (key != "output_specs")
          return skip_value(doc_.text, at, e);
        u64 after = 0;
        auto v = scan_array(doc_.text, at, e, &after);
        if (!v)
          return std::nullopt;
        outputs_of = std::move(*v);
        return after;
      });
  if (!end)
    return failed ? false : bad_scan(e);
  if (input_specs.size() != text.inputs.size() || outputs_of.size() != text.outputs.size())
    return bad_json(offset, "the signature does not have as many inputs or outputs as the graph");

  std::vector<Spec> out_specs;
  if (!output_specs(outputs_of, out_specs))
    return false;
  boost::unordered_flat_set<std::string_view> mutated;
  for (const Spec &s : out_specs)
    if (s.kind == Kind::BufferMutation || s.kind == Kind::ParameterMutation)
      mutated.insert(s.target);

  std::vector<std::string_view> names(input_specs.size());
  std::vector<ir::StringId> ids(input_specs.size());
  for (size_t i = 0; i < input_specs.size(); ++i)
    if (input_specs[i].spec.arg.tag == ArgTag::Tensor)
      names[i] = input_specs[i].spec.arg.string();
  ctx_.intern(names, ids);
  for (size_t i = 0; i < input_specs.size(); ++i) {
    const Spec &spec = input_specs[i].spec;
    if (!add_input(spec, spec.arg, ids[i])) {
      error_.object =
          doc_.at(input_specs[i].offset) + " signature.input_specs[" + std::to_string(i) + "]";
      return false;
    }
    if (is_state(spec.kind) && mutated.contains(spec.target))
      inputs_.back().written = true;
  }
  return nodes(text.nodes) && outputs(out_specs) && finish_inputs();
}

/// One input's entry; the place behind it. Most are a parameter's or buffer's and differ in two
/// names only.
std::optional<u64> Importer::input_spec(u64 at, InputSpec &out, ScanError &e, bool &failed) {
  const char *const begin = doc_.text.data(), *const end = begin + doc_.text.size();
  const char *p = begin + at;
  out.offset = at;
  Filling fillings[Form::kMaxHoles];
  if (const u32 form = spec_table_.match(p, end, fillings); form != FormTable::kNone) {
    const SpecForm &known = spec_forms_[form];
    out.spec = known.example;
    const std::string_view name = fillings[known.arg].text();
    out.spec.arg.s = name.data();
    out.spec.arg.count = static_cast<u32>(name.size());
    if (known.target >= 0)
      out.spec.target = fillings[known.target].text();
    return static_cast<u64>(p - begin);
  }
  const std::optional<u64> behind = skip_value(doc_.text, at, e);
  if (!behind)
    return std::nullopt;
  const std::string_view json = doc_.text.substr(at, *behind - at);
  Decoded own;
  own.strings.swap(strings_); // texts with escapes are kept
  const bool ok = decoder_.spec(json, own, out.spec);
  own.strings.swap(strings_);
  if (!ok) {
    bad_decode(json);
    failed = true;
    return std::nullopt;
  }
  learn_spec(json, out.spec);
  return behind;
}

void Importer::learn_spec(std::string_view json, const Spec &spec) {
  if (spec.arg.tag != ArgTag::Tensor || !spec_table_.learns())
    return;
  spec_table_.count_miss();
  std::vector<Hole> holes;
  for (const std::string_view part : {spec.arg.string(), spec.target}) {
    if (part.data() == nullptr)
      continue;
    if (part.data() < json.data() || part.data() > json.data() + json.size())
      return; // has escapes
    holes.push_back({HoleKind::Text, static_cast<u64>(part.data() - json.data()), part.size()});
  }
  SpecForm made{spec, 0, static_cast<i32>(holes.size()) - 2};
  if (holes.size() == 2) {
    made.target = 1;
    if (holes[1].offset < holes[0].offset) {
      std::swap(holes[0], holes[1]);
      std::swap(made.arg, made.target);
    }
  }
  std::optional<Form> form = Form::of(json, holes);
  if (form && spec_table_.add(std::move(*form)) != FormTable::kNone)
    spec_forms_.push_back(made);
}

bool Importer::output_specs(const std::vector<Extent> &specs, std::vector<Spec> &out) {
  for (const Extent &x : specs) {
    Decoded own;
    Spec spec;
    const std::string_view json = doc_.slice(x);
    own.strings.swap(strings_); // texts with escapes are kept
    const bool ok = decoder_.spec(json, own, spec);
    own.strings.swap(strings_);
    if (!ok)
      return bad_decode(json);
    if (spec.kind == Kind::Unknown)
      return fail(ErrorKind::Unsupported, "pt2.graph.signature",
                  "outputs of kind '" + std::string(spec.key.substr(0, 80)) + "' are not known");
    if (spec.kind == Kind::GradientToParameter || spec.kind == Kind::GradientToInput)
      return fail(ErrorKind::Unsupported, "pt2.graph.signature",
                  "the program returns gradients: it is a joint training graph",
                  "export the module for inference");
    out.push_back(spec);
  }
  return true;
}

bool Importer::add_input(const Spec &spec, const Item &arg, ir::StringId id) {
  const auto add_user = [&](ir::Type type, ir::StringId name) {
    ir::InputInfo info;
    info.name = std::string(arg.string());
    info.value = graph_.add_argument(graph_.body(), type, name);
    graph_.inputs().push_back(info);
    return info.value;
  };
  const auto add_literal = [&](std::string_view name, Attr literal) {
    ir::InputInfo info;
    info.name = std::string(name);
    info.kind = ir::InputKind::Literal;
    info.literal = literal;
    graph_.inputs().push_back(info);
    return true;
  };
  const auto literal = [&](Attr &out) {
    switch (arg.tag) {
    case ArgTag::None: out = Attr::none(); return true;
    case ArgTag::Int: out = Attr::of_int(arg.i); return true;
    case ArgTag::Float: out = Attr::of_float(arg.f); return true;
    case ArgTag::Bool: out = Attr::of_bool(arg.b); return true;
    case ArgTag::String: out = ctx_.string_attr(arg.string()); return true;
    default: return bad("pt2.graph.signature", "an input has an unknown form");
    }
  };
  Attr value;
  switch (spec.kind) {
  case Kind::UserInput: {
    if (arg.tag == ArgTag::Tensor) {
      const Name *n = find(arg.string());
      if (!n || !n->type)
        return bad("pt2.value.no_type",
                   "input '" + std::string(arg.string().substr(0, 200)) + "' has no recorded type");
      const ir::Type type = n->type;
      return bind(arg.string(), add_user(type, ctx_.intern(arg.string())));
    }
    if (arg.tag == ArgTag::SymInt || arg.tag == ArgTag::SymBool) {
      if (!sym_attr(arg, value))
        return false;
      ir::StringId name = ctx_.intern(arg.string());
      if (value.kind() == AttrKind::Int && value.as_int().is_symbolic())
        if (const auto symbol = ctx_.sym().symbol_name(value.as_int()); !symbol.empty())
          name = ctx_.intern(symbol);
      add_user(arg.tag == ArgTag::SymInt ? ctx_.int_type() : ctx_.bool_type(), name);
      return true;
    }
    if (arg.tag == ArgTag::SymFloat)
      return bind(arg.string(), add_user(ctx_.float_type(), ctx_.intern(arg.string())));
    if (arg.tag == ArgTag::CustomObj)
      return bind(arg.string(), add_user(ctx_.opaque_type(), ctx_.intern(arg.string())));
    return literal(value) && add_literal({}, value);
  }
  case Kind::ConstantInput: return literal(value) && add_literal(spec.target, value);
  case Kind::Parameter:
  case Kind::Buffer:
  case Kind::TensorConstant:
  case Kind::CustomObj:
  case Kind::Token: {
    if (arg.tag != ArgTag::Tensor)
      id = ctx_.intern(arg.string());
    Name &n = declare(id);
    if (n.value || n.input >= 0)
      return bad("pt2.value.redefined",
                 "two inputs are called '" + std::string(arg.string().substr(0, 200)) + "'");
    n.input = static_cast<i32>(inputs_.size());
    u32 hint = Payloads::kNoHint;
    if (is_state(spec.kind))
      hint = section_size_[static_cast<size_t>(section_of(spec))]++;
    inputs_.push_back({spec, id, hint, nullptr, false});
    return true;
  }
  default:
    return fail(ErrorKind::Unsupported, "pt2.graph.signature",
                "inputs of kind '" + std::string(spec.key.substr(0, 80)) + "' are not known");
  }
}

/// Makes the operator of a parameter, buffer or object when it is first used. It is attached at the
/// end.
ir::Value *Importer::materialize(i32 index) {
  Input &in = inputs_[static_cast<size_t>(index)];
  if (!in.op) {
    if (!is_state(in.spec.kind)) {
      const std::string_view kind = in.spec.kind == Kind::Token ? "token" : "custom_obj";
      const std::string_view name = "name";
      const Attr args[1] = {ctx_.string_attr(in.spec.target)};
      const Attr attrs[3] = {ctx_.string_attr(kind), ctx_.strings_attr({&name, 1}),
                             ctx_.list_attr(args)};
      const ir::Type type = ctx_.opaque_type();
      in.op = graph_.create(ir::core_op::unregistered, {}, attrs, {&type, 1});
    } else {
      const auto c = payloads_.constant(graph_, section_of(in.spec), in.spec.target, in.hint);
      if (!c) {
        error_ = c.error();
        return nullptr;
      }
      const Name &n = names_[in.name.id];
      if (n.type && n.type != (*c)->type) {
        bad("pt2.weight.meta", "the stored tensor '" + std::string(in.spec.target.substr(0, 200)) +
                                   "' has another type than the graph's input '" +
                                   std::string(ctx_.string(in.name).substr(0, 200)) + "'");
        return nullptr;
      }
      const Attr value = Attr::of_constant(*c);
      in.op = graph_.create(ir::core_op::constant, {}, {&value, 1}, {&(*c)->type, 1});
      set_alias(*in.op->result(), static_cast<u32>(index));
    }
    graph_.set_name(in.op->result(), in.name);
  }
  return in.op->result();
}

bool Importer::finish_inputs() {
  ir::Op *first = graph_.body().front();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Input &in = inputs_[i];
    if (in.written && !in.op && !materialize(static_cast<i32>(i)))
      return false; // a buffer that is only written is state all the same
    if (!in.op)
      continue;
    if (in.written && is_state(in.spec.kind)) {
      const Attr attrs[2] = {ctx_.string_attr(in.spec.target), in.op->attr(0)};
      const ir::Type type = in.op->result()->type();
      ir::Op *state = graph_.create(ir::core_op::state, {}, attrs, {&type, 1}, in.op->loc());
      graph_.set_name(state->result(), in.name);
      graph_.replace_all_uses(in.op->result(), state->result());
      graph_.erase(in.op);
      in.op = state;
    }
    graph_.insert_before(graph_.body(), first, in.op);
  }
  return true;
}

bool Importer::outputs(const std::vector<Spec> &specs) {
  Values results;
  for (const Spec &spec : specs) {
    if (spec.kind == Kind::Token)
      continue; // orders effects, which keep their order anyway
    ir::OutputInfo info;
    switch (spec.kind) {
    case Kind::BufferMutation:
    case Kind::ParameterMutation: info.kind = ir::OutputKind::BufferMutation; break;
    case Kind::InputMutation: info.kind = ir::OutputKind::InputMutation; break;
    default: break;
    }
    info.target = std::string(spec.target);
    ir::Value *v = nullptr;
    const Item &arg = spec.arg;
    switch (arg.tag) {
    case ArgTag::Tensor:
    case ArgTag::CustomObj:
      info.name = std::string(arg.string());
      if (!(v = value(arg.string())))
        return false;
      break;
    case ArgTag::SymInt:
    case ArgTag::SymBool:
    case ArgTag::SymFloat: {
      info.name = std::string(arg.string());
      Attr a;
      if (!sym_attr(arg, a))
        return false;
      const bool is_symbolic = a.kind() == AttrKind::Int && a.as_int().is_symbolic();
      if (a.is_none()) {
        v = value(arg.string());
        if (!v)
          return false;
      } else if (is_symbolic) {
        v = size_value(a, ctx_.intern(arg.string()));
      } else {
        info.kind = ir::OutputKind::Literal;
        info.literal = a;
      }
      break;
    }
    case ArgTag::None: info.kind = ir::OutputKind::Literal; break;
    case ArgTag::Int:
    case ArgTag::Float:
    case ArgTag::Bool:
      info.kind = ir::OutputKind::Literal;
      if (!sym_attr(arg, info.literal))
        return false;
      break;
    case ArgTag::String:
      info.kind = ir::OutputKind::Literal;
      info.literal = ctx_.string_attr(arg.string());
      break;
    default:
      return fail(ErrorKind::Unsupported, "pt2.graph.signature", "an output has an unknown form");
    }
    if (v) {
      info.operand = static_cast<i32>(results.size());
      results.push_back(v);
    }
    graph_.outputs().push_back(std::move(info));
  }
  graph_.append(graph_.body(),
                graph_.create(ir::core_op::ret, {results.data(), results.size()}, {}, {}));
  return true;
}

} // namespace chute::pt2
