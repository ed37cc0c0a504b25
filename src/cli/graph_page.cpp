#include "cli/graph_page.h"

#include "ir/text.h"
#include "ir/walk.h"
#include "support/diag.h"
#include "support/output_file.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <map>
#include <vector>

namespace chute::cli {

namespace {

constexpr size_t kMostParts = 32; ///< of a module path; names come from outside

/// A JSON string that may stand inside of <script>.
std::string quote(std::string_view text) {
  std::string out;
  for (char c : json_quote(text))
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

/// "layers.3.mlp" or "block/conv::kernel" as parts.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  size_t start = 0;
  for (size_t i = 0; i < text.size() && out.size() + 1 < kMostParts; ++i) {
    const bool colons = text[i] == ':' && i + 1 < text.size() && text[i + 1] == ':';
    if (text[i] != '.' && text[i] != '/' && !colons)
      continue;
    if (i > start)
      out.push_back(text.substr(start, i - start));
    i += colons;
    start = i + 1;
  }
  if (start < text.size())
    out.push_back(text.substr(start));
  return out;
}

/// The columns that the page's script reads.
class PageData {
public:
  PageData(const ir::Graph &graph, OutputFile &file) : graph_(graph), file_(file) {
    paths_ = "[-1,0]"; // the root
    string_id("");
    value_names_.resize(graph.num_value_ids());
    value_types_.assign(graph.num_value_ids(), 0);
  }

  Status write(const GraphPageFacts &facts) {
    note_arguments(graph_.body());
    put("{\"title\":" + quote(facts.title) + ",\"facts\":" + quote(facts.facts) + ",\"ops\":[");
    ir::walk(graph_, [&](const ir::Op &op) { add(op); });
    put("],\"paths\":[" + paths_ + "],\"strings\":[" + strings_ + "],\"constants\":{" + constants_ +
        "}");
    put(",\"inputs\":[");
    for (size_t i = 0; i < graph_.body().num_args(); ++i)
      put((i ? "," : "") + std::to_string(graph_.body().arg(static_cast<u32>(i))->id()));
    put("],\"outputs\":[");
    if (const ir::Op *ret = graph_.return_op())
      for (u32 i = 0; i < ret->num_operands(); ++i)
        put((i ? "," : "") +
            std::to_string(ret->operand(i) ? static_cast<i64>(ret->operand(i)->id()) : -1));
    put("],\"types\":[");
    for (size_t i = 0; i < value_types_.size(); ++i)
      put((i ? "," : "") + std::to_string(value_types_[i]));
    put("],\"names\":[");
    for (size_t i = 0; i < value_names_.size(); ++i)
      put((i ? "," : "") + quote(value_names_[i]));
    put("]}");
    flush(true);
    return status_;
  }

private:
  void put(std::string_view text) {
    out_ += text;
    flush(false);
  }
  void flush(bool all) {
    if (!status_ || (!all && out_.size() < (1 << 16)))
      return;
    status_ = file_.write(std::as_bytes(std::span(out_.data(), out_.size())));
    out_.clear();
  }
  void integer(i64 v) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), v).ptr;
    out_.append(digits, static_cast<size_t>(end - digits));
  }

  u32 string_id(std::string_view text) {
    const auto [it, fresh] =
        string_ids_.try_emplace(std::string(text), static_cast<u32>(string_ids_.size()));
    if (fresh)
      strings_ += (it->second ? "," : "") + quote(text);
    return it->second;
  }
  u32 type_id(ir::Type type) {
    if (!type)
      return 0;
    if (type.id() >= type_ids_.size())
      type_ids_.resize(type.id() + 1, 0);
    u32 &known = type_ids_[type.id()];
    if (!known)
      known = string_id(ir::print(graph_.context(), type));
    return known;
  }
  u32 path_id(u32 parent, std::string_view part) {
    std::string key = std::to_string(parent) + "/" + std::string(part);
    const auto [it, fresh] = path_ids_.try_emplace(std::move(key), num_paths_);
    if (fresh) {
      paths_ += ",[" + std::to_string(parent) + "," + std::to_string(string_id(part)) + "]";
      ++num_paths_;
    }
    return it->second;
  }

  void note_value(const ir::Value &v) {
    value_names_[v.id()] = graph_.context().string(v.name());
    value_types_[v.id()] = type_id(v.type());
  }
  void note_arguments(const ir::Region &region) {
    for (const ir::Value *v : region.args())
      note_value(*v);
  }

  u32 path_of(const ir::Op &op, const ir::Provenance &from) {
    u32 path = 0;
    if (const auto it = region_paths_.find(op.parent()); it != region_paths_.end())
      path = it->second;
    auto parts = split(from.module_path);
    if (parts.empty() && op.num_results()) {
      parts = split(graph_.context().string(op.result(0)->name()));
      if (!parts.empty())
        parts.pop_back();
    }
    for (std::string_view part : parts)
      path = path_id(path, part);
    return path;
  }

  std::string attributes(const ir::Op &op) const {
    std::string out;
    const auto specs = op.def().attrs;
    for (u32 i = 0; i < op.num_attrs(); ++i) {
      const ir::Attr a = op.attr(i);
      if (a.is_none() || a.kind() == ir::AttrKind::Constant ||
          (i < specs.size() && specs[i].has_default && specs[i].default_value == a))
        continue;
      std::string text = ir::print(graph_.context(), a);
      if (text.size() > 400)
        text = text.substr(0, 400) + "…";
      out += (out.empty() ? "" : "\n") +
             (i < specs.size() ? std::string(specs[i].name) : std::to_string(i)) + " = " + text;
    }
    return out;
  }

  /// type, path, attributes, source line, operands with their number before, results likewise.
  void add(const ir::Op &op) {
    for (const ir::Value &v : op.results())
      note_value(v);
    if (op.has(ir::trait::kConstant)) {
      const ir::Constant &c = *op.attr(0).as_constant();
      constants_ += (constants_.empty() ? "\"" : ",\"") + std::to_string(op.result()->id()) +
                    "\":" + std::to_string(c.has_data ? c.dense_bytes() : 0);
      return;
    }
    if (op.has(ir::trait::kTerminator))
      return;
    const ir::Provenance from = graph_.locations().resolve(op.loc());
    const u32 path = path_of(op, from);
    for (u32 i = 0; i < op.num_regions(); ++i) {
      const std::string label =
          std::string(op.name()) + " " + std::to_string(op.id()) + ", region " + std::to_string(i);
      region_paths_[op.region(i)] = path_id(path, label);
      note_arguments(*op.region(i));
    }
    if (!first_)
      out_ += ',';
    first_ = false;
    const auto value = [&](i64 v) {
      out_ += ',';
      integer(v);
    };
    integer(
        string_id(op.opcode() == ir::core_op::unregistered ? op.attr(0u).as_string() : op.name()));
    value(path);
    value(string_id(attributes(op)));
    value(string_id(from.source_line));
    value(op.num_operands());
    for (u32 i = 0; i < op.num_operands(); ++i)
      value(op.operand(i) ? static_cast<i64>(op.operand(i)->id()) : -1);
    value(op.num_results());
    for (const ir::Value &v : op.results())
      value(v.id());
    flush(false);
  }

  const ir::Graph &graph_;
  OutputFile &file_;
  Status status_;
  std::string out_;
  bool first_ = true;
  std::string strings_, paths_, constants_;
  boost::unordered_flat_map<std::string, u32> string_ids_;
  boost::unordered_flat_map<std::string, u32> path_ids_;
  u32 num_paths_ = 1;
  std::vector<u32> type_ids_; // by Type::id
  std::vector<std::string_view> value_names_;
  std::vector<u32> value_types_;
  std::map<const ir::Region *, u32> region_paths_;
};

} // namespace

Status write_graph_page(const ir::Graph &graph, const GraphPageFacts &facts,
                        const std::string &path) {
  auto file = OutputFile::create(path);
  if (!file)
    return tl::unexpected(file.error());
  const auto text = [&](std::string_view part) {
    return file->write(std::as_bytes(std::span(part.data(), part.size())));
  };
  if (Status s = text(kGraphPageHead); !s)
    return s;
  if (Status s = PageData(graph, *file).write(facts); !s)
    return s;
  if (Status s = text(kGraphPageTail); !s)
    return s;
  return file->commit(false);
}

} // namespace chute::cli
