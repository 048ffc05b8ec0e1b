"""Output folders as the scripts write them, made up from a seed: for what reads them (tables, figures, pages)."""

import hashlib
import json
import random
from pathlib import Path

MODELS = ("hub/drafter", "hub/verifier")
WORDS = [b" the", b" farmer", b" sold", b" 12", b" eggs", b".", b" So", b" she", b" has", b" for", b"\n", b" <b>",
         b" na\xc3\xafve", b" answer", b" is"]  # fmt: skip
SPELT = [[b" \xe2\x82", b"\xac"], [b" \xf0\x9f", b"\x90", b"\x94"]]  # characters of several tokens
VERDICTS = ("oov", "unanimous", "confident", "gated")


def write_run(
    folder: Path,
    marks: list[bool],
    *,
    models=MODELS,
    data_name="gsm8k",
    tokens=40,
    rate=0.05,
    trace=False,
    subjects=None,
    seed=0,
    lines=None,
    **settings,
) -> Path:
    """Write a run that answers len(marks) questions of `tokens` tokens. rate: share of tokens ensembled. subjects:
    names the questions cycle through. lines: question number -> keys of its line to change. settings: keys of
    config.json to change."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "models": list(models), "data_name": data_name, "ensemble": len(models) > 1, "ensemble_type": "unite",
        "schedule": "safe", "sharpen_type": "heur", "sharpen_lambda": 0.1, "gamma": 5, "top_k": 10,
        "gac_gate": 0.5, "weights": None, "max_new_tokens": 2048, "batch_size": 1, "dtype": "float32",
        "device": ["cpu"], "trace": trace,
    } | settings  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    rng = random.Random(seed)
    rate = rate if config["ensemble"] else 0.0
    answers = [_answer(rng, number, mark, tokens, rate, subjects, config) for number, mark in enumerate(marks)]
    predictions = [line | (lines or {}).get(number, {}) for number, (line, _) in enumerate(answers)]
    _write_lines(folder / "predictions.jsonl", predictions)
    if trace:
        _write_lines(folder / "trace.jsonl", [traced for _, traced in answers])
    return folder


def _answer(rng, number, mark, tokens, rate, subjects, config) -> tuple[dict, dict]:
    """A line of predictions.jsonl and one of trace.jsonl."""
    subject = subjects[number % len(subjects)] if subjects else None
    name = f"{subject}/{number}" if subject else str(number)
    length = max(1, round(tokens * rng.uniform(0.5, 1.5)))
    words = [rng.choice(SPELT) if rng.random() < 0.1 else [rng.choice(WORDS)] for _ in range(length)]
    pieces = [piece for word in words for piece in word][:length]
    traced = [_token(rng, piece, rate, len(config["models"]), config["ensemble"]) for piece in pieces]
    text = b"".join(bytes.fromhex(token["bytes"]) for token in traced).decode(errors="replace")
    counts = {verdict: sum(t["verdict"] == verdict for t in traced) for verdict in (*VERDICTS, "ensembled")}
    counts["changed"] = sum(t["changed"] for t in traced)
    unanswered = not mark and rng.random() < 0.2
    parts = {"draft": 0.010 * length, "verify": 0.004 * length, "tokenize": 0.001 * length, "ensemble": 0.002 * length}
    line = {
        "id": name, "subject": subject, "response": text, "token_ids": list(range(length)),
        "prediction": "12" if mark else None if unanswered else "7", "gold": "12", "correct": mark,
        "finish_reason": "length" if unanswered else "eos", "tokens": length, "verdicts": counts,
        "seconds": sum(parts.values()) * rng.uniform(1.0, 1.2), "seconds_by_part": parts,
        "forward_passes": [length] * len(config["models"]), "drafted": length, "peak_memory_bytes": 1 << 20,
        "prompt_sha256": hashlib.sha256(name.encode()).hexdigest(),
    }  # fmt: skip
    return line, {"id": name, "subject": subject, "prompt": f"Question {name}?", "tokens": traced}


def _token(rng, data, rate, n_models, ensemble) -> dict:
    verdict = None if not ensemble else "ensembled" if rng.random() < rate else rng.choice(VERDICTS)
    token = {"id": rng.randrange(1000), "bytes": data.hex(), "text": data.decode(errors="backslashreplace"),
             "verdict": verdict, "changed": False}  # fmt: skip
    if verdict != "ensembled":
        return token
    token["changed"] = rng.random() < 0.3
    drafted = rng.choice(WORDS).decode(errors="backslashreplace") if token["changed"] else token["text"]
    models = [{"probability": rng.random(), "candidates": _candidates(rng)} for _ in range(n_models)]
    sharpened = _candidates(rng) if rng.random() < 0.5 else None
    return token | {"drafted": drafted, "models": models, "ensemble": _candidates(rng), "sharpened": sharpened}


def _candidates(rng) -> list:
    texts = [word.decode(errors="backslashreplace") for word in rng.sample(WORDS, 9)] + [None]
    rng.shuffle(texts)
    return [[text, 0.5**place * rng.random()] for place, text in enumerate(texts, 1)]


def _write_lines(path: Path, lines: list[dict]) -> None:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
