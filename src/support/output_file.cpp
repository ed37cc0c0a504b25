#include "support/output_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace chute {

namespace {
constexpr size_t kBuffer = size_t{1} << 16;
}

struct OutputFile::Impl {
  std::string path;
  std::string temporary;
  int fd = -1;
  u64 position = 0;
  std::vector<std::byte> buffer;
  std::optional<Diagnostic> error;

  ~Impl() {
    if (fd >= 0)
      ::close(fd);
    if (!temporary.empty())
      ::unlink(temporary.c_str());
  }

  Status failed(const char *code, const std::string &what, int reason) {
    Diagnostic d;
    d.kind = ErrorKind::Output;
    d.code = code;
    d.message = what + ": " + std::strerror(reason);
    d.object = path;
    if (reason == ENOSPC)
      d.hint = "free some space or write to another disk";
    error = d;
    return tl::unexpected(std::move(d));
  }

  Status put(const std::byte *data, size_t size) {
    while (size > 0) {
      const ssize_t n = ::write(fd, data, std::min(size, size_t{1} << 30));
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return failed("file.write", "the output file can not be written", n < 0 ? errno : EIO);
      data += n;
      size -= static_cast<size_t>(n);
    }
    return {};
  }

  Status flush() {
    Status s = put(buffer.data(), buffer.size());
    buffer.clear();
    return s;
  }
};

OutputFile::OutputFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputFile::OutputFile(OutputFile &&) noexcept = default;
OutputFile &OutputFile::operator=(OutputFile &&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::create(const std::string &path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  struct stat info{};
  // A rename would replace a device or a directory, or fail late; the target's mode is kept.
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode))
    return fail(ErrorKind::Output, "file.create", "the output path is not a regular file", path);
  std::string name = path + ".tmpXXXXXX";
  impl->fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (impl->fd < 0) {
    const Status s = impl->failed("file.create", "the output file can not be created", errno);
    return tl::unexpected(s.error());
  }
  impl->temporary = std::move(name);
  mode_t mode = info.st_mode & 0777;
  if (!exists) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    mode = 0666 & ~mask;
  }
  static_cast<void>(::fchmod(impl->fd, mode)); // mkostemp gives 0600
  impl->buffer.reserve(kBuffer);
  return OutputFile(std::move(impl));
}

u64 OutputFile::position() const { return impl_->position; }

Status OutputFile::write(std::span<const std::byte> bytes) {
  Impl &f = *impl_;
  if (f.error)
    return tl::unexpected(*f.error);
  f.position += bytes.size();
  if (f.buffer.size() + bytes.size() <= kBuffer) {
    f.buffer.insert(f.buffer.end(), bytes.begin(), bytes.end());
    return {};
  }
  if (Status s = f.flush(); !s)
    return s;
  if (bytes.size() >= kBuffer)
    return f.put(bytes.data(), bytes.size());
  f.buffer.assign(bytes.begin(), bytes.end());
  return {};
}

Status OutputFile::write_zeros(u64 count) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (count > 0) {
    const size_t n = std::min<u64>(count, kZeros.size());
    if (Status s = write(std::span(kZeros.data(), n)); !s)
      return s;
    count -= n;
  }
  return {};
}

Status OutputFile::write_at(u64 offset, std::span<const std::byte> bytes) {
  Impl &f = *impl_;
  if (f.error)
    return tl::unexpected(*f.error);
  if (Status s = f.flush(); !s)
    return s;
  const std::byte *data = bytes.data();
  size_t size = bytes.size();
  while (size > 0) {
    const ssize_t n = ::pwrite(f.fd, data, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return f.failed("file.write", "the output file can not be written", n < 0 ? errno : EIO);
    data += n;
    offset += static_cast<u64>(n);
    size -= static_cast<size_t>(n);
  }
  return {};
}

Status OutputFile::commit(bool sync) {
  Impl &f = *impl_;
  if (f.error)
    return tl::unexpected(*f.error);
  if (Status s = f.flush(); !s)
    return s;
  if (sync && ::fsync(f.fd) != 0)
    return f.failed("file.commit", "the output file can not be synchronized", errno);
  const int closed = ::close(f.fd);
  f.fd = -1;
  if (closed != 0)
    return f.failed("file.commit", "the output file can not be closed", errno);
  if (::rename(f.temporary.c_str(), f.path.c_str()) != 0)
    return f.failed("file.commit", "the output file can not be renamed into place", errno);
  f.temporary.clear();
  return {};
}

} // namespace chute
