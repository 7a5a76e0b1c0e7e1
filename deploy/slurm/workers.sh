#!/bin/sh
# Workers on the nodes of a Slurm cluster: sbatch --nodes 4 deploy/slurm/workers.sh tcp://HEAD:8786
#SBATCH --job-name=perftrail
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --time=04:00:00
set -eu
scheduler="${1:?give the scheduler address: tcp://HOST:PORT or tls://HOST:PORT}"
# One task on each node, with exclusive use of the node and all of its CPUs. A task that ends does not end the others.
# Slurm first sends its own signal, so that each worker can end its work. PERFTRAIL_DIRECTORY names your directory on
# the nodes' own disks, if they have one: measured programs run below it.
exec srun --kill-on-bad-exit=0 --cpu-bind=none --export=ALL \
  sh -c 'exec perftrail worker "$1" --machine "$SLURMD_NODENAME" --builds "${PERFTRAIL_BUILDS:-2}" \
    --directory "${PERFTRAIL_DIRECTORY:-$HOME/.cache/perftrail/$SLURMD_NODENAME}"' perftrail-worker "$scheduler"
