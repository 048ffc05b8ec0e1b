#!/usr/bin/env bash
#SBATCH --job-name=safe
#SBATCH --array=0-4
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# One job a dataset on a Slurm cluster, each on one machine whose GPUs share the questions:
#   MODELS="A B C" OUT=out/pair FLAGS="--batch_size 16" sbatch --account=... scripts/slurm_array.sh
# A job that is preempted, killed or out of time loses no finished answer: it goes on where it stopped when Slurm
# requeues it, or when the same sbatch command is given again.
set -eu
datasets=(${DATASETS:-gsm8k math500 arc bbh mmlu-redux}) # as many as the array has jobs
OUT=${OUT:-out/slurm}
FLAGS=${FLAGS:-}
cd "${SLURM_SUBMIT_DIR:-.}" # where the repository is

dataset=${datasets[$SLURM_ARRAY_TASK_ID]}
case $dataset in bbh | mmlu-redux) script=run_safe_mmlu.py ;; *) script=run_safe.py ;; esac
gpus=${SLURM_GPUS_ON_NODE:-1}
launch=(python)
[ "$gpus" -gt 1 ] && launch=(accelerate launch --multi_gpu --num_processes "$gpus" --main_process_port 0)

models=() number=0
for model in $MODELS; do models+=("--model_path$((number += 1))" "$model"); done
# srun, so that Slurm's signals reach the run and not this shell alone
exec srun "${launch[@]}" "$script" "${models[@]}" --data_name "$dataset" --output_path "$OUT/$dataset" $FLAGS
