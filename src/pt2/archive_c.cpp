#include "pt2/archive_c.h"

#include "pt2/dtype.h"
#include "support/view_hash.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstring>

namespace chute::pt2 {

Result<Document> read_document(const Zip &zip, const ZipEntry &entry, bool check_crc) {
  Result<ZipData> data = zip.read(entry, check_crc);
  if (!data)
    return tl::unexpected(data.error());
  Document doc;
  doc.member = std::string(entry.name);
  if (data->padding >= kJsonPadding) {
    doc.text = data->text();
    doc.owner = std::move(data->owner);
    return doc;
  }
  // A member so close to the file's end does not come from torch: the directory follows.
  const size_t size = data->bytes.size();
  std::shared_ptr<char[]> copy(new char[size + kJsonPadding]());
  std::memcpy(copy.get(), data->bytes.data(), size);
  doc.text = {copy.get(), size};
  doc.owner = std::move(copy);
  return doc;
}

namespace {

/// What a TensorMeta says of the tensor's place in its storage.
struct Meta {
  ir::ElementType element = ir::ElementType::None;
  std::vector<i64> sizes, strides;
  i64 offset = 0;
};

class PayloadsC : public Payloads {
public:
  PayloadsC(const Zip &zip, const std::string &root, const ReadOptions &options)
      : zip_(zip), root_(root), options_(options) {}

  Status load(Section section, const std::string &member) {
    Table &table = tables_[static_cast<size_t>(section)];
    const ZipEntry *entry = zip_.find(member);
    if (!entry)
      return {}; // old writers leave an empty table out
    Result<Document> doc = read_document(zip_, *entry, options_.check_json);
    if (!doc)
      return tl::unexpected(doc.error());
    table.doc = std::move(*doc);
    const std::string_view text = table.doc.text;
    const auto malformed = [&](const ScanError &e) {
      return fail(ErrorKind::BadInput, "pt2.json.malformed",
                  e.message ? e.message : "malformed JSON", table.doc.at(e.offset));
    };
    ScanError e;
    const auto end = walk_object(text, skip_space(text, 0), e,
                                 [&](std::string_view key, u64 at) -> std::optional<u64> {
                                   if (key != "config")
                                     return skip_value(text, at, e);
                                   u64 after = 0;
                                   const auto members = scan_object(text, at, e, &after);
                                   if (!members)
                                     return std::nullopt;
                                   table.entries.reserve(members->size());
                                   for (const Member &m : *members)
                                     table.entries.try_emplace(plain(m.key), m.value);
                                   return after;
                                 });
    if (!end)
      return malformed(e);
    return {};
  }

  Result<const ir::Constant *> constant(ir::Graph &graph, Section section,
                                        std::string_view name) override {
    Table &table = tables_[static_cast<size_t>(section)];
    const char *folder = section == Section::Weights ? "data/weights/" : "data/constants/";
    const auto found = table.entries.find(name);
    if (found == table.entries.end())
      return fail(ErrorKind::BadInput, "pt2.weight.missing",
                  "tensor '" + std::string(name.substr(0, 200)) + "' is not in the archive",
                  root_ + folder);
    const Extent at = found->second;
    const std::string_view json = table.doc.slice(at);
    Decoded decoded;
    PayloadMeta payload;
    if (!decoder_.payload(json, decoded, payload))
      return malformed(table, at);
    const std::string path = root_ + folder + std::string(payload.path);
    if (payload.use_pickle)
      return fail(ErrorKind::Unsupported, "pt2.weight.pickle",
                  "tensor '" + std::string(name.substr(0, 200)) +
                      "' is stored as a pickled Python object (a tensor subclass)",
                  path,
                  "call torchao.utils.unwrap_tensor_subclass(module) before torch.export.export");
    if (payload.tensor_meta.empty())
      return fail(ErrorKind::BadInput, "pt2.weight.meta",
                  "tensor '" + std::string(name.substr(0, 200)) + "' has no description",
                  table.doc.at(at.offset));
    const Result<const Meta *> meta = meta_of(table, payload.tensor_meta);
    if (!meta)
      return tl::unexpected(meta.error());

    const ZipEntry *entry = zip_.find(path);
    if (!entry)
      return fail(ErrorKind::BadInput, "pt2.weight.missing",
                  "the storage of tensor '" + std::string(name.substr(0, 200)) +
                      "' is not in the archive",
                  path);
    // Tied weights: the same view of the same storage is one constant.
    const ir::Constant *&known = known_[{entry, *meta}];
    if (known)
      return known;

    Result<ZipData> data = storage(*entry);
    if (!data)
      return tl::unexpected(data.error());
    TensorPayload p;
    p.element = (*meta)->element;
    p.sizes = (*meta)->sizes;
    p.strides = (*meta)->strides;
    p.offset = (*meta)->offset;
    p.storage = data->bytes;
    p.owner = data->owner;
    p.where = path;
    const auto made = make_constant(graph, p, name);
    if (made)
      known = *made;
    return made;
  }

private:
  struct Table {
    Document doc;
    boost::unordered_flat_map<std::string_view, Extent, ViewHash> entries;
  };

  std::string_view plain(std::string_view raw) {
    if (raw.find('\\') == raw.npos)
      return raw;
    return strings_.emplace_back(unescape(raw).value_or(std::string(raw)));
  }

  tl::unexpected<Diagnostic> malformed(const Table &table, Extent at) {
    return fail(ErrorKind::BadInput, "pt2.json.malformed", decoder_.error(),
                table.doc.at(at.offset + decoder_.error_offset()));
  }

  /// A deflated storage is inflated once, however many tensors lie in it.
  Result<ZipData> storage(const ZipEntry &entry) {
    if (entry.method == 0 && !options_.check_weights)
      return zip_.read(entry, false);
    const auto it = inflated_.find(&entry);
    if (it != inflated_.end())
      return it->second;
    Result<ZipData> data = zip_.read(entry, options_.check_weights);
    if (data)
      inflated_.emplace(&entry, *data);
    return data;
  }

  /// Few descriptions differ, so their text is looked up before it is decoded.
  Result<const Meta *> meta_of(const Table &table, std::string_view json) {
    if (const auto it = metas_.find(json); it != metas_.end())
      return it->second.get();
    const Extent at{static_cast<u64>(json.data() - table.doc.text.data()), json.size()};
    Decoded decoded;
    RawTensorMeta raw;
    if (!decoder_.tensor_meta(json, decoded, raw))
      return malformed(table, at);
    const auto bad = [&](ErrorKind kind, const std::string &what) {
      return fail(kind, "pt2.weight.meta", what, table.doc.at(at.offset));
    };
    auto meta = std::make_unique<Meta>(); // one text per description: writers are programs
    const auto element = element_of_code(raw.dtype);
    if (!element)
      return bad(ErrorKind::BadInput, "unknown element type code " + std::to_string(raw.dtype));
    if (raw.layout >= 1 && raw.layout <= 6)
      return bad(ErrorKind::Unsupported, "sparse and opaque tensor layouts are not supported");
    meta->element = *element;
    for (const auto &[from, to] :
         {std::pair{&raw.sizes, &meta->sizes}, {&raw.strides, &meta->strides}})
      for (const Item &i : *from) {
        if (i.tag != ArgTag::Int)
          return bad(ErrorKind::BadInput, "a stored tensor has a symbolic size");
        to->push_back(i.i);
      }
    if (raw.storage_offset.tag == ArgTag::Int)
      meta->offset = raw.storage_offset.i;
    else if (raw.storage_offset.tag != ArgTag::None)
      return bad(ErrorKind::BadInput, "a stored tensor has a symbolic offset");
    return metas_.emplace(json, std::move(meta)).first->second.get();
  }

  const Zip &zip_;
  const std::string root_;
  const ReadOptions &options_;
  Table tables_[2];
  Decoder decoder_;
  std::deque<std::string> strings_;
  boost::unordered_flat_map<std::string_view, std::unique_ptr<Meta>, ViewHash> metas_; // by text
  boost::unordered_flat_map<const ZipEntry *, ZipData> inflated_;
  boost::unordered_flat_map<std::pair<const ZipEntry *, const Meta *>, const ir::Constant *> known_;
};

} // namespace

Result<std::unique_ptr<Payloads>> open_payloads(const Zip &zip, const std::string &root,
                                                const std::string &model,
                                                const ReadOptions &options) {
  auto payloads = std::make_unique<PayloadsC>(zip, root, options);
  using Section = Payloads::Section;
  if (Status s =
          payloads->load(Section::Weights, root + "data/weights/" + model + "_weights_config.json");
      !s)
    return tl::unexpected(s.error());
  if (Status s = payloads->load(Section::Constants,
                                root + "data/constants/" + model + "_constants_config.json");
      !s)
    return tl::unexpected(s.error());
  return payloads;
}

} // namespace chute::pt2
