#!/usr/bin/env bash
# The whole chain on the toy pair that ships with the project: Table 2 and the gamma sweep, their tables and figures,
# and a page to read for every ensemble (report.html in its folder). Needs no network.
#   scripts/toy_table2.sh
# Many answers are in flight at once, which saves time; FLAGS=--trace times one answer at a time.
export MODELS=${MODELS:-demo/models/a demo/models/b} DATASETS=${DATASETS:-toy} OUT=${OUT:-out/toy_table2}
export FLAGS=${FLAGS:---trace --batch_size 32} GAMMAS=${GAMMAS:-1 3 5 8 auto}
cd "$(dirname "$0")/.." || exit 2

status=0
scripts/table2.sh || status=$?
case $status in 130 | 143) exit $status ;; esac
scripts/gamma.sh || status=$?
cat "$OUT/table2.md"
echo "pages:"
find "$OUT" -name report.html | sort
exit $status
