#include "pt2/decode.h"

#include "pt2/json_scan.h"

#include <limits>
#include <simdjson.h>

static_assert(chute::pt2::kJsonPadding >= simdjson::SIMDJSON_PADDING);

namespace chute::pt2 {

namespace od = simdjson::ondemand;

/// Member functions return false after they set `error`.
struct Decoder::Impl {
  od::parser parser;
  od::document doc;
  std::string_view text;
  Decoded *out = nullptr;
  NodeMarks *marks = nullptr; // of the inputs being decoded
  u32 marked_input = 0;
  std::string error;
  u64 error_offset = 0;

  static constexpr int kMaxDepth = 24; // of arguments inside arguments

  bool fail(std::string message) {
    error = std::move(message);
    const char *where = nullptr;
    error_offset = 0;
    if (!doc.current_location().get(where) && where >= text.data() &&
        where <= text.data() + text.size())
      error_offset = static_cast<u64>(where - text.data());
    return false;
  }
  bool fail(simdjson::error_code code) { return fail(std::string(simdjson::error_message(code))); }

  bool start(std::string_view json, Decoded &to, od::object &object) {
    text = json;
    out = &to;
    if (json.size() >= std::numeric_limits<u32>::max()) {
      error = "one JSON value is larger than 4 GiB";
      error_offset = 0;
      return false;
    }
    const auto code =
        parser.iterate(json.data(), json.size(), json.size() + simdjson::SIMDJSON_PADDING).get(doc);
    if (code) {
      error = simdjson::error_message(code);
      error_offset = 0;
      return false;
    }
    if (const auto c = doc.get_object().get(object))
      return fail(c);
    return true;
  }

  /// Calls `member(key, value)` for each member; stops at the first false.
  template <class F>
  bool for_members(od::object &object, F &&member) {
    for (auto entry : object) {
      od::field field;
      if (const auto c = std::move(entry).get(field))
        return fail(c);
      const char *key = field.key().raw();
      size_t n = 0;
      while (key[n] != '"') // a key with an escaped quote is no key that is known here
        ++n;
      if (!member(std::string_view(key, n), field.value()))
        return false;
    }
    return true;
  }
  template <class F>
  bool for_members(od::value value, F &&member) {
    od::object object;
    if (const auto c = value.get_object().get(object))
      return fail(c);
    return for_members(object, std::forward<F>(member));
  }
  template <class F>
  bool for_elements(od::value value, F &&element) {
    od::array array;
    if (const auto c = value.get_array().get(array))
      return fail(c);
    for (auto entry : array) {
      od::value v;
      if (const auto c = entry.get(v))
        return fail(c);
      if (!element(v))
        return false;
    }
    return true;
  }

  bool is_null(od::value value) {
    const std::string_view token = value.raw_json_token();
    return token.starts_with("null");
  }

  /// The text of a string, in place unless it has escapes.
  bool string(od::value value, std::string_view &to) {
    std::string_view token = value.raw_json_token();
    if (token.empty() || token[0] != '"')
      return fail("a string was expected");
    token.remove_prefix(1);
    const size_t end = token.rfind('"');
    if (end == token.npos)
      return fail("a string is not closed");
    token = token.substr(0, end);
    if (token.find('\\') != token.npos) {
      std::optional<std::string> plain = unescape(token);
      if (!plain)
        return fail("a string has a malformed escape");
      token = out->strings.emplace_back(std::move(*plain));
    }
    to = token;
    return true;
  }
  bool string(od::value value, Item &item, ArgTag tag) {
    std::string_view s;
    if (!string(value, s))
      return false;
    set_string(item, s, tag);
    return true;
  }
  static void set_string(Item &item, std::string_view s, ArgTag tag) {
    item.tag = tag;
    item.s = s.data();
    item.count = static_cast<u32>(s.size());
  }
  bool optional_string(od::value value, std::string_view &to) {
    return is_null(value) || string(value, to);
  }

  bool integer(od::value value, Item &item, ArgTag tag = ArgTag::Int) {
    item.tag = tag;
    // torch 2.5 writes a Python bool so where an int may stand.
    if (const std::string_view token = value.raw_json_token();
        tag == ArgTag::Int && !token.empty() && (token[0] == 't' || token[0] == 'f'))
      return boolean(value, item);
    if (const auto c = value.get_int64().get(item.i))
      return fail(c);
    return true;
  }
  bool boolean(od::value value, Item &item) {
    bool b = false;
    if (const auto c = value.get_bool().get(b))
      return fail(c);
    item.tag = ArgTag::Bool;
    item.b = b;
    return true;
  }
  /// Numbers; non-finite ones as strings, or as bare words in files from torch 2.5.
  bool number(od::value value, Item &item) {
    item.tag = ArgTag::Float;
    std::string_view token = value.raw_json_token();
    if (!token.empty() &&
        (token[0] == '"' || token[0] == 'I' || token[0] == 'N' || token.starts_with("-I"))) {
      if (token[0] == '"')
        token.remove_prefix(1);
      constexpr double inf = std::numeric_limits<double>::infinity();
      if (token.starts_with("Infinity"))
        item.f = inf;
      else if (token.starts_with("-Infinity"))
        item.f = -inf;
      else if (token.starts_with("NaN"))
        item.f = std::numeric_limits<double>::quiet_NaN();
      else
        return fail("a number was expected");
      return true;
    }
    if (const auto c = value.get_double().get(item.f))
      return fail(c);
    return true;
  }

  /// {"name": …} as in TensorArgument.
  bool name_of(od::value value, Item &item, ArgTag tag) {
    bool found = false;
    const bool ok = for_members(value, [&](std::string_view key, od::value v) {
      if (key != "name")
        return true;
      found = true;
      return string(v, item, tag);
    });
    return ok && (found || fail("a value reference has no name"));
  }

  /// {"as_name": …} or a literal.
  bool sym_reference(od::value value, Item &item, ArgTag tag) {
    bool found = false;
    const bool ok = for_members(value, [&](std::string_view key, od::value v) {
      found = true;
      if (key == "as_name")
        return string(v, item, tag);
      if (key == "as_int")
        return integer(v, item);
      if (key == "as_float")
        return number(v, item);
      if (key == "as_bool")
        return boolean(v, item);
      return fail("a symbolic value has the unknown form '" + std::string(key) + "'");
    });
    return ok && (found || fail("a symbolic value is empty"));
  }

  /// A list whose elements have no children: they go straight behind each other.
  template <class F>
  bool flat_list(od::value value, Item &item, ArgTag tag, F &&element) {
    const u64 first = out->items.size();
    const bool ok = for_elements(value, [&](od::value v) {
      Item child;
      if (!element(v, child))
        return false;
      out->items.push_back(child);
      return true;
    });
    finish_list(item, tag, first);
    return ok;
  }
  /// A list whose elements may have children: collected aside first.
  template <class F>
  bool deep_list(od::value value, Item &item, ArgTag tag, F &&element) {
    std::vector<Item> children;
    const bool ok =
        for_elements(value, [&](od::value v) { return element(v, children.emplace_back()); });
    append_list(item, tag, children);
    return ok;
  }
  void append_list(Item &item, ArgTag tag, const std::vector<Item> &children) {
    const u64 first = out->items.size();
    out->items.insert(out->items.end(), children.begin(), children.end());
    finish_list(item, tag, first);
  }
  void finish_list(Item &item, ArgTag tag, u64 first) {
    item.tag = tag;
    item.first = first;
    item.count = static_cast<u32>(out->items.size() - first);
  }

  bool device(od::value value, Item &item) {
    std::string_view type;
    i64 index = -1;
    const bool ok = for_members(value, [&](std::string_view key, od::value v) {
      if (key == "type")
        return string(v, type);
      if (key == "index" && !is_null(v)) {
        Item n;
        if (!integer(v, n))
          return false;
        index = n.i;
      }
      return true;
    });
    if (ok && index >= 0)
      type = out->strings.emplace_back(std::string(type) + ":" + std::to_string(index));
    set_string(item, type, ArgTag::Device);
    return ok;
  }

  bool graph(od::value value, Item &item) {
    bool found = false;
    const bool ok = for_members(value, [&](std::string_view key, od::value v) {
      if (key != "graph")
        return true;
      found = true;
      od::object object;
      std::string_view raw;
      if (const auto c = v.get_object().get(object))
        return fail(c);
      if (const auto c = object.raw_json().get(raw))
        return fail(c);
      set_string(item, raw, ArgTag::Graph);
      return true;
    });
    return ok && (found || fail("a graph argument has no graph"));
  }

  bool complex(od::value value, Item &item) {
    Item parts[2];
    parts[0].tag = parts[1].tag = ArgTag::Float;
    const bool ok = for_members(value, [&](std::string_view key, od::value v) {
      return key == "real" ? number(v, parts[0]) : key == "imag" ? number(v, parts[1]) : true;
    });
    const u64 first = out->items.size();
    out->items.push_back(parts[0]);
    out->items.push_back(parts[1]);
    finish_list(item, ArgTag::Complex, first);
    return ok;
  }

  bool dictionary(od::value value, Item &item, int depth) {
    std::vector<Item> children;
    const bool ok = for_members(value, [&](std::string_view key, od::value v) {
      set_string(children.emplace_back(), key, ArgTag::String);
      return argument(v, children.emplace_back(), depth + 1);
    });
    append_list(item, ArgTag::Dict, children);
    return ok;
  }

  bool argument(od::value value, Item &item, int depth = 0) {
    if (depth > kMaxDepth)
      return fail("arguments are nested too deeply");
    bool found = false;
    const bool ok = for_members(value, [&](std::string_view tag, od::value v) {
      if (marks && depth == 0)
        mark(tag, v, found);
      found = true;
      return tagged(tag, v, item, depth);
    });
    return ok && (found || fail("an argument is empty"));
  }
  void mark(std::string_view tag, od::value value, bool again) {
    marks->ambiguous |= again;
    if (tag != "as_int" && tag != "as_float")
      return;
    std::string_view token = value.raw_json_token();
    token = token.substr(0, token.find_first_of(",]} \t\n\r"));
    if (!token.empty() && (token.back() >= '0' && token.back() <= '9'))
      marks->numbers.emplace_back(marked_input, token);
  }

  bool tensor_or_none(od::value value, Item &item) {
    return for_members(value, [&](std::string_view tag, od::value v) {
      if (tag == "as_tensor")
        return name_of(v, item, ArgTag::Tensor);
      item.tag = ArgTag::None;
      return true;
    });
  }

  bool tagged(std::string_view tag, od::value v, Item &item, int depth) {
    if (tag == "as_tensor")
      return name_of(v, item, ArgTag::Tensor);
    if (tag == "as_int")
      return integer(v, item);
    if (tag == "as_float")
      return number(v, item);
    if (tag == "as_bool")
      return boolean(v, item);
    if (tag == "as_none") {
      item.tag = ArgTag::None;
      return true;
    }
    if (tag == "as_ints")
      return flat_list(v, item, ArgTag::Ints, [&](od::value e, Item &c) { return integer(e, c); });
    if (tag == "as_tensors")
      return flat_list(v, item, ArgTag::Tensors,
                       [&](od::value e, Item &c) { return name_of(e, c, ArgTag::Tensor); });
    if (tag == "as_scalar_type")
      return integer(v, item, ArgTag::ScalarType);
    if (tag == "as_layout")
      return integer(v, item, ArgTag::Layout);
    if (tag == "as_memory_format")
      return integer(v, item, ArgTag::MemoryFormat);
    if (tag == "as_device")
      return device(v, item);
    if (tag == "as_string")
      return string(v, item, ArgTag::String);
    if (tag == "as_optional_tensors")
      return flat_list(v, item, ArgTag::Tensors,
                       [&](od::value e, Item &c) { return tensor_or_none(e, c); });
    if (tag == "as_optional_tensor")
      return tensor_or_none(v, item);
    if (tag == "as_sym_int")
      return sym_reference(v, item, ArgTag::SymInt);
    if (tag == "as_sym_float")
      return sym_reference(v, item, ArgTag::SymFloat);
    if (tag == "as_sym_bool")
      return sym_reference(v, item, ArgTag::SymBool);
    if (tag == "as_sym_ints")
      return flat_list(v, item, ArgTag::Ints,
                       [&](od::value e, Item &c) { return sym_reference(e, c, ArgTag::SymInt); });
    if (tag == "as_sym_floats")
      return flat_list(v, item, ArgTag::Floats,
                       [&](od::value e, Item &c) { return sym_reference(e, c, ArgTag::SymFloat); });
    if (tag == "as_sym_bools")
      return flat_list(v, item, ArgTag::Bools,
                       [&](od::value e, Item &c) { return sym_reference(e, c, ArgTag::SymBool); });
    if (tag == "as_floats")
      return flat_list(v, item, ArgTag::Floats, [&](od::value e, Item &c) { return number(e, c); });
    if (tag == "as_bools")
      return flat_list(v, item, ArgTag::Bools, [&](od::value e, Item &c) { return boolean(e, c); });
    if (tag == "as_strings")
      return flat_list(v, item, ArgTag::Strings,
                       [&](od::value e, Item &c) { return string(e, c, ArgTag::String); });
    if (tag == "as_graph")
      return graph(v, item);
    if (tag == "as_complex")
      return complex(v, item);
    if (tag == "as_custom_obj")
      return name_of(v, item, ArgTag::CustomObj);
    if (tag == "as_operator")
      return string(v, item, ArgTag::Operator);
    if (tag == "as_nested_tensors")
      return deep_list(v, item, ArgTag::List,
                       [&](od::value e, Item &c) { return tagged("as_tensors", e, c, depth + 1); });
    if (tag == "as_int_lists")
      return deep_list(v, item, ArgTag::List,
                       [&](od::value e, Item &c) { return tagged("as_ints", e, c, depth + 1); });
    if (tag == "as_float_lists")
      return deep_list(v, item, ArgTag::List,
                       [&](od::value e, Item &c) { return tagged("as_floats", e, c, depth + 1); });
    if (tag == "as_string_to_argument")
      return dictionary(v, item, depth);
    set_string(item, tag, ArgTag::Unknown); // matters only where it is used
    return true;
  }

  bool named_argument(od::value value, NamedItem &to) {
    bool found = false;
    const bool ok = for_members(value, [&](std::string_view key, od::value v) {
      if (key == "name")
        return string(v, to.name);
      if (key == "arg") {
        if (marks)
          marks->ambiguous |= found;
        found = true;
        return argument(v, to.value);
      }
      return true;
    });
    return ok && (found || fail("an argument has no value"));
  }

  bool dim(od::value value, Item &item) {
    return for_members(value, [&](std::string_view key, od::value v) {
      if (key == "as_int")
        return integer(v, item);
      if (key == "as_float")
        return number(v, item);
      if (key == "as_bool")
        return boolean(v, item);
      if (key == "as_expr")
        return for_members(v, [&](std::string_view k, od::value e) {
          return k == "expr_str" ? string(e, item, ArgTag::String) : true;
        });
      return fail("a symbolic value has the unknown form '" + std::string(key) + "'");
    });
  }
  bool dims(od::value value, std::vector<Item> &to) {
    to.clear();
    return for_elements(value, [&](od::value v) {
      Item item;
      if (!dim(v, item))
        return false;
      if (item.tag != ArgTag::Int && item.tag != ArgTag::String)
        return fail("a dimension is not an integer");
      to.push_back(item);
      return true;
    });
  }
};

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::~Decoder() = default;
const std::string &Decoder::error() const { return impl_->error; }
u64 Decoder::error_offset() const { return impl_->error_offset; }

bool Decoder::node(std::string_view text, u64 offset, Decoded &out, NodeMarks *marks) {
  Impl &d = *impl_;
  od::object object;
  if (!d.start(text, out, object))
    return false;
  DecodedNode n;
  n.offset = offset;
  n.first_input = static_cast<u32>(out.inputs.size());
  n.first_output = static_cast<u32>(out.outputs.size());
  const bool ok = d.for_members(object, [&](std::string_view key, od::value v) {
    if (key == "target")
      return d.string(v, n.target);
    if (key == "inputs")
      return d.for_elements(v, [&](od::value e) {
        NamedItem item;
        d.marks = marks;
        d.marked_input = static_cast<u32>(out.inputs.size()) - n.first_input;
        const bool good = d.named_argument(e, item);
        d.marks = nullptr;
        out.inputs.push_back(item);
        return good;
      });
    if (key == "outputs")
      return d.for_elements(v, [&](od::value e) {
        Item item;
        if (!d.argument(e, item))
          return false;
        out.outputs.push_back(item);
        return true;
      });
    if (key == "name")
      return d.optional_string(v, n.name);
    if (key == "metadata" && marks)
      marks->metadata = v.raw_json_token();
    return true;
  });
  if (!ok)
    return false;
  if (n.target.empty())
    return d.fail("a node has no target");
  n.num_inputs = static_cast<u32>(out.inputs.size()) - n.first_input;
  n.num_outputs = static_cast<u32>(out.outputs.size()) - n.first_output;
  out.nodes.push_back(n);
  return true;
}

bool Decoder::argument(std::string_view text, Decoded &out, Item &item) {
  Impl &d = *impl_;
  od::object object;
  if (!d.start(text, out, object))
    return false;
  bool found = false;
  const bool ok = d.for_members(object, [&](std::string_view tag, od::value v) {
    found = true;
    return d.tagged(tag, v, item, 0);
  });
  return ok && (found || d.fail("an argument is empty"));
}

bool Decoder::spec(std::string_view text, Decoded &out, Spec &spec) {
  using Kind = Spec::Kind;
  constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"parameter", Kind::Parameter},
      {"buffer", Kind::Buffer},
      {"user_input", Kind::UserInput},
      {"user_output", Kind::UserOutput},
      {"tensor_constant", Kind::TensorConstant},
      {"constant_input", Kind::ConstantInput},
      {"custom_obj", Kind::CustomObj},
      {"token", Kind::Token},
      {"buffer_mutation", Kind::BufferMutation},
      {"parameter_mutation", Kind::ParameterMutation},
      {"user_input_mutation", Kind::InputMutation},
      {"loss_output", Kind::LossOutput},
      {"gradient_to_parameter", Kind::GradientToParameter},
      {"gradient_to_user_input", Kind::GradientToInput},
  };
  Impl &d = *impl_;
  od::object object;
  if (!d.start(text, out, object))
    return false;
  return d.for_members(object, [&](std::string_view key, od::value v) {
    spec.key = key;
    for (const auto &[name, kind] : kKinds)
      if (key == name)
        spec.kind = kind;
    const bool is_union = spec.kind == Kind::UserInput || spec.kind == Kind::UserOutput;
    return d.for_members(v, [&](std::string_view field, od::value f) {
      if (field == "arg")
        return is_union ? d.argument(f, spec.arg) : d.name_of(f, spec.arg, ArgTag::Tensor);
      if (field == "value")
        return d.argument(f, spec.arg);
      if (field == "parameter_name" || field == "buffer_name" || field == "tensor_constant_name" ||
          field == "custom_obj_name" || field == "user_input_name" || field == "name")
        return d.string(f, spec.target);
      if (field == "persistent") {
        Item b;
        if (!d.boolean(f, b))
          return false;
        spec.persistent = b.b;
      }
      return true;
    });
  });
}

bool Decoder::tensor_meta(std::string_view text, Decoded &out, RawTensorMeta &meta) {
  Impl &d = *impl_;
  od::object object;
  if (!d.start(text, out, object))
    return false;
  bool sized = false;
  const bool ok = d.for_members(object, [&](std::string_view key, od::value v) {
    Item n;
    if (key == "dtype" || key == "layout") {
      if (!d.integer(v, n))
        return false;
      (key == "dtype" ? meta.dtype : meta.layout) = n.i;
      return true;
    }
    if (key == "sizes") {
      sized = true;
      return d.dims(v, meta.sizes);
    }
    if (key == "strides")
      return d.dims(v, meta.strides);
    if (key == "storage_offset")
      return d.dim(v, meta.storage_offset);
    if (key == "device") {
      if (!d.device(v, n))
        return false;
      meta.device = n.string();
    }
    return true;
  });
  return ok && (sized || d.fail("a tensor's description has no sizes"));
}

bool Decoder::payload(std::string_view text, Decoded &out, PayloadMeta &meta) {
  Impl &d = *impl_;
  od::object object;
  if (!d.start(text, out, object))
    return false;
  const bool ok = d.for_members(object, [&](std::string_view key, od::value v) {
    if (key == "path_name")
      return d.string(v, meta.path);
    if (key == "use_pickle") {
      Item b;
      if (!d.boolean(v, b))
        return false;
      meta.use_pickle = b.b;
    }
    if (key == "tensor_meta" && !d.is_null(v)) {
      od::object o;
      if (const auto c = v.get_object().get(o))
        return d.fail(c);
      if (const auto c = o.raw_json().get(meta.tensor_meta))
        return d.fail(c);
    }
    return true;
  });
  return ok && (!meta.path.empty() || d.fail("a payload has no path_name"));
}

bool Decoder::sym_value(std::string_view text, Decoded &out, Item &item) {
  Impl &d = *impl_;
  od::object object;
  if (!d.start(text, out, object))
    return false;
  return d.for_members(object, [&](std::string_view key, od::value v) {
    if (key == "as_int")
      return d.integer(v, item);
    if (key == "as_float")
      return d.number(v, item);
    if (key == "as_bool")
      return d.boolean(v, item);
    if (key == "as_expr")
      return d.for_members(v, [&](std::string_view k, od::value e) {
        return k == "expr_str" ? d.string(e, item, ArgTag::String) : true;
      });
    return true;
  });
}

} // namespace chute::pt2
