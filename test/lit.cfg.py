"""lit's configuration: every `.ir` file under src is a test, run by its own RUN lines."""
import os

import lit.formats

config.name = "chute"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ir"]
config.test_source_root = os.path.join(config.chute_source, "src")
config.test_exec_root = os.path.join(config.chute_build, "test", "out")
config.environment["PATH"] = os.pathsep.join(
    [config.chute_build, config.filecheck_dir, config.environment.get("PATH", "")])
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=error"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
