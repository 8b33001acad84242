#!/bin/sh
# A job that goes on when nodes are lost, and begins again, with all nodes, when Slurm preempts it: sbatch slurm-elastic.sh.
# train.py saves a checkpoint at times, and when it gets SIGTERM, and begins with the newest one.
#SBATCH --job-name=train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --no-kill
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --time=1-00:00:00
# --no-kill, twice: a node that is lost ends neither the job nor the step. --nnodes=2:4: gorun goes on while two nodes are left.
# --requeue: after preemption, Slurm puts the job in the queue again. --open-mode=append: it then does not lose its output.
exec srun --no-kill --cpus-per-task="$SLURM_CPUS_PER_TASK" gorun --nnodes=2:4 --nproc-per-node=8 --max-restarts=3 train.py
