"""``badacost fit``: from a table to a model, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import badacost
from badacost.cli.app import app
from badacost.costs import write_costs

QUICK = ["--trees", "4", "--depth", "2", "--jobs", "1", "--holdout", "0"]
TRIED = ["--holdout", "0.2"]
COSTS = {
    "bad": {"fair": 4, "good": 9},
    "fair": {"bad": 1, "good": 2},
    "good": {"bad": 2, "fair": 1},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A working folder with a table of loans and costs."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    income = rng.normal(50, 15, 150).round(1)
    job = rng.choice(["none", "part", "full"], 150)
    score = income + 20 * (job == "full") + rng.normal(0, 8, 150)
    loans = pd.DataFrame(
        {
            "customer": [f"C{number:04d}" for number in range(150)],
            "income": income,
            "job": job,
            "weight": rng.integers(1, 4, 150),
            "loan": np.array(["bad", "fair", "good"])[np.digitize(score, [45, 62])],
        }
    )
    loans.to_csv("loans.csv", index=False)
    write_costs(COSTS, "costs.csv")
    return tmp_path


def run(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    if status == 1:
        assert result.stderr.splitlines()[-1].startswith("Error: ")
        assert result.stdout == ""
    return result


def fit(*arguments: str, status: int = 0) -> Result:
    given = ["loans.csv", "--target", "loan", "--costs", "costs.csv", "--drop", "customer"]
    return run("fit", *given, *QUICK, *arguments, status=status)


class TestFit:
    def test_a_model_and_what_it_saves(self) -> None:
        given = ["loans.csv", "--target", "loan", "--costs", "costs.csv", "--drop", "customer"]
        result = run("fit", *given, "--trees", "4", "--jobs", "1")
        words = " ".join(result.stdout.replace("│", " ").split())
        for text in (
            "What a decision costs: 150 rows, in 5-fold cross-validation",
            "the model (CostBoost)",
            "boosting without costs, most likely class",
            "always",
            "fitted to 150 rows",
            "badacost explore model.badacost --data OTHER.csv",
        ):
            assert text in words
        assert "the model              [####" in result.stderr
        assert "CostBoostClassifier [####" in result.stderr
        model = badacost.load("model.badacost")
        assert (model.target_name_, model.n_rows_) == ("loan", 150)
        assert type(model.estimator_) is badacost.CostBoostClassifier
        assert model.estimator_.max_depth == badacost.CostBoostClassifier.max_depth
        assert model.feature_names_in_.tolist() == ["income", "job", "weight"]
        assert model.held_out_.n_rows == 150
        assert len(model.held_out_.rivals) == 2
        np.testing.assert_array_equal(model.cost_matrix_, [[0, 4, 9], [1, 0, 2], [2, 1, 0]])

    def test_a_cheaper_rival_is_named(self) -> None:
        """A stump is worse than boosting without costs that decides by minimum expected cost."""
        shown = fit("--algorithm", "lp-csb", "--trees", "1", "--depth", "1", *TRIED).stdout
        assert "Cheaper than the model: " in shown
        assert "Try --algorithm auto." in shown

    def test_decisions_that_cost_nothing_are_doubted(self) -> None:
        loans = pd.read_csv("loans.csv")
        loans.assign(paid=loans["loan"] + "!").to_csv("loans.csv", index=False)
        shown = fit("--trees", "60", "--depth", "4", *TRIED).stdout
        assert "check that no column is known only afterwards" in shown

    def test_json_is_all_there_is_on_stdout(self) -> None:
        result = fit("--json", "--output", "new/folder/m.badacost", *TRIED)
        got = json.loads(result.stdout)
        assert Path(got["model"]).is_file()
        assert got["classes"] == ["bad", "fair", "good"]
        assert got["costs"] == [[0, 4, 9], [1, 0, 2], [2, 1, 0]]
        assert got["n_trees"] <= 4
        assert (got["algorithm"], got["chosen"], got["decision"]) == (
            "costboost", "CostBoost", "bayes",
        )  # fmt: skip
        assert got["out_of_fold_cost"] > 0.0
        assert got["held_out"]["how"] == "held out"
        assert set(got["held_out"]["rivals"]) == set(got["held_out"]["rival_errors"]) != set()

    def test_quiet(self) -> None:
        result = fit("--quiet")
        assert result.output == ""
        assert Path("model.badacost").is_file()

    def test_the_same_command_gives_the_same_file(self) -> None:
        fit("--quiet", "--output", "one")
        fit("--quiet", "--output", "two")
        assert Path("one").read_bytes() == Path("two").read_bytes()
        fit("--quiet", "--output", "three", "--trees", "5")
        assert Path("one").read_bytes() != Path("three").read_bytes()

    def test_without_refit_or_evaluation(self) -> None:
        got = json.loads(fit("--no-refit", "--json", *TRIED).stdout)
        assert got["n_rows"] == 150 - got["held_out"]["n_rows"]
        got = json.loads(fit("--json").stdout)
        assert got["held_out"] is None

    @pytest.mark.parametrize(
        ("algorithm", "decision"),
        [
            ("badacost", "bayes"),
            ("samme", "bayes"),
            ("adaboost-m1", "bayes"),
            ("piboost", "bayes"),
            ("adac2m1", "margin"),
            ("lp-csb", "margin"),
            ("wang-multiboost", "margin"),
        ],
    )
    def test_algorithms(self, algorithm, decision) -> None:
        got = json.loads(fit("--algorithm", algorithm, "--json").stdout)
        assert (got["algorithm"], got["decision"]) == (algorithm, decision)
        assert badacost.load("model.badacost").estimator_.n_estimators_ >= 1

    def test_algorithms_for_two_classes(self) -> None:
        result = fit("--algorithm", "cs-adaboost", status=1)
        assert "2 classes" in result.stderr
        result = fit("--algorithm", "adac2m1", "--decision", "bayes", status=1)
        assert "needs probabilities" in result.stderr

    def test_costs_that_do_not_link_all_classes(self) -> None:
        costs = {"bad": {"fair": 0, "good": 9}, "fair": {"bad": 0, "good": 2},
                 "good": {"bad": 0, "fair": 1}}  # fmt: skip
        write_costs(costs, "costs.csv")
        given = ["--algorithm", "badacost", "--json"]
        assert json.loads(fit(*given).stdout)["decision"] == "margin"
        assert json.loads(fit(*given[2:]).stdout)["decision"] == "bayes"

    def test_settings_of_costboost(self) -> None:
        model = fit("--early-stopping", "--learning-rate", "0.3", "--quiet") and (
            badacost.load("model.badacost").estimator_
        )
        assert (model.n_estimators, model.max_depth, model.learning_rate) == (4, 2, 0.3)
        assert model.early_stopping
        message = fit("--decision", "margin", status=1).stderr
        assert "costboost decides by minimum expected cost only" in message

    def test_a_price_of_being_right_is_in_the_cost_out_of_fold(self) -> None:
        costs = {truth: {truth: 1, **prices} for truth, prices in COSTS.items()}
        write_costs(costs, "costs.csv")
        assert json.loads(fit("--json").stdout)["out_of_fold_cost"] >= 1

    def test_weights_are_no_feature(self) -> None:
        got = json.loads(fit("--weight", "weight", "--json").stdout)
        assert got["columns"] == ["income", "job"]
        assert "'job' must have numbers" in fit("--weight", "job", status=1).stderr

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (None, "is empty in line 5: write 0 for a row that should not count"),
            (-1, "is negative in line 5: write 0 or more"),
        ],
    )
    def test_weights_that_are_none(self, weight, message) -> None:
        loans = pd.read_csv("loans.csv").astype({"weight": float})
        loans.loc[3, "weight"] = weight
        loans.loc[1, "loan"] = None  # left out, but the lines below stay the lines of the file
        loans.to_csv("loans.csv", index=False)
        assert message in fit("--weight", "weight", status=1).stderr

    def test_a_model_is_replaced_and_that_is_said(self) -> None:
        assert "replaced" not in fit("--trees", "1").stdout
        shown = fit("--trees", "1").stdout
        assert "where it replaced another" in shown
        assert " 1 round of depth 2" in shown
        assert json.loads(fit("--json").stdout)["replaced"]

    def test_a_bad_cell_among_numbers_is_noted(self) -> None:
        text = Path("loans.csv").read_text().splitlines(keepends=True)
        income = text[7].split(",")[1]
        text[7] = text[7].replace(income, "unknown")
        Path("loans.csv").write_text("".join(text))
        result = fit("--json")
        said = "column 'income' has numbers, but 'unknown' in line 8"
        assert f"Note: {said}" in result.stderr
        assert said in json.loads(result.stdout)["notes"][0]
        assert badacost.load("model.badacost").encoder_.columns_[0].kind == "number"

    def test_classes_that_are_not_held_out(self) -> None:
        loans = pd.read_csv("loans.csv")
        loans = pd.concat([loans[loans["loan"] != "bad"], loans[loans["loan"] == "bad"][:1]])
        loans.to_csv("loans.csv", index=False)
        shown = fit(*TRIED).stdout
        assert "rows, held out, none of class 'bad'" in shown
        assert "Mistakes on classes without rows are not in these figures" in shown

    def test_the_figures_of_the_bar_have_names(self) -> None:
        said = fit("--algorithm", "badacost").stderr
        lines = [line for line in said.splitlines() if "[###" in line]
        assert len(lines) == 2
        assert all("  cost " in line for line in lines)
        assert "  validation cost " in fit("--algorithm", "badacost", "--early-stopping").stderr

    def test_early_stopping(self) -> None:
        """Stumps need many rounds before decisions change: the fit must not stop before."""
        loans = pd.read_csv("loans.csv")  # of which 12 rows would be held out, which say little
        pd.concat([loans] * 5).to_csv("loans.csv", index=False)
        given = ["--algorithm", "badacost", "--early-stopping", "--depth", "1"]
        got = json.loads(fit(*given, "--trees", "60", "--json").stdout)
        assert 20 < got["n_trees"] <= 60

    def test_rows_without_a_class_are_left_out(self) -> None:
        loans = pd.read_csv("loans.csv")
        loans.loc[:9, "loan"] = None
        loans.to_csv("loans.csv", index=False)
        result = fit("--json")
        assert "10 of 150 rows have no 'loan' and are left out; NA, N/A," in result.stderr
        assert json.loads(result.stdout)["n_rows"] == 140
        loans.fillna({"loan": "null"}).to_csv("loans.csv", index=False)
        assert "null and ? stand for no value in files of text: if one is" in fit().stderr


class TestAuto:
    GIVEN = ("fit", "loans.csv", "--target", "loan", "--costs", "costs.csv", "--drop", "customer")

    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch) -> None:
        """Few rounds of few algorithms; the last one is not installed."""
        from badacost import BAdaCostClassifier, CostBoostClassifier
        from badacost.tabular import TableClassifier

        def few(costs, **options):
            boosters = {
                "CostBoost": CostBoostClassifier(n_estimators=8, **options),
                "BAdaCost": BAdaCostClassifier(n_estimators=2, **options),
            }
            models = {
                name: TableClassifier(booster, cost_matrix=costs)
                for name, booster in boosters.items()
            }
            return models, ["catboost"]

        monkeypatch.setattr("badacost.tabular.contenders", few)

    def test_the_cheapest_is_saved(self) -> None:
        result = run(*self.GIVEN, "--algorithm", "auto", "--jobs", "1")
        told = 'Note: not compared: catboost; to add them, type pip install "badacost[boosters]".'
        assert told in result.stderr.splitlines()
        assert "CostBoost              [####" in result.stderr
        assert "BAdaCost               [####" in result.stderr
        assert "CostBoost is cheapest." in result.stderr
        for text in ("±", "150 rows, in 5-fold cross-validation", "always 'bad'"):
            assert text in result.stdout
        assert "The model, CostBoost with " in result.stdout
        model = badacost.load("model.badacost")
        assert type(model.estimator_) is badacost.CostBoostClassifier
        assert model.held_out_.n_rows == model.n_rows_ == 150
        assert next(iter(model.held_out_.rivals)) == "BAdaCost"
        assert len(model.held_out_.rivals) == 3

    def test_json_quietly(self) -> None:
        result = run(*self.GIVEN, "--algorithm", "auto", "--json", "--quiet", "--jobs", "1")
        assert result.stderr == ""
        got = json.loads(result.stdout)
        assert (got["algorithm"], got["chosen"], got["decision"]) == ("auto", "CostBoost", "bayes")
        assert got["held_out"]["rivals"]["BAdaCost"] > got["held_out"]["average_cost"]

    @pytest.mark.parametrize(
        "options",
        [["--depth", "2"], ["--trees", "9"], ["--holdout", "0"], ["--no-refit"],
         ["--decision", "bayes"], ["--early-stopping"], ["--learning-rate", "1"]],
    )  # fmt: skip
    def test_options_of_one_algorithm(self, options) -> None:
        message = run(*self.GIVEN, "--algorithm", "auto", *options, status=1).stderr
        assert f"{options[0]} is of no use here, since --algorithm auto compares" in message


class TestMistakes:
    def test_prices_that_are_missing(self) -> None:
        result = run("fit", "loans.csv", "--target", "loan", status=1)
        command = "badacost costs loans.csv --target loan --output costs.csv"
        assert command in result.stderr
        assert len(result.stderr.splitlines()) == 1

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--target", "lone"], "no column 'lone': did you mean 'loan'"),
            (["--drop", "jbo"], "no column 'jbo': did you mean 'job'"),
            (["--weight", "weigth"], "no column 'weigth': did you mean 'weight'"),
            (["--drop", "loan"], "cannot be left out"),
            (["--target", "income"], "fractions"),
            (["--target", "customer"], "cannot be left out"),
            (["--jobs", "0"], "--jobs must not be 0"),
            (["--output", "."], "is a folder"),
            (["--costs", "no.csv"], "no file of costs 'no.csv'"),
            (["--costs", "."], "is a folder"),
            (["--learning-rate", "-1"], "learning_rate must be"),
        ],
    )
    def test_options(self, options, message) -> None:
        result = fit(*options, status=1)
        assert message in result.stderr
        assert not Path("model.badacost").exists()

    def test_negative_seeds_are_wrong_usage(self) -> None:
        assert "--seed" in fit("--seed", "-1", status=2).stderr

    def test_no_folder_is_made_before_there_is_something_to_write(self) -> None:
        fit("--target", "lone", "--output", "new/m.badacost", status=1)
        run("costs", "loans.csv", "--target", "lone", "--output", "new/c.csv", status=1)
        assert not Path("new").exists()

    def test_all_columns_of_no_use_are_named_at_once(self) -> None:
        loans = pd.read_csv("loans.csv")
        loans["since"] = [f"{day % 28 + 1}.05.{2000 + day % 20}" for day in range(150)]
        loans.to_csv("loans.csv", index=False)
        given = ["fit", "loans.csv", "--target", "loan", "--costs", "costs.csv"]
        message = run(*given, status=1).stderr
        assert "2 columns cannot be used: 'customer' looks like an identifier" in message
        assert "'since' has dates as '1.05.2000' in line 2, not as 2024-05-31" in message
        assert "--drop 'customer' --drop 'since'" in message

    def test_an_identifier_is_named_with_the_remedy(self) -> None:
        given = ["fit", "loans.csv", "--target", "loan", "--costs", "costs.csv"]
        assert "identifier" in run(*given, status=1).stderr
        assert "--drop 'customer'" in run(*given, status=1).stderr

    @pytest.mark.parametrize(
        ("costs", "message"),
        [
            ("t,bad,fair\nbad,0,1\nfair,1,0\n", "class 'good' is missing from the first column"),
            ("t,bad,fair,god\nbad,0,1,1\nfair,1,0,1\ngod,1,1,0\n", "'god'"),
            ("t,bad,fair,good\nbad,0,x,1\nfair,1,0,1\ngood,1,1,0\n", "'x'"),
            ("", "costs.csv"),
        ],
    )
    def test_costs(self, costs, message) -> None:
        Path("costs.csv").write_text(costs)
        assert message in fit(status=1).stderr

    def test_usage(self) -> None:
        run("fit", "loans.csv", status=2)
        run("fit", "loans.csv", "--target", "loan", "--holdout", "2", status=2)
        assert "'auto'; got 'magic'" in fit("--algorithm", "magic", status=1).stderr

    def test_interruption(self, monkeypatch) -> None:
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("badacost.tabular.fit_and_try", interrupted)
        assert "no model was written" in fit(status=130).stderr


class TestDialects:
    def test_decimal_commas_in_data_and_prices(self) -> None:
        loans = pd.read_csv("loans.csv")
        loans.to_csv("loans.csv", index=False, sep=";", decimal=",")
        text = Path("costs.csv").read_text().replace(",", ";").replace("9", "9,5")
        Path("costs.csv").write_text(text)
        got = json.loads(fit("--json").stdout)
        assert got["costs"][0] == [0, 4, 9.5]
        assert badacost.load("model.badacost").encoder_.columns_[0].kind == "number"


class TestRoot:
    def test_help_has_panels_in_order(self) -> None:
        shown = CliRunner().invoke(app, []).output
        panels = ["Tables", "Detection", "Housekeeping", "130 interrupted"]
        positions = [shown.index(f"─ {panel} ─" if panel[0] != "1" else panel) for panel in panels]
        assert positions == sorted(positions)

    def test_version_and_completion(self) -> None:
        assert run("--version").stdout.strip() == badacost.__version__
        assert "--install-completion" in run("--help").stdout
