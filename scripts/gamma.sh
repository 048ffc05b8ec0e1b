#!/usr/bin/env bash
# The lookahead: accuracy and latency at every gamma.
#   MODELS="A B" scripts/gamma.sh
TYPES=${TYPES:-unite}
GAMMAS=${GAMMAS:-1 2 3 5 8 12 auto}
. "$(dirname "$0")/sweep_lib.sh"

for dataset in $DATASETS; do
  single "$dataset"
  for type in $TYPES; do
    for gamma in $GAMMAS; do
      run "$dataset" "gamma/$(names_of "${MODELS[@]}")/$type-$gamma" "${MODELS[*]}" --ensemble_type "$type" --gamma "$gamma"
    done
  done
done
finish gamma
