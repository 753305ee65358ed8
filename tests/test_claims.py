"""The ledger: every claim has its row, and no verdict is better than its source and scale allow."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from hypothesis import given
from hypothesis import strategies as st

from fbam.analysis.claims import UNKNOWN_REASON, Claim, ClaimsError, evaluate, load_claims, read_stages

LEDGER = Path(__file__).parents[1] / "data" / "claims.yaml"
IDS = """
depth.parallel depth.scan depth.circuits depth.equivalence pointer.chasing any.p cot depth.recurrent depth.families
nofreelunch.fwd nofreelunch.bwd nofreelunch.agg criticality video
frjt.data frjt.mamba.growth frjt.mamba.train frjt.mamba frjt.lstm frjt.transformer frjt.overfit
maze.unwithheld maze.withheld maze.depth64 maze.spikes diffbench.trend diffbench.context diffbench.tinygrad diffbench.heuristic
data.rate data.ratio data.exact data.frame data.vocab data.runs data.message
train.optim train.memory scale.400 scale.650 scale.4000 scale.doubling scale.alpha scale.walltime
ablate.attention ablate.critical ablate.batch ablate.observable ablate.position ablate.actions ablate.valtrain
corpora sections.lost lost.transformers lost.capacity sustained traffic flops.head flops.main
""".split()
CHECKS = {
    "within": ({"kind": "within", "tolerance": 0.1}, 2.1, 2.3),
    "at_most": ({"kind": "at_most", "bound": 2}, 2, 2.01),
    "at_least": ({"kind": "at_least", "bound": 2.0}, 2.0, 1.99),
    "true": ({"kind": "true"}, True, False),
}


def entry(**changes):
    row = {
        "id": "some.claim",
        "section": "10.5",
        "statement": "Something is two.",
        "value": {"text": "2", "numbers": {"value": 2.0}},
        "source": "paper",
        "notebook": "some",
        "ours": "stage.key",
        "test": {"kind": "within", "tolerance": 0.1},
        "scale": "free",
    }
    return {name: value for name, value in (row | changes).items() if value is not None}


def judge(measured_value, timings=None, stage=None, **changes):
    results = {"stage": {"summary": {"key": measured_value, **(stage or {})}}}
    (row,) = evaluate([Claim.model_validate(entry(**changes))], results, timings or {})
    return row


def load(tmp_path, *entries):
    path = tmp_path / "claims.yaml"
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe", pure=True).dump(list(entries), file)
    return load_claims(path)


def test_the_ledger_has_one_row_for_every_claim_of_the_paper():
    assert [claim.id for claim in load_claims(LEDGER)] == IDS


def test_the_ledger_without_results_is_not_run_and_says_what_it_needs():
    rows = evaluate(load_claims(LEDGER), {}, {})
    assert {row.verdict for row in rows} == {"not run"}
    assert all(row.note.startswith("needs ") and row.ours is None and row.values == {} for row in rows)


def test_the_ledger_judged_on_our_own_numbers():
    flops = {"paper_head": 267877110251520, "paper_main": 19791209299968}
    scaling = {"doubling_400": 0.0855, "doubling_650": 0.1270, "doubling_plateau": 0.192, "equation9_max_error": 0.0129}
    scaling |= {"law_early": True, "law_middle": True, "law_late": False}
    scaling |= {f"{what}_{when}": 0.1 for when in ("early", "middle", "late") for what in ("alpha", "r2")}
    scaling |= {f"alpha_{when}_{end}": 0.1 for when in ("early", "middle", "late") for end in ("low", "high")}
    scaling |= {"law_observable": True, "law_all": False, "alpha_observable_labels": 0.0}
    scaling |= {name: 0.1 for name in ("alpha_observable", "alpha_observable_low", "alpha_observable_high", "r2_observable")}
    results = {"flops": flops, "scaling": scaling, "corpus": {"mismatches": 0, "ratio": 450.5}}
    timings = {"rate": {"actions_per_second": 30000.0, "reference_actions_per_second": 3000.0, "speedup": 10.0}}
    rows = evaluate(load_claims(LEDGER), *({name: {"summary": s} for name, s in both.items()} for both in (results, timings)))
    assert {row.id: row.verdict for row in rows if row.verdict != "not run"} == {
        "data.rate": "differs",
        "data.ratio": "holds in shape",
        "data.exact": "holds in shape",
        "scale.400": "holds in shape",
        "scale.650": "holds in shape",
        "scale.4000": "differs",
        "scale.doubling": "holds in shape",
        "scale.alpha": "holds in shape",
        "ablate.observable": "holds in shape",
        "corpora": "differs",
        "flops.head": "holds in shape",
        "flops.main": "holds in shape",
    }


@pytest.mark.parametrize("kind", CHECKS)
def test_each_test_passes_and_fails(kind):
    check, good, bad = CHECKS[kind]
    assert judge(good, test=check).verdict == "holds"
    assert judge(bad, test=check).verdict == "differs"


@given(
    source=st.sampled_from(["paper", "secondary", "inferred"]),
    scale=st.sampled_from(["free", "reduced", "arithmetic"]),
    kind=st.sampled_from(sorted(CHECKS)),
    flag=st.sampled_from([None, False, True]),
)
def test_a_verdict_is_no_better_than_its_source_and_scale(source, scale, kind, flag):
    check, good, _ = CHECKS[kind]
    flag = flag if scale == "reduced" else None
    changes = {} if flag is None else {"at_paper_scale": "stage.at_scale", "stage": {"at_scale": flag}}
    row = judge(good, source=source, scale=scale, test=check, **changes)
    free = source == "paper" and (scale == "free" or flag is True)
    assert row.verdict == ("holds" if free else "holds in shape")
    assert bool(row.note) == (not free)


def test_what_limits_a_verdict_is_said():
    assert judge(2.0, source="secondary", scale="reduced").note == (
        "the value compared with is from a press summary, not from the paper; measured at reduced scale"
    )
    note = judge(2.0, source="inferred", scale="reduced", at_paper_scale="stage.big", stage={"big": True}).note
    assert note == "the paper's text is lost or silent here, the statement is our reading"


def test_differs_says_why_or_that_nobody_knows_yet():
    assert judge(3.0).note == UNKNOWN_REASON == "reason not found yet"
    assert judge(3.0, reason="ours is slower").note == "ours is slower"
    assert judge(3.0, remark="counted twice").note == "reason not found yet; counted twice"
    assert judge(2.0, reason="ours is slower").note == ""


def test_a_demonstration_gives_argued_and_a_failed_one_differs():
    assert judge(True, test={"kind": "argued"}, source="inferred").verdict == "argued"
    assert judge(False, test={"kind": "argued"}).verdict == "differs"


def test_several_numbers_must_all_pass():
    changes = {"value": {"text": "1 and 2", "numbers": {"one": 1.0, "two": 2.0}}, "ours": {"one": "stage.key", "two": "stage.other"}}
    row = judge(1.05, stage={"other": 2.05}, **changes)
    assert (row.verdict, row.ours, row.values) == ("holds", "one: 1.05, two: 2.05", {"one": 1.05, "two": 2.05})
    assert judge(1.05, stage={"other": 1.0}, **changes).verdict == "differs"


def test_a_stage_without_result_is_not_run():
    claim = Claim.model_validate(entry(ours={"value": "stage.key"}, at_paper_scale="other.flag", scale="reduced"))
    (row,) = evaluate([claim], {"stage": {"summary": {"key": 2.0}}}, {})
    assert (row.verdict, row.note, row.ours) == ("not run", "needs a result of stage other", None)
    (row,) = evaluate([claim], {}, {})
    assert row.note == "needs a result of stage other and stage"


@pytest.mark.parametrize("value", [None, "2", float("nan"), float("inf"), True, [2.0]])
def test_a_value_of_the_wrong_kind_is_an_error(value):
    with pytest.raises(ClaimsError, match="claim some.claim: summary value key of stage stage must be a finite number"):
        judge(value)


@pytest.mark.parametrize("value", [1, 1.0, "yes", None])
def test_a_truth_value_of_the_wrong_kind_is_an_error(value):
    with pytest.raises(ClaimsError, match="must be true or false"):
        judge(value, test={"kind": "true"})
    with pytest.raises(ClaimsError, match="summary value big of stage stage must be true or false"):
        judge(2.0, scale="reduced", at_paper_scale="stage.big", stage={"big": value})


@pytest.mark.parametrize("result", [{"summary": {"other": 2.0}}, {"summary": {}}, {}])
def test_a_result_that_lacks_the_value_is_an_error_naming_claim_and_value(result):
    with pytest.raises(ClaimsError, match="claim some.claim: the result of stage stage has no summary value key"):
        evaluate([Claim.model_validate(entry())], {"stage": result}, {})


def test_measured_claims_read_timings_and_others_results():
    timings = {"stage": {"summary": {"key": 2.0}}}
    assert judge(9.0, timings, measured=True).verdict == "holds"
    assert judge(9.0, timings).verdict == "differs"
    assert judge(9.0, {}, measured=True).verdict == "not run"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": "red"}, "colour: Extra inputs"),
        ({"source": "blog"}, "source"),
        ({"statement": " "}, "statement"),
        ({"value": {"text": "2", "numbers": {"value": "2e14"}}}, "value.numbers.value"),
        ({"value": {"text": "2", "numbers": {"value": float("nan")}}}, "value.numbers.value"),
        ({"ours": "no_stage"}, "ours"),
        ({"test": {"kind": "about"}}, "test"),
        ({"test": {"kind": True}}, "test"),
        ({"test": {"kind": "within"}}, "tolerance"),
        ({"test": None}, "with `ours`"),
        ({"scale": None}, "with `ours`"),
        ({"notebook": None}, "with `ours`"),
        ({"needs": "more"}, "no `needs`"),
        ({"ours": None}, "without `ours`"),
        ({"ours": None, "scale": None, "needs": "more"}, "no test but `argued`"),
        ({"ours": None, "scale": None, "test": None}, "without `ours`"),
        ({"at_paper_scale": "stage.flag"}, "at_paper_scale"),
        ({"ours": {"other": "stage.key"}}, "no other"),
    ],
)
def test_a_wrong_row_is_one_line_that_names_it(tmp_path, changes, message):
    with pytest.raises(ClaimsError, match=message) as caught:
        load(tmp_path, entry(id="good.one"), entry(**changes))
    assert str(caught.value).startswith("claims.yaml: claim some.claim: ") and "\n" not in str(caught.value)


def test_a_claim_that_stands_twice_is_refused(tmp_path):
    with pytest.raises(ClaimsError, match="claim some.claim stands there twice"):
        load(tmp_path, entry(), entry())


@pytest.mark.parametrize(("text", "message"), [("a: b", "list"), ("- [", "not valid YAML"), ("- words", "number 1"), ("", "list")])
def test_a_file_that_is_no_ledger_is_refused(tmp_path, text, message):
    (tmp_path / "claims.yaml").write_text(text)
    with pytest.raises(ClaimsError, match=message):
        load_claims(tmp_path / "claims.yaml")


def test_exactly_the_stages_that_claims_name_are_read(tmp_path):
    claims = load(tmp_path, entry(), entry(id="other", ours={"value": "missing.key"}))
    for stage in ("stage", "stale"):
        (tmp_path / f"{stage}.json").write_text(json.dumps({"summary": {"key": 2.0}, "rows": [], "provenance": [{}]}))
    stages = read_stages(tmp_path, claims)
    assert stages.keys() == {"stage"}
    assert [row.verdict for row in evaluate(claims, stages, {})] == ["holds", "not run"]


def test_numbers_beside_are_shown_and_not_tested():
    row = evaluate([Claim.model_validate(entry(beside={"alpha": "other.alpha"}))],
                   {"stage": {"summary": {"key": 2.0}}, "other": {"summary": {"alpha": -0.25}}}, {})[0]
    assert row.verdict == "holds" and row.ours == "2, alpha: -0.25" and row.values == {"value": 2.0, "alpha": -0.25}
    with pytest.raises(ClaimsError, match="the result of stage other has no summary value alpha"):
        evaluate([Claim.model_validate(entry(beside={"alpha": "other.alpha"}))],
                 {"stage": {"summary": {"key": 2.0}}, "other": {"summary": {}}}, {})
