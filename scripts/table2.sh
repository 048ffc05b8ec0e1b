#!/usr/bin/env bash
# The paper's Table 2: each model alone, and every pair and the triple of them with UniTE and GaC, at every token and
# with SAFE, on every dataset.
#   MODELS="A B C" scripts/table2.sh
TYPES=${TYPES:-unite gac}
SCHEDULES=${SCHEDULES:-every safe}
. "$(dirname "$0")/sweep_lib.sh"

groups=("${MODELS[0]} ${MODELS[1]}")
[ ${#MODELS[@]} = 3 ] && groups+=("${MODELS[0]} ${MODELS[2]}" "${MODELS[1]} ${MODELS[2]}" "${MODELS[*]}")
for dataset in $DATASETS; do
  single "$dataset"
  for group in "${groups[@]}"; do
    for type in $TYPES; do
      for schedule in $SCHEDULES; do
        run "$dataset" "table2/$(names_of $group)/$type-$schedule" "$group" --ensemble_type "$type" --schedule "$schedule"
      done
    done
  done
done
finish table2
