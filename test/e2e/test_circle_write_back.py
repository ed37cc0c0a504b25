"""What no pass touches is written back as it was: files of chute byte for byte, files of others in content."""
import contextlib
import io
import json
import logging

import cases_faults  # noqa: F401  registers more cases
import cases_operators  # noqa: F401
import circle_features
import pytest
import tico
from cases import CASES
from circle_schema import circle
from conftest import ROOT, chute
from test_circle_file import plain, read
from tico import CompileConfigV1


def copy(source, out):
    chute("optimize", source, "-o", out, "-O0")
    return out


def test_every_feature_of_the_format(tmp_path):
    (tmp_path / "peer.circle").write_bytes(circle_features.packed())
    assert plain(read(copy(tmp_path / "peer.circle", tmp_path / "copy.circle"))) == plain(read(tmp_path / "peer.circle"))


def test_shared_subgraphs_stay_one(tmp_path):
    """Two loops with one condition and one body, which has a signature of its own, too."""
    import flatbuffers
    model = circle_features.model()
    loop = model.subgraphs[4]
    loop.tensors.append(circle_features.tensor("again", [1]))
    loop.operators.append(circle_features.operator(4, [0], [2], builtinOptionsType=loop.operators[0].builtinOptionsType,
                                                   builtinOptions=loop.operators[0].builtinOptions))
    loop.outputs = [2]
    model.signatureDefs[0].outputs[0].tensorIndex = 2
    model.signatureDefs.append(circle_features.signature("body", 1, [("i", 0)], [("o", 1)]))
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"CIR0")
    (tmp_path / "peer.circle").write_bytes(bytes(builder.Output()))
    chute("verify", tmp_path / "peer.circle")
    assert plain(read(copy(tmp_path / "peer.circle", tmp_path / "copy.circle"))) == plain(read(tmp_path / "peer.circle"))


def test_tflite_is_the_same_format(tmp_path):
    data = bytearray(circle_features.packed())
    data[4:8] = b"TFL3"
    (tmp_path / "peer.tflite").write_bytes(data)
    assert plain(read(copy(tmp_path / "peer.tflite", tmp_path / "copy.circle"))) == plain(circle_features_model())


def circle_features_model():
    return circle.Model.ModelT.InitFromPackedBuf(circle_features.packed(), 0)


def test_deprecated_operator_codes(tmp_path):
    """Up to schema 0.4 the code was one byte, in another field."""
    import flatbuffers
    model = circle_features.model()
    for code in model.operatorCodes:
        code.builtinCode = 0
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"CIR0")
    (tmp_path / "old.circle").write_bytes(bytes(builder.Output()))
    assert plain(read(copy(tmp_path / "old.circle", tmp_path / "copy.circle"))) == plain(circle_features_model())


def test_committed_seed_is_current():
    assert (ROOT / "test/fuzz/verify_fuzz/every_feature.circle").read_bytes() == circle_features.packed()


@pytest.mark.parametrize("name", ("mobilenet_small", "decoder_small"))
def test_own_files_byte_for_byte(name, tmp_path):
    chute("convert", ROOT / "examples" / name / "model.pt2", "-o", tmp_path / "one.circle")
    assert copy(tmp_path / "one.circle", tmp_path / "two.circle").read_bytes() == (tmp_path / "one.circle").read_bytes()


@pytest.mark.parametrize("start", (0, 40))
@pytest.mark.parametrize("optimized", (False, True), ids=("raw", "optimized"))
def test_files_of_tico_keep_their_content(tmp_path, start, optimized):
    """Object by object, for programs from all over the operator table: every 50th case that TICO converts."""
    same, source = 0, tmp_path / "tico.circle"
    logging.disable(logging.CRITICAL)
    for name in sorted(CASES)[start + 17 * optimized::100]:
        module, inputs = CASES[name].build()
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                tico.convert(module, inputs, config=CompileConfigV1(circle_optimize=optimized)).save(source)
        except Exception:
            continue  # TICO does not convert it
        done = json.loads(chute("optimize", source, "-o", tmp_path / "copy.circle", "-O0", "--json").stdout)
        if done["operators_before"] == done["operators_after"]:  # -O0 drops what nothing uses
            assert plain(read(tmp_path / "copy.circle")) == plain(read(source)), name
            same += 1
    logging.disable(logging.NOTSET)
    assert same >= 3


def test_empty_vectors_stay_empty(tmp_path):
    """TICO gives tensors without elements a buffer with an empty vector, which is not the same as none."""
    import flatbuffers
    model = circle_features_model()
    model.buffers[0].data = []
    empty = next(i for i, b in enumerate(model.buffers) if i and b.data is None)
    model.buffers[empty].data = []
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"CIR0")
    (tmp_path / "peer.circle").write_bytes(bytes(builder.Output()))
    kept = plain(read(copy(tmp_path / "peer.circle", tmp_path / "copy.circle")))
    assert kept == plain(read(tmp_path / "peer.circle"))
    assert [b[1]["data"] for b in kept[1]["buffers"]].count([]) == 2
