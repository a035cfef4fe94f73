"""Data larger than memory: 20 million rows of 50 columns from Parquet, beside LightGBM.

Each model is trained in a new process with two threads, whose peak of memory is measured: BAdaCost
and CostBoost on batches, LightGBM on its own way to read data piece by piece (`lightgbm.Sequence`).
Results go to results/large.json, unless the number of rows is another.

    python benchmarks/large.py --folder /data/large
    python benchmarks/large.py --rows 1000000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import Figure, Figures, circumstances

HERE = Path(__file__).resolve().parent
N_ROWS, N_COLUMNS, N_CLASSES = 20_000_000, 50, 3
N_ROWS_OF_FILE, N_ROWS_OF_GROUP = 1_000_000, 250_000
MAX_GIGABYTES = 3.0
COMMON = """
import json, resource, sys, time
folder, n_rounds, depth = sys.argv[1], 20, 4
start, started = time.perf_counter(), time.process_time()
def report(binned, predict):
    seconds, cpu = time.perf_counter() - start, time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    import numpy, pyarrow.parquet
    test = pyarrow.parquet.read_table(folder + "/test/test.parquet").to_pandas()
    correct = numpy.mean(predict(test.drop(columns="y")) == test["y"])
    print(json.dumps({"seconds": seconds, "cpu": cpu, "binned": binned - start, "peak": peak,
                      "correct": float(correct)}))
"""
OURS = """
from badacost import BAdaCostClassifier, CostBoostClassifier
from badacost.batches import ParquetBatches
"""
MODELS = {
    "CostBoost": """
model = CostBoostClassifier(n_estimators=n_rounds, max_depth=depth, n_folds=1, n_jobs=2,
                            early_stopping=False, random_state=0)
""",
    "BAdaCost": """
model = BAdaCostClassifier(n_estimators=n_rounds, max_depth=depth, n_jobs=2, random_state=0)
""",
}
FIT = """
from badacost.classifiers.training_data import SampleSet
bin, binned = SampleSet.bin, 0.0
def timed(*given):
    global binned
    data, binned = bin(*given), time.perf_counter()
    return data
SampleSet.bin = timed
model.fit(ParquetBatches(folder, "y"))
report(binned, model.predict)
"""
LIGHTGBM = """
import lightgbm as lgb, numpy as np, pyarrow.parquet as pq
from pathlib import Path
class File(lgb.Sequence):
    batch_size = 65_536
    def __init__(self, path):
        self.file, self.group = pq.ParquetFile(path), None
        meta = self.file.metadata
        groups = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        self.ends = np.cumsum([0, *groups])
        self.names = [name for name in self.file.schema_arrow.names if name != "y"]
    def __len__(self):
        return int(self.ends[-1])
    def read(self, group):  # the last group that was asked for stays
        if group != self.group:
            table = self.file.read_row_group(group, columns=self.names)
            self.rows = np.column_stack([column.to_numpy() for column in table.columns])
            self.group = group
        return self.rows
    def __getitem__(self, index):
        if isinstance(index, slice):
            first, last, _ = index.indices(len(self))
            parts = []
            while first < last:
                group = int(np.searchsorted(self.ends, first, side="right")) - 1
                end = min(last, int(self.ends[group + 1]))
                offset = int(self.ends[group])
                parts.append(self.read(group)[first - offset : end - offset])
                first = end
            return np.concatenate(parts).astype(np.float64)
        group = int(np.searchsorted(self.ends, index, side="right")) - 1
        return self.read(group)[index - int(self.ends[group])].astype(np.float64)
files = sorted(Path(folder).glob("*.parquet"))
y = np.concatenate([pq.read_table(path, columns=["y"])["y"].to_numpy() for path in files])
settings = {"objective": "multiclass", "num_class": 3, "num_leaves": 2**depth, "max_depth": depth,
            "num_threads": 2, "verbosity": -1, "seed": 0}
data = lgb.Dataset([File(path) for path in files], y.astype(np.float32), params=settings)
data.construct()
binned = time.perf_counter()
model = lgb.train(settings, data, n_rounds)
report(binned, lambda X: model.predict(X.to_numpy()).argmax(axis=1))
"""


def block(n_rows: int, number: int) -> pa.Table:
    """Rows of three classes: rules of some columns decide, others are noise."""
    rng = np.random.default_rng([0, number])
    X = rng.standard_normal((N_COLUMNS, n_rows), dtype=np.float32)
    X[5:10] = np.round(X[5:10])
    scores = np.stack(
        [
            X[0] + X[1] * X[2] + 0.5 * X[5],
            X[3] - np.abs(X[4]) + 0.5 * X[6] * X[7],
            np.where(X[8] > 0, X[9], -X[9]) + 0.3 * X[10],
        ]
    )
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=0)
    columns = {f"x{j:02}": values for j, values in enumerate(X)}
    return pa.table({**columns, "y": y.astype(np.int8)})


def write(folder: Path, n_rows: int) -> None:
    """Write the files that are not there yet."""
    (folder / "test").mkdir(parents=True, exist_ok=True)
    test = folder / "test/test.parquet"
    if not test.exists():
        pq.write_table(block(100_000, 1_000_000), test)
    for number, first in enumerate(range(0, n_rows, N_ROWS_OF_FILE)):
        path = folder / f"{number:04}.parquet"
        n_here = min(N_ROWS_OF_FILE, n_rows - first)
        if not path.exists() or pq.ParquetFile(path).metadata.num_rows != n_here:
            options = {"row_group_size": N_ROWS_OF_GROUP, "use_dictionary": False}
            pq.write_table(block(n_here, number), path, **options)


PROGRAMS = {name: COMMON + OURS + text + FIT for name, text in MODELS.items()}
PROGRAMS["LightGBM"] = COMMON + LIGHTGBM


def measure(folder: Path, n_rows: int, name: str) -> Figures:
    """Train a model in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS[name], str(folder)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    limit = MAX_GIGABYTES if name in MODELS and n_rows == N_ROWS else None
    yield Figure(f"{name}: peak of memory", found["peak"] / 1e9, "GB", at_most=limit)
    yield Figure(f"{name}: until values are in bins", found["binned"], "s")
    yield Figure(f"{name}: whole", found["seconds"], "s")
    yield Figure(f"{name}: whole, CPU", found["cpu"], "CPU-s")
    yield Figure(f"{name}: correct of 100 000 other rows", 100 * found["correct"], "%")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--folder", type=Path, help="keeps the data; default: a temporary one")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    options = parser.parse_args()
    results = HERE / "results/large.json"
    known = json.loads(results.read_text()) if results.exists() else {}
    with TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        write(folder, options.rows)
        for name in options.only:
            figures = []
            for figure in measure(folder, options.rows, name):
                print(figure, flush=True)
                figures.append({**asdict(figure), "met": figure.met})
            known[name] = {**circumstances(options.rows / N_ROWS), "figures": figures}
            if options.rows == N_ROWS:  # models that were not trained again stay as they are
                results.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
