#!/usr/bin/env bash
# Runs a command on N ranks of this machine, whatever the number of cores: mpirun.sh MPIEXEC N SECONDS COMMAND...
# MPIEXEC is the launcher of the MPI that the program was built with; SECONDS ends a job that hangs (0: never).
set -euo pipefail

if [ $# -lt 4 ]; then
  echo "usage: mpirun.sh MPIEXEC RANKS SECONDS COMMAND..." >&2
  exit 2
fi
mpiexec=$1 ranks=$2 seconds=$3
shift 3

# Understood by Open MPI and by MPICH's Hydra alike, unlike --timeout.
if [ "$seconds" -gt 0 ]; then export MPIEXEC_TIMEOUT=$seconds; fi

# The launcher keeps sockets under TMPDIR, whose paths end at 107 bytes, and needs the folder to exist.
tmp=${TMPDIR:-/tmp}
if [ ${#tmp} -gt 40 ] || [ ! -d "$tmp" ] || [ ! -w "$tmp" ]; then export TMPDIR=/tmp; fi

options=()
case $("$mpiexec" --version 2>&1 || true) in
  *"Open MPI"* | *OpenRTE* | *PRRTE*)
    if [ "$(id -u)" -eq 0 ]; then  # refused to root otherwise; both are asked for
      export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
    # More ranks than cores is normal here, and a rank pinned to one core would share it with its own progress thread.
    options=(--oversubscribe --bind-to none)
    # Ranks that only wait give up their core; both directions of a TCP pair get a connection of their own.
    export OMPI_MCA_mpi_yield_when_idle="${OMPI_MCA_mpi_yield_when_idle:-1}"
    export OMPI_MCA_btl_tcp_links="${OMPI_MCA_btl_tcp_links:-2}"
    ;;
esac
exec "$mpiexec" -n "$ranks" ${options[@]+"${options[@]}"} "$@"
