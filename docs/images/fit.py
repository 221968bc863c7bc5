"""The picture of docs/fit.md: ``python docs/images/fit.py`` fits a table and writes fit.svg."""

import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from scgd.cli import main
from scgd.plots.data import LIGHT

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))


def write():
    from pictures import adaptive

    with tempfile.TemporaryDirectory() as folder:
        table, picture = Path(folder) / "tumours.csv", Path(folder) / "fit.svg"
        data = load_breast_cancer(as_frame=True)
        words = data.target.map({0: "malignant", 1: "benign"})
        data.data.assign(diagnosis=words).to_csv(table, index=False)
        main(["fit", str(table), "--target", "diagnosis", "--penalty", "l1", "--out",
              str(Path(folder) / "model.npz"), "--plot", str(picture)])  # fmt: skip
        text = picture.read_text().replace(f"fill='{LIGHT.ground}'", "fill='none'")
        (HERE / "fit.svg").write_text(adaptive(text))


if __name__ == "__main__":
    write()
