#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "mpi/mpi_transport.h"
#include "mpi/roll_call.h"

namespace cria::mpi {

// Ends the process if the object still exists after this time: the ranks have not found each other.
// The sentence names those that are missing, if mpirun can tell.
class StartWatch {
 public:
  StartWatch(std::chrono::seconds limit, const OnFault& on_fault);
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;
  ~StartWatch();

 private:
  void Run();
  // Who is missing, as the beginning of a sentence.
  std::string Missing();

  const std::chrono::seconds limit_;
  const OnFault& on_fault_;
  RollCall roll_call_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace cria::mpi
