#include "circle/file_view.h"

#include "circle/element.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace chute::circle {

namespace cs = ::circle;

Result<FileView> open_view(std::span<const std::byte> bytes) {
  const auto bad = [](std::string code, std::string why) {
    return fail(ErrorKind::BadInput, std::move(code), std::move(why), "model");
  };
  if (bytes.size() < 8)
    return bad("circle.file.identifier",
               bytes.empty() ? "the file is empty" : "the file is too short for a Circle file");
  const char *id = reinterpret_cast<const char *>(bytes.data()) + 4;
  if (std::string_view(id, 4) != "CIR0" && std::string_view(id, 4) != "TFL3")
    return bad("circle.file.identifier",
               "bytes 4 to 7 are neither CIR0 (Circle) nor TFL3 (TensorFlow Lite)");
  // External payloads lie behind the flatbuffer, which itself ends below 2 GiB.
  const size_t size = std::min<size_t>(bytes.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  const size_t most_tables = size / 4 + 64; // each table is reached through an offset of 4 bytes
  flatbuffers::Verifier verifier(reinterpret_cast<const u8 *>(bytes.data()), size, 64,
                                 static_cast<flatbuffers::uoffset_t>(most_tables), true);
  if (!verifier.VerifyBuffer<cs::Model>(nullptr))
    return bad("circle.file.flatbuffer",
               "the flatbuffer is damaged: an offset or a length points outside of the file");
  return FileView{bytes, flatbuffers::GetRoot<cs::Model>(bytes.data())};
}

std::span<const std::byte> payload(const FileView &file, u32 buffer) {
  const auto *buffers = file.model->buffers();
  if (!buffers || buffer >= buffers->size())
    return {};
  const cs::Buffer *b = buffers->Get(buffer);
  if (b->data() && b->data()->size())
    return std::as_bytes(std::span(b->data()->data(), b->data()->size()));
  if (b->size() == 0 || b->offset() > file.bytes.size() ||
      b->size() > file.bytes.size() - b->offset())
    return {};
  return file.bytes.subspan(b->offset(), b->size());
}

std::shared_ptr<const std::byte[]> aligned_copy(std::span<const std::byte> &bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 16 == 0)
    return nullptr;
  auto words = std::make_shared<std::vector<u64>>(bytes.size() / 8 + 3);
  auto *to = reinterpret_cast<std::byte *>(words->data());
  to += (16 - reinterpret_cast<uintptr_t>(to) % 16) % 16;
  if (!bytes.empty())
    std::memcpy(to, bytes.data(), bytes.size());
  bytes = {to, bytes.size()};
  return {words, to};
}

i32 effective_code(const cs::OperatorCode &code) {
  const i32 old = code.deprecated_builtin_code(), now = static_cast<i32>(code.builtin_code());
  if (old < 0 || now < 0)
    return old < 0 ? old : now;
  return std::max(old, now);
}

const flatbuffers::Table *options_table(const cs::Operator &op, const OptionsDef &def) {
  const void *table = nullptr;
  if (def.union_number == 1 && op.builtin_options_type() == def.member)
    table = op.builtin_options();
  else if (def.union_number == 2 && op.builtin_options2_type() == def.member)
    table = op.builtin_options2();
  return static_cast<const flatbuffers::Table *>(table);
}

std::span<const std::byte> custom_options(const FileView &file, const cs::Operator &op) {
  if (op.large_custom_options_size() > 1) {
    const u64 offset = op.large_custom_options_offset(), size = op.large_custom_options_size();
    if (offset > file.bytes.size() || size > file.bytes.size() - offset)
      return {};
    return file.bytes.subspan(offset, size);
  }
  if (!op.custom_options())
    return {};
  return std::as_bytes(std::span(op.custom_options()->data(), op.custom_options()->size()));
}

bool is_constant(const FileView &file, const cs::Tensor &tensor) {
  if (tensor.is_variable() || tensor.buffer() == 0)
    return false;
  if (!payload(file, tensor.buffer()).empty())
    return true;
  if (const auto *shape = tensor.shape())
    return std::find(shape->begin(), shape->end(), 0) != shape->end();
  return false;
}

} // namespace chute::circle
