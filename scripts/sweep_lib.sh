# What the sweeps share; each of them sources this file. A sweep is many runs ("cells"), each in a folder of its own, so
# that a sweep that was stopped goes on where it stopped when its command is given again. A cell that fails does not
# stop the rest: it is listed at the end, and the exit status is 1.
#
# Variables that every sweep reads from the environment:
DATASETS=${DATASETS:-gsm8k math500 arc bbh mmlu-redux}
OUT=${OUT:-out/sweeps}                 # the folder of all cells
FLAGS=${FLAGS:-}                       # more flags for every run: "--limit 100 --batch_size 16"
PYTHON=${PYTHON:-python}
LAUNCH=${LAUNCH:-$PYTHON}              # "accelerate launch --multi_gpu --num_processes 4" shares the questions among processes
# Local rows in place of the Hub's: DATA_gsm8k=FILE, DATA_math500, DATA_arc, DATA_bbh=FOLDER, DATA_mmlu_redux=FOLDER
set -u
read -ra MODELS <<<"${MODELS:-}"       # two or three models, separated by spaces; the first drafts
if [ ${#MODELS[@]} -lt 2 ] || [ ${#MODELS[@]} -gt 3 ]; then
  echo "name two or three models, the drafter first: MODELS='A B' $0" >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

finished=()
failed=()
stopped=
trap 'stopped=130' INT
trap 'stopped=143' TERM

# "hub/A hub/B" -> "A+B": how a folder calls its models.
names_of() {
  local joined="" model
  for model in "$@"; do joined+="+$(basename "$model")"; done
  echo "${joined#+}"
}

# run DATASET FOLDER "MODEL MODEL..." FLAG...: one cell. A finished one is not run again unless its command has changed.
run() {
  local dataset=$1 folder=$OUT/$1/$2 script=run_safe.py data=DATA_${1//-/_} number=0 command model models
  read -ra models <<<"$3"
  shift 3
  case $dataset in bbh | mmlu-redux) script=run_safe_mmlu.py ;; esac
  command=($LAUNCH $script)
  for model in "${models[@]}"; do command+=("--model_path$((number += 1))" "$model"); done
  command+=(--data_name "$dataset" --output_path "$folder")
  [ -n "${!data:-}" ] && command+=(--data_path "${!data}")
  command+=("$@" $FLAGS)
  if [ "$(cat "$folder/.finished" 2>/dev/null)" = "${command[*]}" ]; then
    echo "== $folder is finished"
    finished+=("$folder")
    return
  fi
  echo "== $folder"
  "${command[@]}"
  local status=$?
  case $status in 130 | 143) stopped=$status ;; esac  # as the scripts end on Ctrl-C and SIGTERM
  if [ -n "$stopped" ]; then
    echo "stopped in $folder; give the same command again to go on" >&2
    exit "$stopped"
  elif [ $status = 0 ]; then
    mkdir -p "$folder" && echo "${command[*]}" >"$folder/.finished"
    finished+=("$folder")
  else
    failed+=("$folder (exit status $status)")
  fi
}

# single DATASET: each model alone.
single() {
  local model
  for model in "${MODELS[@]}"; do run "$1" "single/$(names_of "$model")" "$model" --ensemble False; done
}

# finish SWEEP: the table and the figures of the finished cells, and what failed.
finish() {
  if [ ${#finished[@]} -gt 0 ]; then
    "$PYTHON" -m eval.compare "${finished[@]}" >"$OUT/$1.md" || failed+=("the table $OUT/$1.md")
    "$PYTHON" -m eval.plots "${finished[@]}" --to "$OUT/$1_figures" || failed+=("the figures $OUT/$1_figures")
    echo "table: $OUT/$1.md; figures: $OUT/$1_figures"
  fi
  [ ${#failed[@]} = 0 ] && return
  echo "failed:" >&2
  printf '  %s\n' "${failed[@]}" >&2
  exit 1
}
