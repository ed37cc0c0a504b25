#include "cli/model_file.h"

#include "circle/reader.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "pt2/reader.h"
#include "tosa/reader.h"

namespace chute::cli {

FileFormat tell_format(std::string_view head) {
  if (head.substr(0, 2) == "PK")
    return FileFormat::Pt2;
  const std::string_view identifier = head.size() >= 8 ? head.substr(4, 4) : std::string_view();
  if (identifier == "CIR0" || identifier == "TFL3")
    return FileFormat::Circle;
  if (identifier == "TOSA")
    return FileFormat::Tosa;
  return FileFormat::Text;
}

namespace {

Status load_text(ir::Context &context, const std::string &path, std::string_view text, Model &model,
                 Diagnostics &diagnostics) {
  ir::ParseOptions options;
  options.file = path;
  auto graph = ir::parse(context, text, options);
  if (!graph)
    return tl::unexpected(std::move(graph.error()));
  Diagnostics findings;
  ir::verify(**graph, findings);
  for (const Diagnostic &d : findings.all())
    if (d.severity == Severity::Error)
      return tl::unexpected(d);
    else
      diagnostics.add(d);
  model.graph = std::move(*graph);
  return {};
}

Status load_pt2(ir::Context &context, const std::shared_ptr<const MappedFile> &file,
                const std::string &path, u64 threads, Model &model, Diagnostics &diagnostics) {
  pt2::ReadOptions options;
  options.threads = static_cast<unsigned>(threads);
  pt2::Summary summary;
  auto graph = pt2::read_bytes(context, file->bytes(), file, path, diagnostics, options, &summary);
  if (!graph)
    return tl::unexpected(std::move(graph.error()));
  model.graph = std::move(*graph);
  model.producer = "torch " + summary.torch_version + ", schema " +
                   std::to_string(summary.schema_major) + "." +
                   std::to_string(summary.schema_minor);
  return {};
}

Status load_circle(ir::Context &context, const std::shared_ptr<const MappedFile> &file,
                   Model &model) {
  auto read = circle::read_model(context, file->bytes(), file);
  if (!read)
    return tl::unexpected(std::move(read.error()));
  model.producer = read->description;
  model.graph = std::move(read->graph);
  return {};
}

Status load_tosa(ir::Context &context, const std::shared_ptr<const MappedFile> &file,
                 Model &model) {
  auto read = tosa::read_model(context, file->bytes(), file);
  if (!read)
    return tl::unexpected(std::move(read.error()));
  model.producer = "TOSA " + std::to_string(read->major) + "." + std::to_string(read->minor) +
                   (read->draft ? " draft" : "");
  model.graph = std::move(read->graph);
  return {};
}

} // namespace

Result<Model> load_model(ir::Context &context, const std::string &path, u64 threads,
                         Diagnostics &diagnostics) {
  auto file = MappedFile::open(path);
  if (!file)
    return tl::unexpected(std::move(file.error()));
  const std::string_view text = (*file)->text();
  Model model;
  model.format = tell_format(text);
  model.file_bytes = text.size();
  Status status;
  switch (model.format) {
  case FileFormat::Pt2: status = load_pt2(context, *file, path, threads, model, diagnostics); break;
  case FileFormat::Text: status = load_text(context, path, text, model, diagnostics); break;
  case FileFormat::Circle: status = load_circle(context, *file, model); break;
  case FileFormat::Tosa: status = load_tosa(context, *file, model); break;
  }
  if (!status)
    return tl::unexpected(std::move(status.error()));
  return model;
}

} // namespace chute::cli
