#include "tosa/reader.h"

#include "ir/context.h"
#include "ir/op_check.h"
#include "ir/sym_table.h"
#include "schema/tosa_1_1_generated.h"
#include "tosa/attribute_codec.h"
#include "tosa/element.h"
#include "tosa/ops.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstring>
#include <deque>

namespace chute::tosa {

namespace {

namespace fb = flatbuffers;
namespace ts = ::tosa;
using ir::ElementType;
using ir::SymInt;
using ir::Type;
using ir::Value;

/// Regions that are called from several places are read once for each. This many operators more
/// than the file has are read before that is refused.
constexpr u64 kMostCopies = 100'000;
constexpr u32 kHighestRank = 64;
constexpr i64 kMostElements = i64{1} << 56;

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

std::string_view text_of(const fb::String *s) {
  return s ? std::string_view(s->data(), s->size()) : std::string_view();
}

tl::unexpected<Diagnostic> bad(std::string code, std::string why, std::string where) {
  return fail(ErrorKind::BadInput, std::move(code), std::move(why), std::move(where));
}

class Reader {
public:
  Reader(ir::Context &ctx, const ts::TosaGraph &file, std::span<const std::byte> bytes,
         std::shared_ptr<const void> owner, ir::Graph &graph)
      : ctx_(ctx), file_(file), bytes_(bytes), owner_(std::move(owner)), graph_(graph) {}

  Status read() {
    for (u32 i = 0; i < size_of(file_.regions()); ++i) {
      const ts::TosaRegion *r = file_.regions()->Get(i);
      if (size_of(r->blocks()) != 1)
        return bad("tosa.read.structure", "a region holds other than one block",
                   "regions[" + std::to_string(i) + "]");
      allowed_ += size_of(r->blocks()->Get(0)->operators()) + 1;
      regions_.try_emplace(text_of(r->name()), r->blocks()->Get(0));
    }
    if (regions_.empty())
      return bad("tosa.read.structure", "the file holds no region", "regions");
    const auto main = regions_.find("main");
    jobs_.push_back(
        {main != regions_.end() ? main->second : file_.regions()->Get(0)->blocks()->Get(0),
         &graph_.body(), "main"});
    while (!jobs_.empty()) {
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      if (Status s = read_block(job); !s)
        return s;
    }
    return {};
  }

private:
  struct Job {
    const ts::TosaBasicBlock *block;
    ir::Region *region;
    std::string name;
  };
  struct Scope {
    boost::unordered_flat_map<std::string_view, const ts::TosaTensor *> tensors;
    boost::unordered_flat_map<std::string_view, const ts::TosaShape *> shapes;
    boost::unordered_flat_map<std::string_view, Value *> values, shape_values;
    std::string name;
  };

  Result<Type> type_of(const ts::TosaTensor &t, const std::string &where) {
    const auto element = from_wire_type(static_cast<u32>(t.type()));
    if (!element)
      return bad("tosa.read.tensor", "has no element type of TOSA", where);
    if (t.is_unranked() || size_of(t.shape()) > kHighestRank)
      return bad("tosa.read.tensor", "has no rank, or one above 64", where);
    std::vector<SymInt> dims;
    i64 count = 1;
    for (u32 i = 0; i < size_of(t.shape()); ++i) {
      const i64 d = t.shape()->Get(i);
      if (d < -1 || (d > 0 && count > kMostElements / d))
        return bad("tosa.read.tensor", "has a shape out of range", where);
      count *= std::max<i64>(d, 1);
      dims.push_back(d >= 0 ? SymInt(d) : ctx_.sym().symbol("d" + std::to_string(next_symbol_++)));
    }
    return ctx_.tensor_type(*element, dims);
  }

  Result<const ir::Constant *> constant_of(Type type, std::span<const std::byte> data,
                                           const std::string &where) {
    const auto n = static_cast<size_t>(type.has_static_shape() ? type.num_elements() : -1);
    const auto size = static_cast<size_t>(ir::element_bytes(type.element()));
    const bool wide = type.element() == ElementType::I48;
    const size_t expected =
        is_packed(type.element()) ? (n + 1) / 2 : n * (wide ? kBytesOfI48 : size);
    // An empty `data` of an empty tensor is no field at all; surplus bytes are harmless.
    if (!type.has_static_shape() || data.size() < expected)
      return bad("tosa.read.tensor",
                 "has " + std::to_string(data.size()) + " bytes of data, not " +
                     std::to_string(expected),
                 where);
    if (wide) {
      std::byte *out = nullptr;
      const ir::Constant *c = graph_.add_buffer(type, &out);
      for (size_t i = 0; i < n; ++i) {
        u64 bits = 0;
        std::memcpy(&bits, data.data() + i * kBytesOfI48, kBytesOfI48);
        const i64 value = static_cast<i64>(bits << 16) >> 16;
        std::memcpy(out + i * sizeof value, &value, sizeof value);
      }
      return c;
    }
    if (is_packed(type.element())) {
      std::byte *out = nullptr;
      const ir::Constant *c = graph_.add_buffer(type, &out);
      for (size_t i = 0; i < n; ++i)
        out[i] = (data[i / 2] >> (i % 2 * 4)) & std::byte{15};
      if (type.element() == ElementType::I4)
        for (size_t i = 0; i < n; ++i)
          if ((out[i] & std::byte{8}) != std::byte{0})
            out[i] |= std::byte{0xF0};
      return c;
    }
    data = data.first(expected);
    if (reinterpret_cast<uintptr_t>(data.data()) % std::max<size_t>(size, 1) != 0)
      return graph_.add_copy(type, data);
    return graph_.add_constant(type, data.data(), owner_);
  }

  std::span<const std::byte> bytes_of(const fb::Vector<u8> *data, u64 offset, u64 size) const {
    if (size_of(data))
      return std::as_bytes(std::span(data->data(), data->size()));
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      return {};
    return bytes_.subspan(offset, size);
  }

  Status read_constant(Scope &scope, const ts::TosaOperator &op, bool shape,
                       const std::string &where, ir::Builder &b) {
    if (size_of(op.outputs()) != 1)
      return bad("tosa.read.arity", "a constant has one output", where);
    const std::string_view name = text_of(op.outputs()->Get(0));
    Result<const ir::Constant *> c = bad("tosa.read.tensor", "names no tensor of the block", where);
    if (const auto at = scope.shapes.find(name); shape && at != scope.shapes.end()) {
      const auto data = bytes_of(at->second->data(), 0, 0);
      const Type type =
          ctx_.tensor_type(ElementType::I64, {SymInt(static_cast<i64>(data.size() / 8))});
      c = constant_of(type, data, where);
    } else if (const auto t = scope.tensors.find(name); !shape && t != scope.tensors.end()) {
      auto type = type_of(*t->second, where);
      if (!type)
        return tl::unexpected(type.error());
      c = constant_of(*type, bytes_of(t->second->data(), t->second->offset(), t->second->size()),
                      where);
    }
    if (!c)
      return tl::unexpected(c.error());
    Value *v = b.constant(*c, ctx_.intern(name));
    if (!(shape ? scope.shape_values : scope.values).try_emplace(name, v).second)
      return bad("tosa.read.order", "'" + std::string(name) + "' is produced twice", where);
    return {};
  }

  Status read_operator(Scope &scope, const ts::TosaOperator &op, ir::Region &region,
                       const std::string &where) {
    const auto code = static_cast<u32>(op.op());
    ir::Builder b(graph_, region);
    if (op.location() && op.location()->text()) {
      const std::string_view text = text_of(op.location()->text());
      const std::string_view node = text.substr(text.rfind(' ') + 1);
      b.set_loc(graph_.locations().add(
          ctx_.intern(node), text.substr(0, text.size() - node.size() ? text.rfind(' ') : 0), {}));
    }
    if (code == kConstCode || code == kConstShapeCode)
      return read_constant(scope, op, code == kConstShapeCode, where, b);
    const auto opcode = from_wire(code);
    if (!opcode)
      return bad("tosa.read.operator",
                 "operator " + std::to_string(code) + " (" + ts::EnumNameOp(op.op()) +
                     ") is not supported",
                 where);
    const WireDef &def = wire(*opcode);
    const auto member = static_cast<u32>(op.attribute_type());
    if (member != 0 && member != code)
      return bad("tosa.read.attribute", "carries the attributes of another operator", where);
    std::vector<Value *> operands;
    for (u32 i = 0; i < size_of(op.inputs()); ++i) {
      const std::string_view name = text_of(op.inputs()->Get(i));
      const auto &known = def.takes_shape(i) ? scope.shape_values : scope.values;
      const auto at = known.find(name);
      if (at == known.end())
        return bad("tosa.read.order", "uses '" + std::string(name) + "' before it is defined",
                   where);
      operands.push_back(at->second);
    }
    std::vector<ir::Attr> attrs;
    std::vector<std::string> graphs;
    // Without its tag the flatbuffers verifier has not looked at the table.
    const auto *table = member ? static_cast<const fb::Table *>(op.attribute()) : nullptr;
    const ElementType element =
        operands.empty() ? ElementType::None : operands[0]->type().element();
    if (Status s = decode_attributes(def, table, element, ctx_, attrs, graphs); !s) {
      s.error().object = where + " " + std::string(def.id);
      return s;
    }
    const ir::OpDef &row = ir::Registry::global().def(*opcode);
    if (Status s = ir::check_operands(row, operands, attrs); !s)
      return bad("tosa.read.arity", s.error().message, where + " " + std::string(def.id));
    const bool variadic = !row.results.empty() && row.results.back().variadic;
    if (!variadic && size_of(op.outputs()) != row.results.size())
      return bad("tosa.read.arity",
                 "has " + std::to_string(size_of(op.outputs())) + " results, not " +
                     std::to_string(row.results.size()),
                 where + " " + std::string(def.id));
    std::vector<Type> types;
    for (u32 i = 0; i < size_of(op.outputs()); ++i) {
      const std::string_view name = text_of(op.outputs()->Get(i));
      if (def.shape_result) {
        const auto at = scope.shapes.find(name);
        if (at == scope.shapes.end())
          return bad("tosa.read.tensor", "names no shape of the block", where);
        types.push_back(
            ctx_.tensor_type(ElementType::I64, {SymInt(static_cast<i64>(at->second->rank()))}));
        continue;
      }
      const auto at = scope.tensors.find(name);
      if (at == scope.tensors.end())
        return bad("tosa.read.tensor", "names no tensor of the block", where);
      auto type = type_of(*at->second, where + " '" + std::string(name) + "'");
      if (!type)
        return tl::unexpected(type.error());
      types.push_back(*type);
    }
    std::vector<ir::Region *> regions;
    for (const std::string &name : graphs) {
      const auto at = regions_.find(name);
      if (at == regions_.end())
        return bad("tosa.read.structure", "names a region '" + name + "' that there is not", where);
      const u64 cost = size_of(at->second->operators()) + 1;
      if (cost > allowed_ + kMostCopies - std::min(copied_, allowed_ + kMostCopies))
        return bad("tosa.file.excess",
                   "regions that are called from many places make the program larger than the "
                   "file allows",
                   where);
      copied_ += cost;
      regions.push_back(graph_.create_region());
      jobs_.push_back({at->second, regions.back(), name});
    }
    ir::Op *made = graph_.create(*opcode, operands, attrs, types, b.loc(), regions);
    graph_.append(region, made);
    for (u32 i = 0; i < size_of(op.outputs()); ++i) {
      const std::string_view name = text_of(op.outputs()->Get(i));
      graph_.set_name(made->result(i), ctx_.intern(name));
      if (!(def.shape_result ? scope.shape_values : scope.values)
               .try_emplace(name, made->result(i))
               .second)
        return bad("tosa.read.order", "'" + std::string(name) + "' is produced twice", where);
    }
    return {};
  }

  Status read_block(const Job &job) {
    Scope scope;
    const ts::TosaBasicBlock &block = *job.block;
    for (u32 i = 0; i < size_of(block.tensors()); ++i)
      scope.tensors.try_emplace(text_of(block.tensors()->Get(i)->name()), block.tensors()->Get(i));
    for (u32 i = 0; i < size_of(block.shapes()); ++i)
      scope.shapes.try_emplace(text_of(block.shapes()->Get(i)->name()), block.shapes()->Get(i));
    for (u32 i = 0; i < size_of(block.inputs()); ++i) {
      const std::string_view name = text_of(block.inputs()->Get(i));
      const std::string where = job.name + ".inputs[" + std::to_string(i) + "]";
      const auto at = scope.tensors.find(name);
      if (at == scope.tensors.end())
        return bad("tosa.read.tensor", "names no tensor of the block", where);
      auto type = type_of(*at->second, where);
      if (!type)
        return tl::unexpected(type.error());
      Value *v = graph_.add_argument(*job.region, *type, ctx_.intern(name));
      if (!scope.values.try_emplace(name, v).second)
        return bad("tosa.read.structure", "an input is listed twice", where);
      if (job.region == &graph_.body()) {
        ir::InputInfo info;
        info.name = name;
        info.value = v;
        graph_.inputs().push_back(std::move(info));
      }
    }
    for (u32 i = 0; i < size_of(block.operators()); ++i)
      if (Status s = read_operator(scope, *block.operators()->Get(i), *job.region,
                                   job.name + ".operators[" + std::to_string(i) + "]");
          !s)
        return s;
    std::vector<Value *> results;
    for (u32 i = 0; i < size_of(block.outputs()); ++i) {
      const std::string_view name = text_of(block.outputs()->Get(i));
      const auto at = scope.values.find(name);
      if (at == scope.values.end())
        return bad("tosa.read.order", "'" + std::string(name) + "' is never defined",
                   job.name + ".outputs[" + std::to_string(i) + "]");
      results.push_back(at->second);
      if (job.region == &graph_.body()) {
        ir::OutputInfo info;
        info.name = name;
        info.operand = static_cast<i32>(i);
        graph_.outputs().push_back(std::move(info));
      }
    }
    ir::Builder(graph_, *job.region).ret(results);
    return {};
  }

  ir::Context &ctx_;
  const ts::TosaGraph &file_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  ir::Graph &graph_;
  boost::unordered_flat_map<std::string_view, const ts::TosaBasicBlock *> regions_;
  std::deque<Job> jobs_;
  u64 allowed_ = 0, copied_ = 0;
  u64 next_symbol_ = 0;
};

} // namespace

Result<Model> read_model(ir::Context &ctx, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner) {
  register_dialect();
  if (bytes.size() < 8 ||
      std::string_view(reinterpret_cast<const char *>(bytes.data()) + 4, 4) != "TOSA")
    return bad("tosa.file.identifier", "bytes 4 to 7 are not TOSA", "file");
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return bad("tosa.file.flatbuffer", "the file is larger than 2 GiB", "file");
  // The verifier reads 64-bit fields where they lie.
  std::shared_ptr<std::vector<u64>> copy;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 8 != 0) {
    copy = std::make_shared<std::vector<u64>>(bytes.size() / 8 + 1);
    std::memcpy(copy->data(), bytes.data(), bytes.size());
    bytes = std::as_bytes(std::span(*copy)).first(bytes.size());
    owner = copy;
  }
  const size_t most_tables = bytes.size() / 4 + 64; // each is reached through an offset of 4 bytes
  fb::Verifier verifier(reinterpret_cast<const u8 *>(bytes.data()), bytes.size(), 64,
                        static_cast<fb::uoffset_t>(most_tables), true);
  if (!verifier.VerifyBuffer<ts::TosaGraph>(nullptr))
    return bad("tosa.file.flatbuffer",
               "the flatbuffer is damaged: an offset or a length points outside of the file",
               "file");
  const ts::TosaGraph &file = *fb::GetRoot<ts::TosaGraph>(bytes.data());
  Model model;
  model.major = file.version()->_major();
  model.minor = file.version()->_minor();
  model.draft = file.version()->_draft();
  if (model.major != 1)
    return bad("tosa.read.version",
               "version " + std::to_string(model.major) + "." + std::to_string(model.minor) +
                   "; versions 1.x are read",
               "version");
  model.graph = std::make_unique<ir::Graph>(ctx, "main");
  Reader reader(ctx, file, bytes, std::move(owner), *model.graph);
  if (Status s = reader.read(); !s)
    return tl::unexpected(s.error());
  return model;
}

} // namespace chute::tosa
