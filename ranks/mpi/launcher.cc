#include "mpi/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>

#include "core/format.h"

namespace cria::mpi {
namespace {

// How the names of mpirun as a process begin, for OpenMPI 5, OpenMPI 4 and MPICH: systems that have
// several add that of one.
constexpr std::array<std::string_view, 4> kMpirun = {"prterun", "orterun", "mpirun", "mpiexec"};
// What OpenMPI starts on the other boards.
constexpr std::array<std::string_view, 2> kDaemons = {"prted", "orted"};
// On each board, MPICH's mpirun starts this, which starts the ranks.
constexpr std::string_view kMpichProxy = "hydra_pmi_proxy";

std::string NameOf(pid_t process) {
  std::ifstream file(Format("/proc/{}/comm", process));
  std::string name;
  std::getline(file, name);
  return name;
}

bool IsMpirun(pid_t process) {
  const std::string name = NameOf(process);
  return std::ranges::any_of(kMpirun,
                             [&](std::string_view begin) { return name.starts_with(begin); });
}

// Returns 0 if the process has ended.
pid_t ParentOf(pid_t process) {
  std::ifstream file(Format("/proc/{}/status", process));
  for (std::string word; file >> word;) {
    pid_t parent = 0;
    if (word == "PPid:" && file >> parent) return parent;
  }
  return 0;
}

}  // namespace

bool IsLauncher(pid_t process) {
  return IsMpirun(process) || std::ranges::contains(kDaemons, NameOf(process));
}

pid_t MpirunOfThisBoard() {
  pid_t process = getppid();
  if (NameOf(process) == kMpichProxy) process = ParentOf(process);
  return IsMpirun(process) ? process : 0;
}

bool LauncherHasTerminal(int stream) {
  const pid_t process = MpirunOfThisBoard();
  if (process == 0) return false;
  const int opened = open(Format("/proc/{}/fd/{}", process, stream).c_str(),
                          O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) return false;
  const bool is_terminal = isatty(opened) == 1;
  close(opened);
  return is_terminal;
}

}  // namespace cria::mpi
