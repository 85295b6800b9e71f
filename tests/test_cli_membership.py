"""`leakscope membership`: one's own classifier as a table of probabilities, or as ONNX."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.core.attacks.membership.classifiers import onnx_model
from leakscope.core.attacks.membership.classifiers.limits import MOST_CELLS
from leakscope.core.attacks.membership.classifiers.onnx_model import read_vectors
from leakscope.core.attacks.membership.classifiers.outputs import Shadows
from leakscope.core.attacks.membership.classifiers.probabilities_file import read_outputs
from leakscope.core.attacks.membership.rates import AtRate
from leakscope.core.attacks.membership.verdict import membership_probability
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Interval, Score

N = 240
CLASSES = ("città", "Ärger", "c")


def answers(n_shadows: int = 3, n: int = N, seed: int = 0) -> pd.DataFrame:
    """Return what a classifier and its shadows say: surer of what each was trained on.

    Users have six samples, each user whole within or without a model.
    """
    rng = np.random.default_rng(seed)
    label, level = rng.integers(0, 3, n), rng.normal(0, 1, n)
    frames = []
    for k in range(n_shadows + 1):
        member = np.repeat(rng.random(n // 6) < 0.5, 6)
        logits = rng.normal(0, 0.4, (n, 3))
        logits[np.arange(n), label] += level + 1.2 * member
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        frame = pd.DataFrame({"member": member.astype(int), "label": [CLASSES[y] for y in label]})
        for i, name in enumerate(CLASSES):
            frame[f"p_{name}"] = p[:, i].round(9)
        frame["user"] = [f"ü{i // 6}" for i in range(n)]
        frame["shadow"] = [""] * n if k == 0 else [k - 1] * n
        frame["sample"] = [f"s{i}" for i in range(n)]
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return answers()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[pd.DataFrame], Path]:
    def write(frame: pd.DataFrame, name: str = "a.csv") -> Path:
        path = tmp_path / name
        frame.to_csv(path, index=False)
        return path

    return write


Write = Callable[..., Path]


def test_attacks_are_told_by_level_with_intervals_control_and_worth(
    core: Any, table: pd.DataFrame, write: Write
) -> None:
    told = core("membership", "--probabilities", write(table), "--prior", "0.1", "--json").json()
    assert told["n"] == N and told["n_shadows"] == 3 and told["n_users"] == N // 6
    assert told["n_classes"] == 3 and told["priors"] == [0.1]
    assert {"feature loss", "threshold rank", "lira_online", "rmia_offline", "bavaria"} <= set(
        told["sample"]
    )
    assert {
        "user_statistic loss mean",
        "user_learned loss",
        "user_votes loss",
        "user_likelihood bavaria",
        "user_inference",
    } <= set(told["user"])
    best = told["sample"]["bavaria"]
    assert best["auc_ci95"][0] < best["auc"] < best["auc_ci95"][1] and best["auc"] > 0.65
    assert set(best["tpr_at_fpr"]) == {"0.1", "0.01", "0.001"}
    assert best["tpr_at_fpr"]["0.001"] is None and "0.001" not in best["tpr_at_fpr_ci95"]
    low, high = best["tpr_at_fpr_ci95"]["0.1"]
    tpr = best["tpr_at_fpr"]["0.1"]
    assert low < tpr < high
    assert best["ppv_at_fpr"]["0.1"]["0.1"] == pytest.approx(tpr * 0.1 / (tpr * 0.1 + 0.1 * 0.9))
    assert best["ppv_at_fpr_ci95"].keys() == best["ppv_at_fpr"].keys() == {"0.1"}
    n_outsiders = N // 6 - sum(table[table.shadow == ""].groupby("user").member.max())
    at = AtRate(0.1, 0.0, Score(tpr, Interval(low, high), N, 0.1), n_outsiders)
    worth = membership_probability(at, 0.1).ci95
    assert best["ppv_at_fpr_ci95"]["0.1"]["0.1"] == pytest.approx([worth.low, worth.high])
    assert worth.low < best["ppv_at_fpr"]["0.1"]["0.1"] < worth.high
    assert abs(best["auc_shuffled"] - 0.5) < 0.05 and best["advantage"] > 0
    assert told["user"]["user_inference"]["auc"] > best["auc"]
    assert told["user"]["user_inference"]["n"] == N // 6


def test_it_is_said_in_words_too(core: Any, table: pd.DataFrame, write: Write) -> None:
    done = core("membership", "--probabilities", write(table))
    assert done.status == 0 and "by sample" in done.out and "by user" in done.out
    assert "rmia_online" in done.out and "not resolvable" in done.out


def test_the_same_seed_tells_the_same(core: Any, table: pd.DataFrame, write: Write) -> None:
    path = write(table[table.shadow == ""])
    one, two, other = (
        core("membership", "--probabilities", path, "--seed", seed, "--json").json()
        for seed in (1, 1, 2)
    )
    assert one == two and one != other


def test_parquet_and_csv_tell_the_same(table: pd.DataFrame, tmp_path: Path, write: Write) -> None:
    typed = table.assign(shadow=pd.to_numeric(table.shadow), member=table.member.astype(bool))
    typed.to_parquet(tmp_path / "a.parquet")
    one, other = read_outputs(write(table)), read_outputs(tmp_path / "a.parquet")
    assert np.allclose(one.target.probabilities, other.target.probabilities)
    assert one.classes == other.classes == CLASSES and one.target.users == other.target.users
    assert isinstance(one.shadows, Shadows) and isinstance(other.shadows, Shadows)
    assert np.array_equal(one.shadows.members, other.shadows.members)


def test_whole_numbers_are_labels_whatever_their_type(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"member": [1.0, 0.0], "label": [1.0, 0.0], "p_0": [0.5, 0.5], "p_1": [0.5, 0.5]}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    assert read_outputs(tmp_path / "a.parquet").target.labels.tolist() == [1, 0]


def test_whole_numbers_with_a_point_are_what_tables_with_gaps_have() -> None:
    content = (
        b"member,label,p_0,p_1,shadow\n1.0,1.0,.5,.5,\n0.0,0.0,.5,.5,-1.0\n"
        b"0,1,.5,.5,0.0\n1,0,.5,.5,0.0\n"
    )
    own = read_outputs(MemoryFile("a.csv", content))
    assert own.target.labels.tolist() == [1, 0] and own.target.members.tolist() == [True, False]
    assert isinstance(own.shadows, Shadows) and own.shadows.members.tolist() == [[False, True]]


def test_class_names_are_compared_as_they_are_read_not_as_they_are_written() -> None:
    composed, apart = "citt\u00e0", "citta\u0300"
    content = f"member,label,p_{composed},p_x\n1,{apart},.5,.5\n0,x,.5,.5\n".encode()
    assert read_outputs(MemoryFile("a.csv", content)).target.labels.tolist() == [0, 1]


# Which rows are of one sample


def test_rows_are_joined_by_sample_in_any_order(table: pd.DataFrame, write: Write) -> None:
    plain = read_outputs(write(table))
    mixed = read_outputs(write(table.sample(frac=1, random_state=0)))
    assert isinstance(plain.shadows, Shadows) and isinstance(mixed.shadows, Shadows)
    order = {s: i for i, s in enumerate(table.loc[table.shadow == "", "sample"])}
    shuffled = table.sample(frac=1, random_state=0)
    places = [order[s] for s in shuffled.loc[shuffled.shadow == "", "sample"]]
    assert np.allclose(mixed.shadows.probabilities, plain.shadows.probabilities[:, places])
    assert np.array_equal(mixed.shadows.members, plain.shadows.members[:, places])


@pytest.mark.slow
def test_without_samples_rows_are_joined_by_order_and_that_is_told(
    core: Any, table: pd.DataFrame, write: Write
) -> None:
    path = write(table.drop(columns="sample"))
    done = core("membership", "--probabilities", path, "--json")
    assert "bavaria" in done.json()["sample"] and "reading row n of each shadow" in done.err


def test_shadows_of_other_samples_leave_what_needs_the_same(
    core: Any, table: pd.DataFrame, write: Write
) -> None:
    other = answers(seed=5)
    own = pd.concat([table[table.shadow == ""], other[other.shadow != ""]])
    done = core("membership", "--probabilities", write(own.drop(columns="sample")), "--json")
    told = done.json()
    assert "LiRA, RMIA and BaVarIA are left out" in done.err
    assert "threshold loss" in told["sample"] and "lira_online" not in told["sample"]
    assert "user_learned loss" in told["user"] and "user_inference" not in told["user"]
    renamed = own.assign(sample=own["sample"].where(own.shadow == "", "other " + own["sample"]))
    assert not isinstance(read_outputs(write(renamed)).shadows, Shadows)


@pytest.mark.parametrize(
    ("member", "left"), [(0, {"feature", "lira_offline", "rmia_offline"}), (1, {"feature"})]
)
def test_shadow_models_of_one_kind_leave_what_they_are_enough_for(
    core: Any, table: pd.DataFrame, write: Write, member: int, left: set[str]
) -> None:
    alike = table.assign(member=table.member.where(table.shadow == "", member))
    done = core("membership", "--probabilities", write(alike), "--json")
    assert {name.split()[0] for name in done.json()["sample"]} == left
    by_user = {name.split()[0] for name in done.json()["user"]}
    assert by_user == {"user_statistic"} | ({"user_inference"} if member == 0 else set())
    assert "train each on half of the samples" in done.err


def test_without_shadows_or_outside_users_it_is_told_what_is_left_out(
    core: Any, table: pd.DataFrame, write: Write
) -> None:
    own = table[table.shadow == ""].drop(columns=["shadow", "sample"])
    done = core("membership", "--probabilities", write(own), "--json")
    assert "without shadow models only features" in done.err
    assert set(done.json()["user"]) == {
        f"user_statistic {f} mean"
        for f in ("loss", "modified_entropy", "rank", "confidence", "correctness")
    }
    mixed = own.assign(user=[f"u{i % 7}" for i in range(N)])
    done = core("membership", "--probabilities", write(mixed), "--json")
    assert done.json()["user"] == {} and "train on some users" in done.err


def test_zeros_count_as_what_the_file_s_decimals_cannot_tell() -> None:
    rows = b"1,a,1.00,0.00\n0,a,0.98,0.02\n0,b,0.5,0.5\n"
    own = read_outputs(MemoryFile("a.csv", b"member,label,p_a,p_b\n" + rows))
    assert own.target.probabilities[0, 1] == pytest.approx(5e-4)
    assert "1 probabilities are 0" in own.notes[0]


# What cannot be used

HEAD = "member,label,p_a,p_b"
GOOD = "1,a,0.9,0.1\n0,b,0.4,0.6\n"

MISTAKES = {
    "one class": ("member,label,p_a\n1,a,1\n0,a,1\n", "only one class, 'a'"),
    "no class": ("member,label,text\n1,a,x\n", "probabilities of no class"),
    "no labels": ("member,p_a,p_b\n1,.5,.5\n", "no column 'label'"),
    "labels misnamed": ("member,lable,p_a,p_b\n1,a,.5,.5\n", "Did you mean 'lable'?"),
    "no members": ("label,p_a,p_b\na,.5,.5\n", "no column 'member'"),
    "members alike": (f"{HEAD}\n1,a,.5,.5\n1,b,.5,.5\n", "has member 1 in all 2 rows"),
    "a label missing": (f"{HEAD}\n{GOOD}0,,0.5,0.5\n", "line 4: has no label"),
    "a label unknown": (f"{HEAD}\n{GOOD}0,z,0.5,0.5\n", "no column p_z"),
    "member a word": (f"{HEAD}\nmaybe,a,0.5,0.5\n", "has 'maybe' as member. Write 1"),
    "no sum": (f"{HEAD}\n{GOOD}0,a,0.5,0.4\n1,a,0.9,0.9\n", "line 4, line 5: probabilities do not"),
    "NaN": (f"{HEAD}\n{GOOD}0,a,nan,0.4\n", "line 4: probabilities hold NaN"),
    "infinity": (f"{HEAD}\n{GOOD}0,a,inf,0.4\n", "line 4: probabilities hold NaN or infinity"),
    "negative": (f"{HEAD}\n{GOOD}0,a,1.5,-0.5\n", "line 4: probabilities hold a negative"),
    "a blank": (f"{HEAD}\n{GOOD}0,a,,0.4\n", "line 4: p_a is blank"),
    "a word": (f"{HEAD}\n{GOOD}0,a,high,0.4\n", "p_a is 'high', which is not a number"),
    "a comma": (f'{HEAD}\n{GOOD}0,a,"0,5","0,5"\n', "with a decimal point"),
    "a column twice": ("member,label,p_a,p_a\n1,a,.5,.5\n", "two columns 'p_a'"),
    "a user missing": (f"{HEAD},user\n1,a,.5,.5,u\n0,a,.5,.5, \n", "line 3: has no user"),
    "shadow a word": (f"{HEAD},shadow\n1,a,.5,.5,first\n", "has 'first' as shadow"),
    "shadows alone": (f"{HEAD},shadow\n1,a,.5,.5,0\n0,a,.5,.5,0\n", "only rows of shadow models"),
    "no rows": (f"{HEAD}\n", "has no rows"),
    "a sample twice": (
        f"{HEAD},shadow,sample\n1,a,.5,.5,,x\n0,a,.5,.5,,x\n1,a,.5,.5,0,x\n",
        "a sample twice",
    ),
    "a sample missing": (
        f"{HEAD},shadow,sample\n1,a,.5,.5,,x\n0,a,.5,.5,,y\n1,a,.5,.5,0,x\n",
        "no row of shadow model 0 for 1 of",
    ),
    "a sample's label": (
        f"{HEAD},shadow,sample\n1,a,.5,.5,,x\n0,a,.5,.5,,y\n1,a,.5,.5,0,x\n0,b,.5,.5,0,y\n",
        "another label or user in shadow model 0",
    ),
    "an empty file": ("", "is empty"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_place(core: Any, name: str, tmp_path: Path) -> None:
    content, said = MISTAKES[name]
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8")
    assert said in core("membership", "--probabilities", path).refusal()


def test_many_wrong_rows_are_counted(core: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{HEAD}\n" + "1,a,0.5,0.4\n" * 12)
    said = core("membership", "--probabilities", path).refusal()
    assert "line 2, line 3, line 4, line 5, line 6 and 7 more" in said


def test_ten_thousand_classes_are_read(core: Any, tmp_path: Path) -> None:
    n_classes, n = 10_000, 12
    rng = np.random.default_rng(0)
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["member", "label", *(f"p_{i}" for i in range(n_classes))])
        for i in range(n):
            p = rng.dirichlet(np.ones(n_classes))
            out.writerow([i % 2, i * 100, *p.round(9).tolist()])
    told = core("membership", "--probabilities", path, "--json").json()
    assert told["n_classes"] == n_classes and 0 <= told["sample"]["feature rank"]["auc"] <= 1


def test_how_much_is_read_is_a_matter_of_rows_times_classes_and_the_help_says_so(
    core: Any, tmp_path: Path
) -> None:
    content = f"{HEAD}\n" + "1,a,0.5,0.5\n" * 3
    read_outputs(MemoryFile("a.csv", f"{content}0,a,0.5,0.5\n".encode()), most_cells=8)
    with pytest.raises(InvalidInputError, match=r"beyond 7 probabilities.*: 3 rows of 2 classes"):
        read_outputs(MemoryFile("a.csv", f"{content}0,a,0.5,0.5\n".encode()), most_cells=7)
    told = " ".join(core("membership", "--help").out.split())
    assert f"At most {MOST_CELLS:,} probabilities" in told
    assert f"{MOST_CELLS // 10_000:,} rows of 10,000 classes" in told
    assert "ppv_at_fpr" in told and "_ci95" in told and "95 %" in told


# ONNX


class Given:
    """A linear classifier as ONNX, vectors and labels, written to a folder."""

    def __init__(self, folder: Path, n_models: int = 3) -> None:
        from skl2onnx import to_onnx
        from sklearn.linear_model import LogisticRegression

        rng = np.random.default_rng(0)
        self.vectors = rng.normal(size=(120, 40)).astype(np.float32)
        labels = np.array(["no", "yes", "ça"])[rng.integers(0, 3, 120)]
        told = {"label": labels, "user": [f"u{i // 4}" for i in range(120)]}
        self.fitted = []
        self.models = [folder / f"m{k}.onnx" for k in range(n_models)]
        for k, path in enumerate(self.models):
            member = np.repeat(rng.random(30) < 0.5, 4)
            fitted = LogisticRegression(C=100, max_iter=500)
            fitted.fit(self.vectors[member], labels[member])
            path.write_bytes(to_onnx(fitted, self.vectors[:1]).SerializeToString())
            told["member" if k == 0 else f"member_{k}"] = member.astype(int)
            self.fitted.append(fitted)
        np.save(folder / "v.npy", self.vectors)
        self.labels = pd.DataFrame(told)
        self.labels.to_csv(folder / "l.csv", index=False)
        self.folder = folder
        self.words = [
            "--model",
            self.models[0],
            "--vectors",
            folder / "v.npy",
            "--labels",
            folder / "l.csv",
        ]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    return Given(tmp_path)


@pytest.mark.slow
def test_a_model_as_onnx_is_asked_and_its_shadows_too(core: Any, given: Given) -> None:
    own = onnx_model.outputs_of_models(given.models, given.folder / "v.npy", given.folder / "l.csv")
    expected = given.fitted[0].predict_proba(given.vectors)
    assert own.classes == ("no", "yes", "ça")
    assert np.allclose(own.target.probabilities, expected, atol=1e-5)
    assert isinstance(own.shadows, Shadows) and own.shadows.n_models == 2
    alone = core("membership", *given.words, "--json").json()
    assert alone["n_shadows"] == 0 and alone["sample"]["feature loss"]["auc"] > 0.7
    told = core("membership", *given.words, "--shadow-models", *given.models[1:], "--json").json()
    assert told["n_shadows"] == 2 and "user_likelihood lira" in told["user"]


def write_onnx(path: Path, **changes: Any) -> Path:
    """Write softmax(x W), of four dimensions and three classes unless changed."""
    onnx = pytest.importorskip("onnx")
    made = {
        "shape": [None, 4],
        "weights": np.zeros((4, 3), np.float32),
        "softmax": True,
        "kind": onnx.TensorProto.FLOAT,
        **changes,
    }
    weights = onnx.numpy_helper.from_array(made["weights"], "w")
    steps = [onnx.helper.make_node("MatMul", ["x", "w"], ["z"])]
    if made["softmax"]:
        steps.append(onnx.helper.make_node("Softmax", ["z"], ["y"], axis=-1))
    out = "y" if made["softmax"] else "z"
    graph = onnx.helper.make_graph(
        steps,
        "classifier",
        [onnx.helper.make_tensor_value_info("x", made["kind"], made["shape"])],
        [onnx.helper.make_tensor_value_info(out, made["kind"], [*made["shape"][:-1], 3])],
        [weights],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 9
    path.write_bytes(model.SerializeToString())
    return path


def asked(path: Path, labels: str = "member,label\n1,0\n0,2\n0,1\n") -> Any:
    np.save(path.parent / "v.npy", np.ones((3, 4), np.float32))
    (path.parent / "l.csv").write_text(labels)
    return onnx_model.outputs_of_models([path], path.parent / "v.npy", path.parent / "l.csv")


def test_a_model_of_one_batch_size_and_without_names_is_asked(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    for rows in (1, 2, 64):
        own = asked(write_onnx(tmp_path / "m.onnx", shape=[rows, 4]))
        assert np.allclose(own.target.probabilities, 1 / 3) and own.classes == ("0", "1", "2")
        assert "names no classes" in own.notes[0]
    own = asked(tmp_path / "m.onnx", "member,label\n1,10\n0,9\n0,100\n")
    assert own.classes == ("9", "10", "100")


@pytest.mark.parametrize(
    ("changes", "labels", "said"),
    [
        ({"shape": [None, 5], "weights": np.zeros((5, 3), np.float32)}, None, "takes vectors of 5"),
        ({"shape": [None, 2, 4]}, None, "must take one matrix"),
        ({"softmax": False}, None, "do not sum to 1"),
        ({}, "member,label\n1,a\n0,b\n0,a\n", "2 labels for a model of 3 classes"),
        ({}, "member,label\n1,0\n0,1\n", "2 rows for 3 vectors"),
        ({}, "member,label\n1,0\n0,\n0,1\n", "has no label"),
        ({}, "member,label\n1,0\n1,1\n1,2\n", "member 1 in all 3 rows"),
        ({}, "label\n0\n1\n2\n", "no column 'member'"),
    ],
)
def test_a_model_or_labels_that_do_not_fit_are_refused(
    changes: dict[str, Any], labels: str | None, said: str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    path = write_onnx(tmp_path / "m.onnx", **changes)
    with pytest.raises(InvalidInputError, match=said):
        asked(path, *([] if labels is None else [labels]))


def test_what_is_no_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "m.onnx"
    for content in (b"", b"\x80\x04K\x01.", b"no model", b"\xff" * 200):
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match=r"is no model that onnxruntime opens|takes"):
            asked(path)
    write_onnx(path)
    monkeypatch.setattr(onnx_model, "MOST_BYTES", 10)
    with pytest.raises(InvalidInputError, match="is larger than"):
        asked(path)
    with pytest.raises(InvalidInputError, match="does not exist"):
        asked(tmp_path / "none.onnx")
    with pytest.raises(InvalidInputError, match="is a folder"):
        asked(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep no such bound")
@pytest.mark.parametrize("n", [2 * 10**9, 10**11])
def test_a_model_that_asks_for_all_memory_is_refused(n: int, tmp_path: Path) -> None:
    """A file of 300 bytes: a constant of n numbers, and their sum beside each answer."""
    resource = pytest.importorskip("resource")
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    path = write_onnx(tmp_path / "m.onnx")
    model = onnx.load(path)
    make = onnx.helper.make_node
    (last,) = (node for node in model.graph.node if node.output[0] == model.graph.output[0].name)
    last.output[0] = "answer"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([n]), "n"))
    model.graph.node.extend(
        [
            make("ConstantOfShape", ["n"], ["large"]),
            make("Exp", ["large"], ["larger"]),
            make("ReduceSum", ["larger"], ["sum"], keepdims=0),
            make("Add", ["answer", "sum"], [model.graph.output[0].name]),
        ]
    )
    path.write_bytes(model.SerializeToString())
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(InvalidInputError, match=r"asks for more than 4\.2 GB of memory"):
        asked(path)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_weights_in_another_file_are_not_followed(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    path = write_onnx(tmp_path / "m.onnx")
    secret = tmp_path / "elsewhere.bin"
    secret.write_bytes(np.ones((4, 3), np.float32).tobytes())
    model = onnx.load(path)
    (weights,) = model.graph.initializer
    onnx.external_data_helper.set_external_data(weights, str(secret))
    weights.ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidInputError, match="its weights within the file"):
        asked(path)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.ones(4), "a row of numbers for each vector"),
        (np.array([[1.0, np.nan]]), "row 0: holds NaN"),
        (np.array([["a"]]), "a row of numbers"),
        (np.array([[None, {}]], dtype=object), "no NumPy array of numbers"),
        (np.ones((0, 3)), "a row of numbers"),
    ],
)
def test_vectors_that_are_none_are_refused(array: Any, said: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", array, allow_pickle=True)
    with pytest.raises(InvalidInputError, match=said):
        read_vectors(tmp_path / "v.npy")


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"text", b"\x93NUMPY\x01\x00"):
        (tmp_path / "v.npy").write_bytes(content)
        with pytest.raises(InvalidInputError, match="no NumPy array"):
            read_vectors(tmp_path / "v.npy")
    np.savez(tmp_path / "v.npz", np.ones((2, 2)))
    with pytest.raises(InvalidInputError, match=r"several arrays|no NumPy"):
        read_vectors(tmp_path / "v.npz")


def test_a_line_of_json_is_read_too(tmp_path: Path) -> None:
    rows = [{"member": i % 2, "label": "a", "p_a": 0.25, "p_b": 0.75} for i in range(4)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert read_outputs(path).target.probabilities[0].tolist() == [0.25, 0.75]
