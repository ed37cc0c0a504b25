#include "support/text_file.h"

#include "support/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace chute {

Result<std::string> read_text(const std::string &path) {
  std::FILE *file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return fail(ErrorKind::BadInput, "file.open", std::strerror(errno), path);
  std::string text;
  char block[1 << 16];
  for (size_t n = 0; (n = std::fread(block, 1, sizeof(block), file)) > 0;)
    text.append(block, n);
  const bool bad = std::ferror(file);
  if (file != stdin)
    std::fclose(file);
  if (bad)
    return fail(ErrorKind::BadInput, "file.read", std::strerror(errno), path);
  return text;
}

Status write_text(const std::string &path, std::string_view text) {
  if (path == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout))
      return fail(ErrorKind::Output, "file.write", std::strerror(errno), "standard output");
    return {};
  }
  auto file = OutputFile::create(path);
  if (!file)
    return tl::unexpected(file.error());
  if (Status s = file->write(text); !s)
    return s;
  return file->commit();
}

} // namespace chute
