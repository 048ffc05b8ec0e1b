#!/usr/bin/env bash
# UniTE's number of candidates a model.
#   MODELS="A B" scripts/top_k.sh
TOP_KS=${TOP_KS:-1 2 5 10 20 50}
. "$(dirname "$0")/sweep_lib.sh"

for dataset in $DATASETS; do
  single "$dataset"
  for top_k in $TOP_KS; do
    run "$dataset" "top_k/$(names_of "${MODELS[@]}")/$top_k" "${MODELS[*]}" --top_k "$top_k"
  done
done
finish top_k
