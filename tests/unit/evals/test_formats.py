"""Files of other tools: each as the tool itself writes it, and what is said of those that can't be read."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.errors import ConfigError
from guardrail.evals import BadSample, Sample, read_samples
from guardrail.evals.formats import FORMATS, labelled, read_labels, samples_in, unread_messages
from guardrail.evals.formats.values import labels_of
from guardrail.events import Context, Label, LabelSource, Response, Verdict
from tests.support.cases import flagged_case
from tests.unit.evals.samples import lines, only, samples

TEXTS = ["It costs 49 euros.", 'It\'s paid "monthly".']


def problem(data: bytes | str, name: str = "", source_format: Any = "auto") -> str:
    found = samples(data, name, source_format)[-1]
    assert isinstance(found, BadSample)
    return found.error


def parts(response: Response) -> tuple[str, list[str], list[str], str]:
    contexts = response.contexts
    return (
        response.question,
        [each.id for each in contexts],
        [each.text for each in contexts],
        response.answer,
    )


# ----------------------------------------------------------------------------------------------- ours


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"not json", "not valid JSON"),
        (b'{"type": "response", "schema": 1, "response_id": "r"}', "answer"),
        (b'{"type": "response", "schema": 2, "response_id": "r", "answer": ""}', "schema"),
        (b'{"type": "other"}', "type 'other'"),
        (b'{"type": ["\\u001b[2J"]}', "x1b[2J"),
        (b'{"answer": "a", "contxts": ["b"]}', "contexts: missing"),
        (b'{"answer": "a", "contexts": null}', "contexts: missing"),
        (b'{"type": "case.flagged", "omitted": ["contexts"]}', "without its documents"),
        (
            b'{"type": "response.delta", "schema": 1, "response_id": "r", "seq": 0, "text": "a"}',
            "whole answers",
        ),
        (b'{"type": "response", "answer": "\xff"}', "not UTF-8 (byte 33"),
        ("{}\n{}".encode("utf-16"), "UTF-16 and not UTF-8"),
        (b'{"answer": "a"}\n' + b"[" * 100_000, "not valid JSON"),
        (b'{"answer": "a"}\n[1]', "no JSON object"),
        (b'{"answer": "' + b"x" * (32 * 1024 * 1024) + b'"}', "a line may have"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_why(data: bytes, words: str) -> None:
    told = problem(data)
    assert words in told
    assert "line 1" not in told


def test_everything_wrong_with_a_line_is_told_at_once_and_nothing_of_it_quoted() -> None:
    told = problem('{"type": "response", "contexts": [{"id": "x"}, "secret"], "answer": 7, "route": 5}')
    for words in (
        "response_id: Field required",
        "contexts.0.text: Field required",
        "contexts.1: ",
        "answer: ",
        "route: ",
    ):
        assert words in told
    assert "secret" not in told


def test_a_flagged_case_can_be_judged_again() -> None:
    flagged = flagged_case(answer="Yes.", contexts=(Context(id="c", text="No."),), route="sales")
    response = only(flagged.to_json()).response
    assert (response.answer, response.route, response.response_id) == ("Yes.", "sales", "r-1")
    assert response.contexts == flagged.contexts


def test_a_bad_row_keeps_its_place_among_the_others() -> None:
    good = {"contexts": [], "answer": "a"}
    found = samples(lines(good) + "\n\n{nope\n" + lines(good))
    assert [each.place for each in found] == ["line 1", "line 3", "line 4"]
    assert [type(each) for each in found] == [Sample, BadSample, Sample]


def test_a_document_over_many_lines_a_table_and_gzip_hold_the_same() -> None:
    row = {"question": "How much?", "contexts": TEXTS, "answer": TEXTS[0], "route": "sales"}
    table = io.StringIO()
    pd.DataFrame([row]).to_csv(table, index=False)
    for data, name in (
        (json.dumps([row], indent=2), "a.json"),
        (json.dumps({"data": [row]}), "a.json"),
        (json.dumps(row, indent=1), ""),
        (table.getvalue(), "a.csv"),
        (lines(row), "a.jsonl"),
    ):
        raw = data.encode()
        for written, suffix in ((raw, ""), (gzip.compress(raw), ".gz")):
            response = only(written, name + suffix).response
            assert parts(response) == ("How much?", ["c1", "c2"], TEXTS, TEXTS[0]), name
            assert response.route == "sales"


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "None", "<NA>"])
def test_a_cell_without_a_value_is_no_text(cell: str) -> None:
    head = "question,contexts,answer\n"
    assert problem(f"{head}How much?,A.,{cell}\n", "a.csv").startswith("answer: missing")
    assert problem(f"{head}How much?,{cell},B.\n", "a.csv").startswith("contexts: missing")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_may_have_any_of_the_usual_delimiters(delimiter: str) -> None:
    data = delimiter.join(["question", "contexts", "answer"]) + "\r\n" + delimiter.join(["q", "text", "a"])
    assert parts(only("\ufeff" + data, "a.CSV").response) == ("q", ["c1"], ["text"], "a")


def test_rows_of_a_table_that_cannot_be_read_spoil_only_themselves() -> None:
    data = b"contexts,answer\nt,a\nt\nt,\xff\nt,b\n"
    found = samples(data, "a.csv")
    assert [each.place for each in found] == ["row 1", "row 2", "row 3", "row 4"]
    assert [each.error if isinstance(each, BadSample) else "" for each in found] == [
        "",
        "1 cells under 2 names; quote cells that hold the delimiter",
        "not UTF-8; convert the file to UTF-8",
        "",
    ]


def test_a_name_that_two_columns_have_is_an_error() -> None:
    table = "answer,contexts,answer,,\na,t,b,,\n"
    assert problem(table, "a.csv") == "two columns are called 'answer'; give each a name of its own"


def test_parquet_is_read_in_batches_of_rows(tmp_path: Path) -> None:
    rows = [{"contexts": [{"id": "d", "text": "t"}], "answer": f"a{number}"} for number in range(200)]
    pd.DataFrame(rows).to_parquet(tmp_path / "a.parquet")
    found = list(read_samples(tmp_path / "a.parquet"))
    assert [each.response.answer for each in found if isinstance(each, Sample)] == [
        f"a{n}" for n in range(200)
    ]
    (tmp_path / "b.parquet").write_bytes(b"PAR1" + b"x" * 100)
    with pytest.raises(ConfigError, match="not a Parquet file"):
        list(read_samples(tmp_path / "b.parquet"))


def test_parquet_without_its_extra_says_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[parquet\]'"):
        samples(b"PAR1xxxx")


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"{" * 10_000)[:-9], b"\x1f\x8bnot gzip"],
    ids=["cut", "none"],  # the bytes hold the time, and every process has to collect the same tests
)
def test_broken_gzip_and_documents_are_errors_of_the_whole_file(data: bytes) -> None:
    with pytest.raises(ConfigError, match="broken gzip"):
        samples(data)
    with pytest.raises(ConfigError, match="neither JSON lines nor a JSON document"):
        samples(b"{\n nope")


@pytest.mark.parametrize("name", ["picture.png", "table.csv"])
def test_a_binary_file_is_one_error_that_names_it_and_what_is_read(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}: a binary file; give answers as JSON lines, JSON, CSV"):
        samples(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\n" + b"\xff\n" * 10_000, name)


def test_a_file_torn_by_a_crash_is_none_that_is_binary() -> None:
    """A file system may leave zeros where a line was to be; bytes of another encoding have none."""
    for torn in (b"\0" * 500, b"\xff" * 500):
        first, last = samples(torn + b"\n" + lines({"answer": "ä", "contexts": ["a"]}).encode())
        assert isinstance(first, BadSample)
        assert isinstance(last, Sample)


def test_an_unknown_format_is_told_by_its_fields_and_harmless() -> None:
    told = problem('{"a\\u001b": 1, "b": 2}')
    assert "no known format by its fields ('a\\\\x1b', 'b')" in told
    assert "--format" in told


_VALUES = st.none() | st.text(max_size=5) | st.lists(st.integers() | st.text(max_size=3), max_size=3)
_NAMES = st.sampled_from(
    ["answer", "contexts", "vars", "user_input", "response", "labels", "source_id", "input"]
)


@given(st.dictionaries(_NAMES, _VALUES), st.sampled_from(FORMATS))
def test_whatever_a_row_holds_it_is_a_sample_or_an_error(row: dict[str, Any], source_format: Any) -> None:
    for found in samples(json.dumps(row), "", source_format):
        assert isinstance(found, (Sample, BadSample))


# -------------------------------------------------------------------------------------------- Ragas

# As EvaluationDataset.to_csv and to_jsonl of ragas 0.4.3 write it.
RAGAS_CSV = """user_input,retrieved_contexts,retrieved_context_ids,response,reference
How much?,"['It costs 49 euros.', 'It\\'s paid ""monthly"".']","['price', 7]",It costs 49 euros.,49
"""
RAGAS_JSONL = (
    '{"user_input": "How much?", "retrieved_contexts": ["It costs 49 euros.", "It\'s paid \\"monthly\\"."], '
    '"retrieved_context_ids": ["price", 7], "response": "It costs 49 euros.", "reference": "49"}'
)


@pytest.mark.parametrize(("data", "name"), [(RAGAS_CSV, "r.csv"), (RAGAS_JSONL, "r.jsonl")])
def test_ragas(data: str, name: str) -> None:
    found = only(data, name)
    assert parts(found.response) == ("How much?", ["price", "7"], TEXTS, TEXTS[0])
    assert found.response.metadata == {"reference": "49"}


@pytest.mark.parametrize(
    "cell", ["['It costs 49 eu", '["It costs 49', "['a', 'b' ... 'c']", "[{'text': nan}]"]
)
def test_a_list_that_was_cut_is_no_text(cell: str) -> None:
    row = {"user_input": "How much?", "retrieved_contexts": cell, "response": TEXTS[0]}
    assert "retrieved_contexts: a text; it begins as a list and is none" in problem(lines(row))


def test_a_list_as_numpy_prints_it_is_not_one_text() -> None:
    row = {"user_input": "How much?", "retrieved_contexts": TEXTS, "response": TEXTS[0]}
    parquet, table = io.BytesIO(), io.StringIO()
    pd.DataFrame([row]).to_parquet(parquet)
    pd.read_parquet(parquet).to_csv(table, index=False)
    assert ",' '" not in table.getvalue()
    assert parts(only(table.getvalue(), "r.csv").response) == ("How much?", ["c1", "c2"], TEXTS, TEXTS[0])


def test_ragas_of_several_turns_is_refused() -> None:
    assert "user_input: a list" in problem('{"user_input": [{"content": "Hi", "type": "human"}]}')


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"user_input": "q", "response": "a"}, "retrieved_contexts: missing; give a list of texts"),
        ({"user_input": "q", "response": 7, "retrieved_contexts": []}, "response: a number; give a text"),
        ({"user_input": "q", "response": "a", "retrieved_contexts": 7}, "retrieved_contexts: a number"),
        ({"user_input": "q", "response": "a", "retrieved_contexts": [["x"]]}, "retrieved_contexts.0: a list"),
        ({"user_input": "q", "response": "a", "retrieved_contexts": [{"id": 1}]}, "contexts.0.text: missing"),
        ({"answer": 12, "contexts": ["a"]}, "answer: a number; give a text"),
        ({"answer": "a", "contexts": {"id": "c"}, "route": 7}, "an object; give a list; route: a number"),
        ({"answer": "a", "contexts": [3]}, "contexts.0: a number; give an object, or in a line without"),
        ({"answer": "a", "contexts": [], "metadata": True}, "metadata: true or false; give an object"),
        ({"answer": "a", "contexts": [], "deadline_ms": 0}, "deadline_ms: Input should be greater than 0"),
    ],
)
def test_a_wrong_field_is_named_with_its_kind_and_the_remedy(row: dict[str, Any], words: str) -> None:
    assert words in problem(lines(row))


# ----------------------------------------------------------------------------------------- DeepEval

# As EvaluationDataset.save_as of deepeval 4.3 writes it, without the columns that stay empty.
DEEPEVAL_CSV = """input,actual_output,expected_output,retrieval_context,context,name
How much?,It costs 49 euros.,,"It costs 49 euros.|deepeval_source=terms.pdf,deepeval_context=Paid monthly.",,
"""
DEEPEVAL_JSON = """[
    {
        "input": "How much?",
        "actual_output": "It costs 49 euros.",
        "expected_output": null,
        "retrieval_context": [
            "It costs 49 euros.",
            "deepeval_source=terms.pdf,deepeval_context=Paid monthly."
        ],
        "context": null
    }
]"""
DEEPEVAL_JSONL = (
    '{"input": "How much?", "actual_output": "It costs 49 euros.", "expected_output": null, '
    '"retrieval_context": "It costs 49 euros.|deepeval_source=terms.pdf,deepeval_context=Paid monthly.", '
    '"context": null}'
)


@pytest.mark.parametrize(
    ("data", "name"), [(DEEPEVAL_CSV, "d.csv"), (DEEPEVAL_JSON, "d.json"), (DEEPEVAL_JSONL, "d.jsonl")]
)
def test_deepeval(data: str, name: str) -> None:
    response = only(data, name).response
    assert parts(response) == ("How much?", ["c1", "c2"], [TEXTS[0], "Paid monthly."], TEXTS[0])
    assert [each.source for each in response.contexts] == [None, "terms.pdf"]


# As deepeval 4.3 writes results: DEEPEVAL_RESULTS_FOLDER/test_run_*.json and .deepeval/.latest_run_full.json,
# the same within .latest_test_run.json, and EvaluationResult.model_dump_json(), without figures of metrics.
DEEPEVAL_TEST_RUN = {
    "testCases": [
        {
            "name": "test_case_0",
            "input": "How much?",
            "actualOutput": "It costs 49 euros.",
            "retrievalContext": TEXTS,
            "success": True,
            "metricsData": [{"name": "Faithfulness", "strictMode": False}],
            "order": 0,
        }
    ],
    "conversationalTestCases": [],
    "metricsScores": [{"metric": "Faithfulness", "scores": [1.0]}],
    "testPassed": 1,
}
DEEPEVAL_RESULT = {
    "test_results": [
        {
            "name": "test_case_0",
            "success": True,
            "metrics_data": [{"name": "Faithfulness"}],
            "conversational": False,
            "input": "How much?",
            "actual_output": "It costs 49 euros.",
            "context": ["another"],
            "retrieval_context": TEXTS,
        }
    ],
    "confident_link": None,
    "test_run_id": None,
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("written", [DEEPEVAL_TEST_RUN, {"testRunData": DEEPEVAL_TEST_RUN}, DEEPEVAL_RESULT])
def test_results_of_deepeval(written: dict[str, Any], indent: int | None) -> None:
    response = only(json.dumps(written, indent=indent)).response
    assert parts(response) == ("How much?", ["c1", "c2"], TEXTS, TEXTS[0])


# ----------------------------------------------------------------------------------------- Haystack

HAYSTACK_INPUTS = {
    "question": ["How much?"],
    "contexts": [["It costs 49 euros.", "Monthly."]],
    "answer": ["49"],
    "predicted_answer": ["It costs 49 euros."],
}
HAYSTACK_RESULTS = {"faithfulness": {"score": 1.0, "individual_scores": [1.0]}}
# As detailed_report(output_format="csv") of haystack-ai 3.4.1 writes it.
HAYSTACK_CSV = """question,contexts,answer,predicted_answer,faithfulness
How much?,"['It costs 49 euros.', 'Monthly.']",49,It costs 49 euros.,1.0
"""


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (HAYSTACK_CSV, "h.csv"),
        (json.dumps({**HAYSTACK_INPUTS, "faithfulness": [1.0]}), "detailed_report.json"),
        (json.dumps({"run_name": "r", "inputs": HAYSTACK_INPUTS, "results": HAYSTACK_RESULTS}), "run.json"),
        (json.dumps({"inputs": HAYSTACK_INPUTS, "results": HAYSTACK_RESULTS}, indent=2), "run.json"),
    ],
)
def test_haystack(data: str, name: str) -> None:
    assert parts(only(data, name).response) == ("How much?", ["c1", "c2"], [TEXTS[0], "Monthly."], TEXTS[0])


def test_documents_of_haystack_and_langchain_are_contexts() -> None:
    documents = [
        {"id": "d1", "content": "one", "meta": {"source": "a.pdf"}, "score": 0.5},
        {"page_content": "two", "metadata": {"title": "b"}},
        {"node": {"id": "n", "text": "three"}, "score": 1},
        {"id": "d1", "content": "one again"},
    ]
    contexts = only(
        lines({"user_input": "q", "response": "a", "retrieved_contexts": documents})
    ).response.contexts
    assert [(each.id, each.text, each.source, each.score) for each in contexts] == [
        ("d1", "one", "a.pdf", 0.5),
        ("c2", "two", "b", None),
        ("n", "three", None, 1.0),
        ("d1#2", "one again", None, None),
    ]


# As detailed_report(output_format="csv") writes Documents: their repr, which escapes nothing.
HAYSTACK_PRINTED = """question,documents,predicted_answer,faithfulness
How much?,"[Document(id=5a4a, content: 'It costs 49 euros.', meta: {{'at': 'page (2)'}}, score: 0.5), \
Document(id=910c, content: '{content}')]",It costs 49 euros.,1.0
"""


def test_documents_as_haystack_prints_them() -> None:
    second = 'It\'s paid ""monthly"",\nor (as of May) \'yearly\'.'
    found = only(HAYSTACK_PRINTED.format(content=second), "h.csv").response
    assert parts(found)[1:3] == (["5a4a", "910c"], ["It costs 49 euros.", second.replace('""', '"')])
    # as json.dump(…, default=str) writes them
    row = {"predicted_answer": "a", "documents": ["Document(id=5a4a, content: 'It's 49 euros.', score: 1.0)"]}
    assert parts(only(lines(row)).response)[1:3] == (["5a4a"], ["It's 49 euros."])


@pytest.mark.parametrize(
    "cell",
    [
        f"[Document(id=910c, content: '{'x' * 100}...')]",  # of Haystack, cut after 100 characters
        "[Document(id=910c, content: 'They said 'free', meta: 'none', score: 1)]",  # ends at two places
        f"[Document(id=910c, content: 'x'), Document(id=910d, content: '{'x' * 100}...', score: 1)]",
        "[Document(metadata={}, page_content='x')]",  # of LangChain
        "[NodeWithScore(node=TextNode(id_='n', text='x'), score=0.5)]",
    ],
)
def test_printed_documents_that_are_not_whole_are_an_error(cell: str) -> None:
    told = problem(lines({"predicted_answer": "a", "documents": cell}))
    assert told.startswith("documents.")
    assert told.endswith(": a text; a printed document can't be read whole; give the documents' texts")


# ------------------------------------------------------------------------------------- data frames


@pytest.mark.parametrize("rows", [1, 2])
def test_a_data_frame_that_pandas_writes_by_columns(rows: int) -> None:
    row = {"user_input": "How much?", "retrieved_contexts": TEXTS, "response": TEXTS[0], "reference": None}
    found = samples(pd.DataFrame([row] * rows, index=[7, 9][:rows]).to_json(), "frame.json")
    assert [each.place for each in found] == ["row 1", "row 2"][:rows]
    for each in found:
        assert isinstance(each, Sample)
        assert parts(each.response) == ("How much?", ["c1", "c2"], TEXTS, TEXTS[0])


# ---------------------------------------------------------------------------------------- promptfoo

# The fields that promptfoo 0.121 writes (its EvaluateSummaryV3 and EvaluateResult), the others left out.
PROMPTFOO_RESULT = {
    "promptIdx": 0,
    "testIdx": 0,
    "testCase": {"vars": {"query": "How much?"}},
    "promptId": "p",
    "provider": {"id": "openai:gpt-5-mini", "label": ""},
    "prompt": {"raw": "…", "label": "…"},
    "vars": {"query": "How much?", "context": ["It costs 49 euros.", "Monthly."]},
    "response": {"output": "It costs 49 euros.", "tokenUsage": {"total": 10}},
    "success": True,
    "score": 1,
    "gradingResult": {"pass": True, "score": 1, "reason": "ok"},
}


@pytest.mark.parametrize("indent", [None, 2])
def test_promptfoo(indent: int | None) -> None:
    summary = {
        "version": 3,
        "timestamp": "2026-01-01T00:00:00Z",
        "prompts": [],
        "results": [PROMPTFOO_RESULT],
    }
    document = {"evalId": "eval-1", "results": summary, "config": {}, "shareableUrl": None}
    for data in (
        json.dumps(document, indent=indent),
        json.dumps(summary, indent=indent),
        lines(PROMPTFOO_RESULT),
    ):
        response = only(data).response
        assert parts(response) == ("How much?", ["c1", "c2"], [TEXTS[0], "Monthly."], TEXTS[0])
        assert response.generator_model == "openai:gpt-5-mini"


def test_a_result_of_promptfoo_without_an_output_is_an_error() -> None:
    failed = {key: value for key, value in PROMPTFOO_RESULT.items() if key != "response"}
    assert "response.output: missing; the provider failed" in problem(lines({**failed, "error": "429"}))


def test_an_object_that_promptfoo_got_is_judged_by_the_answer_in_it() -> None:
    for output in ({"context": ["It costs 79 euros."], "answer": TEXTS[0]}, {"response": TEXTS[0]}):
        assert only(lines({**PROMPTFOO_RESULT, "response": {"output": output}})).response.answer == TEXTS[0]


def graded(*assertions: tuple[str, Any]) -> dict[str, Any]:
    """As promptfoo 0.123 keeps what its assertions had as context."""
    return {
        "pass": False,
        "componentResults": [
            {"assertion": {"type": "contains"}, "pass": True},
            *(
                {"assertion": {"type": kind, "contextTransform": "…"}, "metadata": {"context": context}}
                for kind, context in assertions
            ),
        ],
    }


@pytest.mark.parametrize(
    ("variables", "result", "texts"),
    [
        ({}, {"gradingResult": graded(("context-faithfulness", TEXTS))}, TEXTS),
        ({}, {"gradingResult": graded(("context-recall", "x"), ("context-faithfulness", TEXTS))}, TEXTS),
        # promptfoo has read the file, or run the program, whose text is the context
        (
            {"context": "file://no.js"},
            {"gradingResult": graded(("context-recall", json.dumps(TEXTS)))},
            TEXTS,
        ),
        ({"context": "of the variables"}, {"gradingResult": graded()}, ["of the variables"]),
        ({}, {"response": {"output": "49", "metadata": {"context": TEXTS}}}, TEXTS),
        ({}, {"response": {"output": "49", "metadata": {"documents": [{"text": "one"}]}}}, ["one"]),
    ],
)
def test_contexts_of_promptfoo_that_are_no_variables(
    variables: dict[str, Any], result: dict[str, Any], texts: list[str]
) -> None:
    found = only(lines({**PROMPTFOO_RESULT, "vars": {"query": "How much?", **variables}, **result})).response
    assert [each.text for each in found.contexts] == texts


@pytest.fixture
def promptfoo(tmp_path: Path) -> Callable[..., Sample | BadSample]:
    """Reads a result with these variables from a file in a folder with documents, and secrets beside it."""
    folder = tmp_path / "project"
    (folder / "docs").mkdir(parents=True)
    for place, text in {
        "docs/one.txt": TEXTS[0],
        "docs/two.json": json.dumps(TEXTS),
        "docs/run.JS": "secret",
        "docs/.env": "secret",
        "../secret.txt": "secret",
    }.items():
        (folder / place).write_text(text)
    (folder / "docs/bytes.txt").write_bytes(b"secret \xff")
    (folder / "docs/out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "docs/in.txt").symlink_to(folder / "docs/one.txt")
    (folder / "docs/circle.txt").symlink_to(folder / "docs/circle.txt")
    (folder / "docs/up").symlink_to(tmp_path)
    os.mkfifo(folder / "docs/pipe.txt")

    def read(**variables: Any) -> Sample | BadSample:
        (folder / "output.jsonl").write_text(lines({**PROMPTFOO_RESULT, "vars": variables}))
        (found,) = read_samples(folder / "output.jsonl")
        return found

    return read


def test_variables_of_promptfoo_that_name_files_have_their_texts(
    promptfoo: Callable[..., Sample | BadSample], tmp_path: Path
) -> None:
    for name, texts in (
        ("docs/one.txt", TEXTS[:1]),
        ("./docs/in.txt", TEXTS[:1]),
        (f"{tmp_path}/project/docs/one.txt", TEXTS[:1]),
        ("docs/two.json", TEXTS),
        (["docs/in.txt", "docs/one.txt"], [TEXTS[0]] * 2),
    ):
        files = f"file://{name}" if isinstance(name, str) else [f"file://{each}" for each in name]
        found = promptfoo(query="file://docs/one.txt", context=files, other="file://docs/.env")
        assert isinstance(found, Sample)
        assert found.response.question == TEXTS[0]
        assert [each.text for each in found.response.contexts] == texts


@pytest.mark.parametrize(
    "name",
    [
        *(
            "gone.txt",
            "docs",
            "",
            "../secret.txt",
            "docs/../../secret.txt",
            "/etc/passwd",
            "docs/up/secret.txt",
        ),
        *("docs/out.txt", "docs/circle.txt", "docs/.env", "docs/run.JS", "docs/pipe.txt", "docs/bytes.txt"),
        *("docs/\0.txt", "x" * 5_000, "/proc/self/environ", "/dev/zero"),
    ],
)
def test_a_file_that_results_of_promptfoo_may_not_name_is_an_error_of_their_row(
    promptfoo: Callable[..., Sample | BadSample], name: str
) -> None:
    found = promptfoo(query="q", context=[f"file://{name}"])
    assert isinstance(found, BadSample)
    assert found.error.startswith("context.0: 'file://")
    assert "is no text in the results' folder; put the results' file where" in found.error
    assert "secret " not in found.error


def test_files_that_results_of_promptfoo_name_are_not_looked_for_without_their_folder() -> None:
    result = {**PROMPTFOO_RESULT, "vars": {"context": f"file://{Path('pyproject.toml').resolve()}"}}
    for path in (None, Path("/output.jsonl")):  # all files are in the root
        (found,) = samples_in(io.BytesIO(lines(result).encode()), path)
        assert "is no text in the results' folder" in (found.error if isinstance(found, BadSample) else "")


# ----------------------------------------------------------------------------------------- RAGTruth

SOURCES: list[dict[str, Any]] = [
    {
        "source_id": "1",
        "task_type": "QA",
        "source": "MARCO",
        "source_info": {
            "question": "How much?",
            "passages": "passage 1:It costs 49 euros.\n\npassage 2:Monthly.\n\n",
        },
    },
    {"source_id": "2", "task_type": "Summary", "source": "CNN/DM", "source_info": "It costs 49 euros."},
    {
        "source_id": "3",
        "task_type": "Data2txt",
        "source": "Yelp",
        "source_info": {"name": "Subway", "stars": 3.0},
    },
]
SPAN = {
    "start": 9,
    "end": 11,
    "text": "59",
    "label_type": "Evident Conflict",
    "meta": "…",
    "implicit_true": False,
}
ANSWERS: list[dict[str, Any]] = [
    {
        "id": "7",
        "source_id": "1",
        "model": "gpt-4-0613",
        "temperature": 0.7,
        "labels": [SPAN, {**SPAN, "start": 12, "end": 17, "label_type": "Subtle Baseless Info"}],
        "split": "test",
        "quality": "good",
        "response": "It costs 59 euros.",
    },
    {"id": "8", "source_id": "2", "model": "m", "labels": [], "quality": "good", "response": "49 euros."},
    {"id": "9", "source_id": "3", "model": "m", "labels": [], "quality": "good", "response": "Subway."},
    {"id": "10", "source_id": "4", "model": "m", "labels": [], "quality": "good", "response": "?"},
]


def test_ragtruth_joins_answers_with_their_sources_and_labels(tmp_path: Path) -> None:
    (tmp_path / "response.jsonl").write_text(lines(*ANSWERS))
    with pytest.raises(ConfigError, match=r"need source_info\.jsonl in the same folder"):
        list(read_samples(tmp_path / "response.jsonl"))
    (tmp_path / "source_info.jsonl").write_text(lines(*SOURCES))
    found = list(read_samples(tmp_path))
    assert found == list(read_samples(tmp_path / "response.jsonl"))
    first, second, third, fourth = found
    assert isinstance(first, Sample)
    assert parts(first.response) == (
        "How much?",
        ["passage 1", "passage 2"],
        [TEXTS[0], "Monthly."],
        "It costs 59 euros.",
    )
    assert (first.response.route, first.response.generator_model) == ("QA", "gpt-4-0613")
    assert first.response.metadata["quality"] == "good"
    assert [(each.span, each.verdict, each.category, each.source) for each in first.labels] == [
        ((9, 11), Verdict.CONTRADICTED, "Evident Conflict", LabelSource.DATASET),
        ((12, 17), Verdict.UNSUPPORTED, "Subtle Baseless Info", LabelSource.DATASET),
        (None, Verdict.CONTRADICTED, None, LabelSource.DATASET),
    ]
    assert isinstance(second, Sample)
    assert isinstance(third, Sample)
    assert [each.verdict for each in second.labels] == [Verdict.SUPPORTED]
    assert '"name": "Subway"' in third.response.contexts[0].text
    assert isinstance(fourth, BadSample)
    assert "source_id: not in source_info.jsonl" in fourth.error


def test_lettucedetect() -> None:
    # The fields of HallucinationSample.to_json of lettucedetect 0.2.
    row: dict[str, Any] = {
        "prompt": "User request: How much?\n\nIt costs 49 euros.",
        "answer": "It costs 59 euros.",
        "labels": [{"start": 9, "end": 11, "label": "Evident Conflict"}],
        "split": "test",
        "task_type": "qa",
        "dataset": "ragtruth",
        "language": "en",
    }
    for data in (lines(row), json.dumps([row], indent=1)):
        found = only(data)
        assert [each.verdict for each in found.labels] == [Verdict.CONTRADICTED, Verdict.CONTRADICTED]
        assert found.response.route == "qa"
    row["labels"] = [{"start": 9, "end": 99}]
    assert "labels.0: start and end are no span of the answer" in problem(lines(row))
    row["labels"] = [3]
    assert "labels.0: a number" in problem(lines(row))


# -------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("column", "value", "verdict"),
    [
        ("label", "SUPPORTED", Verdict.SUPPORTED),
        ("label", 0, Verdict.UNSUPPORTED),
        ("label", "contradiction", Verdict.CONTRADICTED),
        ("human_label", "Yes", Verdict.SUPPORTED),
        ("faithful", False, Verdict.UNSUPPORTED),
        ("hallucination", True, Verdict.UNSUPPORTED),
        ("hallucinated", "no", Verdict.SUPPORTED),
        *(
            ("label", word, Verdict.SUPPORTED)
            for word in ("right", "Correct", " good ", "OK", "thumbs_up", "y")
        ),
        *(
            ("label", word, Verdict.UNSUPPORTED)
            for word in ("wrong", "Incorrect", "BAD", "n", "not-supported")
        ),
        ("label", "partially_supported", Verdict.PARTIALLY_SUPPORTED),
        ("label", "1.0", Verdict.SUPPORTED),
        ("labels", "wrong", Verdict.UNSUPPORTED),
        ("labels", ["right"], Verdict.SUPPORTED),
        ("hallucination", "wrong", Verdict.UNSUPPORTED),
        ("hallucination", "hallucinated", Verdict.UNSUPPORTED),
        ("hallucination", "correct", Verdict.SUPPORTED),
    ],
)
def test_a_column_of_one_word_labels_the_whole_answer(column: str, value: Any, verdict: Verdict) -> None:
    found = only(lines({"id": "r", "contexts": [], "answer": "a", column: value}))
    (label,) = found.labels
    assert (label.response_id, label.verdict, label.claim_id) == ("r", verdict, None)
    human = "human" in column or column == "labels"
    assert label.source is (LabelSource.HUMAN if human else LabelSource.DATASET)
    assert found.unread == ()


@pytest.mark.parametrize("value", ["-1", "_1", "-0", "- 1", "-yes", -1, 0.5])
def test_a_number_that_is_neither_0_nor_1_is_no_label_but_told(value: Any) -> None:
    found = only(lines({"id": "r", "contexts": [], "answer": "a", "human_label": value}))
    assert found.labels == ()
    assert [field for field, _ in found.unread] == ["human_label"]


def test_an_empty_cell_of_a_data_frame_is_no_label_and_not_told() -> None:
    assert labels_of({"human_label": float("nan")}, "r") == ((), ())


def test_whole_labels_stand_beside_their_answer_or_in_a_file_of_their_own(tmp_path: Path) -> None:
    mine = {"claim_id": "c", "verdict": "UNSUPPORTED"}
    found = only(lines({"id": "r", "contexts": [], "answer": "a", "labels": [mine]}))
    assert [(each.claim_id, each.verdict) for each in found.labels] == [("c", Verdict.UNSUPPORTED)]
    path = tmp_path / "labels.jsonl"
    earlier = Label(response_id="r", verdict=Verdict.SUPPORTED, id="l")
    later = earlier.model_copy(update={"verdict": Verdict.CONTRADICTED})
    path.write_bytes(earlier.to_json() + b"\n" + later.to_json())
    path.write_bytes(path.read_bytes() + b'\n{"response_id": "r", "verdict": "wrong", "id": "w"}')
    assert [each.verdict for each in read_labels(path).of("r")] == [Verdict.CONTRADICTED, Verdict.UNSUPPORTED]
    path.write_bytes(later.to_json())
    more = labelled(found, read_labels(path))
    assert more.labels == (*found.labels, later) if isinstance(more, Sample) else False
    path.write_text('{"response_id": "r", "verdict": "maybe"}')
    with pytest.raises(ConfigError, match=r"labels\.jsonl line 1: verdict: "):
        read_labels(path)


def test_a_label_event_that_is_none_is_an_error_of_its_row() -> None:
    told = problem(lines({"contexts": [], "answer": "a", "labels": [{"verdict": "perhaps"}]}))
    assert told.startswith("labels.0.verdict: ")
    assert "perhaps" not in told


@pytest.mark.parametrize(
    ("row", "unread"),
    [
        ({"label": "billing"}, (("label", "'billing'"),)),
        ({"human_label": "perhaps"}, (("human_label", "'perhaps'"),)),
        ({"labels": [3.5, "no"]}, (("labels.0", "'3.5'"),)),
        ({"label": 0.5}, (("label", "'0.5'"),)),
        ({"hallucination": {"a": 1}}, (("hallucination", "'{\"a\": 1}'"),)),
    ],
)
def test_a_value_that_says_nothing_of_right_or_wrong_is_no_label_and_is_kept_to_be_told(
    row: dict[str, Any], unread: tuple[tuple[str, str], ...]
) -> None:
    found = only(lines({"contexts": [], "answer": "a", **row}))
    assert found.unread == unread
    assert len(found.labels) == len(row.get("labels", [0])) - 1


def test_what_is_told_of_such_values_names_how_many_which_and_what_is_known() -> None:
    evil = "\x1b[2J" + "w" * 500
    found = [only(lines({"contexts": [], "answer": "a", "label": word})) for word in (*"aabcdeg", evil)]
    (line,) = unread_messages(Counter(each for sample in found for each in sample.unread))
    assert line.startswith(
        "'label': 8 values not read, which would be labels if they said right or wrong: 'a' (2), 'b' (1)"
    )
    assert " and 2 others; known are right, wrong, correct, incorrect," in line
    (line,) = unread_messages(Counter(found[-1].unread))
    assert "\x1b" not in line
    assert "w" * 50 not in line
