#include "circle/subgraph_reader.h"

#include "circle/element.h"
#include "circle/infer.h"
#include "circle/options_codec.h"
#include "ir/context.h"
#include "ir/sym_table.h"

#include <bit>
#include <boost/container/small_vector.hpp>
#include <cstring>
#include <utility>

namespace chute::circle {

namespace {

namespace cs = ::circle;
using ir::ElementType;
using ir::SymInt;
using ir::Type;
using ir::Value;

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

/// Quantized in a way that the IR's types do not say: block-wise or custom.
bool has_foreign_scheme(const cs::Tensor &t) {
  const cs::QuantizationParameters *q = t.quantization();
  return q && (q->details_type() == cs::QuantizationDetails_BlockwiseQuantization ||
               (q->details_type() == cs::QuantizationDetails_CustomQuantization &&
                size_of(q->scale()) == 0));
}

bool is_dynamic(const cs::Tensor &t) {
  if (size_of(t.shape_signature()) != size_of(t.shape()))
    return false;
  for (u32 i = 0; i < size_of(t.shape_signature()); ++i)
    if (t.shape_signature()->Get(i) == -1)
      return true;
  return false;
}

} // namespace

SymInt FileReader::fresh_symbol() { return ctx().sym().symbol("d" + std::to_string(symbols_++)); }

Result<const ir::Quantization *> FileReader::quantization(const cs::Tensor &tensor,
                                                          ElementType element) {
  const cs::QuantizationParameters *q = tensor.quantization();
  const bool mx = element == ElementType::MXINT8 || element == ElementType::MXFP4 ||
                  (q && q->details_type() == cs::QuantizationDetails_MXQuantization);
  if (!q || (size_of(q->scale()) == 0 && !mx && q->details_type() == cs::QuantizationDetails_NONE))
    return nullptr;
  // Most are one scale and one zero point. Tables that say the same are seldom shared.
  const bool plain =
      !mx && size_of(q->scale()) == 1 && q->details_type() == cs::QuantizationDetails_NONE;
  if (plain) {
    i64 zero_point = 0;
    if (size_of(q->zero_point()))
      std::memcpy(&zero_point, q->zero_point()->Data(), sizeof(zero_point));
    const ir::Quantization *&simple =
        simple_quants_[{std::bit_cast<u32>(q->scale()->Get(0)), zero_point}];
    if (simple)
      return simple;
    ir::Quantization out;
    const float scale = q->scale()->Get(0);
    out.scales = {&scale, 1};
    out.zero_points = {&zero_point, 1};
    return simple = ctx().quantization(out);
  }
  // An axis may count from the end, so the rank is part of the key.
  const auto rank = static_cast<i32>(size_of(tensor.shape()));
  const auto [it, fresh] = quants_.try_emplace({q, mx ? rank : -1}, nullptr);
  if (!fresh)
    return it->second;
  ir::Quantization out;
  std::vector<i64> zero_points;
  // Scales that are tensors of their own stay in the file: what they apply to is carried as it is.
  if (q->details_type() == cs::QuantizationDetails_BlockwiseQuantization)
    return nullptr;
  if (mx) {
    const auto *details = q->details_as_MXQuantization();
    out.kind = ir::QuantKind::MX;
    out.axis = details ? details->axis() : q->quantized_dimension();
    if (out.axis < 0)
      out.axis += rank;
    out.block_size = 32;
  } else if (size_of(q->scale()) == 0) {
    return nullptr; // a custom scheme: its bytes mean nothing here
  } else {
    const u32 n = q->scale()->size();
    out.kind = n == 1 ? ir::QuantKind::PerTensor : ir::QuantKind::PerChannel;
    out.axis = n == 1 ? 0 : q->quantized_dimension();
    out.scales = {q->scale()->data(), n};
    // The verifier of flatbuffers asks vectors for the alignment of their length only.
    zero_points.resize(std::min<size_t>(size_of(q->zero_point()), n));
    for (size_t i = 0; i < zero_points.size(); ++i) {
      std::memcpy(&zero_points[i], q->zero_point()->Data() + i * sizeof(i64), sizeof(i64));
      zero_points[i] = flatbuffers::EndianScalar(zero_points[i]);
    }
    zero_points.resize(n, 0);
    out.zero_points = zero_points;
  }
  return it->second = ctx().quantization(out);
}

Result<const ir::Constant *> FileReader::constant(const cs::Tensor &tensor, Type type) {
  const auto bytes = payload(file_, tensor.buffer());
  const ElementType element = type.element();
  const bool packed = ir::element_bits(element) == 4 && ir::is_integer(element);
  const auto size = wire_bytes(element, type.num_elements());
  // Bytes that are not one number after the other are carried, never computed with.
  if ((!size && !(bytes.empty() && type.num_elements() == 0)) || tensor.sparsity() ||
      has_foreign_scheme(tensor))
    return keep(graph_.add_constant(type, nullptr, owner_, {}, false), tensor.buffer());
  // Nearly every buffer has one type.
  if (first_constants_.empty())
    first_constants_.assign(size_of(file_.model->buffers()), nullptr);
  const ir::Constant *&first = first_constants_[tensor.buffer()];
  if (first && first->type == type)
    return first;
  const ir::Constant *&known =
      first ? constants_[static_cast<u64>(tensor.buffer()) << 32 | type.id()] : first;
  if (known)
    return known;
  const std::byte *data = bytes.data();
  std::shared_ptr<const void> owner = owner_;
  const auto align = static_cast<size_t>(std::max(ir::element_bytes(element), 1));
  if (!bytes.empty() &&
      (packed || reinterpret_cast<uintptr_t>(data) % std::min<size_t>(align, 8))) {
    // Many tensors may view one buffer: it is copied once.
    Copy &copy =
        copies_[static_cast<u64>(tensor.buffer()) << 8 | (packed ? static_cast<u64>(element) : 0)];
    if (!copy.data) {
      auto words = std::make_shared<std::vector<u64>>((bytes.size() * (packed ? 2 : 1) + 7) / 8);
      auto *to = reinterpret_cast<std::byte *>(words->data());
      if (!packed)
        std::memcpy(to, bytes.data(), bytes.size());
      for (size_t i = 0; packed && i < bytes.size() * 2; ++i) {
        const auto nibble = static_cast<u8>(static_cast<u8>(bytes[i / 2]) >> (i % 2 ? 4 : 0) & 0xF);
        const bool negative = element == ElementType::I4 && (nibble & 8);
        to[i] = static_cast<std::byte>(negative ? nibble | 0xF0 : nibble);
      }
      copy = {to, words};
    }
    data = copy.data;
    owner = copy.owner;
  }
  return known = keep(graph_.add_constant(type, data, std::move(owner)), tensor.buffer());
}

const ir::Constant *FileReader::keep(const ir::Constant *constant, u32 buffer) {
  if (table_) {
    table_->buffer.resize(constant->id + 1, kNoOrigin);
    table_->buffer[constant->id] = buffer;
  }
  return constant;
}

void FileReader::note_region(const ir::Region &region, u32 subgraph) {
  if (table_)
    table_->subgraph[&region] = subgraph;
}

void FileReader::note_value(const ir::Value &value, u32 subgraph, u32 tensor) {
  if (!table_)
    return;
  if (value.id() >= table_->tensor.size()) {
    table_->tensor.resize(value.id() + 1, kNoOrigin);
    table_->type.resize(value.id() + 1);
  }
  const u32 number = origin_->first_tensor[subgraph] + tensor;
  table_->tensor[value.id()] = number;
  table_->type[value.id()] = value.type();
  origin_->used[number] = true;
}

void FileReader::note_op(const ir::Op &op, u32 subgraph, u32 index) {
  if (!table_)
    return;
  if (op.id() >= table_->op.size())
    table_->op.resize(op.id() + 1, kNoOrigin);
  table_->op[op.id()] = origin_->first_op[subgraph] + index;
}

namespace {

class SubgraphReader {
public:
  SubgraphReader(FileReader &reader, u32 index, ir::Region &region, const NestedSubgraph &nested,
                 const ContractCheck &contract)
      : reader_(reader),
        file_(reader.file()),
        graph_(reader.graph()),
        index_(index),
        sub_(*file_.model->subgraphs()->Get(index)),
        region_(region),
        nested_(nested),
        contract_(contract),
        builder_(graph_, region) {
    values_.assign(size_of(sub_.tensors()), nullptr);
    types_.assign(size_of(sub_.tensors()), Type());
  }

  Status run() {
    reader_.note_region(region_, index_);
    for (u32 i = 0; i < size_of(sub_.inputs()); ++i) {
      const auto t = static_cast<u32>(sub_.inputs()->Get(i));
      auto type = type_of(t);
      if (!type)
        return tl::unexpected(type.error());
      if (values_[t])
        type = values_[t]->type(); // listed twice: the same sizes
      else if (is_dynamic(tensor(t)))
        type = with_symbols(*type, t, {});
      Value *arg = graph_.add_argument(region_, *type, values_[t] ? ir::StringId() : name_of(t));
      if (!values_[t])
        values_[t] = arg;
      reader_.note_value(*arg, index_, t);
    }
    for (u32 o = 0; o < size_of(sub_.operators()); ++o)
      if (Status s = read_op(o); !s)
        return s;
    boost::container::small_vector<Value *, 8> results;
    for (u32 i = 0; i < size_of(sub_.outputs()); ++i) {
      auto v = value_of(static_cast<u32>(sub_.outputs()->Get(i)));
      if (!v)
        return tl::unexpected(v.error());
      results.push_back(*v);
    }
    note_written(results);
    builder_.set_loc({});
    builder_.ret(std::span<Value *const>(results.data(), results.size()));
    return {};
  }

  bool first_write(u32 t) {
    is_written_.resize(values_.size(), false);
    const bool before = is_written_[t];
    is_written_[t] = true;
    return !before;
  }

  /// What the program leaves in its variables: outputs of their own, after the file's.
  template <class Results>
  void note_written(Results &results) {
    if (&region_ != &graph_.body())
      return;
    for (const u32 t : written_) {
      ir::OutputInfo info;
      info.kind = ir::OutputKind::BufferMutation;
      info.target = std::string(graph_.context().string(name_of(t)));
      info.operand = static_cast<i32>(results.size());
      results.push_back(values_[t]);
      graph_.outputs().push_back(std::move(info));
    }
  }

  Status run_kinds(OpSignatures &signatures, KeySet &clean) {
    stand_alone_ = true;
    for (u32 o = 0; o < size_of(sub_.operators()); ++o) {
      const auto key = signatures.key(*sub_.operators()->Get(o));
      if (clean.contains(key))
        continue;
      reported_ = false;
      if (Status s = read_op(o); !s)
        return s;
      if (!reported_)
        clean.insert(key);
    }
    return {};
  }

private:
  const cs::Tensor &tensor(u32 t) const { return *sub_.tensors()->Get(t); }

  /// Names cost as much as operators; a graph that is only checked goes without.
  ir::StringId name_of(u32 t) {
    const auto *name = contract_ ? nullptr : tensor(t).name();
    return name ? reader_.ctx().intern({name->data(), name->size()}) : ir::StringId();
  }

  /// The declared type, with 1 for dynamic dimensions.
  Result<Type> type_of(u32 t) {
    if (types_[t])
      return types_[t];
    const cs::Tensor &in = tensor(t);
    const ElementType element = *from_wire_type(static_cast<i8>(in.type()));
    auto quant = reader_.quantization(in, element);
    if (!quant)
      return tl::unexpected(quant.error());
    boost::container::small_vector<SymInt, 8> shape;
    for (u32 i = 0; i < size_of(in.shape()); ++i)
      shape.emplace_back(static_cast<i64>(in.shape()->Get(i)));
    types_[t] = reader_.ctx().tensor_type(
        element, std::span<const SymInt>(shape.data(), shape.size()), *quant);
    return types_[t];
  }

  /// Dynamic dimensions become the expressions of `inferred` where that fits, or new symbols.
  Type with_symbols(Type declared, u32 t, Type inferred) {
    const auto *signature = tensor(t).shape_signature();
    bool fits = inferred && inferred.is_tensor() && inferred.rank() == declared.rank();
    for (int i = 0; fits && i < declared.rank(); ++i)
      fits = signature->Get(static_cast<u32>(i)) == -1 || inferred.dim(i).is_symbolic() ||
             inferred.dim(i) == declared.dim(i);
    boost::container::small_vector<SymInt, 8> shape;
    for (int i = 0; i < declared.rank(); ++i) {
      const bool dynamic = signature->Get(static_cast<u32>(i)) == -1;
      // A literal that inference found is not taken over: what is written back stays dynamic.
      shape.push_back(!dynamic                                ? declared.dim(i)
                      : fits && inferred.dim(i).is_symbolic() ? inferred.dim(i)
                                                              : reader_.fresh_symbol());
    }
    return reader_.ctx().with_shape(declared, std::span<const SymInt>(shape.data(), shape.size()));
  }

  Result<Value *> value_of(u32 t) {
    if (values_[t])
      return values_[t];
    auto type = type_of(t);
    if (!type)
      return tl::unexpected(type.error());
    const cs::Tensor &in = tensor(t);
    // Results of operators that were not read are known by their types.
    if (stand_alone_ && (in.is_variable() || !is_constant(file_, in)))
      return values_[t] = graph_.add_argument(region_, *type);
    if (in.is_variable())
      return values_[t] = variable(in, *type, t);
    auto c = reader_.constant(in, *type);
    if (!c)
      return tl::unexpected(c.error());
    const ir::LocId loc = builder_.loc();
    builder_.set_loc({});
    values_[t] = builder_.constant(*c, name_of(t));
    builder_.set_loc(loc);
    reader_.note_value(*values_[t], index_, t);
    return values_[t];
  }

  /// A variable starts with its buffer's content or with zeros, which take no memory: one element
  /// with stride 0.
  Value *variable(const cs::Tensor &in, Type type, u32 t) {
    const ir::Constant *initial = nullptr;
    if (const auto bytes = payload(file_, in.buffer()); !bytes.empty())
      if (auto c = reader_.constant(in, type); c && (*c)->has_data)
        initial = *c;
    if (!initial) {
      static constexpr u64 kZero[2] = {};
      const std::vector<i64> strides(static_cast<size_t>(type.rank()), 0);
      initial = graph_.add_constant(type, reinterpret_cast<const std::byte *>(kZero),
                                    std::shared_ptr<const void>(), strides);
    }
    const ir::NamedAttr attrs[] = {
        {"name",
         reader_.ctx().string_attr(in.name() ? in.name()->string_view() : std::string_view())},
        {"value", ir::Attr::of_constant(initial)}};
    ir::Op *op = builder_.create_typed(ir::core_op::state, {}, attrs, std::span(&type, 1));
    graph_.set_name(op->result(), name_of(t));
    reader_.note_value(*op->result(), index_, t);
    return op->result();
  }

  Status at_op(Diagnostic d, u32 o) {
    d.object = "operators[" + std::to_string(o) + "]" + (d.object.empty() ? "" : ", " + d.object);
    return tl::unexpected<Diagnostic>(std::move(d));
  }

  Status read_op(u32 o) {
    const cs::Operator &in = *sub_.operators()->Get(o);
    const cs::OperatorCode &code = *file_.model->operator_codes()->Get(in.opcode_index());
    const ir::OpCode opcode = *from_wire(effective_code(code));
    const WireDef &w = wire(opcode);
    const ir::OpDef &def = ir::Registry::global().def(opcode);
    const ir::StringId node =
        size_of(in.outputs()) ? name_of(static_cast<u32>(in.outputs()->Get(0))) : ir::StringId();
    builder_.set_loc(node ? graph_.locations().add(node, nullptr, 0) : ir::LocId());

    operands_.clear();
    for (u32 i = 0; i < size_of(in.inputs()); ++i) {
      const i32 t = in.inputs()->Get(i);
      auto v = t < 0 ? Result<Value *>(nullptr) : value_of(static_cast<u32>(t));
      if (!v)
        return at_op(v.error(), o);
      operands_.push_back(*v);
    }
    if (def.variadic_operands() == 0)
      operands_.resize(def.operands.size(), nullptr);

    attrs_.clear();
    subgraphs_.clear();
    if (w.options)
      if (Status s = decode_options(*w.options, options_table(in, *w.options), reader_.ctx(),
                                    attrs_, subgraphs_);
          !s)
        return at_op(s.error(), o);
    if (Status s = extra_attrs(in, code, opcode, w); !s)
      return at_op(s.error(), o);
    std::vector<ir::Region *> regions;
    for (i32 s : subgraphs_) {
      if (!nested_)
        break;
      auto r = nested_(static_cast<u32>(s));
      if (!r)
        return at_op(r.error(), o);
      regions.push_back(*r);
    }
    return create(in, o, opcode, def, regions);
  }

  Status create(const cs::Operator &in, u32 o, ir::OpCode opcode, const ir::OpDef &def,
                const std::vector<ir::Region *> &regions) {
    result_types_.clear();
    bool dynamic = false;
    for (u32 i = 0; i < size_of(in.outputs()); ++i) {
      const auto t = static_cast<u32>(in.outputs()->Get(i));
      auto type = type_of(t);
      if (!type)
        return at_op(type.error(), o);
      dynamic |= is_dynamic(tensor(t));
      result_types_.push_back(*type);
    }
    ir::Op *op = graph_.create(opcode, operands_, attrs_, result_types_, builder_.loc(), regions);
    for (u32 i = 0; i < size_of(in.outputs()) && !stand_alone_; ++i) {
      const auto t = static_cast<u32>(in.outputs()->Get(i));
      if (!tensor(t).is_variable() || !first_write(t))
        continue;
      if (auto s = value_of(t); !s) // the variable, should nothing have read it before
        return tl::unexpected(s.error());
      written_.push_back(t);
    }
    graph_.append(region_, op);
    if ((dynamic || contract_) && def.infer) {
      inferred_.clear();
      const Status status = def.infer(*op, graph_, inferred_);
      if (contract_ && !contract_(o, *op, status, inferred_))
        reported_ = true;
      if (dynamic)
        for (u32 i = 0; i < op->num_results(); ++i) {
          const auto t = static_cast<u32>(in.outputs()->Get(i));
          if (is_dynamic(tensor(t)))
            graph_.set_type(op->result(i),
                            with_symbols(result_types_[i], t,
                                         status && i < inferred_.size() ? inferred_[i] : Type()));
        }
    }
    for (u32 i = 0; i < op->num_results(); ++i) {
      const auto t = static_cast<u32>(in.outputs()->Get(i));
      graph_.set_name(op->result(i), name_of(t));
      values_[t] = op->result(i);
      reader_.note_value(*op->result(i), index_, t);
    }
    reader_.note_op(*op, index_, o);
    return {};
  }

  /// The attributes after the options' fields, in the order of the table.
  Status extra_attrs(const cs::Operator &in, const cs::OperatorCode &code, ir::OpCode opcode,
                     const WireDef &w) {
    ir::Context &ctx = reader_.ctx();
    if (w.stateful) {
      ir::Attr intermediates, mutating;
      if (size_of(in.intermediates())) {
        std::vector<ir::Attr> list;
        for (i32 t : *in.intermediates()) {
          if (t < 0)
            continue;
          auto type = type_of(static_cast<u32>(t));
          if (!type)
            return tl::unexpected(type.error());
          list.push_back(ir::Attr::of_type(*type));
        }
        intermediates = ctx.list_attr(list);
      }
      if (const auto *flags = in.mutating_variable_inputs(); size_of(flags)) {
        const std::unique_ptr<bool[]> copy(new bool[flags->size()]);
        for (u32 i = 0; i < flags->size(); ++i)
          copy[i] = flags->Get(i) != 0;
        mutating = ctx.bools_attr(std::span<const bool>(copy.get(), flags->size()));
      }
      attrs_.push_back(intermediates);
      attrs_.push_back(mutating);
    }
    if (opcode == op::CUSTOM) {
      attrs_.push_back(ctx.string_attr(code.custom_code() ? code.custom_code()->string_view()
                                                          : std::string_view()));
      const auto bytes = custom_options(file_, in);
      attrs_.push_back(
          ctx.string_attr({reinterpret_cast<const char *>(bytes.data()), bytes.size()}));
    }
    attrs_.push_back(ir::Attr::of_int(static_cast<i64>(code.version())));
    return {};
  }

  FileReader &reader_;
  const FileView &file_;
  ir::Graph &graph_;
  const u32 index_;
  const cs::SubGraph &sub_;
  ir::Region &region_;
  const NestedSubgraph &nested_;
  const ContractCheck &contract_;
  ir::Builder builder_;
  bool stand_alone_ = false;     // operators are checked one by one, no graph is wanted
  bool reported_ = false;        // the contract of the current operator
  std::vector<Value *> values_;  // by tensor
  std::vector<Type> types_;      // by tensor
  std::vector<u32> written_;     // variables that operators have as results
  std::vector<bool> is_written_; // by tensor
  // Of the operator that is being read.
  std::vector<Value *> operands_;
  std::vector<ir::Attr> attrs_;
  std::vector<i32> subgraphs_;
  std::vector<Type> result_types_;
  std::vector<Type> inferred_;
};

} // namespace

Status read_subgraph(FileReader &reader, u32 index, ir::Region &region,
                     const NestedSubgraph &nested, const ContractCheck &contract) {
  return SubgraphReader(reader, index, region, nested, contract).run();
}

Status check_kinds(FileReader &reader, u32 index, const ContractCheck &contract,
                   OpSignatures &signatures, KeySet &clean) {
  return SubgraphReader(reader, index, reader.graph().body(), {}, contract)
      .run_kinds(signatures, clean);
}

} // namespace chute::circle
