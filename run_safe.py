"""Answer GSM8K, MATH500, ARC-Challenge or the toy questions with one to three models, and score the answers.

    python run_safe.py --model_path1 DRAFTER --model_path2 VERIFIER --data_name gsm8k --output_path out

Without a flag: the toy pair of demo/ on its own questions.
"""

import sys

from cli.flags import script_parser
from cli.main import main

if __name__ == "__main__":
    sys.exit(main(script_parser(("gsm8k", "math500", "arc", "toy"), __doc__)))
