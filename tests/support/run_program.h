#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cria::support {

struct RunOptions {
  std::string input;                     // What the program reads from stdin, through a pipe.
  std::vector<std::string> environment;  // NAME=VALUE, set over what this process has.
  std::string working_directory;         // Empty: this process's.
  // RLIMIT_FSIZE, as a full disk would be: a write beyond it fails with EFBIG and raises no signal.
  std::optional<uint64_t> file_size_limit_bytes;
  // RLIMIT_AS. Not for programs built with AddressSanitizer, which reserves terabytes.
  std::optional<uint64_t> address_space_limit_bytes;
  // Called with the program's process id when it runs, before anything that it says is read.
  std::function<void(int)> after_start;
  // When it has passed, the program and all it started are killed.
  double timeout_seconds = 120.0;
};

struct RunResult {
  int exit_code = -1;  // -1: ended by a signal.
  int signal = 0;      // 0: it exited.
  bool timed_out = false;
  std::string output;  // stdout
  std::string error;   // stderr
  // Never below what the calling process had when it forked.
  size_t peak_resident_bytes = 0;
};

// Runs `arguments` (the first is the program, looked up in PATH) to its end. Throws
// std::runtime_error where it cannot be started. Not for several threads at once: SIGPIPE is
// ignored for the whole process meanwhile.
RunResult RunProgram(const std::vector<std::string>& arguments, const RunOptions& options = {});

}  // namespace cria::support
