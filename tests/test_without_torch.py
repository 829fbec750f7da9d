"""A discovery needs no torch; only training does."""

import subprocess
import sys

from lgf.cli import main

WITHOUT = """
import sys

class NoTorch:
    def find_spec(self, name, *rest):
        if name == "torch":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, NoTorch())
import numpy as np
from lgf import LatentGrammarFlow
from lgf.search.settings import DiscoverySettings, EnumerationSettings, ProposerShare

t = np.linspace(0, 4, 40)
settings = DiscoverySettings(enumeration=EnumerationSettings(iterations=0), proposers=(ProposerShare("flow", 1.0),))
model = LatentGrammarFlow(order=1, settings=settings, max_evaluations=20).fit(t, np.exp(-t))
assert str(model.equation_).startswith("u' = "), model.equation_
"""


def test_the_flow_proposes_without_torch():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_training_says_what_to_install(monkeypatch, capsys, pytestconfig, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("lgf.paper.training.stages", "lgf.training.loop"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    recipe = pytestconfig.rootpath / "recipes" / "b1.toml"
    assert main(["train", str(recipe), "--out", str(tmp_path / "b1")]) == 2
    assert "pip install 'latent-grammar-flow[train]'" in capsys.readouterr().err
