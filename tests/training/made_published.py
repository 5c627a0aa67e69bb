"""Small files in the forms in which public data sets are published, with sentences of our own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SENTENCE = "The mill was built in 1871 by Anna Berg"
TRIAL = "Pain was less with ibuprofen (P = 0.01) than with placebo after a week"
SAME = "HbA1c did not differ between insulin and placebo after twelve weeks (P = 0.7)"
BOM = "\ufeff"


def write(path: Path, text: str) -> Path:
    """The file, with its folders; line ends as they stand in the text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def tsv(*rows: Iterable[str], end: str = "\n") -> str:
    return "".join("\t".join(row) + end for row in rows)


def jsonl(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def nli(premise: str, hypothesis: str, label: str) -> dict[str, Any]:
    return {"sentence1": premise, "sentence2": hypothesis, "gold_label": label, "category": "numbers"}


def wice(name: str, claim: str, label: str, evidence: list[str], **more: object) -> dict[str, Any]:
    meta = {"id": name, "claim_title": "Mill", "claim_section": "History.", "claim_context": ""}
    return {"label": label, "supporting_sentences": [[1]], "claim": claim, "evidence": evidence} | {
        "meta": meta,
        **more,
    }


def fool_me(text: str, label: str, gold: list[str], retrieved: list[str]) -> dict[str, Any]:
    def evidence(texts: list[str]) -> list[dict[str, str]]:
        return [{"section_header": "History", "text": one} for one in texts]

    found = {"gold_evidence": evidence(gold), "retrieved_evidence": evidence(retrieved)}
    return {"id": "a1", "text": text, "label": label, "wikipedia_page": "Mill"} | found


def write_all(data: Path) -> Path:
    """Every set that is read, as a clone or an unpacked archive of it lies in its folder, with the parts
    that are not trained on beside."""
    write(
        data / "conjnli/ConjNLI-master/data/NLI/adversarial_train_15k.tsv",
        BOM
        + tsv(
            ("Premise", "Hypothesis", "Label"),
            ('"Tide" was made in 1990 and sold.', '"Tide" was sold.', "entailment"),
            ("The mill has 4 floors and a loft.", "The mill has 5 floors and a loft.", "contradiction"),
        ),
    )
    write(
        data / "counterfactual-nli/NLI/all_combined/train.tsv",
        tsv(
            ("sentence1", "sentence2", "gold_label"),
            ('"A man leaves ""The Mill"" with a sack."', "A man carries flour.", "neutral"),
        ),
    )
    write(data / "counterfactual-nli/sentiment/combined/train.tsv", tsv(("Sentiment", "Text")))
    write(
        data / "breaking-nli/data/dataset.jsonl",
        jsonl(nli("Six men wait.", "Seven men wait.", "contradiction")),
    )
    begin = ("model_name", "data_source", "knowledge", "message", "response", "begin_label")
    for folder, short, label in (
        ("cmu-dog", "cmu", "Fully attributable"),
        ("topicalchat", "tc", "Generic"),
        ("wow", "wow", "Not fully attributable"),
    ):
        row = ("t5", short, f"{SENTENCE}, near Leeds.", "who built it?", "anna berg built it", label)
        write(data / f"begin/{folder}/begin_dev_{short}.tsv", tsv(begin, row, end="\r\n"))
        write(data / f"begin/{folder}/begin_test_{short}.tsv", tsv(begin, row, end="\r\n"))
    for domain in ("podcast", "qmsumm", "sales_email", "scitldr", "samsum"):
        edits = [
            {"id": "x_og", "doc": f"{SENTENCE}.", "summary": "A mill of 1871.", "label": 1},
            {"id": "x_1", "doc": f"{SENTENCE}.", "summary": "A mill of 1971.", "label": 0},
        ]
        write(data / f"summedits/data/summedits/summedits_{domain}.json", json.dumps(edits))
    claims = data / "wice/data/entailment_retrieval"
    page = ["(meta data) TITLE: A mill", "", f"{SENTENCE}."]
    write(claims / "claim/train.jsonl", jsonl(wice("train1", "Berg's mill is old.", "not_supported", page)))
    write(
        claims / "subclaim/train.jsonl",
        jsonl(
            wice("train1-0", "Berg built a red mill.", "partially_supported", page),
            wice("train1-1", "Berg built a mill.", "supported", page),
        ),
    )
    marks = {
        "claim_tokens": ["Berg", "built", "a", "red", "mill", "."],
        "non_supported_spans": [False, False, False, True, False, False],
    }
    write(
        data / "wice/data/non_supported_tokens/train.jsonl",
        jsonl(wice("train1-0", "Berg built a red mill.", "partially_supported", page, **marks)),
    )
    write(
        data / "fool-me-twice/dataset/train.jsonl",
        jsonl(
            fool_me(
                "The mill is younger than Leeds.",
                "SUPPORTS",
                [f"{SENTENCE}."],
                [f"{SENTENCE}.", "It is red."],
            ),
            fool_me("Nobody built the mill.", "REFUTES", [f"{SENTENCE}."], []),
        ),
    )
    write(data / "fool-me-twice/dataset/test.jsonl", jsonl({"not": "read"}))
    write(
        data / "fever/nli_fever/train_fitems.jsonl",
        jsonl(
            *(
                {"cid": 7, "fid": "7-1", "query": "The mill is old .", "context": context, "label": label}
                for context, label in (
                    ("The Mill -LRB- 1871 -- 1990 -RRB- was `` old '' .", "SUPPORTS"),
                    ("The mill is new .", "REFUTES"),
                    ("Leeds has parks .", "NOT ENOUGH INFO"),
                    ("", "NOT ENOUGH INFO"),
                )
            )
        ),
    )
    pair = {"id": "7", "claim": "The mill is new .", "evidence": "The mill is n't new .", "label": "REFUTES"}
    write(data / "fever-symmetric/symmetric_v0.2/fever_symmetric_dev.jsonl", jsonl(pair))
    write(data / "fever-symmetric/symmetric_v0.2/fever_symmetric_test.jsonl", jsonl({"not": "read"}))
    for part, evidence, label in (
        ("real", "Sold in\ufffd1990 , the mill is n't new .", "REFUTES"),
        ("synthetic", "The mill is new and red .", "SUPPORTS"),
    ):
        revision = {"claim": "The mill is new .", "evidence": evidence, "page": "Berg 's mill"}
        write(data / f"vitaminc/vitaminc_{part}/test.jsonl", jsonl(revision | {"label": label}))
    write(
        data / "wikisplit/train.tsv",
        tsv(
            (
                "Berg 's mill , '' Old Tom '' , was built in 1871 and sold in 1990 .",
                "Berg 's mill , '' Old Tom '' , was built in 1871 . <::::> It was sold in 1990 .",
            )
        ),
    )
    columns = ("", "filename", "determiner", "monotonicity", "gold_label", "replace_target", "replace_source")
    said = ('"He said "" no "" to New~York and left ."', '"He said "" no "" to New~York"')
    for word in ("and", "or"):
        write(
            data / f"help/output_en/leskexppmb_{word}.tsv",
            tsv(
                (*columns, "replace_mode", "ori_sentence", "new_sentence"),
                ("0", "p0", word, "junction", "entailment", "", "", "", *said),
                ("1", "p0", word, "junction", "neutral", "", "", "", "He left", f"He left {word} slept ."),
            ),
        )
    write(
        data / "med/MED.tsv",
        tsv(
            ("genre", "sentence1", "sentence2", "gold_label"),
            ("crowd:upward_monotone", "Tom wore a blue coat.", "Tom wore a coat.", "entailment"),
            ("crowd:upward_monotone", "Tom wore a coat.", "Tom wore a blue coat.", "neutral"),
            ("paper:FraCaS_GQ:upward_monotone", "An actor won.", "A man won.", "neutral"),
        ),
    )
    write(
        data / "paws/dev.tsv",
        tsv(
            (
                "1",
                "Tom -LRB- then 9 -RRB- sold `` Old Tom '' to Berg .",
                "Berg sold `` Old Tom '' to Tom , then 9 .",
                "0",
            )
        ),
    )
    write(
        data / "paws/test.tsv",
        tsv(
            ("id", "sentence1", "sentence2", "label"),
            ("1", "Tom sold it to Berg .", "It was sold to Berg by Tom .", "1"),
        ),
    )
    write(
        data / "taxinli/taxinli10k.tsv",
        tsv(
            ("prem", "hyp", "label", "annotated_label", "lexical_linguistic"),
            ('"Tom said ""no"" to Berg."', "Berg said no.", "neutral", "neutral", "0"),
            ("Tom left.", "Tom stayed.", "neutral", "contradiction", "1"),
        ),
    )
    _write_evidence(data)
    return data


def _write_evidence(data: Path) -> None:
    """The sets whose claims were held against what was found for them."""
    write(
        data / "multinli/Data/binary-MNLI/dev.txt",
        tsv(("entailment", 'The mill, "Old Tom", is old.', "The mill isn't new.")),
    )
    write(
        data / "multinli/Data/binary-MNLI/test.txt",
        tsv(("not_entailment", "The mill is old.", "The mill is red.")),
    )
    for name, rows in (
        ("dev_all_subset_balanced", [("HAGRID", "Berg has built it [1,2].", "attributable")]),
        ("test_all_subset_balanced_sampled500", [("ExpertQA", "Berg built it.", "attributable")]),
        ("test_ood_all_subset_balanced", [("AttrScore-GenSearch", "Tom has built it.", "not attributable")]),
    ):
        write(
            data / f"attribution-bench/data/{name}.jsonl",
            jsonl(
                *(
                    {
                        "question": "Who built it?",
                        "claim": claim,
                        "references": [f"[1] {SENTENCE}.", ""],
                        "attribution_label": label,
                        "src_dataset": part,
                    }
                    for part, claim, label in rows
                )
            ),
        )
    checked = data / "check-covid/Check-COVID"
    write(
        checked / "corpus.json",
        jsonl({"cord_id": "a1", "title": "Masks", "abstract": ["Why.", "Masks helped.", "More did not."]}),
    )
    for part in ("train", "dev"):
        write(
            checked / f"{part}/covidCheck_{part}_composed+extracted.json",
            jsonl(
                *(
                    {"claim": "Masks help.", "cord_id": "a1", "label": label, "evidence_set": evidence}
                    for label, evidence in (
                        ("SUPPORT", [{"sent_index": 1, "type": "PRIMARY"}]),
                        ("NOTENOUGHINFO", [{"sent_index": 0}]),
                        ("REFUTE", [{"sent_index": 2}, {"sent_index": 1}]),
                    )
                )
            ),
        )
    trials = data / "evidence-inference/annotations"
    write(
        trials / "prompts_merged.csv",
        "PromptID,PMCID,Outcome,Intervention,Comparator\n"
        '7,99,"Pain, after a week",Ibuprofen,Placebo \n'
        "8,99,HbA1c,Insulin;,Placebo\n9,99,Pain,Ibuprofen,Placebo\n",
    )
    answers = (
        ("7", "True", "significantly decreased", TRIAL),
        ("7", "True", "significantly decreased", TRIAL),  # another physician's, the same words
        ("7", "False", "no significant difference", TRIAL),
        ("7", "True", "invalid prompt", TRIAL),
        ("8", "True", "no significant difference", SAME),
        (
            "8",
            "True",
            "no significant difference",
            "No difference was seen between the groups after all (P = 0.7)",
        ),
        ("9", "True", "significantly increased", TRIAL),
        ("9", "True", "no significant difference", f"{TRIAL}, or so"),
        (
            "8",
            "True",
            "no significant difference",
            "HbA1c\n7.1 (0.2)\n7.2 (0.3)\n0.31 and so on, with a P of 0.4",
        ),
        ("8", "True", "no significant difference", "No difference was seen."),
    )
    write(
        trials / "v2_annotations.csv",
        "PromptID,PMCID,Valid Label,Valid Reasoning,Label,Annotations,Label Code\n"
        + "".join(f'{name},99,True,{valid},{label},"{told}",0\n' for name, valid, label, told in answers),
    )
