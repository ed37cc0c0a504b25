"""`chute inspect` of Circle files: what it says is what the file's own schema package says."""
import json
import subprocess

import circle_features
import pytest
from circle_schema import circle
from conftest import CHUTE, chute


@pytest.fixture
def peer(tmp_path):
    (tmp_path / "peer.circle").write_bytes(circle_features.packed())
    return tmp_path / "peer.circle"


def listed(path, *more):
    return json.loads(chute("inspect", path, "--json", *more).stdout)


def test_everything_as_json(peer):
    seen, model = listed(peer, "--all"), circle.Model.ModelT.InitFromPackedBuf(circle_features.packed(), 0)
    assert (seen["version"], seen["producer"], seen["buffers"]) == (3, "peer", len(model.buffers))
    assert [g["name"].encode() for g in seen["subgraphs"]] == [g.name for g in model.subgraphs]
    for ours, theirs in zip(seen["subgraphs"], model.subgraphs):
        assert [t["name"].encode() for t in ours["tensor_list"]] == [t.name for t in theirs.tensors]
        assert [t["buffer"] for t in ours["tensor_list"]] == [t.buffer for t in theirs.tensors]
        assert [o["inputs"] for o in ours["operator_list"]] == [list(o.inputs) for o in theirs.operators]
        assert [o["outputs"] for o in ours["operator_list"]] == [list(o.outputs) for o in theirs.operators]
    assert [s["key"].encode() for s in seen["signatures"]] == [s.signatureKey for s in model.signatureDefs]
    assert [m["name"] for m in seen["metadata"]] == ["k", "k2"]
    assert [p["name"] for p in seen["inputs"]] == ["first", "second", "first"]
    assert seen["subgraphs"][4]["operator_list"][0]["options"] == {"cond": 3, "body": 1}
    assert {"element": "i4", "scheme": "block", "tensors": 1} in seen["quantization"]


def test_selections(peer):
    one = listed(peer, "--operators", "--subgraph", "0", "--range", "1-3")["subgraphs"]
    assert [o["index"] for o in one[0]["operator_list"]] == [1, 2, 3] and len(one) == 1
    named = listed(peer, "--operators", "--tensors", "--name", "^dense$|fully")["subgraphs"]
    assert [o["index"] for o in named[0]["operator_list"]] == [1, 2, 5]
    assert [t["index"] for t in named[0]["tensor_list"]] == [14]
    weights = listed(peer, "--weights", "--largest", "2")["weights"]
    assert [w["name"] for w in weights] == ["names", "w"]
    text = chute("inspect", peer, "--operators", "--range", "0").stdout
    assert "[0] circle.relu([2] x) -> [6] z {custom_options = 3 bytes}" in text


def test_standard_input(peer):
    done = subprocess.run([CHUTE, "inspect", "-", "--signatures"], input=peer.read_bytes(), capture_output=True, check=True)
    assert b"'other' of subgraph 0" in done.stdout


@pytest.mark.parametrize("wrong", (["--range", "3-1"], ["--range", "x"], ["--subgraph", "9"], ["--subgraph", "-"], ["--name", "("]))
def test_wrong_selections(peer, wrong):
    assert chute("inspect", peer, "--operators", *wrong, expect=2).stderr.startswith("error[")
