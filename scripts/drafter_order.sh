#!/usr/bin/env bash
# Who drafts: each model once, the others verifying.
#   MODELS="A B C" scripts/drafter_order.sh
TYPES=${TYPES:-unite gac}
. "$(dirname "$0")/sweep_lib.sh"

for dataset in $DATASETS; do
  single "$dataset"
  for type in $TYPES; do
    order=("${MODELS[@]}")
    for _ in "${MODELS[@]}"; do
      run "$dataset" "drafter_order/$(names_of "${order[@]}")/$type" "${order[*]}" --ensemble_type "$type"
      order=("${order[@]:1}" "${order[0]}")
    done
  done
done
finish drafter_order
