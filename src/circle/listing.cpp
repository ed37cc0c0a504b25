#include "circle/listing.h"

#include "circle/element.h"
#include "circle/file_view.h"
#include "circle/listing_text.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

namespace chute::circle {

namespace {

namespace cs = ::circle;

class Lister {
public:
  Lister(const FileView &file, const ListingOptions &options, const ListingSink &sink)
      : file_(file), model_(*file.model), options_(options), sink_(sink) {}

  void run() {
    survey();
    options_.json ? header_json() : header_text();
    if (options_.signatures)
      signatures();
    if (options_.quantization)
      quantization();
    if (options_.metadata)
      metadata();
    for (u32 s = 0; s < size_of(model_.subgraphs()); ++s)
      if (!options_.subgraph || *options_.subgraph == s)
        details(s);
    if (options_.json)
      out_ += "]}\n";
    flush(0);
  }

private:
  void flush(size_t keep = 1 << 16) {
    if (out_.size() > keep) {
      sink_(out_);
      out_.clear();
    }
  }

  const cs::Tensor &tensor(const cs::SubGraph &sub, i64 t) const {
    return *sub.tensors()->Get(static_cast<u32>(t));
  }
  std::string_view op_name(const cs::Operator &op) const {
    const cs::OperatorCode &code = *model_.operator_codes()->Get(op.opcode_index());
    const auto known = from_wire(effective_code(code));
    if (known == op::CUSTOM && size_of(code.custom_code()))
      return text_of(code.custom_code());
    return known ? ir::Registry::global().def(*known).name : "unknown";
  }

  // --- summary ---------------------------------------------------------------------------------

  struct Scales {
    u64 tensors = 0;
    float low = std::numeric_limits<float>::infinity(), high = 0;
    i64 least = std::numeric_limits<i64>::max(), most = std::numeric_limits<i64>::min();
  };

  void survey() {
    std::vector<u64> by_code(size_of(model_.operator_codes()), 0);
    for (u32 s = 0; s < size_of(model_.subgraphs()); ++s) {
      const cs::SubGraph &sub = *model_.subgraphs()->Get(s);
      ops_ += size_of(sub.operators());
      tensors_ += size_of(sub.tensors());
      for (u32 o = 0; o < size_of(sub.operators()); ++o)
        ++by_code[sub.operators()->Get(o)->opcode_index()];
      for (u32 t = 0; t < size_of(sub.tensors()); ++t)
        survey_tensor(s, t, *sub.tensors()->Get(t));
    }
    for (u32 i = 0; i < by_code.size(); ++i)
      if (by_code[i]) {
        const cs::OperatorCode &code = *model_.operator_codes()->Get(i);
        const auto known = from_wire(effective_code(code));
        std::string name(known ? ir::Registry::global().def(*known).name : "unknown");
        if (known == op::CUSTOM)
          name += " " + std::string(text_of(code.custom_code()));
        histogram_[name] += by_code[i];
      }
    std::stable_sort(weights_.begin(), weights_.end(),
                     [](const Weight &a, const Weight &b) { return a.bytes > b.bytes; });
  }

  void survey_tensor(u32 s, u32 i, const cs::Tensor &t) {
    ++elements_[static_cast<i8>(t.type())];
    if (options_.quantization) {
      const cs::QuantizationParameters *q = t.quantization();
      Scales &row = scales_[{static_cast<i8>(t.type()), scheme_of(t)}];
      ++row.tensors;
      // What many tensors share is looked at once.
      const bool fresh = q && (size_of(q->scale()) <= 1 || seen_.insert(q->scale()).second);
      for (u32 k = 0; fresh && k < size_of(q->scale()); ++k) {
        row.low = std::min(row.low, q->scale()->Get(k));
        row.high = std::max(row.high, q->scale()->Get(k));
        row.least = std::min(row.least, zero_point(*q, k));
        row.most = std::max(row.most, zero_point(*q, k));
      }
    }
    if (t.buffer() == 0 || !is_constant(file_, t))
      return;
    const u64 bytes = payload(file_, t.buffer()).size();
    ++constants_;
    constant_bytes_ += bytes;
    // The largest so far; a heap would cost more than it saves at these sizes.
    if (options_.weights && (weights_.size() < options_.most_weights || bytes > smallest_)) {
      weights_.push_back({bytes, s, i});
      if (weights_.size() >= std::max<size_t>(64, 2 * options_.most_weights))
        trim_weights();
    }
  }

  void trim_weights() {
    std::stable_sort(weights_.begin(), weights_.end(),
                     [](const Weight &a, const Weight &b) { return a.bytes > b.bytes; });
    weights_.resize(std::min(weights_.size(), options_.most_weights));
    smallest_ = weights_.empty() ? ~u64{0} : weights_.back().bytes;
  }

  /// Names by falling count, then by name.
  static std::vector<std::pair<std::string, u64>> ranked(const std::map<std::string, u64> &counts) {
    std::vector<std::pair<std::string, u64>> out(counts.begin(), counts.end());
    std::stable_sort(out.begin(), out.end(),
                     [](const auto &a, const auto &b) { return a.second > b.second; });
    return out;
  }

  std::map<std::string, u64> element_counts() const {
    std::map<std::string, u64> out;
    for (const auto &[wire, n] : elements_) {
      const auto element = from_wire_type(wire);
      out[std::string(element ? ir::element_type_name(*element) : "?")] += n;
    }
    return out;
  }

  const cs::SignatureDef *main_signature() const {
    for (u32 i = 0; i < size_of(model_.signature_defs()); ++i)
      if (model_.signature_defs()->Get(i)->subgraph_index() == 0)
        return model_.signature_defs()->Get(i);
    return nullptr;
  }
  template <class Row>
  void each_port(bool inputs, Row &&row) const {
    const cs::SubGraph &sub = *model_.subgraphs()->Get(0);
    const cs::SignatureDef *signature = main_signature();
    const auto *list = inputs ? sub.inputs() : sub.outputs();
    const auto *map = !signature ? nullptr : inputs ? signature->inputs() : signature->outputs();
    // The first signature of the main subgraph names its ports.
    std::map<u32, std::string> names;
    for (u32 i = 0; i < size_of(map); ++i)
      if (map->Get(i)->name())
        names.try_emplace(map->Get(i)->tensor_index(), map->Get(i)->name()->str());
    for (u32 i = 0; i < size_of(list); ++i) {
      const auto t = static_cast<u32>(list->Get(i));
      const auto named = names.find(t);
      row(named == names.end() ? std::string(text_of(tensor(sub, t).name())) : named->second,
          tensor(sub, t), list->Get(i));
    }
  }

  bool is_tflite() const { return std::memcmp(file_.bytes.data() + 4, "TFL3", 4) == 0; }

  void header_text() {
    out_ += std::string(is_tflite() ? "tflite, " : "circle, ") + size_text(file_.bytes.size());
    if (size_of(model_.description()))
      out_ += ", " + std::string(text_of(model_.description()));
    out_ += "\n" + plural(ops_, "operator") + ", " + plural(tensors_, "tensor") + ", " +
            plural(constants_, "constant") + " (" + size_text(constant_bytes_) + "), " +
            plural(size_of(model_.subgraphs()), "subgraph") + ", " +
            plural(size_of(model_.buffers()), "buffer") + ", " +
            plural(size_of(model_.signature_defs()), "signature") + "\n";
    for (const bool inputs : {true, false}) {
      out_ += inputs ? "inputs:\n" : "outputs:\n";
      each_port(inputs, [&](const std::string &name, const cs::Tensor &t, i32) {
        out_ += "  " + name + ": ";
        append_type(out_, t);
        std::string quant;
        append_quantization(quant, t);
        out_ += (quant.empty() ? "" : ", " + quant) + "\n";
      });
    }
    if (options_.histogram) {
      out_ += "operators:\n";
      for (const auto &[name, n] : ranked(histogram_))
        out_ += padded(n) + "  " + name + "\n";
      out_ += "element types of tensors:\n";
      for (const auto &[name, n] : ranked(element_counts()))
        out_ += padded(n) + "  " + name + "\n";
    }
    if (options_.weights && !weights_.empty()) {
      out_ += "largest constants:\n";
      trim_weights();
      for (const Weight &w : weights_) {
        const cs::Tensor &t = tensor(*model_.subgraphs()->Get(w.subgraph), w.tensor);
        char head[64];
        std::snprintf(head, sizeof(head), "  %10s %5.1f %%  ", size_text(w.bytes).c_str(),
                      100 * static_cast<double>(w.bytes) / static_cast<double>(constant_bytes_));
        out_ += head + std::string(text_of(t.name())) + " ";
        append_type(out_, t);
        out_ += "\n";
      }
    }
  }

  static std::string padded(u64 n) {
    const std::string digits = std::to_string(n);
    return std::string(digits.size() < 10 ? 10 - digits.size() : 0, ' ') + digits;
  }

  void header_json() {
    out_ += "{\"format\":\"circle\",\"identifier\":\"" +
            std::string(is_tflite() ? "TFL3" : "CIR0") +
            "\",\"file_bytes\":" + std::to_string(file_.bytes.size()) +
            ",\"version\":" + std::to_string(model_.version()) +
            ",\"producer\":" + json_quote(text_of(model_.description())) +
            ",\"operators\":" + std::to_string(ops_) + ",\"values\":" + std::to_string(tensors_) +
            ",\"constants\":" + std::to_string(constants_) +
            ",\"constant_bytes\":" + std::to_string(constant_bytes_) +
            ",\"buffers\":" + std::to_string(size_of(model_.buffers())) +
            ",\"operator_codes\":" + std::to_string(size_of(model_.operator_codes()));
    for (const bool inputs : {true, false}) {
      out_ += inputs ? ",\n\"inputs\":[" : ",\n\"outputs\":[";
      bool first = true;
      each_port(inputs, [&](const std::string &name, const cs::Tensor &t, i32 index) {
        out_ += (first ? "\n " : ",\n ") + ("{\"name\":" + json_quote(name)) +
                ",\"tensor\":" + std::to_string(index) + ",\"type\":\"";
        append_type(out_, t);
        out_ += "\",\"kind\":\"user\"}";
        first = false;
      });
      out_ += "]";
    }
    const auto counts = [&](const char *title, const std::map<std::string, u64> &map) {
      out_ += ",\n\"" + std::string(title) + "\":{";
      bool first = true;
      for (const auto &[name, n] : ranked(map)) {
        out_ += (first ? "" : ",") + json_quote(name) + ":" + std::to_string(n);
        first = false;
      }
      out_ += "}";
    };
    counts("histogram", histogram_);
    counts("element_types", element_counts());
    out_ += ",\n\"weights\":[";
    trim_weights();
    for (size_t i = 0; options_.weights && i < weights_.size(); ++i) {
      const Weight &w = weights_[i];
      const cs::Tensor &t = tensor(*model_.subgraphs()->Get(w.subgraph), w.tensor);
      out_ += (i ? ",\n {" : "\n {") + ("\"bytes\":" + std::to_string(w.bytes)) +
              ",\"subgraph\":" + std::to_string(w.subgraph) +
              ",\"tensor\":" + std::to_string(w.tensor) +
              ",\"name\":" + json_quote(text_of(t.name())) + ",\"type\":\"";
      append_type(out_, t);
      out_ += "\"}";
    }
    out_ += "]";
  }

  // --- sections --------------------------------------------------------------------------------

  void signatures() {
    out_ += options_.json ? ",\n\"signatures\":[" : "signatures:\n";
    for (u32 i = 0; i < size_of(model_.signature_defs()); ++i) {
      const cs::SignatureDef &sig = *model_.signature_defs()->Get(i);
      const cs::SubGraph *sub = sig.subgraph_index() < size_of(model_.subgraphs())
                                    ? model_.subgraphs()->Get(sig.subgraph_index())
                                    : nullptr;
      if (options_.json)
        out_ += (i ? ",\n {" : "\n {") + ("\"key\":" + json_quote(text_of(sig.signature_key()))) +
                ",\"subgraph\":" + std::to_string(sig.subgraph_index());
      else
        out_ += "  '" + std::string(text_of(sig.signature_key())) + "' of subgraph " +
                std::to_string(sig.subgraph_index()) + "\n";
      for (const bool inputs : {true, false}) {
        const auto *map = inputs ? sig.inputs() : sig.outputs();
        if (options_.json)
          out_ += inputs ? ",\"inputs\":[" : ",\"outputs\":[";
        for (u32 k = 0; k < size_of(map); ++k) {
          const u32 t = map->Get(k)->tensor_index();
          const bool known = sub && t < size_of(sub->tensors());
          if (options_.json) {
            out_ += (k ? ",{" : "{") + ("\"name\":" + json_quote(text_of(map->Get(k)->name()))) +
                    ",\"tensor\":" + std::to_string(t) + "}";
            continue;
          }
          out_ += std::string(inputs ? "    in   " : "    out  ") +
                  std::string(text_of(map->Get(k)->name())) + " = [" + std::to_string(t) + "] ";
          if (known) {
            out_ += std::string(text_of(sub->tensors()->Get(t)->name())) + ": ";
            append_type(out_, *sub->tensors()->Get(t));
          }
          out_ += "\n";
        }
        if (options_.json)
          out_ += "]";
      }
      if (options_.json)
        out_ += "}";
    }
    if (options_.json)
      out_ += "]";
    else if (size_of(model_.signature_defs()) == 0)
      out_ += "  none\n";
  }

  void quantization() {
    out_ += options_.json ? ",\n\"quantization\":[" : "quantization:\n";
    bool first = true;
    for (const auto &[key, row] : scales_) {
      const auto element = from_wire_type(key.first);
      const std::string type(element ? ir::element_type_name(*element) : "?");
      const bool has_scales = row.high > 0;
      if (options_.json) {
        out_ += (first ? "\n {" : ",\n {") + ("\"element\":\"" + type) + "\",\"scheme\":\"" +
                std::string(kSchemes[static_cast<size_t>(key.second)]) +
                "\",\"tensors\":" + std::to_string(row.tensors);
        if (has_scales)
          out_ += ",\"scales\":[" + number(row.low) + "," + number(row.high) +
                  "],\"zero_points\":[" + std::to_string(row.least) + "," +
                  std::to_string(row.most) + "]";
        out_ += "}";
      } else {
        out_ += padded(row.tensors) + "  " + type + " " +
                std::string(kSchemes[static_cast<size_t>(key.second)]);
        if (has_scales)
          out_ += ", scales " + number(row.low) + " to " + number(row.high) + ", zero points " +
                  std::to_string(row.least) + " to " + std::to_string(row.most);
        out_ += "\n";
      }
      first = false;
    }
    if (options_.json)
      out_ += "]";
  }

  void metadata() {
    out_ += options_.json ? ",\n\"metadata\":[" : "metadata:\n";
    for (u32 i = 0; i < size_of(model_.metadata()); ++i) {
      const cs::Metadata &m = *model_.metadata()->Get(i);
      const size_t bytes = payload(file_, m.buffer()).size();
      if (options_.json)
        out_ += (i ? ",{" : "{") + ("\"name\":" + json_quote(text_of(m.name()))) +
                ",\"buffer\":" + std::to_string(m.buffer()) +
                ",\"bytes\":" + std::to_string(bytes) + "}";
      else
        out_ += "  '" + std::string(text_of(m.name())) + "' " + plural(bytes, "byte") + "\n";
    }
    if (options_.json)
      out_ += "]";
    else if (size_of(model_.metadata()) == 0)
      out_ += "  none\n";
  }

  // --- subgraphs -------------------------------------------------------------------------------

  void details(u32 s) {
    const cs::SubGraph &sub = *model_.subgraphs()->Get(s);
    if (options_.json) {
      out_ += (first_subgraph_ ? ",\n\"subgraphs\":[\n {" : ",\n {") +
              ("\"index\":" + std::to_string(s)) + ",\"name\":" + json_quote(text_of(sub.name())) +
              ",\"inputs\":" + std::to_string(size_of(sub.inputs())) +
              ",\"outputs\":" + std::to_string(size_of(sub.outputs())) +
              ",\"tensors\":" + std::to_string(size_of(sub.tensors())) +
              ",\"operators\":" + std::to_string(size_of(sub.operators()));
      first_subgraph_ = false;
    } else if (options_.tensors || options_.operators || size_of(model_.subgraphs()) > 1) {
      out_ += "subgraph " + std::to_string(s) + " '" + std::string(text_of(sub.name())) +
              "': " + plural(size_of(sub.operators()), "operator") + ", " +
              plural(size_of(sub.tensors()), "tensor") + "\n";
    }
    if (options_.tensors)
      list_tensors(sub);
    if (options_.operators)
      list_operators(sub);
    if (options_.json)
      out_ += "}";
  }

  bool accepted(std::string_view name) const { return !options_.name || options_.name(name); }

  void list_tensors(const cs::SubGraph &sub) {
    out_ += options_.json ? ",\n  \"tensor_list\":[" : "tensors:\n";
    bool first = true;
    const u64 end =
        std::min<u64>(size_of(sub.tensors()), options_.last + (options_.last != ~u64{0}));
    for (u64 t = options_.first; t < end; ++t) {
      const cs::Tensor &one = tensor(sub, static_cast<i64>(t));
      if (!accepted(text_of(one.name())))
        continue;
      const bool constant = one.buffer() != 0 && is_constant(file_, one);
      const u64 bytes = payload(file_, one.buffer()).size();
      std::string quant;
      append_quantization(quant, one);
      if (options_.json) {
        out_ += (first ? "\n   {" : ",\n   {") + ("\"index\":" + std::to_string(t)) +
                ",\"name\":" + json_quote(text_of(one.name())) + ",\"type\":\"";
        append_type(out_, one);
        out_ += "\",\"buffer\":" + std::to_string(one.buffer()) +
                ",\"bytes\":" + std::to_string(bytes) +
                ",\"constant\":" + (constant ? "true" : "false") +
                ",\"variable\":" + (one.is_variable() ? "true" : "false") +
                ",\"sparse\":" + (one.sparsity() ? "true" : "false") +
                ",\"quantization\":" + json_quote(quant) + "}";
      } else {
        out_ += "  [" + std::to_string(t) + "] " + std::string(text_of(one.name())) + ": ";
        append_type(out_, one);
        if (!quant.empty())
          out_ += ", " + quant;
        if (constant)
          out_ += ", constant in buffer " + std::to_string(one.buffer()) + " (" +
                  plural(bytes, "byte") + ")";
        if (one.sparsity())
          out_ += ", sparse";
        if (one.is_variable())
          out_ += ", variable";
        out_ += "\n";
      }
      first = false;
      flush();
    }
    if (options_.json)
      out_ += "]";
  }

  void list_operators(const cs::SubGraph &sub) {
    out_ += options_.json ? ",\n  \"operator_list\":[" : "operators:\n";
    bool first = true;
    const u64 end =
        std::min<u64>(size_of(sub.operators()), options_.last + (options_.last != ~u64{0}));
    for (u64 o = options_.first; o < end; ++o) {
      const cs::Operator &op = *sub.operators()->Get(static_cast<u32>(o));
      bool wanted = accepted(op_name(op));
      for (u32 i = 0; !wanted && i < size_of(op.outputs()); ++i)
        wanted = accepted(text_of(tensor(sub, op.outputs()->Get(i)).name()));
      if (!wanted)
        continue;
      list_operator(sub, op, o, first);
      first = false;
      flush();
    }
    if (options_.json)
      out_ += "]";
  }

  void list_operator(const cs::SubGraph &sub, const cs::Operator &op, u64 index, bool first) {
    const auto ports = [&](const flatbuffers::Vector<i32> *list) {
      for (u32 i = 0; i < size_of(list); ++i) {
        if (i)
          out_ += options_.json ? "," : ", ";
        const i32 t = list->Get(i);
        if (options_.json)
          out_ += std::to_string(t);
        else if (t < 0)
          out_ += "none";
        else
          out_ += "[" + std::to_string(t) + "] " + std::string(text_of(tensor(sub, t).name()));
      }
    };
    if (options_.json) {
      out_ += (first ? "\n   {" : ",\n   {") + ("\"index\":" + std::to_string(index)) +
              ",\"name\":" + json_quote(op_name(op)) + ",\"version\":" +
              std::to_string(model_.operator_codes()->Get(op.opcode_index())->version()) +
              ",\"inputs\":[";
      ports(op.inputs());
      out_ += "],\"outputs\":[";
      ports(op.outputs());
      out_ += "],\"options\":{" + options_of(op) + "}}";
      return;
    }
    out_ += "  [" + std::to_string(index) + "] " + std::string(op_name(op)) + "(";
    ports(op.inputs());
    out_ += ") -> ";
    ports(op.outputs());
    if (const std::string options = options_of(op); !options.empty())
      out_ += " {" + options + "}";
    out_ += "\n";
  }

  /// Fields that are not their defaults, as JSON members or as "name = value".
  std::string options_of(const cs::Operator &op) const {
    const auto code = from_wire(effective_code(*model_.operator_codes()->Get(op.opcode_index())));
    const OptionsDef *def = code ? wire(*code).options : nullptr;
    const flatbuffers::Table *table = def ? options_table(op, *def) : nullptr;
    std::string out;
    const auto add = [&](std::string_view name, const std::string &value) {
      out += out.empty() ? "" : options_.json ? "," : ", ";
      out += options_.json ? json_quote(name) + ":" + value : std::string(name) + " = " + value;
    };
    for (size_t i = 0; table && i < def->fields.size(); ++i)
      if (const std::string value = field_text(*table, def->fields[i]); !value.empty())
        add(def->fields[i].name, value);
    if (const size_t n = custom_options(file_, op).size())
      add("custom_options", options_.json ? std::to_string(n) : plural(n, "byte"));
    return out;
  }

  struct Weight {
    u64 bytes;
    u32 subgraph, tensor;
  };
  const FileView &file_;
  const cs::Model &model_;
  const ListingOptions &options_;
  const ListingSink &sink_;
  std::string out_;
  bool first_subgraph_ = true;
  u64 ops_ = 0, tensors_ = 0, constants_ = 0, constant_bytes_ = 0, smallest_ = 0;
  std::map<std::string, u64> histogram_;
  std::map<i8, u64> elements_;
  std::map<std::pair<i8, Scheme>, Scales> scales_;
  std::vector<Weight> weights_;
  boost::unordered_flat_set<const void *> seen_; // lists of scales
};

} // namespace

Status list_file(std::span<const std::byte> bytes, const ListingOptions &options,
                 const ListingSink &sink) {
  register_dialect();
  const auto copy = aligned_copy(bytes);
  auto file = open_view(bytes);
  if (!file)
    return tl::unexpected(file.error());
  Diagnostics problems;
  StructureOptions structure;
  structure.only_fatal = true;
  structure.max_findings = 1;
  check_structure(*file, structure, problems);
  if (!problems.all().empty())
    return tl::unexpected<Diagnostic>(problems.all().front());
  if (options.subgraph && *options.subgraph >= file->model->subgraphs()->size())
    return fail(ErrorKind::Usage, "circle.index",
                "there is no subgraph " + std::to_string(*options.subgraph), "model.subgraphs",
                "the last one is " + std::to_string(file->model->subgraphs()->size() - 1));
  Lister(*file, options, sink).run();
  return {};
}

} // namespace chute::circle
