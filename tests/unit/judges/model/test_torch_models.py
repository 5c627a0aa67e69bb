"""The PyTorch path, on models of a few thousand random weights: the judge sees what the model says.

torch is some gigabytes and no part of the test extra: without it these are skipped, and say so. To run them:
pip install '.[classifier-torch,test]'.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from guardrail.errors import ConfigError
from guardrail.events import Verdict
from guardrail.judges.model import PRESETS, ClassifierJudge, ClassifierSettings, Pair, load_classifier
from tests.support.judges import reply_of
from tests.unit.judges.model.asking import request
from tests.unit.judges.model.tiny import write_config, write_tokenizer

_MISSING = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(_MISSING), reason=f"{', '.join(_MISSING)} not installed (extra classifier-torch)"
)
_PROMPT = "Determine if the hypothesis is true given premise ? Premise : Hypothesis sky blue"
_PROMPT_WORDS = _PROMPT.split()
_TEXT = "the sky"
_CLAIM = "blue"


def write_t5_tokenizer(folder: Path) -> Tokenizer:
    """As T5's: ``<pad>`` is 0, ``</s>`` is 1 and ends every text."""
    folder.mkdir(parents=True, exist_ok=True)
    tokens = ["<pad>", "</s>", "<unk>", *_PROMPT_WORDS]
    tokenizer = Tokenizer(models.WordLevel({token: n for n, token in enumerate(tokens)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def t5_config(**more: Any) -> Any:
    import transformers

    return transformers.T5Config(
        vocab_size=32, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=2,
        feed_forward_proj="gated-gelu", decoder_start_token_id=0, **more,
    )  # fmt: skip


def hhem(tmp_path: Path, *, without: str = "") -> tuple[ClassifierSettings, Any, Tokenizer]:
    """A model laid out as HHEM-2.1-Open: weights under ``t5.``, the embedding once, its own config."""
    import torch
    import transformers
    from safetensors.torch import save_file

    torch.manual_seed(7)
    model = transformers.T5ForTokenClassification(t5_config(num_labels=2)).eval()
    weights = {f"t5.{name}": value.clone() for name, value in model.state_dict().items()}
    weights.pop("t5.transformer.encoder.embed_tokens.weight", None)
    if without:
        del weights[without]
    folder = tmp_path / "hhem"
    folder.mkdir()
    save_file(weights, str(folder / "model.safetensors"))
    own = {"model_type": "HHEMv2", "foundation": "google/flan-t5-base", "auto_map": {"AutoModel": "x.Y"}}
    (folder / "config.json").write_text(json.dumps(own), encoding="utf-8")
    tokenizer = write_t5_tokenizer(folder)
    settings = ClassifierSettings(preset="hhem", model=str(folder))
    return settings, model, tokenizer


def test_hhem_is_read_without_its_code_and_says_what_its_code_says(tmp_path: Path) -> None:
    import torch

    settings, model, tokenizer = hhem(tmp_path)
    classifier = load_classifier(settings)
    template = PRESETS["hhem"].template
    expected = []
    pairs = [(_TEXT, _CLAIM), ("the sky is blue given the sky", "true premise")]
    for premise, hypothesis in pairs:
        prompt = template.replace("{premise}", premise).replace("{hypothesis}", hypothesis)
        ids = torch.tensor([tokenizer.encode(prompt).ids])
        assert ids[0, 0] == 0
        assert ids[0, -1] == 1
        with torch.no_grad():
            logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[:, 0, :]
        expected.append(torch.softmax(logits, dim=-1)[0, 1].item())
    scores = classifier.score([Pair(premise, 0, len(premise), claim) for premise, claim in pairs])
    assert [score.support for score in scores] == pytest.approx(expected, abs=1e-5)  # type: ignore[union-attr]
    assert abs(expected[0] - expected[1]) > 1e-4


@pytest.mark.parametrize("lost", ["t5.classifier.weight", "t5.transformer.shared.weight"])
def test_hhem_with_weights_missing_is_refused(tmp_path: Path, lost: str) -> None:
    settings, _, _ = hhem(tmp_path, without=lost)
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model: .* can't be loaded as hhem"):
        load_classifier(settings)


async def test_hhem_judges(tmp_path: Path) -> None:
    settings, _, _ = hhem(tmp_path)
    judge = ClassifierJudge(settings)
    try:
        reply = await reply_of(judge, request([_CLAIM], ["the sky is blue"]))
        (judgement,) = reply.judgements
        assert judgement.judge == "hhem:hhem"
        assert judgement.verdict in {Verdict.SUPPORTED, Verdict.UNSUPPORTED}
    finally:
        await judge.aclose()


def test_a_sequence_classifier_with_its_own_pair_form(tmp_path: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        id2label={0: "entailment", 1: "neutral", 2: "contradiction"},
        label2id={"entailment": 0, "neutral": 1, "contradiction": 2},
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).eval()
    model.save_pretrained(str(tmp_path))
    write_tokenizer(tmp_path)
    classifier = load_classifier(ClassifierSettings(model=str(tmp_path)))
    (tokens,) = classifier.reader.form.encode([Pair("sky is", 0, 6, "blue")])
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor([tokens.ids.tolist()]),
            token_type_ids=torch.tensor([tokens.type_ids.tolist()]),
        ).logits
    expected = torch.softmax(logits, dim=-1)[0].tolist()
    # In one batch with a longer pair: what fills the row up must not count.
    (score, _) = classifier.score([Pair("sky is", 0, 6, "blue"), Pair("sky " * 30, 0, 120, "blue")])
    assert score.support == pytest.approx(expected[0], abs=1e-5)  # type: ignore[union-attr]
    assert score.contradiction == pytest.approx(expected[2], abs=1e-5)  # type: ignore[union-attr]


def test_an_encoder_decoder_answers_with_its_first_token(tmp_path: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(5)
    model = transformers.T5ForConditionalGeneration(t5_config()).eval()
    model.save_pretrained(str(tmp_path))
    tokenizer = write_t5_tokenizer(tmp_path)
    settings = ClassifierSettings.model_validate(
        {
            "preset": "minicheck-flan-t5-large",
            "model": str(tmp_path),
            "labels": {"3": "unsupported", "20": "supported"},
        }
    )
    classifier = load_classifier(settings)
    ids = torch.tensor([tokenizer.encode(f"predict: {_TEXT}</s>{_CLAIM}").ids])
    assert ids[0].tolist().count(1) == 2
    with torch.no_grad():
        logits = model(input_ids=ids, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
    expected = torch.softmax(logits[[3, 20]], dim=-1)[1].item()
    (score,) = classifier.score([Pair(_TEXT, 0, len(_TEXT), _CLAIM)])
    assert score.support == pytest.approx(expected, abs=1e-5)  # type: ignore[union-attr]


def test_code_that_comes_with_a_model_does_not_run(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    marker = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w').close()\n", encoding="utf-8")
    write_config(
        tmp_path,
        model_type="evil",
        auto_map={"AutoConfig": "evil.C", "AutoModelForSequenceClassification": "evil.M"},
    )
    with pytest.raises(ConfigError, match="allow_remote_code"):
        load_classifier(ClassifierSettings(model=str(tmp_path)))
    assert not marker.exists()


def test_a_model_reads_as_many_tokens_as_its_files_say(tmp_path: Path) -> None:
    import transformers

    config = transformers.BertConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=100, num_labels=2,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(str(tmp_path))
    write_tokenizer(tmp_path)
    settings = ClassifierSettings.model_validate(
        {"model": str(tmp_path), "labels": {"0": "unsupported", "1": "supported"}}
    )
    assert load_classifier(settings).max_tokens == 100
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    del config["max_position_embeddings"]  # transformers then makes a table of 512
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model: .* can't be loaded as sequence"):
        load_classifier(settings)
