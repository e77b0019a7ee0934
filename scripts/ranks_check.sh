# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# Checks with several ranks on this machine. Sourced by ./dev.

command_ranks_check() {  # [ARGUMENTS]
  local built=$root/build/release program=cria mpirun=mpirun
  if [ "${1:-}" = --mpich ]; then
    program=cria-mpich mpirun=mpirun.mpich
    shift
  fi
  set_up
  configure_and_build release "$program" cria-convert cria-make-checkpoint cria-mpi cria-delay-relay cria-exchange-time
  inside "$root/tests/ranks/mpi/ranks_check.py" --cria "$built/cli/$program" --mpirun "$mpirun" \
    --convert "$built/cli/cria-convert" --make-checkpoint "$built/tests/support/cria-make-checkpoint" \
    --relay "$built/tests/ranks/mpi/cria-delay-relay" "$@"
}
