#include "server/http/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/http/raw_client.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::server {
namespace {

using support::RawClient;
using testing::HasSubstr;

int PortOf(const Listener& listener) {
  return std::stoi(listener.place.substr(listener.place.rfind(':') + 1));
}

TEST(ListenAtHost, ListensAtTheLoopback) {
  const std::vector<Listener> listeners = Unwrap(ListenAtHost("127.0.0.1", 0));
  ASSERT_EQ(listeners.size(), 1u);
  EXPECT_TRUE(listeners[0].is_local);
  EXPECT_EQ(listeners[0].host, "127.0.0.1");
  EXPECT_THAT(listeners[0].place, testing::StartsWith("http://127.0.0.1:"));
  EXPECT_NE(PortOf(listeners[0]), 0);
  RawClient::ToPort(PortOf(listeners[0]));
}

TEST(ListenAtHost, TheAddressesOfANameHaveOnePort) {
  const std::vector<Listener> listeners = Unwrap(ListenAtHost("localhost", 0));
  ASSERT_FALSE(listeners.empty());
  for (const Listener& listener : listeners) {
    EXPECT_TRUE(listener.is_local);
    EXPECT_EQ(listener.host, "localhost");
    EXPECT_EQ(PortOf(listener), PortOf(listeners[0]));
  }
}

TEST(ListenAtHost, EveryAddressIsNotLocalAndNoName) {
  const std::vector<Listener> listeners = Unwrap(ListenAtHost("0.0.0.0", 0));
  ASSERT_EQ(listeners.size(), 1u);
  EXPECT_FALSE(listeners[0].is_local);
  EXPECT_EQ(listeners[0].host, "");
}

TEST(ListenAtHost, SaysWhatIsWrong) {
  const std::vector<Listener> first = Unwrap(ListenAtHost("127.0.0.1", 0));
  const auto taken = ListenAtHost("127.0.0.1", static_cast<uint16_t>(PortOf(first[0])));
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message(), HasSubstr("another process listens there"));
  const auto foreign = ListenAtHost("192.0.2.1", 0);
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message(), HasSubstr("does not have that address"));
  EXPECT_FALSE(ListenAtHost("no host", 0));
  EXPECT_FALSE(ListenAtHost("300.0.0.1", 0));
}

class UnixSocketTest : public testing::Test {
 protected:
  std::string Path() const { return folder_ / "socket"; }

  support::TemporaryDirectory folder_;
};

TEST_F(UnixSocketTest, ListensAndRemovesItsFile) {
  const Listener listener = Unwrap(ListenAtPath(Path()));
  EXPECT_TRUE(listener.is_local);
  EXPECT_EQ(listener.place, "unix:" + Path());
  RawClient::ToPath(Path());
  RemoveSocketFile(listener);
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(UnixSocketTest, ReplacesOneThatNobodyListensAt) {
  {
    const Listener left = Unwrap(ListenAtPath(Path()));
  }
  ASSERT_TRUE(std::filesystem::exists(Path()));
  const Listener listener = Unwrap(ListenAtPath(Path()));
  RawClient::ToPath(Path());
}

TEST_F(UnixSocketTest, LeavesOneThatIsInUse) {
  const Listener first = Unwrap(ListenAtPath(Path()));
  const Result<Listener> second = ListenAtPath(Path());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("another process listens there"));
  RawClient::ToPath(Path());
}

TEST_F(UnixSocketTest, LeavesFilesThatAreNoSockets) {
  std::ofstream(Path()) << "mine";
  const Result<Listener> listener = ListenAtPath(Path());
  ASSERT_FALSE(listener);
  EXPECT_THAT(listener.error().message(), HasSubstr("no socket"));
  std::filesystem::remove(Path());
  // Not even through a symbolic link.
  std::ofstream(folder_ / "other") << "mine";
  std::filesystem::create_symlink(folder_ / "other", Path());
  EXPECT_FALSE(ListenAtPath(Path()));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "other"), 4u);
}

TEST_F(UnixSocketTest, LeavesTheFileOfAnother) {
  const Listener first = Unwrap(ListenAtPath(Path()));
  std::filesystem::remove(Path());
  // Its file may not get the number of the first one's, which is still open.
  const Listener second = Unwrap(ListenAtPath(Path()));
  if (second.inode == first.inode) GTEST_SKIP() << "this file system uses a file's number again";
  RemoveSocketFile(first);
  EXPECT_TRUE(std::filesystem::exists(Path()));
}

TEST_F(UnixSocketTest, RefusesPathsThatASocketCannotHave) {
  EXPECT_FALSE(ListenAtPath(""));
  EXPECT_FALSE(ListenAtPath(folder_ / std::string(108, 'x')));
  EXPECT_FALSE(ListenAtPath(folder_ / "missing" / "socket"));
}

TEST(TakeListener, RefusesWhatDoesNotAccept) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const Descriptor other(pair[1]);
  EXPECT_FALSE(TakeListener(Descriptor(pair[0])));
  ASSERT_EQ(pipe(pair), 0);
  const Descriptor write_end(pair[1]);
  EXPECT_FALSE(TakeListener(Descriptor(pair[0])));
}

}  // namespace
}  // namespace cria::server
