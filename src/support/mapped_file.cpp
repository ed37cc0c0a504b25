#include "support/mapped_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace chute {

namespace {

tl::unexpected<Diagnostic> open_error(const std::string &path, const std::string &reason) {
  return fail(ErrorKind::BadInput, "file.open", "the file can not be read: " + reason, path);
}

/// Where files are mapped now: begin to end.
struct Mappings {
  std::mutex mutex;
  std::map<const std::byte *, const std::byte *> ranges;
};

Mappings &mappings() {
  static Mappings *all = new Mappings; // outlives every static owner of a file
  return *all;
}

} // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string &path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return open_error(path, std::strerror(errno));
  struct stat info{};
  if (::fstat(fd, &info) != 0) {
    const int code = errno;
    ::close(fd);
    return open_error(path, std::strerror(code));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return open_error(path,
                      S_ISDIR(info.st_mode) ? "it is a directory" : "it is not a regular file");
  }
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<size_t>(info.st_size);
  if (file->size_ > 0) { // an empty mapping is an error to the operating system
    void *data = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
    const int code = errno;
    if (data == MAP_FAILED) {
      ::close(fd);
      file->size_ = 0;
      return open_error(path, std::strerror(code));
    }
    file->data_ = static_cast<const std::byte *>(data);
    const std::lock_guard lock(mappings().mutex);
    mappings().ranges[file->data_] = file->data_ + file->size_;
  }
  ::close(fd);
  return file;
}

MappedFile::~MappedFile() {
  if (!data_)
    return;
  {
    const std::lock_guard lock(mappings().mutex);
    mappings().ranges.erase(data_);
  }
  ::munmap(const_cast<std::byte *>(data_), size_);
}

void MappedFile::release(std::span<const std::byte> bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes.size() < 64 * page)
    return; // not worth a call of the operating system
  const std::lock_guard lock(mappings().mutex);
  const auto next = mappings().ranges.upper_bound(bytes.data());
  if (next == mappings().ranges.begin())
    return;
  const auto &[begin, end] = *std::prev(next);
  if (bytes.data() + bytes.size() > end)
    return;
  // Whole pages only: their edges may hold what others still read.
  const size_t from = (static_cast<size_t>(bytes.data() - begin) + page - 1) / page * page;
  const size_t to =
      static_cast<size_t>(bytes.data() - begin + static_cast<ptrdiff_t>(bytes.size())) / page *
      page;
  if (from < to)
    static_cast<void>(::madvise(const_cast<std::byte *>(begin) + from, to - from, MADV_DONTNEED));
}

void MappedFile::advise(size_t offset, size_t length, Access access) const {
  if (!data_ || offset >= size_)
    return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page;
  const size_t end = std::min(size_, offset + std::min(length, size_ - offset));
  int advice = MADV_SEQUENTIAL;
  switch (access) {
  case Access::Sequential: advice = MADV_SEQUENTIAL; break;
  case Access::Random: advice = MADV_RANDOM; break;
  case Access::WillNeed: advice = MADV_WILLNEED; break;
  case Access::DontNeed: advice = MADV_DONTNEED; break;
  }
  static_cast<void>(::madvise(const_cast<std::byte *>(data_) + begin, end - begin, advice));
}

} // namespace chute
