"""Answer BBH or MMLU-Redux, subject by subject, with one to three models, and score the answers.

python run_safe_mmlu.py --model_path1 DRAFTER --model_path2 VERIFIER --data_name bbh --output_path out
"""

import sys

from cli.flags import names
from cli.main import main, parser

if __name__ == "__main__":
    flags = parser(("bbh", "mmlu-redux"), __doc__)
    flags.add_argument("--subjects", type=names, help="comma-separated, or all (default: the paper's)")
    flags.add_argument("--cot_prompts", help="bbh: a folder of <task>.txt worked examples in place of ours")
    sys.exit(main(flags.parse_args()))
