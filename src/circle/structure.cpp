#include "circle/element.h"
#include "circle/file_view.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cmath>
#include <string>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::circle {

namespace {

namespace cs = ::circle;
using flatbuffers::uoffset_t;

constexpr uoffset_t kMaxRank = 255;
constexpr i64 kMostElements = i64{1} << 56; // of any type, their bytes are countable

struct TextHash {
  using is_avalanching = void;
  size_t operator()(std::string_view v) const { return XXH3_64bits(v.data(), v.size()); }
};

struct HashOfHash {
  using is_avalanching = void;
  size_t operator()(u64 hash) const { return hash; }
};

/// A path into the model, made only when something is reported.
std::string at(std::string_view part, u64 i) {
  return std::string(part) + "[" + std::to_string(i) + "]";
}

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

class Checker {
public:
  Checker(const FileView &file, const StructureOptions &options, Diagnostics &out)
      : file_(file),
        model_(*file.model),
        options_(options),
        out_(out),
        budget_(4 * static_cast<u64>(file.bytes.size()) + 4096) {}

  void run() {
    check_model();
    if (stop_)
      return;
    used_buffers_.assign(size_of(model_.buffers()), false);
    used_codes_.assign(size_of(model_.operator_codes()), false);
    if (!used_buffers_.empty())
      used_buffers_[0] = true;
    calls_.resize(size_of(model_.subgraphs()));
    for (u32 s = 0; s < size_of(model_.subgraphs()) && !stop_; ++s)
      check_subgraph(s);
    if (stop_)
      return;
    check_recursion();
    check_signatures();
    check_metadata();
    report_unused("circle.unused.operator_codes", "operator codes", "model.operator_codes",
                  used_codes_);
    report_unused("circle.unused.buffers", "buffers", "model.buffers", used_buffers_);
  }

private:
  enum class Level { Fatal, Error, Warning };

  void report(Level level, std::string code, std::string message, std::string object) {
    if (stop_ || (options_.only_fatal && level != Level::Fatal))
      return;
    if (out_.all().size() >= options_.max_findings) {
      Diagnostic more;
      more.severity = Severity::Note;
      more.code = "circle.verify.more";
      more.message = "further findings are not listed";
      more.object = "model";
      out_.add(std::move(more));
      stop_ = true;
      return;
    }
    Diagnostic d;
    d.severity = level == Level::Warning ? Severity::Warning : Severity::Error;
    d.kind = level == Level::Fatal ? ErrorKind::BadInput : ErrorKind::Failure;
    d.code = std::move(code);
    d.message = std::move(message);
    d.object = std::move(object);
    out_.add(std::move(d));
  }

  /// Work is bounded by the file's size: vectors that many tables share would otherwise make it
  /// quadratic.
  bool spend(u64 units) {
    if (stop_)
      return false;
    if (units > budget_) {
      report(Level::Fatal, "circle.file.excess",
             "parts of the file are shared so often that the model is larger than the file allows",
             "model");
      stop_ = true;
      return false;
    }
    budget_ -= units;
    return true;
  }

  bool index_ok(i64 index, u64 size, bool absent_ok, auto &&path) {
    if ((index >= 0 && index < static_cast<i64>(size)) || (absent_ok && index == -1))
      return true;
    report(Level::Fatal, "circle.index",
           "index " + std::to_string(index) + " is outside of 0.." +
               std::to_string(static_cast<i64>(size) - 1),
           path());
    return false;
  }

  void check_model() {
    if (size_of(model_.subgraphs()) == 0)
      report(Level::Fatal, "circle.model.subgraphs", "the model has no subgraph",
             "model.subgraphs");
    if (!model_.operator_codes())
      report(Level::Error, "circle.model.operator_codes", "the operator codes are missing",
             "model.operator_codes");
    if (size_of(model_.buffers()) == 0) {
      report(Level::Error, "circle.model.buffers",
             "the model has no buffers, not even the empty one", "model.buffers");
      return;
    }
    for (u32 i = 0; i < model_.buffers()->size() && spend(1); ++i) {
      const cs::Buffer &b = *model_.buffers()->Get(i);
      const u64 inlined = size_of(b.data()), offset = b.offset(), size = b.size();
      if (i == 0) {
        if (inlined || offset || size)
          report(Level::Error, "circle.model.buffers",
                 "buffer 0 stands for \"no data\" and is not empty", "model.buffers[0]");
        continue;
      }
      if (offset == 0 && size == 0)
        continue;
      std::string why;
      if (inlined)
        why = "the payload is both inline and external";
      else if (offset < 8 || size == 0)
        why = "external payloads have an offset from 8 on and a size";
      else if (offset > file_.bytes.size() || size > file_.bytes.size() - offset)
        why = "bytes " + std::to_string(offset) + " to " + std::to_string(offset + size) +
              " are outside of a file of " + std::to_string(file_.bytes.size());
      if (!why.empty())
        report(Level::Fatal, "circle.buffer.external", std::move(why), at("model.buffers", i));
    }
  }

  // --- tensors ---------------------------------------------------------------------------------

  struct State {
    static constexpr i32 kUndefined = -1, kInput = -2, kConstant = -3, kVariable = -4;
    i32 producer = kUndefined; ///< an operator's index or one of the above
    i32 early_use = -1;        ///< an operator that used it before it was defined
    bool used = false;
    bool named = false; ///< an intermediate or the scales of another tensor: no data flows
    bool is_input = false;
    bool is_output = false;
  };

  std::string tensor_path(u32 t) const { return at(subgraph_path_ + ".tensors", t); }

  void check_tensor(u32 t) {
    const cs::Tensor &tensor = *graph_->tensors()->Get(t);
    const auto element = from_wire_type(static_cast<i8>(tensor.type()));
    if (!element)
      report(Level::Fatal, "circle.tensor.type",
             "element type " + std::to_string(tensor.type()) + " is not in the schema",
             tensor_path(t) + ".type");
    check_shape(tensor, t);
    check_quantization(tensor, t);
    if (const auto *name = tensor.name();
        name && name->size() && spend(name->size() / 4 + 1) && !options_.only_fatal) {
      const auto [it, fresh] = names_.try_emplace(XXH3_64bits(name->data(), name->size()), t);
      // The map holds hashes alone, being larger than all else here.
      if (!fresh &&
          graph_->tensors()->Get(it->second)->name()->string_view() == name->string_view())
        report(Level::Warning, "circle.tensor.name",
               "the name '" + name->str() + "' is also that of tensor " +
                   std::to_string(it->second),
               tensor_path(t) + ".name");
    }
    const u32 buffers = size_of(model_.buffers());
    // A model without buffers has tensors that refer to the missing empty one.
    if (!(buffers == 0 && tensor.buffer() == 0) &&
        !index_ok(tensor.buffer(), buffers, false, [&] { return tensor_path(t) + ".buffer"; }))
      return;
    if (buffers)
      used_buffers_[tensor.buffer()] = true;
    if (stop_ || !element)
      return;
    const auto data = payload(file_, tensor.buffer());
    if (!data.empty() && tensor.buffer() != 0 && !tensor.sparsity())
      check_size(tensor, t, *element, data.size());
  }

  void check_shape(const cs::Tensor &tensor, u32 t) {
    const u32 rank = size_of(tensor.shape());
    if (rank > kMaxRank) {
      report(Level::Fatal, "circle.tensor.shape", std::to_string(rank) + " dimensions",
             tensor_path(t) + ".shape");
      return;
    }
    const auto *signature = tensor.shape_signature();
    const bool dynamic = size_of(signature) != 0;
    if (dynamic && signature->size() != rank) {
      report(Level::Fatal, "circle.tensor.shape",
             "shape has " + std::to_string(rank) + " dimensions, shape_signature " +
                 std::to_string(signature->size()),
             tensor_path(t) + ".shape_signature");
      return;
    }
    i64 elements = 1; // of the dimensions that are not 0, so that no order of products overflows
    for (u32 i = 0; i < rank; ++i) {
      const i32 d = tensor.shape()->Get(i);
      if (d < 0)
        report(Level::Fatal, "circle.tensor.shape",
               "dimension " + std::to_string(i) + " is " + std::to_string(d),
               tensor_path(t) + ".shape");
      else if (d > 0 && elements <= kMostElements / d)
        elements *= d;
      else if (d > 0)
        report(Level::Fatal, "circle.tensor.shape", "more than 2^56 elements",
               tensor_path(t) + ".shape");
      if (!dynamic)
        continue;
      const i32 s = signature->Get(i);
      if (s < -1 || (s >= 0 && s != d))
        report(Level::Error, "circle.tensor.shape",
               "dimension " + std::to_string(i) + " is " + std::to_string(d) +
                   " in the shape and " + std::to_string(s) + " in the signature",
               tensor_path(t) + ".shape_signature");
      else if (s == -1 && d != 1)
        report(Level::Warning, "circle.tensor.dynamic",
               "dimension " + std::to_string(i) + " is dynamic but has size " + std::to_string(d),
               tensor_path(t) + ".shape_signature");
    }
  }

  void check_quantization(const cs::Tensor &tensor, u32 t) {
    const cs::QuantizationParameters *q = tensor.quantization();
    if (!q)
      return;
    const u32 scales = size_of(q->scale()), zeros = size_of(q->zero_point());
    const u32 rank = size_of(tensor.shape());
    const auto bad = [&](std::string why, Level level = Level::Error) {
      report(level, "circle.tensor.quantization", std::move(why), tensor_path(t) + ".quantization");
    };
    if (scales != zeros)
      bad(std::to_string(scales) + " scales and " + std::to_string(zeros) + " zero points");
    if (size_of(q->min()) != size_of(q->max()))
      bad("minima and maxima differ in number");
    if (scales > 1) {
      const i64 axis = q->quantized_dimension();
      if (axis < 0 || axis >= rank)
        bad("channels along axis " + std::to_string(axis) + " of a tensor of rank " +
                std::to_string(rank),
            Level::Fatal);
      else if (const i64 d = tensor.shape()->Get(static_cast<u32>(axis));
               d != scales && !(d == 1 && size_of(tensor.shape_signature())))
        bad(std::to_string(scales) + " scales for " + std::to_string(d) + " channels",
            Level::Fatal);
    }
    if (const auto *block = q->details_as_BlockwiseQuantization())
      check_blocks(*block, tensor, t);
    const auto *mx = q->details_as_MXQuantization();
    // The tag alone makes it MX: a damaged file may have it without the table.
    const bool is_mx = q->details_type() == cs::QuantizationDetails_MXQuantization ||
                       tensor.type() == cs::TensorType_MXINT8 ||
                       tensor.type() == cs::TensorType_MXFP4;
    const i64 mx_axis = mx ? mx->axis() : q->quantized_dimension();
    if (is_mx && (mx_axis < -static_cast<i64>(rank) || mx_axis >= rank))
      bad("blocks along axis " + std::to_string(mx_axis) + " of a tensor of rank " +
              std::to_string(rank),
          Level::Fatal);
    // A shared list is looked at once; telling that costs more than looking at one scale.
    if (scales > 1 && !checked_quants_.insert(q).second)
      return;
    if (!spend(scales))
      return;
    // One that is no number keeps a reader away, so a zero before it does not end the search.
    bool zero = false;
    for (u32 i = 0; i < scales; ++i) {
      const float s = q->scale()->Get(i);
      if ((s > 0 && std::isfinite(s)) || (s == 0 && zero))
        continue;
      bad("scale " + std::to_string(i) + " is " + std::to_string(s),
          s == 0 ? Level::Error : Level::Fatal);
      if (s != 0)
        break;
      zero = true;
    }
  }

  /// Scales of blocks along the last dimension are a tensor of their own, zero points may be.
  void check_blocks(const cs::BlockwiseQuantization &block, const cs::Tensor &tensor, u32 t) {
    const std::string path = tensor_path(t) + ".quantization.details";
    const u32 rank = size_of(tensor.shape());
    const i64 last = rank ? tensor.shape()->Get(rank - 1) : 0;
    if (block.block_size() <= 0 || rank == 0 || last % block.block_size())
      report(Level::Error, "circle.tensor.quantization",
             "blocks of " + std::to_string(block.block_size()) + " elements do not divide " +
                 (rank ? "the last dimension, " + std::to_string(last) : std::string("a scalar")),
             path);
    const auto name = [&](i32 index, const char *field, bool absent_ok) {
      if (index_ok(index, states_.size(), absent_ok, [&] { return path + "." + field; }) &&
          index >= 0)
        states_[static_cast<size_t>(index)].named = true;
    };
    name(block.scales(), "scales", false);
    name(block.zero_points(), "zero_points", true);
  }

  void check_size(const cs::Tensor &tensor, u32 t, ir::ElementType element, size_t bytes) {
    i64 count = 1;
    for (u32 i = 0; i < size_of(tensor.shape()); ++i)
      if (__builtin_mul_overflow(count, static_cast<i64>(tensor.shape()->Get(i)), &count)) {
        count = -1;
        break;
      }
    const auto expected = wire_bytes(element, count);
    const bool has_size = ir::element_bytes(element) != 0 && element != ir::ElementType::MXINT8 &&
                          element != ir::ElementType::MXFP4;
    if (has_size && (!expected || *expected != bytes))
      report(Level::Fatal, "circle.tensor.size",
             "buffer " + std::to_string(tensor.buffer()) + " has " + std::to_string(bytes) +
                 " bytes where shape and type take " +
                 (expected ? std::to_string(*expected) : std::string("more than there are")),
             tensor_path(t));
  }

  // --- operators -------------------------------------------------------------------------------

  std::string op_path(u32 o) const { return at(subgraph_path_ + ".operators", o); }

  void use_tensor(i32 t, u32 o) {
    State &s = states_[static_cast<size_t>(t)];
    s.used = true;
    if (s.producer == State::kUndefined && s.early_use < 0)
      s.early_use = static_cast<i32>(o);
  }

  void produce_tensor(i32 t, u32 o, u32 position) {
    State &s = states_[static_cast<size_t>(t)];
    const auto path = [&] { return at(op_path(o) + ".outputs", position); };
    if (s.producer >= 0)
      report(Level::Fatal, "circle.tensor.producers",
             "tensor " + std::to_string(t) + " is also produced by operator " +
                 std::to_string(s.producer),
             path());
    else if (s.producer == State::kInput)
      report(Level::Fatal, "circle.tensor.producers",
             "tensor " + std::to_string(t) + " is an input of the subgraph", path());
    else if (s.producer == State::kConstant)
      report(Level::Fatal, "circle.tensor.producers",
             "tensor " + std::to_string(t) + " is a constant", path());
    else if (s.early_use >= 0)
      report(Level::Fatal, "circle.operator.order",
             "tensor " + std::to_string(t) + " is used by operator " + std::to_string(s.early_use) +
                 " before operator " + std::to_string(o) + " produces it",
             path());
    s.producer = static_cast<i32>(o);
  }

  void check_arity(const cs::Operator &op, u32 o, ir::OpCode code) {
    const ir::OpDef &def = ir::Registry::global().def(code);
    const u32 inputs = size_of(op.inputs()), outputs = size_of(op.outputs());
    u32 most = 0; // named operands so far
    bool variadic = false;
    for (const ir::OperandSpec &spec : def.operands) {
      const bool many = spec.arity == ir::OperandArity::Variadic ||
                        spec.arity == ir::OperandArity::VariadicOptional;
      variadic |= many;
      most += !many;
      if (spec.arity == ir::OperandArity::One &&
          (most > inputs || op.inputs()->Get(most - 1) == -1))
        report(Level::Fatal, "circle.operator.arity",
               std::string(def.name) + " needs operand " + std::to_string(most - 1) + ", '" +
                   std::string(spec.name) + "'",
               op_path(o) + ".inputs");
      // A list of operands is the last one of its operator.
      if (spec.arity == ir::OperandArity::Variadic)
        for (u32 i = most; i < inputs; ++i)
          if (op.inputs()->Get(i) == -1)
            report(Level::Fatal, "circle.operator.arity",
                   std::string(def.name) + " needs every operand of '" + std::string(spec.name) +
                       "'",
                   op_path(o) + ".inputs[" + std::to_string(i) + "]");
    }
    if (!variadic && inputs > most)
      report(Level::Fatal, "circle.operator.arity",
             std::string(def.name) + " takes " + std::to_string(most) + " operands, not " +
                 std::to_string(inputs),
             op_path(o) + ".inputs");
    const bool any_results = !def.results.empty() && def.results.back().variadic;
    if (!any_results && outputs != def.results.size())
      report(Level::Fatal, "circle.operator.arity",
             std::string(def.name) + " has " + std::to_string(def.results.size()) +
                 " results, not " + std::to_string(outputs),
             op_path(o) + ".outputs");
  }

  void check_options(const cs::Operator &op, u32 o, ir::OpCode code) {
    const OptionsDef *options = wire(code).options;
    const auto one = static_cast<u8>(op.builtin_options_type());
    const auto two = static_cast<u8>(op.builtin_options2_type());
    const u8 want_one = options && options->union_number == 1 ? options->member : 0;
    const u8 want_two = options && options->union_number == 2 ? options->member : 0;
    if ((one != 0 && one != want_one) || (two != 0 && two != want_two))
      report(Level::Error, "circle.operator.options",
             "the options table is not " +
                 (options ? std::string(options->name) : std::string("absent")) + ", as " +
                 std::string(ir::Registry::global().def(code).name) + " has it",
             op_path(o));
    if (!options)
      return;
    const flatbuffers::Table *table = options_table(op, *options);
    for (const Field &f : options->fields) {
      const auto slot = static_cast<flatbuffers::voffset_t>(4 + 2 * f.slot);
      if (f.type == FieldType::Subgraph) {
        call(table ? table->GetField<i32>(slot, 0) : 0, o, f.name);
      } else if (f.type == FieldType::Subgraphs && table) {
        const auto *list = table->GetPointer<const flatbuffers::Vector<i32> *>(slot);
        for (u32 i = 0; i < size_of(list) && spend(1); ++i)
          call(list->Get(i), o, f.name);
      } else if (table && (f.type == FieldType::Ints || f.type == FieldType::Longs ||
                           f.type == FieldType::UInts || f.type == FieldType::Floats ||
                           f.type == FieldType::Bools || f.type == FieldType::Bytes ||
                           f.type == FieldType::String)) {
        // Read later element by element; every kind of list starts with its length.
        spend(size_of(table->GetPointer<const flatbuffers::Vector<u8> *>(slot)) / 4 + 1);
      }
    }
  }

  void call(i32 subgraph, u32 o, std::string_view field) {
    if (index_ok(subgraph, model_.subgraphs()->size(), false,
                 [&] { return op_path(o) + "." + std::string(field); }))
      calls_[subgraph_].push_back(static_cast<u32>(subgraph));
  }

  void check_operator(u32 o) {
    const cs::Operator &op = *graph_->operators()->Get(o);
    const u32 tensors = size_of(graph_->tensors());
    const u32 inputs = size_of(op.inputs()), outputs = size_of(op.outputs());
    if (!spend(1 + inputs + outputs + size_of(op.intermediates()) +
               size_of(op.mutating_variable_inputs()) / 4))
      return;
    for (u32 i = 0; i < inputs; ++i) {
      const i32 t = op.inputs()->Get(i);
      if (index_ok(t, tensors, true, [&] { return at(op_path(o) + ".inputs", i); }) && t >= 0)
        use_tensor(t, o);
    }
    for (u32 i = 0; i < size_of(op.intermediates()); ++i) {
      const i32 t = op.intermediates()->Get(i);
      if (index_ok(t, tensors, true, [&] { return at(op_path(o) + ".intermediates", i); }) &&
          t >= 0)
        states_[static_cast<size_t>(t)].named = true;
    }
    for (u32 i = 0; i < outputs; ++i) {
      const i32 t = op.outputs()->Get(i);
      if (index_ok(t, tensors, false, [&] { return at(op_path(o) + ".outputs", i); }))
        produce_tensor(t, o, i);
    }
    if (!index_ok(op.opcode_index(), size_of(model_.operator_codes()), false,
                  [&] { return op_path(o) + ".opcode_index"; }))
      return;
    used_codes_[op.opcode_index()] = true;
    const i32 wire_code = effective_code(*model_.operator_codes()->Get(op.opcode_index()));
    const auto code = from_wire(wire_code);
    if (!code) {
      report(Level::Fatal, "circle.operator.code",
             "operator code " + std::to_string(wire_code) + " is not in the schema", op_path(o));
      return;
    }
    check_arity(op, o, *code);
    check_options(op, o, *code);
    const u64 large = op.large_custom_options_size(), offset = op.large_custom_options_offset();
    if (large > 1 && (offset > file_.bytes.size() || large > file_.bytes.size() - offset))
      report(Level::Fatal, "circle.buffer.external",
             "the large custom options lie outside of the file", op_path(o));
    spend(custom_options(file_, op).size() / 4);
  }

  // --- subgraphs -------------------------------------------------------------------------------

  void check_port(const flatbuffers::Vector<i32> *ports, const char *what, bool inputs) {
    for (u32 i = 0; i < size_of(ports) && spend(1); ++i) {
      const i32 t = ports->Get(i);
      if (!index_ok(t, states_.size(), false, [&] { return at(subgraph_path_ + "." + what, i); }))
        continue;
      State &s = states_[static_cast<size_t>(t)];
      bool &listed = inputs ? s.is_input : s.is_output;
      if (listed)
        report(Level::Warning, "circle.io.duplicate",
               "tensor " + std::to_string(t) + " is listed twice",
               at(subgraph_path_ + "." + what, i));
      listed = true;
      if (inputs)
        s.producer = State::kInput;
    }
  }

  void check_subgraph(u32 s) {
    graph_ = model_.subgraphs()->Get(s);
    subgraph_ = s;
    subgraph_path_ = at("model.subgraphs", s);
    names_.clear();
    const u32 tensors = size_of(graph_->tensors());
    if (!spend(tensors))
      return;
    if (!options_.only_fatal)
      names_.reserve(tensors);
    states_.assign(tensors, {});
    for (u32 t = 0; t < tensors && !stop_; ++t) {
      if (!spend(1 + size_of(graph_->tensors()->Get(t)->shape())))
        return;
      check_tensor(t);
      const cs::Tensor &tensor = *graph_->tensors()->Get(t);
      if (!stop_ && tensor.is_variable())
        states_[t].producer = State::kVariable;
      else if (!stop_ && tensor.buffer() != 0 && !payload(file_, tensor.buffer()).empty())
        states_[t].producer = State::kConstant;
    }
    check_port(graph_->inputs(), "inputs", true);
    for (u32 o = 0; o < size_of(graph_->operators()) && !stop_; ++o)
      check_operator(o);
    check_port(graph_->outputs(), "outputs", false);
    std::vector<u32> unused;
    for (u32 t = 0; t < tensors && !stop_; ++t) {
      const State &state = states_[t];
      if (state.producer == State::kUndefined && (state.used || state.is_output) &&
          !is_constant(file_, *graph_->tensors()->Get(t)))
        report(Level::Fatal, "circle.tensor.undefined",
               state.used ? "used (first by operator " + std::to_string(state.early_use) +
                                ") but no input, no constant and produced by nothing"
                          : "an output, but no input, no constant and produced by nothing",
               tensor_path(t));
      if (state.producer < 0 && !state.used && !state.named && !state.is_input && !state.is_output)
        unused.push_back(t);
    }
    if (!unused.empty())
      report(Level::Warning, "circle.unused.tensors", list(unused, "tensors"),
             subgraph_path_ + ".tensors");
    if (options_.only_fatal)
      return;
    ports_.emplace_back();
    for (const State &state : states_)
      ports_.back().push_back(
          static_cast<u8>((state.is_input ? 1 : 0) | (state.is_output ? 2 : 0)));
  }

  static std::string list(const std::vector<u32> &items, std::string_view what) {
    std::string text = std::to_string(items.size()) + " unused " + std::string(what) + ":";
    for (size_t i = 0; i < std::min<size_t>(items.size(), 20); ++i)
      text += " " + std::to_string(items[i]);
    return items.size() > 20 ? text + " …" : text;
  }

  void report_unused(std::string code, std::string_view what, std::string path,
                     const std::vector<bool> &used) {
    std::vector<u32> unused;
    for (u32 i = 0; i < used.size(); ++i)
      if (!used[i])
        unused.push_back(i);
    if (!unused.empty())
      report(Level::Warning, std::move(code), list(unused, what), std::move(path));
  }

  /// Depth-first over the calls between subgraphs, with a stack of its own.
  void check_recursion() {
    enum : u8 { kNew, kOpen, kDone };
    std::vector<u8> state(calls_.size(), kNew);
    std::vector<std::pair<u32, size_t>> stack;
    for (u32 root = 0; root < calls_.size(); ++root) {
      if (state[root] != kNew)
        continue;
      stack.push_back({root, 0});
      state[root] = kOpen;
      while (!stack.empty()) {
        auto &[s, next] = stack.back();
        if (next == calls_[s].size()) {
          state[s] = kDone;
          stack.pop_back();
          continue;
        }
        const u32 callee = calls_[s][next++];
        if (state[callee] == kOpen)
          report(Level::Fatal, "circle.subgraph.recursion",
                 "subgraph " + std::to_string(callee) + " calls itself", at("model.subgraphs", s));
        if (state[callee] == kNew) {
          state[callee] = kOpen;
          stack.push_back({callee, 0});
        }
      }
    }
  }

  void check_map(const flatbuffers::Vector<flatbuffers::Offset<cs::TensorMap>> *map, u32 subgraph,
                 u8 port, const std::string &path) {
    for (u32 i = 0; i < size_of(map) && spend(1); ++i) {
      const u32 t = map->Get(i)->tensor_index();
      const std::vector<u8> &ports = ports_[subgraph];
      if (t >= ports.size())
        report(Level::Error, "circle.index",
               "index " + std::to_string(t) + " is outside of 0.." +
                   std::to_string(static_cast<i64>(ports.size()) - 1),
               at(path, i) + ".tensor_index");
      else if (!(ports[t] & port))
        report(Level::Error, "circle.signature",
               "tensor " + std::to_string(t) + " is no " + (port == 1 ? "input" : "output") +
                   " of subgraph " + std::to_string(subgraph),
               at(path, i) + ".tensor_index");
    }
  }

  void check_signatures() {
    boost::unordered_flat_set<std::string_view, TextHash> keys;
    for (u32 i = 0; i < size_of(model_.signature_defs()) && !options_.only_fatal && spend(1); ++i) {
      const cs::SignatureDef &sig = *model_.signature_defs()->Get(i);
      const std::string path = at("model.signature_defs", i);
      if (const auto *key = sig.signature_key();
          key && key->size() && spend(key->size() / 4) &&
          !keys.insert(std::string_view(key->data(), key->size())).second)
        report(Level::Warning, "circle.signature.key", "the key '" + key->str() + "' occurs twice",
               path + ".signature_key");
      if (sig.subgraph_index() >= ports_.size()) {
        report(Level::Error, "circle.index",
               "index " + std::to_string(sig.subgraph_index()) + " is outside of 0.." +
                   std::to_string(static_cast<i64>(ports_.size()) - 1),
               path + ".subgraph_index");
        continue;
      }
      check_map(sig.inputs(), sig.subgraph_index(), 1, path + ".inputs");
      check_map(sig.outputs(), sig.subgraph_index(), 2, path + ".outputs");
    }
  }

  void check_metadata() {
    const u32 buffers = size_of(model_.buffers());
    const auto check = [&](i64 buffer, std::string path) {
      if (buffer >= 0 && buffer < buffers)
        used_buffers_[static_cast<size_t>(buffer)] = true;
      else
        report(Level::Error, "circle.index",
               "index " + std::to_string(buffer) + " is outside of 0.." +
                   std::to_string(static_cast<i64>(buffers) - 1),
               std::move(path));
    };
    for (u32 i = 0; i < size_of(model_.metadata_buffer()) && spend(1); ++i)
      check(model_.metadata_buffer()->Get(i), at("model.metadata_buffer", i));
    for (u32 i = 0; i < size_of(model_.metadata()) && spend(1); ++i)
      check(model_.metadata()->Get(i)->buffer(), at("model.metadata", i) + ".buffer");
  }

  const FileView &file_;
  const cs::Model &model_;
  const StructureOptions &options_;
  Diagnostics &out_;
  u64 budget_;
  bool stop_ = false;
  std::vector<bool> used_buffers_;
  std::vector<bool> used_codes_;
  std::vector<std::vector<u32>> calls_; // by subgraph
  std::vector<std::vector<u8>> ports_;  // by subgraph and tensor: 1 input, 2 output
  boost::unordered_flat_set<const cs::QuantizationParameters *> checked_quants_;
  // The current subgraph.
  const cs::SubGraph *graph_ = nullptr;
  u32 subgraph_ = 0;
  std::string subgraph_path_;
  std::vector<State> states_;
  boost::unordered_flat_map<u64, u32, HashOfHash> names_; // tensor by the hash of its name
};

} // namespace

void check_structure(const FileView &file, const StructureOptions &options,
                     Diagnostics &diagnostics) {
  Checker(file, options, diagnostics).run();
}

} // namespace chute::circle
