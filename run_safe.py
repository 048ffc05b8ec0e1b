"""Answer GSM8K, MATH500, ARC-Challenge or the toy questions with one to three models, and score the answers.

python run_safe.py --model_path1 DRAFTER --model_path2 VERIFIER --data_name gsm8k --output_path out
"""

import sys

from cli.main import main, parser

if __name__ == "__main__":
    sys.exit(main(parser(("gsm8k", "math500", "arc", "toy"), __doc__).parse_args()))
