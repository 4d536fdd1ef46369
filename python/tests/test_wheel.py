"""The wheel: built by one command, installed into an empty venv outside the repository, with the oldest versions of what it needs."""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}


def run(*command, cwd, env=CLEAN):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd, env=env)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet", "--out", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of a venv with the wheel and the oldest packages, outside the repository."""
    folder = tmp_path_factory.mktemp("elsewhere")
    assert ROOT not in folder.parents
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    path = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(path, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", HERE / "oldest.txt", wheel, cwd=folder)
    return path


def test_one_wheel_for_every_python(wheel):
    assert re.fullmatch(r"outlast-[\d.]+-cp310-abi3-\w+\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert {"outlast/py.typed", "outlast/_core.pyi", "outlast/plot.py"} <= set(names)
    assert any(name.startswith("outlast/_core.abi3") for name in names)
    assert any("LICENSE-MIT" in name for name in names) and not any("tests" in name for name in names)
    assert "Requires-Python: >=3.10" in metadata
    pins = (HERE / "oldest.txt").read_text()
    for package in ("scikit-learn", "numpy", "scipy", "joblib"):
        (lowest,) = re.findall(rf"^Requires-Dist: {package}>=([\d.]+)$", metadata, flags=re.MULTILINE)
        tested = re.search(rf"^{package}=={re.escape(lowest)}(\.\d+)?;", pins, flags=re.MULTILINE)
        assert tested, f"{package} {lowest} is not what is tested"


def test_the_wheel_fits_elsewhere(python, tmp_path):
    program = """
import numpy as np, outlast
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 200)
X = rng.normal(size=(200, 2)) + 3 * y[:, None]
model = outlast.TruncatedSVC(probability="weighted").fit(X, y)
model.save("model.outlast")
again = outlast.load("model.outlast")
assert (again.predict(X) == model.predict(X)).all() and model.score(X, y) > 0.95
print(outlast.__version__)
"""
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), flags=re.MULTILINE)[1]
    assert run(python, "-c", program, cwd=tmp_path).strip() == version


def test_every_estimator_keeps_the_promises_of_the_oldest_scikit_learn(python, tmp_path):
    for name in ("checks_elsewhere.py", "estimators.py"):
        (tmp_path / name).write_text((HERE / name).read_text())
    said = run(python, "checks_elsewhere.py", cwd=tmp_path, env={**CLEAN, "OMP_NUM_THREADS": "2"})
    assert int(said.split()[0]) > 250, said
    if sys.version_info < (3, 14):
        assert "scikit-learn 1.6.0" in said, said
    assert sysconfig.get_python_version() in said
