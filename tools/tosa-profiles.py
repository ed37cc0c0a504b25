#!/usr/bin/env python3
"""Check the files that ../shared/check/tosa_corpus.py wrote against the profile that each was converted for.

usage: tosa-profiles.py CHUTE CORPUS WORK

WORK/fp and WORK/int hold the files. Each must pass Arm's validator (tosa-opt --tosa-validate, strict) with its profile
alone and the extensions that belong to that profile, and `chute verify --target` must say the same; the same program as
MLIR must pass `mlir-opt-19 --tosa-validate` with the matching profile of LLVM 19, where its dialect has the element
types and operators.
"""
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import tempfile

EXTENSIONS = {"fp": "bf16 fp8e4m3 fp8e5m2 fft variable controlflow".split(),
              "int": "int16 int4 variable controlflow doubleround inexactround".split()}
LLVM_19 = {"fp": "mi", "int": "bi"}
# What the dialect of LLVM 19 does not have.
NEWER = ("tosa.mlir.operator", "tosa.mlir.type")


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)


def arm_validator():
    found = pathlib.Path(sys.executable).parent / "tosa-opt"
    return found if found.exists() else shutil.which("tosa-opt")


def check(path, chute, corpus, empty):
    """What is wrong with one file; the second element tells what could not be asked."""
    profile, wrong, skipped = path.parent.name, [], []
    block_scaled = "mxfp" in path.stem  # TOSA 1.1
    extensions = EXTENSIONS[profile] + (["mxfp", "mxfp_conv"] if block_scaled else [])
    validator, version = arm_validator(), "1.1" if block_scaled else "1.0"
    ours = run(chute, "verify", path, "--target", "+".join([f"tosa-{version}", profile, *extensions, "8k"]))
    if validator:
        theirs = run(validator, f"--tosa-deserialize=tosa-flatbuffer-filename={path}",
                     f"--tosa-attach-target=profiles=pro_{profile} extensions={','.join(extensions)} level=8k "
                     f"specification_version={version}{'.draft' if block_scaled else ''}",
                     "--tosa-validate=strict-op-spec-alignment", empty, "-o", "/dev/null")
        if theirs.returncode:
            wrong.append("tosa-opt: " + theirs.stderr[-300:])
        if (theirs.returncode == 0) != (ours.returncode == 0):
            wrong.append(f"chute verify says {ours.returncode}, tosa-opt {theirs.returncode}: {ours.stderr[-300:]}")
    elif ours.returncode:
        wrong.append("chute verify: " + ours.stderr[-300:])
    if shutil.which("mlir-opt-19"):
        text = path.with_suffix(".mlir")
        made = run(chute, "convert", corpus / profile / path.stem / "model.pt2", "-o", text, "--profile", profile)
        if made.returncode and any(code in made.stderr for code in NEWER):
            skipped.append(path.stem)
        elif made.returncode:
            wrong.append("as MLIR: " + made.stderr[-300:])
        else:
            opt = run("mlir-opt-19", f"--tosa-validate=profile={LLVM_19[profile]} level=8k strict-op-spec-alignment", text,
                      "-o", "/dev/null")
            if opt.returncode:
                wrong.append("mlir-opt-19: " + opt.stderr[-300:])
    return wrong, skipped


def main():
    chute, corpus, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    files = sorted(path for profile in EXTENSIONS for path in (work / profile).glob("*.tosa"))
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as empty, concurrent.futures.ThreadPoolExecutor() as pool:
        empty.write("module {}\n")
        empty.flush()
        results = list(pool.map(lambda path: check(path, chute, corpus, empty.name), files))
    bad = 0
    for path, (wrong, _) in zip(files, results):
        bad += bool(wrong)
        for line in wrong:
            print(f"FAIL profile {path.parent.name} {path.stem}: {line}")
    skipped = sum(len(s) for _, s in results)
    validator = "" if arm_validator() else "; tosa-opt is not installed"
    print(f"tosa profiles: {len(files) - bad} of {len(files)} files keep to theirs ({skipped} are newer than LLVM 19"
          f"{validator})")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
