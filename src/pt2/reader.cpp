#include "pt2/reader.h"

#include "pt2/archive_c.h"
#include "pt2/import.h"

namespace chute::pt2 {

namespace {

tl::unexpected<Diagnostic>
bad_archive(const std::string& object, std::string message, std::string hint = {}) {
  return fail(ErrorKind::BadInput, "pt2.archive.kind", std::move(message), object, std::move(hint));
}

constexpr const char* kExportHint = "save the program with torch.export.save(exported, path)";

/// The small text member `name`, or nullopt.
Result<std::string> marker(const Zip& zip, const std::string& name, std::string otherwise) {
  const ZipEntry* e = zip.find(name);
  if (!e || e->size > 4096)
    return otherwise;
  const Result<ZipData> data = zip.read(*e, false);
  if (!data)
    return tl::unexpected(data.error());
  std::string text(data->text());
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return text;
}

bool has_suffix(const Zip& zip, std::string_view suffix) {
  for (const ZipEntry& e : zip.entries())
    if (e.name.ends_with(suffix))
      return true;
  return false;
}

/// Says what an archive without a program is instead.
tl::unexpected<Diagnostic> explain(const Zip& zip, const std::string& name, bool marked) {
  if (has_suffix(zip, ".so") || has_suffix(zip, ".cubin"))
    return bad_archive(
        name, "the archive is a compiled AOTInductor package: it has no program", kExportHint);
  if (marked)
    return bad_archive(name,
                       "the archive holds no program: torch.export.save failed half-way, or only "
                       "weights were packed",
                       "look for the exception that torch.export.save raised, and save again");
  if (has_suffix(zip, "constants.pkl"))
    return bad_archive(name, "the archive is a TorchScript program", kExportHint);
  if (has_suffix(zip, "data.pkl"))
    return bad_archive(
        name, "the archive holds tensors or objects of torch.save, not a program", kExportHint);
  return bad_archive(name, "the zip archive is not a torch.export program", kExportHint);
}

/// The name of the model to read, out of models/*.json below `root`.
Result<std::string> choose_model(const Zip& zip,
                                 const std::string& root,
                                 const std::string& name,
                                 const ReadOptions& options) {
  std::vector<std::string> models;
  const std::string prefix = root + "models/";
  for (const ZipEntry& e : zip.entries())
    if (e.name.starts_with(prefix) && e.name.ends_with(".json"))
      models.emplace_back(e.name.substr(prefix.size(), e.name.size() - prefix.size() - 5));
  if (models.empty())
    return explain(zip, name, true);
  const std::string wanted = options.model.empty() ? "model" : options.model;
  std::string all;
  for (const std::string& m : models) {
    if (m == wanted)
      return m;
    all += (all.empty() ? "" : ", ") + m.substr(0, 100);
  }
  if (options.model.empty() && models.size() == 1)
    return models[0];
  return fail(ErrorKind::BadInput,
              "pt2.archive.model",
              options.model.empty() ? "the archive holds several models"
                                    : "the archive has no model '" + options.model + "'",
              name,
              "choose one of: " + all);
}

} // namespace

Result<std::unique_ptr<ir::Graph>> read_bytes(ir::Context& ctx,
                                              std::span<const std::byte> archive,
                                              std::shared_ptr<const void> owner,
                                              const std::string& name,
                                              Diagnostics& diagnostics,
                                              const ReadOptions& options,
                                              Summary* summary) {
  Result<Zip> zip = Zip::open(archive, std::move(owner), options.max_inflated);
  if (!zip)
    return tl::unexpected(zip.error());
  if (zip->entries().empty())
    return bad_archive(name, "the zip archive is empty", kExportHint);
  const std::string_view first = zip->entries()[0].name;
  const size_t slash = first.find('/');
  const std::string root =
      slash == first.npos ? std::string() : std::string(first.substr(0, slash + 1));
  const Result<std::string> format = marker(*zip, root + "archive_format", {});
  if (!format)
    return tl::unexpected(format.error());
  if (*format != "pt2")
    return explain(*zip, name, false);
  const Result<std::string> version = marker(*zip, root + "archive_version", "0");
  const Result<std::string> order = marker(*zip, root + "byteorder", "little");
  for (const auto* r : {&version, &order})
    if (!*r)
      return tl::unexpected(r->error());
  if (*version != "0")
    return fail(ErrorKind::Unsupported,
                "pt2.archive.version",
                "archive version '" + version->substr(0, 20) + "' is not known",
                root + "archive_version");
  if (*order != "little")
    return fail(ErrorKind::Unsupported,
                "pt2.archive.byteorder",
                "the archive was written on a big-endian machine",
                root + "byteorder");
  const Result<std::string> model = choose_model(*zip, root, name, options);
  if (!model)
    return tl::unexpected(model.error());
  Result<Document> doc = read_document(*zip, *zip->find(root + "models/" + *model + ".json"));
  if (!doc)
    return tl::unexpected(doc.error());
  Result<std::unique_ptr<Payloads>> payloads = open_payloads(*zip, root, *model, options);
  if (!payloads)
    return tl::unexpected(payloads.error());

  Summary own;
  Summary& s = summary ? *summary : own;
  s = Summary();
  s.model = *model;
  auto graph = std::make_unique<ir::Graph>(ctx, "main");
  Importer importer(*graph, *doc, **payloads, options, diagnostics);
  if (Status status = importer.run(s); !status)
    return tl::unexpected(status.error());
  return graph;
}

Result<std::unique_ptr<ir::Graph>> read(ir::Context& ctx,
                                        const std::string& path,
                                        Diagnostics& diagnostics,
                                        const ReadOptions& options,
                                        Summary* summary) {
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return tl::unexpected(file.error());
  return read_bytes(ctx, (*file)->bytes(), *file, path, diagnostics, options, summary);
}

} // namespace chute::pt2
