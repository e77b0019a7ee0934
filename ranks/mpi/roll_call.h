#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace cria::mpi {

// Who is there before the ranks can send each other messages by MPI: while an object exists, this
// rank tells mpirun once a second that it lives, by PMIx, with which OpenMPI starts. Where another
// MPI runs, or Cria was built without PMIx, no rank is missing.
class RollCall {
 public:
  RollCall();
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;
  ~RollCall();

  // The ranks that give no sign of life. This takes some seconds.
  std::vector<size_t> FindMissing();

 private:
  // Gives signs of life until the object is destroyed.
  void Run();
  // Returns whether the object still exists after this time.
  template <typename Duration>
  bool Sleep(Duration time);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  bool is_connected_ = false;  // With mpirun.
  std::thread thread_;
};

}  // namespace cria::mpi
