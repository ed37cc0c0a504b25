"""Runs a command as a process of its own and says what it cost."""
import dataclasses
import os
import resource
import signal
import subprocess
import tempfile
import time


@dataclasses.dataclass
class Cost:
    """Seconds and MiB of one process and its children; `wall` is None when it did not finish."""
    wall: float | None
    user: float = 0.0
    system: float = 0.0
    peak_mib: float = 0.0
    error: str = ""

    @property
    def finished(self):
        return self.wall is not None and not self.error


WALL_PER_CPU = 10  # how much longer than its processor time a process may take before it counts as hung


def run(command, limit=600.0, env=None):
    """One run. A process that used `limit` seconds of processor time is ended and the cost says so: what other work the
    machine has does not decide which sizes a peer finishes."""
    def bound():
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))

    with tempfile.TemporaryFile() as log:
        start = time.monotonic()
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   start_new_session=True, env={**os.environ, **(env or {})}, preexec_fn=bound)
        status = usage = None
        while time.monotonic() - start < limit * WALL_PER_CPU:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            elapsed = time.monotonic() - start
            time.sleep(min(0.05, max(0.0005, elapsed / 200)))
        else:
            os.killpg(process.pid, signal.SIGKILL)
            os.wait4(process.pid, 0)
            process.returncode = -signal.SIGKILL
            return Cost(None, error=f"not finished in {limit * WALL_PER_CPU:.0f} s")
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        cost = Cost(wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss / 1024)
        if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and usage.ru_utime + usage.ru_stime >= limit:
            return Cost(None, error=f"not finished in {limit:.0f} s of processor time")
        if process.returncode:
            log.seek(0)
            lines = log.read().decode(errors="replace").strip().splitlines()
            cost.error = f"exit code {process.returncode}: {lines[-1][:200] if lines else 'no output'}"
        return cost


def best(command, repeat=3, limit=600.0, env=None):
    """The fastest of some runs: other load on the machine only ever adds. Stops repeating what is slow."""
    result = run(command, limit, env)
    for _ in range(repeat - 1):
        if not result.finished or result.wall > 60:
            break
        again = run(command, limit, env)
        if again.finished:
            result = Cost(min(result.wall, again.wall), min(result.user, again.user),
                          min(result.system, again.system), max(result.peak_mib, again.peak_mib))
    return result
