#include "ethosu/vela.h"

#include "ethosu/arrays.h"
#include "support/mapped_file.h"
#include "support/output_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace chute::ethosu {

namespace fs = std::filesystem;

namespace {

struct Known {
  std::string_view family, system_config, memory_mode;
  std::array<std::string_view, 5> macs;
};
constexpr Known kFamilies[] = {
    {"ethos-u55", "Ethos_U55_High_End_Embedded", "Shared_Sram", {"32", "64", "128", "256", ""}},
    {"ethos-u65", "Ethos_U65_High_End", "Dedicated_Sram_384KB", {"256", "512", "", "", ""}},
    {"ethos-u85", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only", {"128", "256", "512", "1024", "2048"}},
};

std::vector<std::string> arguments(const Accelerator &a) {
  return {"--accelerator-config=" + a.name,
          "--config=Arm/vela.ini",
          "--system-config=" + a.system_config,
          "--memory-mode=" + a.memory_mode,
          "--output-format=raw",
          "--verbose-performance"};
}

/// A new folder under the system's for temporary files, removed with all that is in it.
class Folder {
public:
  Folder() {
    std::error_code none;
    std::string name = (fs::temp_directory_path(none) / "chute-vela-XXXXXX").string();
    if (mkdtemp(name.data()))
      path_ = name;
  }
  ~Folder() {
    std::error_code none;
    if (!path_.empty())
      fs::remove_all(path_, none);
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  const fs::path &path() const { return path_; }

private:
  fs::path path_;
};

std::string text_of(const fs::path &path) {
  const auto file = MappedFile::open(path.string());
  return file ? std::string((*file)->text()) : std::string();
}

/// The last lines of a program's output, which is where Python says what went wrong.
std::string tail(const std::string &text) {
  constexpr size_t kMost = 600;
  std::string out = text.size() > kMost ? text.substr(text.size() - kMost) : text;
  while (!out.empty() && (out.back() == '\n' || out.back() == ' '))
    out.pop_back();
  return out;
}

/// Exit code of a program whose output goes to `log`; nullopt when it could not be started.
std::optional<int> run(const std::string &program, std::vector<std::string> args,
                       const fs::path &log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  args.insert(args.begin(), program);
  std::vector<char *> raw;
  for (std::string &a : args)
    raw.push_back(a.data());
  raw.push_back(nullptr);
  pid_t pid = 0;
  const int started = posix_spawnp(&pid, program.c_str(), &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0)
    return std::nullopt;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Rows of a CSV file without quoted fields, the header first.
std::vector<std::vector<std::string>> csv(const std::string &text) {
  std::vector<std::vector<std::string>> rows;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    std::vector<std::string> fields;
    for (size_t from = 0; from <= line.size();) {
      const size_t comma = std::min(line.find(',', from), line.size());
      fields.emplace_back(line.substr(from, comma - from));
      from = comma + 1;
    }
    if (!line.empty())
      rows.push_back(std::move(fields));
    at = end + 1;
  }
  return rows;
}

std::optional<double> number(std::string_view text) {
  double v = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(v) : std::nullopt;
}

void read_layers(const std::string &text, std::vector<Layer> &layers) {
  const auto rows = csv(text);
  if (rows.empty())
    return;
  const auto column = [&](std::string_view name) {
    return static_cast<size_t>(std::ranges::find(rows[0], name) - rows[0].begin());
  };
  const size_t original = column("Original Operator"), target = column("Target"),
               cycles = column("Op Cycles"), macs = column("MAC Count"),
               utilization = column("Util% (MAC)"), name = column("Name");
  for (size_t i = 1; i < rows.size(); ++i) {
    const auto field = [&](size_t c) { return c < rows[i].size() ? rows[i][c] : std::string(); };
    layers.push_back({field(name), field(original), field(target),
                      number(field(cycles)).value_or(0), number(field(macs)).value_or(0),
                      number(field(utilization)).value_or(0)});
  }
}

void read_totals(const std::string &text, Compiled &out) {
  const auto rows = csv(text);
  for (size_t c = 0; rows.size() > 1 && c < rows[0].size() && c < rows[1].size(); ++c)
    if (const auto v = number(rows[1][c])) {
      out.totals.emplace_back(rows[0][c], *v);
      if (rows[0][c] == "cycles_total")
        out.cycles = *v;
      if (rows[0][c] == "sram_memory_used")
        out.sram_kib = *v;
      if (rows[0][c] == "inference_time")
        out.inference_seconds = *v;
    }
}

} // namespace

Result<Accelerator> parse_accelerator(std::string_view name) {
  std::string known;
  for (const Known &k : kFamilies)
    for (const std::string_view macs : k.macs) {
      if (macs.empty())
        continue;
      const std::string full = std::string(k.family) + "-" + std::string(macs);
      if (full == name)
        return Accelerator{full, std::string(k.system_config), std::string(k.memory_mode)};
      known += (known.empty() ? "" : ", ") + full;
    }
  return fail(ErrorKind::Usage, "ethosu.target", "is no Ethos-U that Vela knows",
              std::string(name.substr(0, 80)), "one of " + known);
}

std::string flags_of(const Accelerator &accelerator) {
  std::string out;
  for (const std::string &a : arguments(accelerator))
    if (a != "--verbose-performance")
      out += (out.empty() ? "" : " ") + a;
  return out;
}

Result<Compiled> compile(std::span<const std::byte> tosa, const Accelerator &accelerator) {
  const Folder folder;
  if (folder.path().empty())
    return fail(ErrorKind::Output, "ethosu.vela.folder", "a temporary folder can not be made");
  const fs::path model = folder.path() / "network.tosa", log = folder.path() / "log";
  auto file = OutputFile::create(model.string());
  if (!file)
    return tl::unexpected(file.error());
  if (Status s = file->write(tosa); !s)
    return tl::unexpected(s.error());
  if (Status s = file->commit(); !s)
    return tl::unexpected(s.error());

  const char *given = std::getenv("CHUTE_VELA");
  const std::string program = given && *given ? given : "vela";
  std::vector<std::string> args = arguments(accelerator);
  args.push_back("--output-dir=" + folder.path().string());
  args.push_back(model.string());
  const std::optional<int> code = run(program, std::move(args), log);
  if (!code || *code == 127)
    return fail(ErrorKind::Unsupported, "ethosu.vela.missing", "Vela can not be started", program,
                "pip install ethos-u-vela, or set CHUTE_VELA to the program");
  if (*code != 0)
    return fail(ErrorKind::Failure, "ethosu.vela.failed", tail(text_of(log)), accelerator.name,
                "`chute explain` and `chute verify --target` list what the accelerator has not");

  Compiled out;
  std::string raw;
  std::error_code none;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder.path(), none)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with("_per-layer.csv"))
      read_layers(text_of(entry.path()), out.layers);
    else if (name.find("_summary_") != name.npos && name.ends_with(".csv"))
      read_totals(text_of(entry.path()), out);
    else if (name.ends_with("_vela.npz"))
      raw = entry.path().string();
  }
  const auto npz = MappedFile::open(raw);
  if (raw.empty() || !npz)
    return fail(ErrorKind::Failure, "ethosu.vela.result",
                "Vela wrote no commands: " + tail(text_of(log)), accelerator.name,
                "the network may have no operator for the accelerator");
  const auto arrays = Arrays::open((*npz)->bytes(), *npz);
  if (!arrays)
    return tl::unexpected(arrays.error());
  auto stream = stream_of(*arrays);
  if (!stream)
    return tl::unexpected(stream.error());
  out.stream = std::move(*stream);
  return out;
}

} // namespace chute::ethosu
