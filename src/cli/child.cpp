#include "cli/child.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace chute::cli {

Result<ChildEnd> run_command(const std::string &command, double seconds, bool show) {
  const pid_t child = fork();
  if (child < 0)
    return fail(ErrorKind::Failure, "cli.child",
                std::string("no process could be started: ") + std::strerror(errno));
  if (child == 0) {
    setpgid(0, 0);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (!show)
      dup2(null, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char *>(nullptr));
    _exit(127);
  }
  setpgid(child, child); // whoever comes first
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  auto pause = std::chrono::microseconds(200);
  ChildEnd out;
  int status = 0;
  while (true) {
    const pid_t done = waitpid(child, &status, out.timed_out ? 0 : WNOHANG);
    if (done == child)
      break;
    if (done < 0 && errno != EINTR)
      return fail(ErrorKind::Failure, "cli.child",
                  std::string("waiting for a process failed: ") + std::strerror(errno));
    if (out.timed_out)
      continue;
    if (Clock::now() >= deadline) {
      out.timed_out = true;
      kill(-child, SIGKILL);
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20'000));
  }
  // Whatever it left behind ends with it.
  kill(-child, SIGKILL);
  out.signalled = WIFSIGNALED(status);
  out.code = out.signalled ? WTERMSIG(status) : WEXITSTATUS(status);
  return out;
}

} // namespace chute::cli
