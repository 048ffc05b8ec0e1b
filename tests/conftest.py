import os
from pathlib import Path

import pytest

# no test asks the network for anything; before anything imports huggingface_hub
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def small_models() -> Path:
    """The folder with smollm2 and gemma3, for tests marked `real`."""
    folder = Path(os.environ.get("SMALL_MODELS", "models"))
    missing = [name for name in ("smollm2", "gemma3") if not (folder / name / "config.json").is_file()]
    if missing:
        pytest.skip(f"{folder} has no {' and '.join(missing)}: python scripts/get_small_models.py {folder}")
    return folder
