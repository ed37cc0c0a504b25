#include "pt2/reader.h"

#include "ir/context.h"
#include "ir/sym_table.h"
#include "pt2/archive_c.h"
#include "pt2/import.h"
#include "pt2/size_hints.h"
#include "pt2/unpickle.h"

namespace chute::pt2 {

namespace {

tl::unexpected<Diagnostic> bad_archive(const std::string &object, std::string message,
                                       std::string hint = {}) {
  return fail(ErrorKind::BadInput, "pt2.archive.kind", std::move(message), object, std::move(hint));
}

constexpr const char *kExportHint = "save the program with torch.export.save(exported, path)";

/// The small text member `name`, or nullopt.
Result<std::string> marker(const Zip &zip, const std::string &name, std::string otherwise) {
  const ZipEntry *e = zip.find(name);
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

bool has_suffix(const Zip &zip, std::string_view suffix) {
  for (const ZipEntry &e : zip.entries())
    if (e.name.ends_with(suffix))
      return true;
  return false;
}

/// Says what an archive without a program is instead.
tl::unexpected<Diagnostic> explain(const Zip &zip, const std::string &name, bool marked) {
  if (has_suffix(zip, ".so") || has_suffix(zip, ".cubin"))
    return bad_archive(name, "the archive is a compiled AOTInductor package: it has no program",
                       kExportHint);
  if (marked)
    return bad_archive(name,
                       "the archive holds no program: torch.export.save failed half-way, or only "
                       "weights were packed",
                       "look for the exception that torch.export.save raised, and save again");
  if (has_suffix(zip, "constants.pkl"))
    return bad_archive(name, "the archive is a TorchScript program", kExportHint);
  if (has_suffix(zip, "data.pkl"))
    return bad_archive(name, "the archive holds tensors or objects of torch.save, not a program",
                       kExportHint);
  return bad_archive(name, "the zip archive is not a torch.export program", kExportHint);
}

/// The name of the model to read, out of models/*.json below `root`.
Result<std::string> choose_model(const Zip &zip, const std::string &root, const std::string &name,
                                 const ReadOptions &options) {
  std::vector<std::string> models;
  const std::string prefix = root + "models/";
  for (const ZipEntry &e : zip.entries())
    if (e.name.starts_with(prefix) && e.name.ends_with(".json"))
      models.emplace_back(e.name.substr(prefix.size(), e.name.size() - prefix.size() - 5));
  if (models.empty())
    return explain(zip, name, true);
  const std::string wanted = options.model.empty() ? "model" : options.model;
  std::string all;
  for (const std::string &m : models) {
    if (m == wanted)
      return m;
    all += (all.empty() ? "" : ", ") + m.substr(0, 100);
  }
  if (options.model.empty() && models.size() == 1)
    return models[0];
  return fail(ErrorKind::BadInput, "pt2.archive.model",
              options.model.empty() ? "the archive holds several models"
                                    : "the archive has no model '" + options.model + "'",
              name, "choose one of: " + all);
}

/// The parts of an archive, whatever its generation.
struct Parts {
  const ZipEntry *program = nullptr;
  std::string model = "model";
  char generation = 'C';
  std::string root; // "simple/", or empty
};

/// Finds the generation by its marks and the program's member.
Result<Parts> find_parts(const Zip &zip, const std::string &name, const ReadOptions &options) {
  Parts parts;
  if (zip.entries().empty())
    return bad_archive(name, "the zip archive is empty", kExportHint);
  // Up to torch 2.7: flat names.
  if (const ZipEntry *program = zip.find("serialized_exported_program.json")) {
    parts.program = program;
    parts.generation = 'A';
    return parts;
  }
  const std::string_view first = zip.entries()[0].name;
  const size_t slash = first.find('/');
  if (slash != first.npos)
    parts.root = std::string(first.substr(0, slash + 1));
  const Result<std::string> format = marker(zip, parts.root + "archive_format", {});
  if (!format)
    return tl::unexpected(format.error());
  if (*format != "pt2")
    return explain(zip, name, false);
  const Result<std::string> version = marker(zip, parts.root + "archive_version", "0");
  const Result<std::string> order = marker(zip, parts.root + "byteorder", "little");
  for (const auto *r : {&version, &order})
    if (!*r)
      return tl::unexpected(r->error());
  if (*version != "0")
    return fail(ErrorKind::Unsupported, "pt2.archive.version",
                "archive version '" + version->substr(0, 20) + "' is not known",
                parts.root + "archive_version");
  if (*order != "little")
    return fail(ErrorKind::Unsupported, "pt2.archive.byteorder",
                "the archive was written on a big-endian machine", parts.root + "byteorder");
  Result<std::string> model = choose_model(zip, parts.root, name, options);
  if (!model)
    return tl::unexpected(model.error());
  parts.model = std::move(*model);
  parts.program = zip.find(parts.root + "models/" + parts.model + ".json");
  if (zip.find(parts.root + "data/weights/" + parts.model + ".pt"))
    parts.generation = 'B';
  return parts;
}

Result<std::unique_ptr<Payloads>> find_payloads(const Zip &zip, const Parts &parts,
                                                const ReadOptions &options) {
  switch (parts.generation) {
  case 'A':
    return open_pickled_payloads(zip, zip.find("serialized_state_dict.pt"),
                                 zip.find("serialized_constants.pt"), options.max_inflated);
  case 'B':
    return open_pickled_payloads(zip, zip.find(parts.root + "data/weights/" + parts.model + ".pt"),
                                 zip.find(parts.root + "data/constants/" + parts.model + ".pt"),
                                 options.max_inflated);
  default: return open_payloads(zip, parts.root, parts.model, options);
  }
}

} // namespace

Result<std::unique_ptr<ir::Graph>> read_bytes(ir::Context &ctx, std::span<const std::byte> archive,
                                              std::shared_ptr<const void> owner,
                                              const std::string &name, Diagnostics &diagnostics,
                                              const ReadOptions &options, Summary *summary) {
  const Result<Zip> zip = Zip::open(archive, std::move(owner), options.max_inflated);
  if (!zip)
    return tl::unexpected(zip.error());
  const Result<Parts> parts = find_parts(*zip, name, options);
  if (!parts)
    return tl::unexpected(parts.error());
  const Result<Document> doc = read_document(*zip, *parts->program, options.check_json);
  if (!doc)
    return tl::unexpected(doc.error());
  const Result<std::unique_ptr<Payloads>> payloads = find_payloads(*zip, *parts, options);
  if (!payloads)
    return tl::unexpected(payloads.error());

  Summary own;
  Summary &s = summary ? *summary : own;
  s = Summary();
  s.model = parts->model;
  s.generation = parts->generation;
  auto graph = std::make_unique<ir::Graph>(ctx, "main");
  Importer importer(*graph, *doc, **payloads, options, diagnostics);
  if (Status status = importer.run(s); !status)
    return tl::unexpected(status.error());
  if (options.size_hints && !ctx.sym().symbols().empty())
    s.size_hints = size_hints(doc->text);
  return graph;
}

Result<std::unique_ptr<ir::Graph>> read(ir::Context &ctx, const std::string &path,
                                        Diagnostics &diagnostics, const ReadOptions &options,
                                        Summary *summary) {
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return tl::unexpected(file.error());
  return read_bytes(ctx, (*file)->bytes(), *file, path, diagnostics, options, summary);
}

} // namespace chute::pt2
