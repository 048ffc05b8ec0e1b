"""Answer BBH or MMLU-Redux, subject by subject, with one to three models, and score the answers.

    python run_safe_mmlu.py --model_path1 DRAFTER --model_path2 VERIFIER --data_name bbh --output_path out
"""

import sys

from cli.flags import add_subject_flags, script_parser
from cli.main import main

if __name__ == "__main__":
    parser = script_parser(("bbh", "mmlu-redux"), __doc__)
    add_subject_flags(parser)
    sys.exit(main(parser))
