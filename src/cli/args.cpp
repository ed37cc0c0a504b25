#include "cli/args.h"

#include "cli/command.h"
#include "support/trace.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>

namespace chute::cli {

void Args::positional(const char *name, std::string &target, const char *help, bool required) {
  app_->add_option(name, target, help)->required(required);
}
void Args::positional(const char *name, std::vector<std::string> &target, const char *help,
                      bool required) {
  app_->add_option(name, target, help)->required(required);
}
void Args::option(const char *names, std::string &target, const char *help, bool required) {
  app_->add_option(names, target, help)->required(required)->capture_default_str();
}
void Args::option(const char *names, u64 &target, const char *help) {
  app_->add_option(names, target, help)->check([](const std::string &text) {
    return text.starts_with('-') ? "'" + text + "' is negative" : std::string();
  });
}
void Args::option(const char *names, std::vector<std::string> &target, const char *help) {
  app_->add_option(names, target, help)->delimiter(',')->allow_extra_args(false);
}
void Args::choice(const char *names, std::string &target, const std::vector<std::string> &choices,
                  const char *help) {
  app_->add_option(names, target, help)->check(CLI::IsMember(choices))->capture_default_str();
}
void Args::flag(const char *names, bool &target, const char *help) {
  app_->add_flag(names, target, help);
}

namespace {

constexpr const char *kFooter =
    "Exit codes: 0 success; 1 the work failed (a finding, a mismatch); 2 wrong usage;\n"
    "3 an operator or feature can not be lowered; 4 an input file is malformed or unreadable;\n"
    "5 an output file could not be written.\n"
    "`chute VERB --help` shows a verb's options and examples.";

constexpr u64 kMaxThreads = 1024;

struct Verb {
  const char *name;
  std::unique_ptr<Command> command;
  CLI::App *app;
};

/// Sizes come from the input file, so that running out of memory is a matter of input.
int run(Command &command, Session &session) {
  try {
    return command.run(session);
  } catch (const std::bad_alloc &) {
  } catch (const std::length_error &) {
  }
  Diagnostic d;
  d.kind = ErrorKind::Failure;
  d.code = "cli.memory";
  d.message = "there is not enough memory for the sizes that this file gives";
  return session.fail(std::move(d));
}

/// A listing that did not reach a full disk is a failure, not a success with half a file.
int flush_output(Session &session, int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return code;
  Diagnostic d;
  d.kind = ErrorKind::Output;
  d.code = "cli.stdout";
  d.message = "standard output could not be written";
  return session.fail(std::move(d));
}

int write_trace(Session &session, int code) {
  if (session.trace.empty())
    return code;
  const std::string text = Trace::global().to_json();
  std::FILE *file = std::fopen(session.trace.c_str(), "wb");
  const bool ok = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file && std::fclose(file) == 0 && ok)
    return code;
  Diagnostic d;
  d.kind = ErrorKind::Output;
  d.code = "cli.trace";
  d.message = "the trace could not be written";
  d.object = session.trace;
  return session.fail(std::move(d));
}

} // namespace

int dispatch(int argc, char **argv) {
  CLI::App app("chute lowers exported PyTorch programs (.pt2) to Circle (.circle).", "chute");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("chute " CHUTE_VERSION));
  Session session;
  std::vector<Verb> verbs;
#define VERB(name) verbs.push_back({#name, make_##name(), nullptr});
#include "cli/verbs.def"
#undef VERB
  for (Verb &verb : verbs) {
    verb.app = app.add_subcommand(verb.name, std::string(verb.command->summary()));
    verb.app->footer("Examples:\n" + std::string(verb.command->examples()));
    Args args(verb.app);
    verb.command->declare(args);
    verb.app->add_flag("--json", session.json, "Diagnostics and results as JSON");
    verb.app->add_flag("-q,--quiet", session.quiet, "No progress");
    verb.app->add_option("--threads", session.threads, "Worker threads (default: all cores)")
        ->check([](const std::string &text) { return CLI::Range(u64{0}, kMaxThreads)(text); });
    verb.app->add_option("--trace", session.trace, "Write a Chrome/Perfetto trace to this file");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // CLI11 prints help or the message and maps help to 0; every real error is a usage error here.
    return app.exit(error) == 0 ? 0 : static_cast<int>(ErrorKind::Usage);
  }
  if (!session.trace.empty())
    Trace::global().enable();
  for (Verb &verb : verbs)
    if (verb.app->parsed())
      return write_trace(session, flush_output(session, run(*verb.command, session)));
  return static_cast<int>(ErrorKind::Usage);
}

std::vector<std::pair<std::string, std::vector<std::string>>> describe_verbs() {
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
#define VERB(name)                                                                                 \
  {                                                                                                \
    CLI::App app;                                                                                  \
    Args args(&app);                                                                               \
    const std::unique_ptr<Command> command = make_##name();                                        \
    command->declare(args);                                                                        \
    std::vector<std::string> flags{"--json", "--quiet", "--threads", "--trace", "--help"};         \
    for (const CLI::Option *o : app.get_options())                                                 \
      for (const std::string &l : o->get_lnames())                                                 \
        if (l != "help")                                                                           \
          flags.push_back("--" + l);                                                               \
    out.emplace_back(#name, std::move(flags));                                                     \
  }
#include "cli/verbs.def"
#undef VERB
  return out;
}

} // namespace chute::cli
