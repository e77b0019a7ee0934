#include "mpi/end_all.h"

#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "mpi/launcher.h"

namespace cria::mpi {
namespace {

// What is sent to mpirun, if it has not ended so long after the last one.
struct Step {
  int milliseconds;
  int signal;
};
constexpr std::array<Step, 2> kSteps = {{{5000, SIGTERM}, {2000, SIGKILL}}};

// What a process of its own does, which has only calls that are safe after a fork.
[[noreturn]] void EndLauncher(int launcher) {
  for (const Step& step : kSteps) {
    pollfd waiting = {.fd = launcher, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, step.milliseconds) != 0) _exit(0);
    syscall(SYS_pidfd_send_signal, launcher, step.signal, nullptr, 0);
  }
  _exit(0);
}

}  // namespace

void EndWithin(std::chrono::seconds time) {
  signal(SIGALRM, SIG_DFL);
  alarm(static_cast<unsigned>(time.count()));
}

void EndLauncherSoon() {
  const pid_t launcher = getppid();
  if (!IsLauncher(launcher)) return;
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, launcher, 0));
  if (descriptor < 0) return;
  const pid_t child = fork();
  if (child == 0) EndLauncher(descriptor);
  // mpirun signals the whole group of processes of this rank.
  if (child > 0) setpgid(child, child);
}

void EndAll() {
  EndLauncherSoon();
  EndWithin(std::chrono::seconds(3));
  MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

}  // namespace cria::mpi
