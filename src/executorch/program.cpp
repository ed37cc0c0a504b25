#include "executorch/program.h"

#include "schema/executorch_program_generated.h"

#include <cstring>
#include <optional>

namespace chute::executorch {

namespace {

namespace fb = flatbuffers;
namespace et = executorch_flatbuffer;
using ir::ElementType;

constexpr size_t kSegmentAlignment = 128;
constexpr size_t kTensorAlignment = 16;
constexpr u32 kHeaderBytes = 32;
constexpr size_t kHeaderAt = 8; // behind the root offset and the identifier

size_t aligned(size_t n, size_t to) { return (n + to - 1) / to * to; }

std::optional<et::ScalarType> scalar_type(ElementType e) {
  switch (e) {
  case ElementType::Bool: return et::ScalarType_BOOL;
  case ElementType::U8: return et::ScalarType_BYTE;
  case ElementType::I8: return et::ScalarType_CHAR;
  case ElementType::I16: return et::ScalarType_SHORT;
  case ElementType::U16: return et::ScalarType_UINT16;
  case ElementType::I32: return et::ScalarType_INT;
  case ElementType::U32: return et::ScalarType_UINT32;
  case ElementType::I64: return et::ScalarType_LONG;
  case ElementType::F16: return et::ScalarType_HALF;
  case ElementType::BF16: return et::ScalarType_BFLOAT16;
  case ElementType::F32: return et::ScalarType_FLOAT;
  case ElementType::F64: return et::ScalarType_DOUBLE;
  case ElementType::F8E4M3FN: return et::ScalarType_FLOAT8E4M3FN;
  case ElementType::F8E5M2: return et::ScalarType_FLOAT8E5M2;
  default: return std::nullopt;
  }
}

/// PyTorch's description of a tuple of `n` tensors, as `torch.utils._pytree` writes it.
std::string tuple_of(size_t n) {
  std::string leaves;
  for (size_t i = 0; i < n; ++i)
    leaves +=
        std::string(i ? ", " : "") + R"({"type": null, "context": null, "children_spec": []})";
  return R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" + leaves + "]}";
}

class ProgramWriter {
public:
  explicit ProgramWriter(const ir::Graph &graph) : graph_(graph) {}

  Result<std::vector<std::byte>> run(const Delegate &delegate) {
    std::vector<i32> inputs, outputs;
    for (const ir::InputInfo &in : graph_.inputs())
      if (in.value)
        if (Status s = add_tensor(in.name, in.value->type(), inputs); !s)
          return tl::unexpected(s.error());
    const ir::Op *ret = graph_.return_op();
    for (const ir::OutputInfo &out : graph_.outputs())
      if (ret && out.operand >= 0)
        if (Status s =
                add_tensor(out.name, ret->operand(static_cast<u32>(out.operand))->type(), outputs);
            !s)
          return tl::unexpected(s.error());

    std::vector<i32> arguments = inputs;
    arguments.insert(arguments.end(), outputs.begin(), outputs.end());
    const auto call = et::CreateDelegateCall(fbb_, 0, fbb_.CreateVector(arguments));
    const auto instruction =
        et::CreateInstruction(fbb_, et::InstructionArguments_DelegateCall, call.Union());
    const std::vector<i32> none;
    const auto chain = et::CreateChain(fbb_, fbb_.CreateVector(none), fbb_.CreateVector(none),
                                       fbb_.CreateVector(&instruction, 1));
    const auto metadata = et::CreateContainerMetadata(
        fbb_,
        fbb_.CreateString(
            R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)" +
            tuple_of(inputs.size()) +
            R"(, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])"),
        fbb_.CreateString("[1, " + tuple_of(outputs.size()) + "]"));
    const std::vector<fb::Offset<et::Operator>> operators;
    const auto backend = delegate_of(delegate);
    const std::vector<i64> arenas{0, static_cast<i64>(planned_)}; // the first is reserved
    const auto name = fbb_.CreateString("forward");
    const auto values = fbb_.CreateVector(values_);
    const auto in = fbb_.CreateVector(inputs), out = fbb_.CreateVector(outputs);
    const auto chains = fbb_.CreateVector(&chain, 1);
    const auto plan = et::CreateExecutionPlan(
        fbb_, name, metadata, values, in, out, chains, fbb_.CreateVector(operators),
        fbb_.CreateVector(&backend, 1), fbb_.CreateVector(arenas));

    const auto constants = et::CreateDataSegment(fbb_, 0, 0);
    const auto payload = et::CreateDataSegment(fbb_, 0, delegate.payload.size());
    const fb::Offset<et::DataSegment> segments[] = {constants, payload};
    const std::vector<u64> no_data{0};
    const auto offsets = et::CreateSubsegmentOffsets(fbb_, 0, fbb_.CreateVector(no_data));
    const auto plans = fbb_.CreateVector(&plan, 1);
    const auto segment_list = fbb_.CreateVector(segments, 2);
    // Vectors that readers expect to be there, though they hold nothing.
    const std::vector<fb::Offset<et::Buffer>> buffers;
    const std::vector<fb::Offset<et::BackendDelegateInlineData>> inline_data;
    const auto buffer_list = fbb_.CreateVector(buffers);
    const auto inline_list = fbb_.CreateVector(inline_data);
    fbb_.Finish(et::CreateProgram(fbb_, 0, plans, buffer_list, inline_list, segment_list, offsets),
                et::ProgramIdentifier());
    return assemble(delegate.payload);
  }

private:
  Status add_tensor(const std::string &name, ir::Type type, std::vector<i32> &indices) {
    if (!type.is_tensor() || !type.has_static_shape())
      return fail(ErrorKind::Unsupported, "pte.shape", "has a shape known only at run time", name,
                  "export with static shapes");
    const auto scalar = scalar_type(type.element());
    if (!scalar)
      return fail(ErrorKind::Unsupported, "pte.type",
                  "has an element type that ExecuTorch tensors cannot have: " +
                      std::string(ir::element_type_name(type.element())),
                  name);
    std::vector<i32> sizes;
    std::vector<u8> order;
    for (const ir::SymInt d : type.shape()) {
      order.push_back(static_cast<u8>(sizes.size()));
      sizes.push_back(static_cast<i32>(d.value()));
    }
    const auto offset = planned_;
    const auto memory = et::CreateAllocationDetails(fbb_, 1, static_cast<u32>(offset),
                                                    static_cast<u32>(u64{offset} >> 32));
    planned_ += aligned(static_cast<size_t>(type.num_elements()) *
                            static_cast<size_t>(ir::element_bytes(type.element())),
                        kTensorAlignment);
    const auto size_list = fbb_.CreateVector(sizes);
    const auto order_list = fbb_.CreateVector(order);
    const auto tensor = et::CreateTensor(fbb_, *scalar, 0, size_list, order_list, false, 0, memory,
                                         0, et::TensorShapeDynamism_STATIC);
    indices.push_back(static_cast<i32>(values_.size()));
    values_.push_back(et::CreateEValue(fbb_, et::KernelTypes_Tensor, tensor.Union()));
    return {};
  }

  fb::Offset<et::BackendDelegate> delegate_of(const Delegate &delegate) {
    std::vector<fb::Offset<et::CompileSpec>> specs;
    for (const auto &[key, value] : delegate.compile_specs) {
      const auto k = fbb_.CreateString(key);
      const auto v = fbb_.CreateVector(reinterpret_cast<const u8 *>(value.data()), value.size());
      specs.push_back(et::CreateCompileSpec(fbb_, k, v));
    }
    const auto id = fbb_.CreateString(delegate.backend);
    const auto where = et::CreateBackendDelegateDataReference(fbb_, et::DataLocation_SEGMENT, 1);
    return et::CreateBackendDelegate(fbb_, id, where, fbb_.CreateVector(specs));
  }

  /// The flatbuffer with the extended header put in behind the identifier, padding, the payload.
  /// Offsets inside are relative; only the root's counts from the start.
  std::vector<std::byte> assemble(std::span<const std::byte> payload) {
    const size_t size = fbb_.GetSize() + kHeaderBytes, base = aligned(size, kSegmentAlignment);
    std::vector<std::byte> file(base + payload.size());
    const u8 *from = fbb_.GetBufferPointer();
    std::memcpy(file.data(), from, kHeaderAt);
    std::memcpy(file.data() + kHeaderAt + kHeaderBytes, from + kHeaderAt,
                fbb_.GetSize() - kHeaderAt);
    u32 root = 0;
    std::memcpy(&root, file.data(), sizeof root);
    root += kHeaderBytes;
    std::memcpy(file.data(), &root, sizeof root);
    std::byte *header = file.data() + kHeaderAt;
    const u32 length = kHeaderBytes;
    const u64 fields[] = {size, base, payload.size()};
    std::memcpy(header, "eh00", 4);
    std::memcpy(header + 4, &length, sizeof length);
    std::memcpy(header + 8, fields, sizeof fields);
    if (!payload.empty())
      std::memcpy(file.data() + base, payload.data(), payload.size());
    return file;
  }

  const ir::Graph &graph_;
  fb::FlatBufferBuilder fbb_;
  std::vector<fb::Offset<et::EValue>> values_;
  size_t planned_ = 0; ///< bytes of the arena
};

} // namespace

Result<std::vector<std::byte>> write_program(const ir::Graph &graph, const Delegate &delegate) {
  return ProgramWriter(graph).run(delegate);
}

} // namespace chute::executorch
