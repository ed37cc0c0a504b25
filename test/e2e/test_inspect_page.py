"""`chute inspect --html` in a real browser: what the page says of itself after its script ran."""
import re
import shutil
import subprocess

import pytest
from conftest import ROOT, chute

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_browser = pytest.mark.skipif(not BROWSER, reason="no chromium or google-chrome on PATH")


def seen(page, fragment=""):
    """(attributes that the page sets on its root, the page as the browser has it in the end)"""
    done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--dump-dom",
                           f"file://{page}{fragment}"], capture_output=True, text=True, timeout=180)
    root = re.search(r"<html[^>]*>", done.stdout)
    assert root, done.stderr[-1000:]
    return dict(re.findall(r'data-(\w+)="([^"]*)"', root.group())), done.stdout


def stack(path, blocks):
    """20 operators a block, every second one in a module of the block's."""
    rows = ["graph @stack(%x: f32[4]) {"]
    last = "x"
    for block in range(blocks):
        for i in range(10):
            rows.append(f'  %b{block}_{i} = circle.exp(%{last}) : f32[4] loc("n" in "layers.{block}.mlp" at "model.py:{block}")')
            rows.append(f'  %c{block}_{i} = circle.add(%b{block}_{i}, %x) : f32[4] loc("n" in "layers.{block}")')
            last = f"c{block}_{i}"
    path.write_text("\n".join(rows) + f"\n  return %{last}\n}}\n")
    return path


def page_of(model, out):
    chute("inspect", model, "--html", out)
    return out


def test_page_needs_no_network(tmp_path):
    text = page_of(ROOT / "examples" / "mobilenet_small" / "model.pt2", tmp_path / "page.html").read_text()
    assert set(re.findall(r"https?://[^'\" )]*", text)) <= {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"<(link|img|iframe|script[^>]* src)|@import|url\(", text)


@in_browser
def test_collapsed_by_module(tmp_path):
    page = page_of(ROOT / "examples" / "mobilenet_small" / "model.pt2", tmp_path / "page.html")
    root, dom = seen(page)
    assert root["ready"] == "1" and root["level"] == "" and int(root["boxes"]) < 20
    for module in ("features", "head"):
        assert f"<b>{module}</b>" in dom
    root, dom = seen(page, "#level=features")
    assert root["level"] == "features" and int(root["boxes"]) > 3


@in_browser
def test_hundred_thousand_operators(tmp_path):
    page = page_of(stack(tmp_path / "stack.ir", 5000), tmp_path / "page.html")
    root, _ = seen(page)
    assert root["ready"] == "1" and root["operators"] == "100000" and int(root["boxes"]) < 320
    root, dom = seen(page, "#search=c4321_7")
    assert root["found"] == "1" and "layers.4321" in dom
    root, dom = seen(page, "#op=50007")
    assert root["level"] == "layers.2500" and "model.py" not in dom.split('id="side"')[1].split("<script")[0]
    root, dom = seen(page, "#op=50006")
    assert root["level"] == "layers.2500.mlp" and "model.py:2500" in dom


@in_browser
def test_names_are_text(tmp_path):
    nasty = '</script><script>document.documentElement.dataset.broken=1</script><b>'
    (tmp_path / "nasty.ir").write_text(f'graph @g(%x: f32[4] {{name = "{nasty}"}}) -> ("y": f32[4]) {{\n'
                                       f'  %0 = circle.custom(%x) {{custom_code = "{nasty}"}} : f32[4] loc("n" in "{nasty}")\n'
                                       '  return %0\n}\n')
    root, _ = seen(page_of(tmp_path / "nasty.ir", tmp_path / "page.html"), "#op=0")
    assert root["ready"] == "1" and "broken" not in root and root["selected"] == "0"
