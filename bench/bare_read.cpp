// The floor under any converter: parse the JSON of a `.pt2` with simdjson and read every weight
// byte once. `bench/run.py` times it as a process beside chute and the peers.
//
//   bare_read model.pt2

#include "pt2/zip.h"
#include "support/mapped_file.h"

#include <cstdio>
#include <cstring>
#include <simdjson.h>

namespace {

using namespace chute;

/// Sums the bytes as 64-bit words: the fastest loop that touches all of them.
u64 sum_of_words(std::span<const std::byte> bytes) {
  u64 sum = 0;
  size_t at = 0;
  for (; at + sizeof(u64) <= bytes.size(); at += sizeof(u64)) {
    u64 word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    sum += word;
  }
  for (; at < bytes.size(); ++at)
    sum += static_cast<u64>(bytes[at]);
  return sum;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("usage: bare_read model.pt2\n", stderr);
    return 2;
  }
  auto file = MappedFile::open(argv[1]);
  if (!file) {
    std::fputs("bare_read: the file can not be opened\n", stderr);
    return 1;
  }
  auto zip = pt2::Zip::open((*file)->bytes(), *file);
  if (!zip) {
    std::fputs("bare_read: the file is no archive\n", stderr);
    return 1;
  }
  u64 sum = 0, documents = 0;
  simdjson::dom::parser parser;
  for (const auto &entry : zip->entries()) {
    auto data = zip->read(entry, false);
    if (!data) {
      std::fputs("bare_read: a member can not be read\n", stderr);
      return 1;
    }
    if (!entry.name.ends_with(".json")) {
      sum += sum_of_words(data->bytes);
      continue;
    }
    simdjson::padded_string_view text(data->text().data(), data->bytes.size(),
                                      data->bytes.size() + data->padding);
    if (text.capacity() < text.size() + simdjson::SIMDJSON_PADDING
            ? parser.parse(data->text()).error()
            : parser.parse(text.data(), text.size(), false).error()) {
      std::fputs("bare_read: a document is not JSON\n", stderr);
      return 1;
    }
    ++documents;
  }
  std::printf("%llu documents, word sum %llx\n", static_cast<unsigned long long>(documents),
              static_cast<unsigned long long>(sum));
  return 0;
}
