"""A ready-made cost explorer among the pages: the diabetes grades, on patients held out."""

from __future__ import annotations

from pathlib import Path

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sphinx.application import Sphinx

from badacost import CostBoostClassifier
from badacost.cost_report import CostExplorer
from badacost.datasets import find_dataset


def _named(grade: int) -> str:
    return f"grade {grade}"


def _explorer() -> CostExplorer:
    """Fit CostBoost to half of the patients, and a rival without costs; explore the other half."""
    dataset = find_dataset("diabetes")
    patients = dataset.load()
    grades = patients.pop("grade").map(_named)
    costs = {
        _named(truth): {_named(answer): price for answer, price in row.items()}
        for truth, row in dataset.example_costs().items()
    }
    X, X_test, y, y_test = train_test_split(
        patients, grades, test_size=0.5, stratify=grades, random_state=0
    )
    model = CostBoostClassifier(costs, random_state=0).fit(X, y)
    blind = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    return CostExplorer.from_estimator(
        model,
        X_test,
        y_test,
        rivals={"Logistic regression": blind},
        title="Diabetes: which grade in a year?",
    )


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        _explorer().save(Path(app.outdir) / "explorer.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page when all others are there."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
