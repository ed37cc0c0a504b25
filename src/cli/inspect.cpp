#include "circle/listing.h"
#include "cli/command.h"
#include "cli/graph_page.h"
#include "cli/model_file.h"
#include "ir/sym_table.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "support/text_file.h"
#include "toolkit/pattern.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>

namespace chute::cli {

namespace {

std::string type_text(const ir::Graph &graph, ir::Type type) {
  switch (type.kind()) {
  case ir::TypeKind::None: return "none";
  case ir::TypeKind::Int: return "int";
  case ir::TypeKind::Float: return "float";
  case ir::TypeKind::Bool: return "bool";
  case ir::TypeKind::Opaque: return "opaque";
  case ir::TypeKind::Tensor: break;
  }
  std::string out(ir::element_type_name(type.element()));
  out += "[";
  for (int i = 0; i < type.rank(); ++i)
    out += (i ? "," : "") + graph.context().sym().print(type.dim(i));
  return out + "]";
}

std::string_view format_name(FileFormat f) {
  switch (f) {
  case FileFormat::Pt2: return "pt2";
  case FileFormat::Circle: return "circle";
  case FileFormat::Tosa: return "tosa";
  case FileFormat::Text: return "text";
  }
  return "";
}

struct Port {
  std::string name;
  std::string type;
  std::string_view kind;
  std::string target;
};

struct Summary {
  u64 ops = 0;
  u64 values = 0;
  u64 constants = 0;
  u64 constant_bytes = 0;
  u64 regions = 0;
  std::map<std::string_view, u64> histogram;
  std::map<std::string_view, u64> element_types;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<std::pair<std::string, ir::SymRange>> symbols;
  std::vector<std::pair<u64, std::string>> largest; // bytes, name and type
};

Summary summarize(const ir::Graph &graph, size_t keep) {
  Summary s;
  std::map<ir::OpCode, u64> by_opcode;
  std::map<ir::ElementType, u64> by_element;
  ir::walk(graph, [&](const ir::Op &op) {
    s.regions += op.num_regions();
    for (const ir::Value &v : op.results()) {
      ++s.values;
      if (v.type() && v.type().is_tensor())
        ++by_element[v.type().element()];
    }
    if (op.has(ir::trait::kConstant)) {
      const ir::Constant &c = *op.attr(0).as_constant();
      ++s.constants;
      s.constant_bytes += c.dense_bytes();
      if (keep) {
        const ir::Value *v = op.result();
        const auto bytes = static_cast<u64>(c.dense_bytes());
        if (s.largest.size() < keep || bytes > s.largest.back().first) {
          const std::string name(graph.context().string(v->name()));
          s.largest.emplace_back(bytes, name + " " + type_text(graph, v->type()));
          std::stable_sort(s.largest.begin(), s.largest.end(),
                           [](const auto &a, const auto &b) { return a.first > b.first; });
          if (s.largest.size() > keep)
            s.largest.pop_back();
        }
      }
      return;
    }
    if (op.has(ir::trait::kTerminator))
      return;
    ++s.ops;
    if (op.opcode() == ir::core_op::unregistered)
      ++s.histogram[op.attr(0).as_string()];
    else
      ++by_opcode[op.opcode()];
  });
  for (const auto &[code, n] : by_opcode)
    s.histogram[ir::Registry::global().def(code).name] += n;
  for (const auto &[element, n] : by_element)
    s.element_types[ir::element_type_name(element)] = n;
  for (const ir::InputInfo &i : graph.inputs()) {
    static constexpr std::string_view kKinds[] = {"user", "literal", "state"};
    s.inputs.push_back({i.name, i.value ? type_text(graph, i.value->type()) : "literal",
                        kKinds[static_cast<size_t>(i.kind)], ""});
  }
  const ir::Op *ret = graph.return_op();
  for (const ir::OutputInfo &o : graph.outputs()) {
    static constexpr std::string_view kKinds[] = {"user", "buffer_mutation", "input_mutation",
                                                  "literal"};
    const bool has_value = ret && o.operand >= 0 && ret->operand(static_cast<u32>(o.operand));
    s.outputs.push_back({o.name,
                         has_value
                             ? type_text(graph, ret->operand(static_cast<u32>(o.operand))->type())
                             : "literal",
                         kKinds[static_cast<size_t>(o.kind)], o.target});
  }
  for (ir::SymInt symbol : graph.context().sym().symbols())
    s.symbols.emplace_back(graph.context().sym().symbol_name(symbol),
                           graph.context().sym().range(symbol));
  return s;
}

std::string megabytes(u64 bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f MB", static_cast<double>(bytes) * 1e-6);
  return text;
}

/// Names by falling count, then by name.
std::vector<std::pair<std::string_view, u64>>
ranked(const std::map<std::string_view, u64> &counts) {
  std::vector<std::pair<std::string_view, u64>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto &a, const auto &b) { return a.second > b.second; });
  return out;
}

void print_text(const Model &model, const Summary &s) {
  std::printf("%s, %s%s%s\n", std::string(format_name(model.format)).c_str(),
              megabytes(model.file_bytes).c_str(), model.producer.empty() ? "" : ", ",
              model.producer.c_str());
  std::printf("%llu operators, %llu values, %llu constants (%s)",
              static_cast<unsigned long long>(s.ops), static_cast<unsigned long long>(s.values),
              static_cast<unsigned long long>(s.constants), megabytes(s.constant_bytes).c_str());
  if (s.regions)
    std::printf(", %llu nested regions", static_cast<unsigned long long>(s.regions));
  std::printf("\n");
  const auto ports = [](const char *title, const std::vector<Port> &list) {
    std::printf("%s:\n", title);
    for (const Port &p : list)
      std::printf("  %s: %s%s%s%s%s\n", p.name.c_str(), p.type.c_str(),
                  p.kind == "user" ? "" : "  ", p.kind == "user" ? "" : std::string(p.kind).c_str(),
                  p.target.empty() ? "" : " of ", p.target.c_str());
  };
  ports("inputs", s.inputs);
  ports("outputs", s.outputs);
  if (!s.symbols.empty()) {
    std::printf("dynamic sizes:\n");
    for (const auto &[name, range] : s.symbols) {
      const bool open = range.max == std::numeric_limits<i64>::max();
      std::printf("  %s in [%lld, %s]\n", name.c_str(), static_cast<long long>(range.min),
                  open ? "inf" : std::to_string(range.max).c_str());
    }
  }
  std::printf("operators:\n");
  for (const auto &[name, n] : ranked(s.histogram))
    std::printf("  %8llu  %.*s\n", static_cast<unsigned long long>(n),
                static_cast<int>(name.size()), name.data());
  std::printf("element types of values:\n");
  for (const auto &[name, n] : ranked(s.element_types))
    std::printf("  %8llu  %.*s\n", static_cast<unsigned long long>(n),
                static_cast<int>(name.size()), name.data());
  if (!s.largest.empty()) {
    std::printf("largest constants:\n");
    for (const auto &[bytes, text] : s.largest)
      std::printf("  %12s  %s\n", megabytes(bytes).c_str(), text.c_str());
  }
}

void print_json(const Model &model, const Summary &s) {
  std::string out =
      "{\"format\":\"" + std::string(format_name(model.format)) +
      "\",\"file_bytes\":" + std::to_string(model.file_bytes) +
      ",\"producer\":" + json_quote(model.producer) + ",\"operators\":" + std::to_string(s.ops) +
      ",\"values\":" + std::to_string(s.values) + ",\"constants\":" + std::to_string(s.constants) +
      ",\"constant_bytes\":" + std::to_string(s.constant_bytes) +
      ",\"regions\":" + std::to_string(s.regions);
  const auto ports = [&](const char *title, const std::vector<Port> &list) {
    out += ",\n\"" + std::string(title) + "\":[";
    for (size_t i = 0; i < list.size(); ++i)
      out += (i ? ",\n " : "\n ") + ("{\"name\":" + json_quote(list[i].name)) +
             ",\"type\":" + json_quote(list[i].type) + ",\"kind\":" + json_quote(list[i].kind) +
             ",\"target\":" + json_quote(list[i].target) + "}";
    out += "]";
  };
  ports("inputs", s.inputs);
  ports("outputs", s.outputs);
  out += ",\n\"symbols\":[";
  for (size_t i = 0; i < s.symbols.size(); ++i) {
    const ir::SymRange &range = s.symbols[i].second;
    const bool open = range.max == std::numeric_limits<i64>::max();
    out += (i ? "," : "") + ("{\"name\":" + json_quote(s.symbols[i].first)) +
           ",\"min\":" + std::to_string(range.min) +
           ",\"max\":" + (open ? std::string("null") : std::to_string(range.max)) + "}";
  }
  const auto counts = [&](const char *title, const std::map<std::string_view, u64> &map) {
    out += ",\n\"" + std::string(title) + "\":{";
    bool first = true;
    for (const auto &[name, n] : ranked(map)) {
      out += (first ? "" : ",") + json_quote(name) + ":" + std::to_string(n);
      first = false;
    }
    out += "}";
  };
  out += "]";
  counts("histogram", s.histogram);
  counts("element_types", s.element_types);
  std::printf("%s}\n", out.c_str());
}

class Inspect final : public Command {
public:
  std::string_view summary() const override {
    return "Show what a model holds: operators, interface, sizes; as text, JSON or a page";
  }
  std::string_view examples() const override {
    return "  chute inspect model.pt2\n"
           "  chute inspect model.circle --operators --range 100-120\n"
           "  chute inspect model.circle --tensors --name 'layers.3'\n"
           "  chute inspect model.circle --weights --largest 50 --json\n"
           "  chute inspect model.pt2 --html model.html\n"
           "  chute inspect model.pt2 --ir > model.ir\n"
           "The sections --tensors to --metadata are of files (.circle, .tflite); every kind of "
           "model\n"
           "has the summary, --ir and --html.";
  }
  void declare(Args &args) override {
    args.positional(
        "model", model_,
        "A .pt2, .circle, .tflite or text IR file; - for a Circle file on standard input");
    args.flag("--tensors", listing_.tensors, "List tensors: type, quantization, buffer");
    args.flag("--operators", listing_.operators, "List operators: operands, results, options");
    args.flag("--signatures", listing_.signatures, "List signatures and their ports");
    args.flag("--quantization", listing_.quantization,
              "Count tensors by element type and kind of quantization, with ranges");
    args.flag("--metadata", listing_.metadata, "List metadata");
    args.flag("--histogram", histogram_, "Count operators by name and tensors by element type");
    args.flag("--weights", weights_, "List constants by size");
    args.flag("--all", all_, "Every section");
    args.option("--subgraph", subgraph_, "Only this subgraph's tensors and operators");
    args.option("--range", range_, "Only these indices: N or A-B");
    args.option(
        "--name", name_,
        "Only tensors whose name matches this regular expression, and operators where their "
        "own or a result's does");
    args.flag("--ir", ir_, "Print the text form instead (large constants by hash)");
    args.option("--largest", largest_, "List this many of the largest constants (default 5)");
    args.option("--html", html_, "Write a page that shows the graph: no network, any browser");
  }

  int run(Session &session) override {
    session.diagnostics.set_file(model_);
    if (Status s = fill_listing(); !s)
      return session.fail(std::move(s.error()));
    json_ = session.json;
    if (!ir_ && html_.empty()) {
      bool listed = false;
      if (Status s = list(listed); !s)
        return session.fail(std::move(s.error()));
      if (listed)
        return session.finish();
    }
    ir::Context ctx;
    auto model = load_model(ctx, model_, session.threads, session.diagnostics);
    if (!model)
      return session.fail(std::move(model.error()));
    if (ir_) {
      ir::PrintOptions options;
      options.elide_bytes = 64;
      std::fputs(ir::print(*model->graph, options).c_str(), stdout);
      return session.finish();
    }
    const Summary s = summarize(*model->graph, largest_);
    if (!html_.empty()) {
      GraphPageFacts facts;
      const size_t slash = model_.find_last_of('/');
      facts.title = slash == std::string::npos ? model_ : model_.substr(slash + 1);
      facts.facts = std::string(format_name(model->format)) + ", " + megabytes(model->file_bytes) +
                    ", " + std::to_string(s.ops) + " operators, " + std::to_string(s.constants) +
                    " constants (" + megabytes(s.constant_bytes) + ")" +
                    (model->producer.empty() ? "" : ", " + model->producer);
      if (Status ok = write_graph_page(*model->graph, facts, html_); !ok)
        return session.fail(std::move(ok.error()));
      return session.finish();
    }
    if (session.json)
      print_json(*model, s);
    else
      print_text(*model, s);
    return session.finish();
  }

private:
  static tl::unexpected<Diagnostic> usage(std::string message, std::string hint) {
    return fail(ErrorKind::Usage, "cli.inspect", std::move(message), {}, std::move(hint));
  }

  Status fill_listing() {
    listing_.most_weights = largest_;
    if (histogram_ || weights_ || listing_.tensors || listing_.operators || listing_.signatures ||
        listing_.quantization || listing_.metadata) {
      listing_.histogram = histogram_;
      listing_.weights = weights_;
    }
    if (all_)
      listing_.tensors = listing_.operators = listing_.signatures = listing_.quantization =
          listing_.metadata = listing_.histogram = listing_.weights = true;
    const auto number = [](std::string_view text, u64 &out) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
      return error == std::errc() && end == text.data() + text.size() && !text.empty();
    };
    if (!subgraph_.empty()) {
      u64 index = 0;
      if (!number(subgraph_, index) || index > 0xFFFFFFFFu)
        return usage("--subgraph takes an index, not '" + subgraph_ + "'", "count from 0");
      listing_.subgraph = static_cast<u32>(index);
    }
    if (!range_.empty()) {
      const size_t dash = range_.find('-');
      const std::string_view text = range_;
      const bool ok =
          number(text.substr(0, dash), listing_.first) &&
          number(dash == std::string::npos ? text : text.substr(dash + 1), listing_.last);
      if (!ok || listing_.first > listing_.last)
        return usage("--range takes N or A-B, not '" + range_ + "'", "--range 100-120");
    }
    if (!name_.empty()) {
      auto pattern = toolkit::Pattern::regex(name_);
      if (!pattern)
        return tl::unexpected(std::move(pattern.error()));
      listing_.name = [p = std::make_shared<toolkit::Pattern>(std::move(*pattern))](
                          std::string_view name) { return p->search(name); };
    }
    return {};
  }

  /// Circle files are described as they lie there.
  Status list(bool &listed) {
    std::string text;
    std::shared_ptr<const MappedFile> file;
    std::string_view bytes;
    if (model_ == "-") {
      auto read = read_text(model_);
      if (!read)
        return tl::unexpected(std::move(read.error()));
      text = std::move(*read);
      bytes = text;
    } else {
      auto opened = MappedFile::open(model_);
      if (!opened)
        return tl::unexpected(std::move(opened.error()));
      file = *opened;
      bytes = file->text();
    }
    if (tell_format(bytes) != FileFormat::Circle) {
      if (model_ == "-")
        return fail(ErrorKind::Usage, "cli.stdin", "only Circle files are read from standard input",
                    {}, "give the path of the file");
      return {};
    }
    listed = true;
    listing_.json = json_;
    return circle::list_file(std::as_bytes(std::span(bytes)), listing_, [](std::string_view part) {
      std::fwrite(part.data(), 1, part.size(), stdout);
    });
  }

  std::string model_;
  bool ir_ = false;
  bool json_ = false;
  bool histogram_ = false;
  bool weights_ = false;
  bool all_ = false;
  u64 largest_ = 5;
  std::string subgraph_;
  std::string range_;
  std::string name_;
  std::string html_;
  circle::ListingOptions listing_;
};

} // namespace

std::unique_ptr<Command> make_inspect() { return std::make_unique<Inspect>(); }

} // namespace chute::cli
