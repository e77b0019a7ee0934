#include "cli/serve/server_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "cli/demo_model.h"
#include "support/paths.h"

namespace cria::tests {
namespace {

// A test that waits so long has failed.
constexpr int kPatienceMilliseconds = 120'000;

}  // namespace

ServerProgram::ServerProgram(std::vector<std::string> options,
                             const std::function<void()>& in_child) {
  std::vector<std::string> words = {support::kServeProgram, "-t", "2"};
  const bool names_models =
      std::ranges::contains(options, "-m") || std::ranges::contains(options, "--models");
  if (!names_models) words.insert(words.end(), {"-m", DemoModel()});
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  process_ = fork();
  if (process_ == 0) {
    dup2(ends[1], STDERR_FILENO);
    if (in_child) in_child();
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  stderr_ = ends[0];
  // Notices may come before the line that says where it listens.
  while (!output_.contains(" tokens of context, ") && !output_.contains(" models, at ")) {
    if (!ReadOutput()) throw std::runtime_error("the server has not started: " + output_);
  }
  while (!output_.ends_with('\n')) {
    if (!ReadOutput()) break;
  }
  if (const size_t colon = output_.rfind("http://"); colon != output_.npos) {
    // A notice may follow the line.
    port_ = std::stoi(output_.substr(output_.rfind(':', output_.find('\n', colon)) + 1));
  }
}

ServerProgram::~ServerProgram() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  close(stderr_);
}

void ServerProgram::Signal(int number) const { kill(process_, number); }

bool ServerProgram::ReadOutput() {
  pollfd waiting = {.fd = stderr_, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, kPatienceMilliseconds) <= 0) return false;
  char bytes[4096];
  const ssize_t count = read(stderr_, bytes, sizeof bytes);
  if (count <= 0) return false;
  output_.append(bytes, static_cast<size_t>(count));
  return true;
}

int ServerProgram::WaitForEnd() {
  // The pipe ends when the process does.
  while (ReadOutput()) {
  }
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

size_t ServerProgram::MemoryBytes(const std::string& line) const {
  std::ifstream status("/proc/" + std::to_string(process_) + "/status");
  for (std::string word; status >> word;) {
    size_t kilobytes = 0;
    if (word == line + ':' && status >> kilobytes) return kilobytes * 1024;
  }
  throw std::runtime_error("no line " + line);
}

}  // namespace cria::tests
