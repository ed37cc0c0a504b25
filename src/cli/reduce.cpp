#include "toolkit/reduce.h"

#include "cli/child.h"
#include "cli/graph_file.h"
#include "support/mapped_file.h"
#include "support/text_file.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace chute::cli {

namespace {

unsigned long long wide(u64 n) { return static_cast<unsigned long long>(n); }

/// A folder of its own for candidates, gone in the end.
class Workplace {
public:
  Workplace() {
    std::error_code error;
    std::string pattern = std::filesystem::temp_directory_path(error).string();
    pattern += "/chute-reduce-XXXXXX";
    if (!error && mkdtemp(pattern.data()))
      path_ = pattern;
  }
  ~Workplace() {
    std::error_code ignored;
    if (!path_.empty())
      std::filesystem::remove_all(path_, ignored);
  }
  Workplace(const Workplace &) = delete;
  Workplace &operator=(const Workplace &) = delete;
  const std::string &path() const { return path_; }

private:
  std::string path_;
};

class Reduce final : public Command {
public:
  std::string_view summary() const override {
    return "Find the smallest part of a model for which a command still succeeds";
  }
  std::string_view examples() const override {
    return "  chute reduce model.circle --test './crashes.sh {}' -o small.circle\n"
           "  chute reduce model.circle --test '! onert_run {}' -o small.circle --timeout 10\n"
           "  chute reduce model.ir --test 'chute opt {} -p cse 2>&1 | grep -q rewrite.loop' -o "
           "small.ir\n"
           "As with creduce and llvm-reduce: the command exits with 0 while its file shows what "
           "you "
           "look for, and\nwith anything else (or a signal, or too late) when it does not. {} "
           "stands "
           "for the file; without it the\nfile comes last. Runs once per candidate, one after the "
           "other; the best so far is always in the output.\nExit code 0: done; 1: the command "
           "fails "
           "for the model as it is.";
  }
  void declare(Args &args) override {
    args.positional("model", model_, "A .circle, .tflite or text IR file");
    args.option("--test", test_, "The command; {} stands for the candidate's path", true);
    args.option("-o,--output", output_, "The smallest model, in the input's format", true);
    args.option("--timeout", timeout_, "Seconds that a run of the command may take (default 60)");
    args.option("--most-tests", most_tests_, "Stop after so many runs (default 10000)");
    args.flag("--show", show_, "Let the command's standard error through");
  }

  int run(Session &session) override {
    session.diagnostics.set_file(model_);
    auto file = MappedFile::open(model_);
    if (!file)
      return session.fail(std::move(file.error()));
    const FileFormat format = tell_format((*file)->text());
    if (format == FileFormat::Pt2 || output_ == "-")
      return session.fail(fail(ErrorKind::Usage, "cli.reduce.format",
                               output_ == "-" ? "the output is a file, which is renewed on the way"
                                              : "a .pt2 archive can not be reduced",
                               {}, "convert it first: chute convert model.pt2 -o model.circle")
                              .value());
    const Workplace place;
    if (place.path().empty())
      return session.fail(fail(ErrorKind::Output, "cli.reduce.folder",
                               "no folder for candidates could be made", {}, "set TMPDIR")
                              .value());
    toolkit::ReduceOptions options;
    options.text = format == FileFormat::Text;
    options.most_tests = most_tests_;
    const std::string candidate =
        place.path() + (options.text ? "/candidate.ir" : "/candidate.circle");
    const std::string command = with_path(candidate);
    options.test = [&](std::span<const std::byte> bytes) -> Result<bool> {
      if (Status s = write(candidate, bytes); !s)
        return tl::unexpected(std::move(s.error()));
      auto end = run_command(command, static_cast<double>(timeout_), show_);
      if (!end)
        return tl::unexpected(std::move(end.error()));
      return !end->timed_out && !end->signalled && end->code == 0;
    };
    options.on_smaller = [&](std::span<const std::byte> bytes,
                             const toolkit::ReduceSize &size) -> Status {
      if (!session.quiet)
        std::fprintf(stderr, "%llu operators, %llu outputs, %llu bytes\n", wide(size.operators),
                     wide(size.outputs), wide(size.bytes));
      return write(output_, bytes);
    };
    auto report = toolkit::reduce((*file)->bytes(), options);
    if (!report)
      return session.fail(std::move(report.error()));
    if (Status s = write(output_, report->bytes); !s)
      return session.fail(std::move(s.error()));
    print(session, *report);
    return session.finish();
  }

private:
  static Status write(const std::string &path, std::span<const std::byte> bytes) {
    return write_text(path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  }

  std::string with_path(const std::string &path) const {
    std::string quoted = "'";
    for (char c : path)
      quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    quoted += "'";
    std::string out;
    bool found = false;
    for (size_t i = 0; i < test_.size(); ++i) {
      if (test_.compare(i, 2, "{}") == 0) {
        out += quoted;
        found = true;
        ++i;
      } else {
        out += test_[i];
      }
    }
    return found ? out : out + " " + quoted;
  }

  void print(const Session &session, const toolkit::ReduceReport &r) const {
    const auto size = [](const toolkit::ReduceSize &s) {
      return "{\"operators\":" + std::to_string(s.operators) +
             ",\"outputs\":" + std::to_string(s.outputs) +
             ",\"constant_bytes\":" + std::to_string(s.constant_bytes) +
             ",\"elements\":" + std::to_string(s.elements) +
             ",\"bytes\":" + std::to_string(s.bytes) + "}";
    };
    char text[256];
    std::snprintf(text, sizeof(text), "%llu of %llu operators, %llu of %llu bytes, %llu runs%s\n",
                  wide(r.after.operators), wide(r.before.operators), wide(r.after.bytes),
                  wide(r.before.bytes), wide(r.tests),
                  r.exhausted ? " (--most-tests ended the search)" : "");
    say(session, output_, output_ + ": " + text,
        "{\"output\":" + json_quote(output_) + ",\"before\":" + size(r.before) +
            ",\"after\":" + size(r.after) + ",\"tests\":" + std::to_string(r.tests) +
            ",\"accepted\":" + std::to_string(r.accepted) +
            ",\"exhausted\":" + (r.exhausted ? "true" : "false") + "}");
  }

  std::string model_;
  std::string test_;
  std::string output_;
  u64 timeout_ = 60;
  u64 most_tests_ = 10'000;
  bool show_ = false;
};

} // namespace

std::unique_ptr<Command> make_reduce() { return std::make_unique<Reduce>(); }

} // namespace chute::cli
