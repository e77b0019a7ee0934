#include "serve/http/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::serve {
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

TEST(TellServiceManager, SendsADatagram) {
  const support::TemporaryDirectory folder;
  const std::string path = folder / "notify";
  const Descriptor manager(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(manager.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  TellServiceManager("READY=1");
  unsetenv("NOTIFY_SOCKET");
  std::array<char, 64> bytes;
  const ssize_t count = recv(manager.value(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  ASSERT_EQ(count, 7);
  EXPECT_EQ(std::string(bytes.data(), 7), "READY=1");
}

TEST(TellServiceManager, DoesNothingWithoutAManager) {
  unsetenv("NOTIFY_SOCKET");
  TellServiceManager("READY=1");
  setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
  TellServiceManager("READY=1");
  setenv("NOTIFY_SOCKET", std::string(1000, 'x').c_str(), 1);
  TellServiceManager("READY=1");
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace cria::serve
