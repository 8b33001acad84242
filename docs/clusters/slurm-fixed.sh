#!/bin/sh
# A job on a fixed number of nodes: sbatch slurm-fixed.sh. Its exit code is that of the worker that failed first.
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=1-00:00:00
# --ntasks-per-node=1: one gorun on each node, which starts 8 workers there. Add --gres=gpu:8 for one GPU each.
# srun does not take over --cpus-per-task by itself. --max-restarts: gorun starts the workers again if one fails.
exec srun --cpus-per-task="$SLURM_CPUS_PER_TASK" gorun --nproc-per-node=8 --max-restarts=3 train.py
