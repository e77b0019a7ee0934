#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace cria::tests {

// cria-serve, started by a test.
class ServerProgram {
 public:
  // Starts it with the demo model, unless the options name others, and waits until it says where it
  // listens. Throws std::runtime_error with what it wrote if it ends instead. `in_child` is called
  // in the new process before it becomes the program.
  explicit ServerProgram(std::vector<std::string> options,
                         const std::function<void()>& in_child = nullptr);
  ServerProgram(const ServerProgram&) = delete;
  ServerProgram& operator=(const ServerProgram&) = delete;
  // Kills it, if it still runs.
  ~ServerProgram();

  // The port in "http://127.0.0.1:PORT".
  int port() const { return port_; }
  pid_t process() const { return process_; }
  const std::string& output() const { return output_; }

  void Signal(int number) const;
  // Waits for its end; minus the signal that ended it. Reads what it writes until then.
  int WaitForEnd();
  // A line of /proc/PID/status, such as "RssAnon", in bytes.
  size_t MemoryBytes(const std::string& line) const;

 private:
  // Reads more of what it writes; false at its end.
  bool ReadOutput();

  pid_t process_ = -1;
  int stderr_ = -1;
  int port_ = 0;
  std::string output_;
};

}  // namespace cria::tests
