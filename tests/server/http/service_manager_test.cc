#include "server/http/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::server {
namespace {

// In a process of its own, because the descriptors have fixed numbers. Exits with 0 if it gets the
// sockets, with 1 if it gets none, and with 2 if it gets an error.
[[noreturn]] void TakeAndExit(const std::string& process, const char* count, bool has_sockets) {
  if (has_sockets) {
    // Both are opened before one gets the number of the other.
    const int tcp = Unwrap(ListenAtHost("127.0.0.1", 0)).front().socket.Release();
    const int moved = dup(tcp);
    dup2(moved, 3);
    dup2(moved, 4);
  } else {
    close(3);
    close(4);
  }
  setenv("LISTEN_PID", process.c_str(), 1);
  setenv("LISTEN_FDS", count, 1);
  const Result<std::vector<Listener>> taken = TakePassedListeners();
  if (!taken) _exit(2);
  // Programs that this one starts are not to take them, too.
  if (std::getenv("LISTEN_PID") != nullptr || std::getenv("LISTEN_FDS") != nullptr) _exit(3);
  if (taken->empty()) _exit(1);
  _exit((*taken)[0].is_local && (*taken)[0].place.starts_with("http://127.0.0.1:") ? 0 : 4);
}

using testing::ExitedWithCode;

TEST(TakePassedListenersDeathTest, TakesThoseOfThisProcess) {
  EXPECT_EXIT(TakeAndExit(std::to_string(getpid()), "1", true), ExitedWithCode(0), "");
  EXPECT_EXIT(TakeAndExit(std::to_string(getpid()), "2", true), ExitedWithCode(0), "");
}

TEST(TakePassedListenersDeathTest, LeavesThoseOfOthers) {
  EXPECT_EXIT(TakeAndExit("1", "1", true), ExitedWithCode(1), "");
  EXPECT_EXIT(TakeAndExit("", "1", true), ExitedWithCode(1), "");
  EXPECT_EXIT(TakeAndExit(std::to_string(getpid()), "0", true), ExitedWithCode(1), "");
  EXPECT_EXIT(TakeAndExit(std::to_string(getpid()), "-1", true), ExitedWithCode(1), "");
  EXPECT_EXIT(TakeAndExit(std::to_string(getpid()), "1x", true), ExitedWithCode(1), "");
}

TEST(TakePassedListenersDeathTest, RefusesWhatIsNoSocketOrTooMuch) {
  EXPECT_EXIT(TakeAndExit(std::to_string(getpid()), "1", false), ExitedWithCode(2), "");
  EXPECT_EXIT(TakeAndExit(std::to_string(getpid()), "1000000", true), ExitedWithCode(2), "");
}

// A service manager that listens at a path as long as a socket's may be.
class TellServiceManagerTest : public testing::Test {
 protected:
  TellServiceManagerTest() : path_(folder_ / "notify") {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.resize(sizeof address.sun_path - 1, 'x');
    std::ranges::copy(path_, address.sun_path);
    EXPECT_EQ(bind(manager_.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
  }

  // The datagrams that come if NOTIFY_SOCKET has this value, or none.
  std::vector<std::string> Tell(const char* notify_socket) {
    if (notify_socket == nullptr) {
      unsetenv("NOTIFY_SOCKET");
    } else {
      setenv("NOTIFY_SOCKET", notify_socket, 1);
    }
    const size_t descriptors_before = support::FileNames("/proc/self/fd").size();
    TellServiceManager("READY=1");
    EXPECT_EQ(support::FileNames("/proc/self/fd").size(), descriptors_before);
    unsetenv("NOTIFY_SOCKET");
    std::vector<std::string> datagrams;
    std::array<char, 64> bytes;
    ssize_t count = 0;
    while ((count = recv(manager_.value(), bytes.data(), bytes.size(), MSG_DONTWAIT)) >= 0) {
      datagrams.emplace_back(bytes.data(), static_cast<size_t>(count));
    }
    return datagrams;
  }

  support::TemporaryDirectory folder_;
  std::string path_;
  const Descriptor manager_{socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST_F(TellServiceManagerTest, SendsADatagram) {
  EXPECT_THAT(Tell(path_.c_str()), testing::ElementsAre("READY=1"));
}

TEST_F(TellServiceManagerTest, SendsNothingWithoutAManager) {
  EXPECT_THAT(Tell(nullptr), testing::IsEmpty());
  EXPECT_THAT(Tell(""), testing::IsEmpty());
  EXPECT_THAT(Tell((folder_ / "absent").c_str()), testing::IsEmpty());
  // Cut off, it would be the manager's path.
  EXPECT_THAT(Tell((path_ + "x").c_str()), testing::IsEmpty());
  EXPECT_THAT(Tell((path_ + std::string(1000, 'x')).c_str()), testing::IsEmpty());
}

}  // namespace
}  // namespace cria::server
