#include "pt2/unpickle.h"

#include <cstring>
#include <optional>

namespace chute::pt2 {

namespace {

using ir::ElementType;

/// The element type of `torch.FloatStorage` or `torch.float8_e4m3fn`.
std::optional<ElementType> element_of(std::string_view name) {
  using E = ElementType;
  constexpr std::pair<std::string_view, E> kNames[] = {
      {"FloatStorage", E::F32},
      {"HalfStorage", E::F16},
      {"BFloat16Storage", E::BF16},
      {"DoubleStorage", E::F64},
      {"IntStorage", E::I32},
      {"LongStorage", E::I64},
      {"ShortStorage", E::I16},
      {"CharStorage", E::I8},
      {"ByteStorage", E::U8},
      {"BoolStorage", E::Bool},
      {"ComplexFloatStorage", E::C64},
      {"ComplexDoubleStorage", E::C128},
      {"float32", E::F32},
      {"float16", E::F16},
      {"bfloat16", E::BF16},
      {"float64", E::F64},
      {"int32", E::I32},
      {"int64", E::I64},
      {"int16", E::I16},
      {"int8", E::I8},
      {"uint8", E::U8},
      {"bool", E::Bool},
      {"uint16", E::U16},
      {"uint32", E::U32},
      {"uint64", E::U64},
      {"complex32", E::C32},
      {"complex64", E::C64},
      {"complex128", E::C128},
      {"float8_e4m3fn", E::F8E4M3FN},
      {"float8_e5m2", E::F8E5M2},
      {"float8_e4m3fnuz", E::F8E4M3FNUZ},
      {"float8_e5m2fnuz", E::F8E5M2FNUZ},
      {"float8_e8m0fnu", E::F8E8M0FNU},
  };
  for (const auto &[known, element] : kNames)
    if (name == known)
      return element;
  return std::nullopt;
}

struct Value {
  enum class Kind : u8 {
    None,
    Bool,
    Int,
    Float,
    String,
    Sequence,
    Dict,
    Global,
    Storage,
    Tensor,
    Object
  };
  Kind kind = Kind::None;
  i64 number = 0;            // Int, Bool
  std::string_view text;     // String; Global's and Object's "module\nname"; Storage's key
  std::vector<u32> children; // Sequence; Dict: key, value, key, value, …
  u32 tensor = 0;            // index into tensors
  ElementType element = ElementType::None; // Storage
};

/// The pickle machine, without calls. Values live in one vector; the stack and the memo hold
/// indices.
class Machine {
public:
  Machine(std::string_view pickle, const std::string &where) : in_(pickle), where_(where) {}

  Result<StateDict> run() {
    values_.emplace_back(); // index 0: None
    while (!stopped_)
      if (!step())
        return fail(ErrorKind::BadInput, "pt2.pickle.malformed", error_,
                    where_ + "@" + std::to_string(at_));
    StateDict out;
    const Value &top = values_[result_];
    if (top.kind != Value::Kind::Dict)
      return fail(ErrorKind::BadInput, "pt2.pickle.malformed", "the pickle is no dictionary",
                  where_);
    for (size_t i = 0; i + 1 < top.children.size(); i += 2) {
      const Value &key = values_[top.children[i]];
      const Value &value = values_[top.children[i + 1]];
      if (key.kind != Value::Kind::String)
        return fail(ErrorKind::BadInput, "pt2.pickle.malformed", "a key is no string", where_);
      PickledTensor tensor;
      if (value.kind == Value::Kind::Tensor)
        tensor = tensors_[value.tensor];
      else
        tensor.object = value.text.empty() ? std::string_view("object") : value.text;
      out.insert_or_assign(key.text, std::move(tensor));
    }
    return out;
  }

private:
  using Kind = Value::Kind;

  bool fail_step(const char *message) {
    error_ = message;
    return false;
  }
  bool take(size_t n, std::string_view &out) {
    if (in_.size() - at_ < n)
      return fail_step("the pickle is cut short");
    out = in_.substr(at_, n);
    at_ += n;
    return true;
  }
  template <class T>
  bool number(T &out) {
    std::string_view bytes;
    if (!take(sizeof(T), bytes))
      return false;
    std::memcpy(&out, bytes.data(), sizeof(T));
    return true;
  }
  bool line(std::string_view &out) {
    const size_t end = in_.find('\n', at_);
    if (end == in_.npos)
      return fail_step("the pickle is cut short");
    out = in_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }

  bool push(Value v) {
    values_.push_back(std::move(v));
    stack_.push_back(static_cast<u32>(values_.size() - 1));
    return true;
  }
  bool push_int(i64 v) {
    Value value;
    value.kind = Kind::Int;
    value.number = v;
    return push(std::move(value));
  }
  bool push_text(Kind kind, std::string_view text) {
    Value value;
    value.kind = kind;
    value.text = text;
    return push(std::move(value));
  }
  bool pop(u32 &out) {
    if (stack_.empty() || (!marks_.empty() && stack_.size() == marks_.back()))
      return fail_step("the pickle's stack is empty");
    out = stack_.back();
    stack_.pop_back();
    return true;
  }
  /// Everything above the last mark.
  bool pop_mark(std::vector<u32> &out) {
    if (marks_.empty())
      return fail_step("the pickle's mark is missing");
    out.assign(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return true;
  }
  bool sequence(std::vector<u32> children) {
    Value v;
    v.kind = Kind::Sequence;
    v.children = std::move(children);
    return push(std::move(v));
  }
  bool tuple(size_t n) {
    std::vector<u32> children(n);
    while (n-- > 0)
      if (!pop(children[n]))
        return false;
    return sequence(std::move(children));
  }
  bool set_items(const std::vector<u32> &items) {
    u32 dict = 0;
    if (!pop(dict))
      return false;
    Value &d = values_[dict];
    if ((d.kind != Kind::Dict && d.kind != Kind::Object) || items.size() % 2 != 0)
      return fail_step("the pickle sets items of something that is no dictionary");
    d.children.insert(d.children.end(), items.begin(), items.end());
    stack_.push_back(dict);
    return true;
  }
  bool append_items(const std::vector<u32> &items) {
    u32 list = 0;
    if (!pop(list))
      return false;
    Value &l = values_[list];
    if (l.kind != Kind::Sequence && l.kind != Kind::Object)
      return fail_step("the pickle appends to something that is no list");
    l.children.insert(l.children.end(), items.begin(), items.end());
    stack_.push_back(list);
    return true;
  }
  bool memoize(u32 key) {
    if (stack_.empty())
      return fail_step("the pickle's stack is empty");
    memo_[key] = stack_.back();
    return true;
  }
  bool recall(u32 key) {
    const auto it = memo_.find(key);
    if (it == memo_.end())
      return fail_step("the pickle refers to a value that it does not have");
    stack_.push_back(it->second);
    return true;
  }

  bool ints(u32 index, std::vector<i64> &out) {
    const Value &v = values_[index];
    if (v.kind != Kind::Sequence)
      return fail_step("a tensor's sizes are no tuple");
    if (v.children.size() > 256)
      return fail_step("a tensor has too many dimensions");
    for (const u32 c : v.children) {
      if (values_[c].kind != Kind::Int)
        return fail_step("a tensor's sizes are no integers");
      out.push_back(values_[c].number);
    }
    return true;
  }

  /// `function(*arguments)`, for the functions that rebuild tensors.
  bool reduce() {
    u32 arguments = 0, function = 0;
    if (!pop(arguments) || !pop(function))
      return false;
    const std::string_view name = values_[function].text;
    if (values_[function].kind != Kind::Global || values_[arguments].kind != Kind::Sequence)
      return fail_step("the pickle calls something that is no function");
    const std::vector<u32> &args = values_[arguments].children;
    if (name == "collections\nOrderedDict") {
      Value v;
      v.kind = Kind::Dict;
      return push(std::move(v));
    }
    if (name == "torch._utils\n_rebuild_parameter" && !args.empty() &&
        values_[args[0]].kind == Kind::Tensor) {
      stack_.push_back(args[0]);
      return true;
    }
    const bool v3 = name == "torch._utils\n_rebuild_tensor_v3";
    if (!v3 && name != "torch._utils\n_rebuild_tensor_v2")
      return push_text(Kind::Object, name);
    if (args.size() < (v3 ? 7u : 4u) || values_[args[0]].kind != Kind::Storage ||
        values_[args[1]].kind != Kind::Int)
      return fail_step("a tensor's description is malformed");
    PickledTensor t;
    t.storage = values_[args[0]].text;
    t.element = values_[args[0]].element;
    t.offset = values_[args[1]].number;
    if (!ints(args[2], t.sizes) || !ints(args[3], t.strides))
      return false;
    if (v3) {
      const Value &dtype = values_[args[6]];
      const size_t split = dtype.text.find('\n');
      const auto element = dtype.kind == Kind::Global && split != dtype.text.npos
                               ? element_of(dtype.text.substr(split + 1))
                               : std::nullopt;
      if (!element)
        return fail_step("a tensor's element type is not known");
      t.element = *element;
    }
    Value v;
    v.kind = Kind::Tensor;
    v.tensor = static_cast<u32>(tensors_.size());
    tensors_.push_back(std::move(t));
    return push(std::move(v));
  }

  /// ('storage', torch.FloatStorage, key, device, elements)
  bool persistent() {
    u32 id = 0;
    if (!pop(id))
      return false;
    const std::vector<u32> &c = values_[id].children;
    if (values_[id].kind != Kind::Sequence || c.size() < 3 || values_[c[0]].text != "storage" ||
        values_[c[1]].kind != Kind::Global || values_[c[2]].kind != Kind::String)
      return fail_step("a storage's description is malformed");
    Value v;
    v.kind = Kind::Storage;
    v.text = values_[c[2]].text;
    const std::string_view type = values_[c[1]].text;
    const std::string_view name = type.substr(type.find('\n') + 1);
    if (const auto element = element_of(name))
      v.element = *element;
    else if (name != "UntypedStorage")
      return fail_step("a storage's element type is not known");
    return push(std::move(v));
  }

  bool step() {
    std::string_view op;
    if (!take(1, op))
      return false;
    std::string_view text;
    std::vector<u32> items;
    u8 byte = 0;
    u16 word = 0;
    u32 index = 0, key = 0, value = 0;
    i32 signed_word = 0;
    u64 skip = 0;
    Value v;
    switch (static_cast<u8>(op[0])) {
    case 0x80: return number(byte); // PROTO
    case 0x95: return number(skip); // FRAME
    case '.':                       // STOP
      stopped_ = true;
      return pop(result_);
    case '(': // MARK
      marks_.push_back(stack_.size());
      return true;
    case 'N': stack_.push_back(0); return true; // NONE
    case 0x88:                                  // NEWTRUE
    case 0x89:                                  // NEWFALSE
      v.kind = Kind::Bool;
      v.number = static_cast<u8>(op[0]) == 0x88;
      return push(std::move(v));
    case 'J': return number(signed_word) && push_int(signed_word); // BININT
    case 'K': return number(byte) && push_int(byte);               // BININT1
    case 'M': return number(word) && push_int(word);               // BININT2
    case 0x8a: {                                                   // LONG1
      if (!number(byte) || !take(byte, text))
        return false;
      if (text.size() > 8)
        return fail_step("an integer is too large");
      i64 n = 0;
      std::memcpy(&n, text.data(), text.size());
      if (!text.empty() && text.size() < 8 && (text.back() & 0x80))
        n -= i64{1} << (8 * text.size());
      return push_int(n);
    }
    case 'G': v.kind = Kind::Float; return take(8, text) && push(std::move(v)); // BINFLOAT
    case 'X': return number(index) && take(index, text) && push_text(Kind::String, text);
    case 0x8c: return number(byte) && take(byte, text) && push_text(Kind::String, text);
    case ']':                      // EMPTY_LIST
    case ')': return sequence({}); // EMPTY_TUPLE
    case 0x85: return tuple(1);
    case 0x86: return tuple(2);
    case 0x87: return tuple(3);
    case 't': return pop_mark(items) && sequence(std::move(items));
    case '}': v.kind = Kind::Dict; return push(std::move(v));
    case 's': return pop(value) && pop(key) && set_items({key, value}); // SETITEM
    case 'u': return pop_mark(items) && set_items(items);               // SETITEMS
    case 'a': return pop(value) && append_items({value});               // APPEND
    case 'e': return pop_mark(items) && append_items(items);            // APPENDS
    case 'q': return number(byte) && memoize(byte);
    case 'r': return number(index) && memoize(index);
    case 0x94: return memoize(static_cast<u32>(memo_.size()));
    case 'h': return number(byte) && recall(byte);
    case 'j': return number(index) && recall(index);
    case 'c': { // GLOBAL
      const size_t begin = at_;
      if (!line(text) || !line(text))
        return false;
      return push_text(Kind::Global, in_.substr(begin, at_ - begin - 1));
    }
    case 'R': return reduce();
    case 'b': return pop(value); // BUILD: attributes of an object mean nothing here
    case 'Q': return persistent();
    default: return fail_step("the pickle has an operation that state dictionaries do not need");
    }
  }

  std::string_view in_;
  const std::string &where_;
  size_t at_ = 0;
  const char *error_ = "";
  bool stopped_ = false;
  u32 result_ = 0;
  std::vector<Value> values_;
  std::vector<u32> stack_;
  std::vector<size_t> marks_;
  boost::unordered_flat_map<u32, u32> memo_;
  std::vector<PickledTensor> tensors_;
};

/// One torch.save archive.
struct Saved {
  std::optional<Zip> zip;
  std::string where;
  std::string root;
  ZipData pickle; // keeps the names alive
  StateDict tensors;
};

class PickledPayloads : public Payloads {
public:
  Status load(Section section, const Zip &outer, const ZipEntry *entry, u64 max_inflated) {
    Saved &saved = saved_[static_cast<size_t>(section)];
    saved.where = section == Section::Weights ? "(no weights member)" : "(no constants member)";
    if (!entry)
      return {};
    saved.where = std::string(entry->name);
    Result<ZipData> data = outer.read(*entry, false);
    if (!data)
      return tl::unexpected(data.error());
    Result<Zip> zip = Zip::open(data->bytes, data->owner, max_inflated);
    if (!zip)
      return within(saved, zip.error());
    saved.zip = std::move(*zip);
    if (saved.zip->entries().empty())
      return {};
    const std::string_view first = saved.zip->entries()[0].name;
    saved.root = std::string(first.substr(0, first.find('/') + 1));
    const ZipEntry *pickle = saved.zip->find(saved.root + "data.pkl");
    if (!pickle)
      return fail(ErrorKind::BadInput, "pt2.pickle.malformed",
                  "the saved dictionary has no data.pkl", saved.where);
    Result<ZipData> text = saved.zip->read(*pickle, true);
    if (!text)
      return within(saved, text.error());
    saved.pickle = std::move(*text);
    Result<StateDict> tensors =
        unpickle_state_dict(saved.pickle.text(), saved.where + "/" + std::string(pickle->name));
    if (!tensors)
      return tl::unexpected(tensors.error());
    saved.tensors = std::move(*tensors);
    return {};
  }

  Result<const ir::Constant *> constant(ir::Graph &graph, Section section, std::string_view name,
                                        u32 /*hint*/) override {
    const Saved &saved = saved_[static_cast<size_t>(section)];
    const auto found = saved.tensors.find(name);
    const std::string shown(name.substr(0, 200));
    if (found == saved.tensors.end())
      return fail(ErrorKind::BadInput, "pt2.weight.missing",
                  "tensor '" + shown + "' is not in the archive", saved.where);
    const PickledTensor &t = found->second;
    if (!t.object.empty())
      return fail(ErrorKind::Unsupported, "pt2.weight.pickle",
                  "tensor '" + shown + "' is stored as a pickled Python object (a tensor subclass)",
                  saved.where,
                  "call torchao.utils.unwrap_tensor_subclass(module) before torch.export.export");
    std::string key(1, static_cast<char>('0' + static_cast<int>(section)));
    key.append(t.storage);
    key += '\0';
    const auto add = [&](i64 v) { key.append(reinterpret_cast<const char *>(&v), sizeof(v)); };
    add(static_cast<i64>(t.element));
    add(t.offset);
    for (const auto *list : {&t.sizes, &t.strides})
      for (const i64 v : *list)
        add(v);
    const ir::Constant *&known = known_[key];
    if (known)
      return known;
    TensorPayload p;
    p.element = t.element;
    p.sizes = t.sizes;
    p.strides = t.strides;
    p.offset = t.offset;
    const std::string where =
        saved.where + "/" + saved.root + "data/" + std::string(t.storage.substr(0, 80));
    p.where = where;
    if (p.element == ir::ElementType::None)
      return fail(ErrorKind::BadInput, "pt2.weight.meta",
                  "tensor '" + shown + "' has no element type", where);
    const ZipEntry *entry = saved.zip->find(saved.root + "data/" + std::string(t.storage));
    if (!entry)
      return fail(ErrorKind::BadInput, "pt2.weight.missing",
                  "the storage of tensor '" + shown + "' is not in the archive", where);
    Result<ZipData> data = saved.zip->read(*entry, false);
    if (!data)
      return tl::unexpected(within(saved, data.error()).error());
    p.storage = data->bytes;
    p.owner = data->owner;
    const auto made = make_constant(graph, p, name);
    if (made)
      known = *made;
    return made;
  }

private:
  /// An error inside of the inner archive names the outer member too.
  static Status within(const Saved &saved, Diagnostic d) {
    d.object = saved.where + "/" + d.object;
    return tl::unexpected(std::move(d));
  }

  Saved saved_[2];
  boost::unordered_flat_map<std::string, const ir::Constant *> known_;
};

} // namespace

Result<StateDict> unpickle_state_dict(std::string_view pickle, const std::string &where) {
  return Machine(pickle, where).run();
}

Result<std::unique_ptr<Payloads>> open_pickled_payloads(const Zip &zip, const ZipEntry *weights,
                                                        const ZipEntry *constants,
                                                        u64 max_inflated) {
  auto payloads = std::make_unique<PickledPayloads>();
  using Section = Payloads::Section;
  if (Status s = payloads->load(Section::Weights, zip, weights, max_inflated); !s)
    return tl::unexpected(s.error());
  if (Status s = payloads->load(Section::Constants, zip, constants, max_inflated); !s)
    return tl::unexpected(s.error());
  return payloads;
}

} // namespace chute::pt2
