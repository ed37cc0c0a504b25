#include "cli/command.h"

#include <cstdio>

namespace chute::cli {

/// Every verb with its long options (args.cpp, which knows the option parser).
std::vector<std::pair<std::string, std::vector<std::string>>> describe_verbs();

namespace {

class Completion final : public Command {
public:
  std::string_view summary() const override { return "Print a shell completion script"; }
  std::string_view examples() const override {
    return "  source <(chute completion bash)\n"
           "  chute completion zsh > ~/.zfunc/_chute\n"
           "  chute completion fish > ~/.config/fish/completions/chute.fish";
  }
  void declare(Args &args) override { args.positional("shell", shell_, "bash, zsh or fish"); }

  int run(Session &session) override {
    const auto verbs = describe_verbs();
    if (shell_ == "bash")
      bash(verbs);
    else if (shell_ == "zsh") {
      std::printf("#compdef chute\nautoload -U +X bashcompinit && bashcompinit\n");
      bash(verbs);
    } else if (shell_ == "fish")
      fish(verbs);
    else {
      Diagnostic d;
      d.kind = ErrorKind::Usage;
      d.code = "cli.shell";
      d.message = "no completion for shell '" + shell_ + "'";
      d.hint = "bash, zsh and fish are known";
      return session.fail(std::move(d));
    }
    return 0;
  }

private:
  using Verbs = std::vector<std::pair<std::string, std::vector<std::string>>>;

  static void bash(const Verbs &verbs) {
    std::string names;
    for (const auto &[name, flags] : verbs)
      names += (names.empty() ? "" : " ") + name;
    std::printf("_chute() {\n  local cur=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
                "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=\"%s --help --version\"\n"
                "  else\n    case \"${COMP_WORDS[1]}\" in\n",
                names.c_str());
    for (const auto &[name, flags] : verbs) {
      std::string list;
      for (const std::string &f : flags)
        list += (list.empty() ? "" : " ") + f;
      std::printf("      %s) words=\"%s\" ;;\n", name.c_str(), list.c_str());
    }
    std::printf("    esac\n  fi\n"
                "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n}\n"
                "complete -o filenames -F _chute chute\n");
  }

  static void fish(const Verbs &verbs) {
    for (const auto &[name, flags] : verbs) {
      std::printf("complete -c chute -n __fish_use_subcommand -a %s\n", name.c_str());
      for (const std::string &f : flags)
        std::printf("complete -c chute -n '__fish_seen_subcommand_from %s' -l %s\n", name.c_str(),
                    f.c_str() + 2);
    }
  }

  std::string shell_;
};

} // namespace

std::unique_ptr<Command> make_completion() { return std::make_unique<Completion>(); }

} // namespace chute::cli
