#include "pt2/archive_c.h"

#include "pt2/dtype.h"
#include "pt2/form.h"
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
    table.folder = root_ + (section == Section::Weights ? "data/weights/" : "data/constants/");
    const ZipEntry *entry = zip_.find(member);
    if (!entry)
      return {}; // old writers leave an empty table out
    Result<Document> doc = read_document(zip_, *entry, options_.check_json);
    if (!doc)
      return tl::unexpected(doc.error());
    table.doc = std::move(*doc);
    const std::string_view text = table.doc.text;
    ScanError e;
    const auto end = walk_object(
        text, skip_space(text, 0), e, [&](std::string_view key, u64 at) -> std::optional<u64> {
          if (key != "config")
            return skip_value(text, at, e);
          return walk_object(text, at, e, [&](std::string_view name, u64 value) {
            return add_entry(table, plain(name), value, e);
          });
        });
    if (!end)
      return fail(ErrorKind::BadInput, "pt2.json.malformed",
                  e.message ? e.message : "malformed JSON", table.doc.at(e.offset));
    return {};
  }

  Result<const ir::Constant *> constant(ir::Graph &graph, Section section, std::string_view name,
                                        u32 hint) override {
    Table &table = tables_[static_cast<size_t>(section)];
    const Entry *entry = find(table, name, hint);
    if (!entry)
      return fail(ErrorKind::BadInput, "pt2.weight.missing",
                  "tensor '" + std::string(name.substr(0, 200)) + "' is not in the archive",
                  table.folder);
    Decoded decoded;
    PayloadMeta own;
    if (entry->form == FormTable::kNone &&
        !decoder_.payload(table.doc.slice(entry->text), decoded, own))
      return malformed(table, entry->text);
    Payload *form = entry->form == FormTable::kNone ? nullptr : &table.payloads[entry->form];
    const PayloadMeta &payload = form ? form->meta : own;
    const std::string_view path = form ? entry->path : own.path;
    const auto where = [&] { return table.folder + std::string(path); };
    if (payload.use_pickle)
      return fail(ErrorKind::Unsupported, "pt2.weight.pickle",
                  "tensor '" + std::string(name.substr(0, 200)) +
                      "' is stored as a pickled Python object (a tensor subclass)",
                  where(),
                  "call torchao.utils.unwrap_tensor_subclass(module) before torch.export.export");
    if (payload.tensor_meta.empty())
      return fail(ErrorKind::BadInput, "pt2.weight.meta",
                  "tensor '" + std::string(name.substr(0, 200)) + "' has no description",
                  table.doc.at(entry->text.offset));
    const Meta *meta = form ? form->tensor : nullptr;
    if (!meta) {
      const Result<const Meta *> found = meta_of(table, payload.tensor_meta);
      if (!found)
        return tl::unexpected(found.error());
      meta = *found;
      if (form)
        form->tensor = meta;
    }

    const ZipEntry *member = entry->member ? entry->member : zip_.find(where());
    if (!member)
      return fail(ErrorKind::BadInput, "pt2.weight.missing",
                  "the storage of tensor '" + std::string(name.substr(0, 200)) +
                      "' is not in the archive",
                  where());
    const ir::Constant *&known = known_constant(member, meta);
    if (known)
      return known;

    Result<ZipData> data = storage(*member);
    if (!data)
      return tl::unexpected(data.error());
    TensorPayload p;
    p.element = meta->element;
    p.sizes = meta->sizes;
    p.strides = meta->strides;
    p.offset = meta->offset;
    p.storage = data->bytes;
    p.owner = std::move(data->owner);
    p.where = member->name;
    const auto made = make_constant(graph, p, name);
    if (made)
      known = *made;
    return made;
  }

private:
  /// One tensor's row of the table. Few rows differ in more than the storage's name, so a row is an
  /// instance of a form; others are decoded when they are asked for.
  struct Entry {
    std::string_view name;
    std::string_view path;            ///< with a form
    u32 form = FormTable::kNone;      ///< index into Table::payloads
    Extent text;                      ///< offset only, with a form
    const ZipEntry *member = nullptr; ///< the storage, when it was where it was looked for
  };
  struct Payload {
    PayloadMeta meta;             ///< but for the path
    const Meta *tensor = nullptr; ///< once it was needed
  };
  struct Table {
    Document doc;
    std::string folder; ///< of the storages
    std::vector<Entry> entries;
    boost::unordered_flat_map<std::string_view, u32, ViewHash> by_name; ///< made on first need
    FormTable forms{std::string_view("{\"path_name\": ").size()};
    std::vector<Payload> payloads; ///< by form
    u32 next_member = 0;           ///< behind the last entry's storage
  };

  std::optional<u64> add_entry(Table &table, std::string_view name, u64 at, ScanError &e) {
    const std::string_view text = table.doc.text;
    const char *const end = text.data() + text.size();
    const char *p = text.data() + at;
    Filling fillings[Form::kMaxHoles];
    Entry entry{name, {}, table.forms.match(p, end, fillings), {at, 0}, nullptr};
    if (entry.form == FormTable::kNone) {
      const std::optional<u64> behind = skip_value(text, at, e);
      if (!behind)
        return std::nullopt;
      entry.text.size = *behind - at;
      p = text.data() + *behind;
      if (table.forms.learns() && learn(table, table.doc.slice(entry.text))) {
        const auto form = static_cast<u32>(table.payloads.size() - 1);
        if (table.forms[form].match(text.data() + at, end, fillings))
          entry.form = form;
      }
    }
    if (entry.form != FormTable::kNone && fillings[0].size == 0) { // which the decoder refuses
      entry.form = FormTable::kNone;
      entry.text.size = static_cast<u64>(p - text.data()) - at;
    }
    if (entry.form != FormTable::kNone) {
      entry.path = fillings[0].text();
      entry.member = member_at(table, entry.path);
    }
    table.entries.push_back(entry);
    return static_cast<u64>(p - text.data());
  }

  bool learn(Table &table, std::string_view json) {
    table.forms.count_miss();
    Decoded decoded;
    Payload made;
    if (!decoder_.payload(json, decoded, made.meta))
      return false;
    const std::string_view path = made.meta.path;
    if (path.data() < json.data() || path.data() > json.data() + json.size())
      return false; // has escapes
    const Hole hole{HoleKind::Text, static_cast<u64>(path.data() - json.data()), path.size()};
    std::optional<Form> form = Form::of(json, {&hole, 1});
    if (!form || table.forms.add(std::move(*form)) == FormTable::kNone)
      return false;
    table.payloads.push_back(made);
    return true;
  }

  /// The storage of an entry: mostly the member behind the last entry's.
  const ZipEntry *member_at(Table &table, std::string_view path) {
    const std::vector<ZipEntry> &all = zip_.entries();
    const ZipEntry *found = nullptr;
    if (table.next_member < all.size()) {
      const std::string_view name = all[table.next_member].name;
      if (name.size() == table.folder.size() + path.size() && name.ends_with(path) &&
          name.starts_with(table.folder))
        found = &all[table.next_member];
    }
    if (!found)
      found = zip_.find(table.folder + std::string(path));
    if (found)
      table.next_member = static_cast<u32>(found - all.data()) + 1;
    return found;
  }

  static const Entry *find(Table &table, std::string_view name, u32 hint) {
    if (hint < table.entries.size() && table.entries[hint].name == name)
      return &table.entries[hint];
    if (table.by_name.empty()) {
      table.by_name.reserve(table.entries.size());
      for (u32 i = 0; i < table.entries.size(); ++i)
        table.by_name.try_emplace(table.entries[i].name, i);
    }
    const auto it = table.by_name.find(name);
    return it == table.by_name.end() ? nullptr : &table.entries[it->second];
  }

  /// Tied weights: the same view of the same storage is one constant. Hardly ever has a storage
  /// more than one view.
  const ir::Constant *&known_constant(const ZipEntry *member, const Meta *meta) {
    if (first_view_.empty())
      first_view_.resize(zip_.entries().size());
    auto &[view, constant] = first_view_[static_cast<size_t>(member - zip_.entries().data())];
    if (!view)
      view = meta;
    return view == meta ? constant : known_[{member, meta}];
  }

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
  std::vector<std::pair<const Meta *, const ir::Constant *>> first_view_; // by member
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
