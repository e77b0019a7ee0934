#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cria::support {

struct RunResult {
  int exit_code = -1;  // -1: a signal ended it.
  int signal = 0;      // 0: no signal ended it.
  bool timed_out = false;
  std::string output;  // stdout
  std::string error;   // stderr
  // At least the memory of the calling process when it forked.
  size_t peak_resident_bytes = 0;
  double processor_seconds = 0.0;  // Seconds of all its threads.
};

struct RunOptions {
  std::string input;                     // The program's stdin, a pipe.
  std::vector<std::string> environment;  // NAME=VALUE, added to this process's environment.
  std::string working_directory;         // Empty: this process's.
  // Permissions of files hold for the program even if the superuser runs it.
  bool permissions_hold = false;
  // RLIMIT_FSIZE, to imitate a full disk: a write beyond it fails with EFBIG, without a signal.
  std::optional<uint64_t> file_size_limit_bytes;
  // RLIMIT_AS. Not for programs built with AddressSanitizer, which reserves terabytes.
  std::optional<uint64_t> address_space_limit_bytes;
  // Called with the program's process id after it was started, before its output is read.
  std::function<void(int)> after_start;
  // Called with what the program has written so far, after each part of it. When it first returns
  // true, the program gets SIGINT.
  std::function<bool(const RunResult&)> interrupt_when;
  // After this time, the program and all processes that it started are killed.
  double timeout_seconds = 120.0;
};

// Runs `arguments` (the first is the program, which is searched for in PATH) to its end. Throws
// std::runtime_error if it cannot be started. Only one thread may call it at a time, because the
// whole process ignores SIGPIPE meanwhile.
RunResult RunProgram(const std::vector<std::string>& arguments, const RunOptions& options = {});

// Whether a child has ended and waits to be reaped.
bool HasEnded(int program);

// Waits until a child has used so much processor time, or has ended. What it has done by then does
// not depend on what else runs on the machine.
void AwaitProcessorTime(int program, double seconds);

}  // namespace cria::support
