#!/usr/bin/env bash
# Sharpening: the heuristic at every lambda, the geometric mean, and none. Lambda plays no part in the latter two.
#   MODELS="A B" scripts/sharpening.sh
TYPES=${TYPES:-unite gac}
LAMBDAS=${LAMBDAS:-0 0.05 0.1 0.2 0.4}
. "$(dirname "$0")/sweep_lib.sh"

for dataset in $DATASETS; do
  single "$dataset"
  for type in $TYPES; do
    folder="sharpening/$(names_of "${MODELS[@]}")/$type"
    for lambda in $LAMBDAS; do
      run "$dataset" "$folder-heur-$lambda" "${MODELS[*]}" --ensemble_type "$type" --sharpen_type heur \
        --sharpen_lambda "$lambda"
    done
    for sharpen in geom none; do
      run "$dataset" "$folder-$sharpen" "${MODELS[*]}" --ensemble_type "$type" --sharpen_type "$sharpen"
    done
  done
done
finish sharpening
