#include "support/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "support/permissions.h"

namespace cria::support {
namespace {

using Clock = std::chrono::steady_clock;

// A file descriptor that is closed when the object is destroyed.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int value() const { return value_; }
  bool open() const { return value_ >= 0; }
  void Set(int value) {
    Close();
    value_ = value;
  }
  void Close() {
    if (value_ >= 0) close(value_);
    value_ = -1;
  }

 private:
  int value_;
};

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
    read.Set(ends[0]);
    write.Set(ends[1]);
  }

  Descriptor read;
  Descriptor write;
};

class IgnoreBrokenPipes {
 public:
  IgnoreBrokenPipes() : before_(signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoreBrokenPipes() { signal(SIGPIPE, before_); }
  IgnoreBrokenPipes(const IgnoreBrokenPipes&) = delete;
  IgnoreBrokenPipes& operator=(const IgnoreBrokenPipes&) = delete;

 private:
  void (*before_)(int);
};

void Limit(int resource, uint64_t bytes) {
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

// Runs in the child between fork and exec. Returns only if the program cannot be run, and sets
// errno then.
void BecomeProgram(const std::vector<char*>& arguments, const RunOptions& options,
                   const Pipe& input, const Pipe& output, const Pipe& error) {
  setpgid(0, 0);
  signal(SIGPIPE, SIG_DFL);
  dup2(input.read.value(), STDIN_FILENO);
  dup2(output.write.value(), STDOUT_FILENO);
  dup2(error.write.value(), STDERR_FILENO);
  for (const std::string& variable : options.environment) {
    putenv(const_cast<char*>(variable.c_str()));
  }
  if (!options.working_directory.empty() && chdir(options.working_directory.c_str()) != 0) return;
  if (options.permissions_hold) LetPermissionsHoldAfterExec();
  Limit(RLIMIT_CORE, 0);
  if (options.file_size_limit_bytes) {
    signal(SIGXFSZ, SIG_IGN);
    Limit(RLIMIT_FSIZE, *options.file_size_limit_bytes);
  }
  if (options.address_space_limit_bytes) Limit(RLIMIT_AS, *options.address_space_limit_bytes);
  execvp(arguments[0], arguments.data());
}

// Reads the available bytes and appends them; closes the descriptor at the end of the file.
void Drain(Descriptor& from, std::string& to) {
  char buffer[1 << 16];
  const ssize_t count = read(from.value(), buffer, sizeof(buffer));
  if (count > 0) {
    to.append(buffer, static_cast<size_t>(count));
  } else if (count == 0 || errno != EINTR) {
    from.Close();
  }
}

// Writes the bytes that fit; closes the descriptor when all are written or the reader has closed
// it.
void Feed(Descriptor& to, std::string_view& rest) {
  const ssize_t count = write(to.value(), rest.data(), rest.size());
  if (count > 0) rest.remove_prefix(static_cast<size_t>(count));
  if (rest.empty() || (count < 0 && errno != EINTR && errno != EAGAIN)) to.Close();
}

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1 << 30));
}

// Moves bytes until the program has closed both outputs. Returns false after the deadline.
bool Converse(pid_t program, Descriptor& input, Descriptor& output, Descriptor& error,
              const RunOptions& options, Clock::time_point deadline, RunResult& result) {
  std::string_view text = options.input;
  bool may_interrupt = options.interrupt_when != nullptr;
  if (text.empty()) input.Close();
  while (output.open() || error.open()) {
    pollfd descriptors[] = {
        {output.value(), POLLIN, 0}, {error.value(), POLLIN, 0}, {input.value(), POLLOUT, 0}};
    const int ready = poll(descriptors, 3, MillisecondsUntil(deadline));
    if (ready < 0 && errno != EINTR) throw std::runtime_error("poll failed");
    if (ready <= 0 && Clock::now() >= deadline) return false;
    if (ready <= 0) continue;
    if (descriptors[0].revents != 0) Drain(output, result.output);
    if (descriptors[1].revents != 0) Drain(error, result.error);
    if (descriptors[2].revents != 0) Feed(input, text);
    if (may_interrupt && options.interrupt_when(result)) {
      kill(program, SIGINT);
      may_interrupt = false;
    }
  }
  return true;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// Waits for the program, which may run after it closed its outputs. Returns false after the
// deadline.
bool Reap(pid_t program, Clock::time_point deadline, int& status, rusage& usage) {
  while (true) {
    const pid_t ended = wait4(program, &status, WNOHANG, &usage);
    if (ended == program) return true;
    if (ended < 0 && errno != EINTR) throw std::runtime_error("wait4 failed");
    if (Clock::now() >= deadline) return false;
    usleep(1000);
  }
}

}  // namespace

RunResult RunProgram(const std::vector<std::string>& arguments, const RunOptions& options) {
  if (arguments.empty()) throw std::runtime_error("no program to run");
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);

  const IgnoreBrokenPipes ignore_broken_pipes;
  Pipe input, output, error, failure;
  const pid_t program = fork();
  if (program < 0) throw std::runtime_error("cannot fork");
  if (program == 0) {
    BecomeProgram(pointers, options, input, output, error);
    const int reason = errno;
    [[maybe_unused]] const ssize_t written = write(failure.write.value(), &reason, sizeof(reason));
    _exit(127);
  }
  input.read.Close();
  output.write.Close();
  error.write.Close();
  failure.write.Close();

  // A successful exec closes the pipe of failures.
  int reason = 0;
  if (read(failure.read.value(), &reason, sizeof(reason)) == sizeof(reason)) {
    waitpid(program, nullptr, 0);
    throw std::runtime_error("cannot run " + arguments[0] + ": " + std::strerror(reason));
  }

  if (options.after_start) options.after_start(program);
  fcntl(input.write.value(), F_SETFL, O_NONBLOCK);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(options.timeout_seconds));
  RunResult result;
  int status = 0;
  rusage usage{};
  if (!Converse(program, input.write, output.read, error.read, options, deadline, result) ||
      !Reap(program, deadline, status, usage)) {
    result.timed_out = true;
    kill(-program, SIGKILL);
    wait4(program, &status, 0, &usage);
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  result.peak_resident_bytes = static_cast<size_t>(usage.ru_maxrss) * 1024;
  result.processor_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  return result;
}

bool HasEnded(int program) {
  siginfo_t info = {};
  waitid(P_PID, static_cast<id_t>(program), &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid != 0;
}

void AwaitProcessorTime(int program, double seconds) {
  clockid_t clock = {};
  if (clock_getcpuclockid(program, &clock) != 0) {
    throw std::runtime_error("cannot see a program's processor time");
  }
  timespec used = {};
  while (!HasEnded(program) && clock_gettime(clock, &used) == 0 &&
         static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec) < seconds) {
    usleep(100);
  }
}

}  // namespace cria::support
