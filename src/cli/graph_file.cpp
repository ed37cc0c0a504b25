#include "cli/graph_file.h"

#include "circle/writer.h"
#include "convert/pipelines.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "pass/pass.h"
#include "support/text_file.h"

#include <cstdio>

namespace chute::cli {

namespace {

bool ends_with(std::string_view s, std::string_view tail) {
  return s.size() >= tail.size() && s.substr(s.size() - tail.size()) == tail;
}

/// The first error of a pipeline as the one error of this call; the rest is the session's.
Diagnostic first_error(Diagnostics &from, Diagnostics &to) {
  Diagnostic first;
  bool found = false;
  for (const Diagnostic &d : from.all())
    if (d.severity == Severity::Error && !found) {
      first = d;
      found = true;
    } else
      to.add(d);
  return first;
}

Status lower_to_circle(ir::Graph &graph, Session &session) {
  std::vector<std::string> passes = convert::core_aten_pipeline();
  const std::vector<std::string> &circle = convert::circle_pipeline();
  passes.insert(passes.end(), circle.begin(), circle.end());
  Diagnostics findings;
  std::vector<pass::PassRecord> records;
  if (!pass::run_pipeline(graph, passes, findings, {}, records))
    return tl::unexpected(first_error(findings, session.diagnostics));
  for (const Diagnostic &d : findings.all())
    session.diagnostics.add(d);
  return {};
}

Status read_circle(ir::Context &ctx, std::span<const std::byte> bytes,
                   std::shared_ptr<const void> owner, std::optional<u32> subgraph, GraphFile &out) {
  auto model = subgraph ? circle::read_subgraph_model(ctx, bytes, std::move(owner), *subgraph)
                        : circle::read_model(ctx, bytes, std::move(owner));
  if (!model)
    return tl::unexpected(std::move(model.error()));
  out.model = std::move(*model);
  return {};
}

Status read_ir(ir::Context &ctx, const std::string &path, std::string_view text, GraphFile &out) {
  ir::ParseOptions options;
  options.file = path;
  auto graph = ir::parse(ctx, text, options);
  if (!graph)
    return tl::unexpected(std::move(graph.error()));
  Diagnostics findings;
  ir::verify(**graph, findings);
  if (findings.has_errors()) {
    Diagnostics rest;
    return tl::unexpected(first_error(findings, rest));
  }
  out.model.graph = std::move(*graph);
  out.model.description = "chute";
  out.model.signature_key = "serving_default";
  return {};
}

Status to_stdout(const Result<std::vector<std::byte>> &bytes) {
  if (!bytes)
    return tl::unexpected(bytes.error());
  return write_text("-", {reinterpret_cast<const char *>(bytes->data()), bytes->size()});
}

} // namespace

Result<GraphFile> open_graph(ir::Context &ctx, const std::string &path, bool lower,
                             Session &session, std::optional<u32> subgraph) {
  GraphFile out;
  Status status;
  if (path == "-") {
    auto text = read_text(path);
    if (!text)
      return tl::unexpected(std::move(text.error()));
    const auto owner = std::make_shared<const std::string>(std::move(*text));
    out.file_bytes = owner->size();
    out.format = tell_format(*owner);
    if (out.format == FileFormat::Pt2)
      return fail(
          ErrorKind::Usage, "cli.stdin",
          "a .pt2 can not be read from standard input: its weights are mapped from the file", {},
          "give the path of the archive");
    status = out.format == FileFormat::Circle
                 ? read_circle(ctx, std::as_bytes(std::span(*owner)), owner, subgraph, out)
                 : read_ir(ctx, path, *owner, out);
  } else {
    auto file = MappedFile::open(path);
    if (!file)
      return tl::unexpected(std::move(file.error()));
    out.file_bytes = (*file)->bytes().size();
    out.format = tell_format((*file)->text());
    if (out.format == FileFormat::Circle) {
      status = read_circle(ctx, (*file)->bytes(), *file, subgraph, out);
    } else if (out.format == FileFormat::Text) {
      status = read_ir(ctx, path, (*file)->text(), out);
    } else {
      auto model = load_model(ctx, path, session.threads, session.diagnostics);
      if (!model)
        return tl::unexpected(std::move(model.error()));
      out.model.graph = std::move(model->graph);
      out.model.description = "chute";
      out.model.signature_key = "serving_default";
      if (lower)
        status = lower_to_circle(*out.model.graph, session);
    }
  }
  if (!status) {
    if (status.error().file.empty())
      status.error().file = path;
    return tl::unexpected(std::move(status.error()));
  }
  return out;
}

Status save_graph(const GraphFile &file, const std::string &path) {
  const ir::Graph &graph = *file.model.graph;
  if (ends_with(path, ".ir") || (path == "-" && file.format == FileFormat::Text))
    return write_text(path, ir::print(graph));
  // What the format says beyond the graph lies in the file that was read.
  if (file.model.origin || !file.model.signatures.empty()) {
    circle::ModelWriteOptions options;
    options.compact = true;
    if (path != "-")
      return circle::write_model(file.model, path, options);
    return to_stdout(circle::write_model_bytes(file.model, options));
  }
  circle::WriteOptions options;
  options.description = file.model.description;
  options.signature_key = file.model.signature_key;
  options.subgraph_name = file.model.subgraph_name;
  options.metadata = file.model.metadata;
  if (path != "-")
    return circle::write(graph, path, options);
  return to_stdout(circle::write_bytes(graph, options));
}

void say(const Session &session, const std::string &output, const std::string &text,
         const std::string &json) {
  std::FILE *to = output == "-" ? stderr : stdout;
  if (session.json)
    std::fprintf(to, "%s\n", json.c_str());
  else if (!session.quiet)
    std::fprintf(to, "%s", text.c_str());
}

} // namespace chute::cli
