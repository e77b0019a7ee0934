#include "cli/models/converter_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/messages.h"
#include "cli/program_path.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"

namespace cria::cli {
namespace {

constexpr const char* kConverterName = "cria-convert";
// Exit codes of a child that could not become the converter, which itself uses neither of them.
constexpr int kExitNoProgram = 127;
constexpr int kExitNotStarted = 126;

// Becomes the converter; for a child after fork(). `output` takes its standard output.
[[noreturn]] void BecomeConverter(const std::string& beside, char* const* words, int output,
                                  int lock, pid_t parent) {
  // The converter ends with the process that waits for it. That one may have ended already.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kExitNotStarted);
  dup2(output, STDOUT_FILENO);
  if (lock >= 0) fcntl(lock, F_SETFD, 0);
  if (!beside.empty()) execv(beside.c_str(), words);
  execvp(kConverterName, words);
  _exit(errno == ENOENT ? kExitNoProgram : kExitNotStarted);
}

// What the child writes until it ends. Passes Ctrl-C on, which may have been sent to this process
// alone.
std::string ReadToEnd(int descriptor, const InterruptGuard& interrupt, pid_t child) {
  constexpr int kPauseMs = 50;
  std::string text;
  std::array<char, 4096> part;
  bool is_stopped = false;
  while (true) {
    if (interrupt.interrupted() && !is_stopped) {
      is_stopped = true;
      kill(child, SIGINT);
    }
    pollfd ready = {.fd = descriptor, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kPauseMs) <= 0) continue;
    const ssize_t count = read(descriptor, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(part.data(), static_cast<size_t>(count));
  }
}

int AwaitChild(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Status StatusOf(int status, const InterruptGuard& interrupt) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (interrupt.interrupted() || (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)) {
    return Fail(ErrorCode::kCancelled, "getting the model was stopped; the same command goes on");
  }
  if (WIFSIGNALED(status)) {
    return Fail(ErrorCode::kInternal,
                Format("{} was ended by signal {}", kConverterName, WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == kExitNoProgram) {
    return Fail(
        ErrorCode::kNotFound,
        "checkpoints are downloaded and converted by the program cria-convert, which is not "
        "installed; it has a package of its own: apt install ./cria-convert_*.deb");
  }
  if (WEXITSTATUS(status) == kExitNotStarted) {
    return Fail(ErrorCode::kIo, Format("cannot start {}", kConverterName));
  }
  const bool is_usage = WEXITSTATUS(status) == kExitUsage;
  return Fail(is_usage ? ErrorCode::kUsage : ErrorCode::kInvalidFile,
              Format("there is no model, because {} failed, which says why above", kConverterName));
}

}  // namespace

Result<std::string> RunConverter(const std::vector<std::string>& arguments, ConverterOutput output,
                                 int lock) {
  // Everything that allocates is done before fork().
  const std::string beside = ProgramBesideThis(kConverterName);
  std::vector<char*> words = {const_cast<char*>(kConverterName)};
  words.reserve(arguments.size() + 2);
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const InterruptGuard interrupt;
  int pipes[2] = {-1, -1};
  if (pipe2(pipes, O_CLOEXEC) != 0) {
    return Fail(ErrorCode::kIo,
                Format("cannot make a pipe: {}", static_cast<const char*>(std::strerror(errno))));
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) BecomeConverter(beside, words.data(), pipes[1], lock, parent);
  const int reason = errno;
  close(pipes[1]);
  std::string text;
  if (child > 0) text = ReadToEnd(pipes[0], interrupt, child);
  close(pipes[0]);
  if (child < 0) {
    return Fail(ErrorCode::kIo, Format("cannot start {}: {}", kConverterName,
                                       static_cast<const char*>(std::strerror(reason))));
  }
  CRIA_RETURN_IF_ERROR(StatusOf(AwaitChild(child), interrupt));
  return output == ConverterOutput::kReturned ? text : "";
}

}  // namespace cria::cli
