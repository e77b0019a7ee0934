// cria-delay-relay MICROSECONDS PID…: for each process, makes the interface eth0 in its network and
// port0, port1 and so on in this one, and passes frames on between them: those from eth0 after this
// time, the others at once. Kernels without netem have no other way to delay frames. Prints "ready"
// when the interfaces exist, and goes on until it is killed.

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Makes an interface of Ethernet in the network of this process, whose frames are read and written
// with the descriptor.
int MakeInterface(const std::string& name) {
  const int descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) Fail("/dev/net/tun");
  ifreq request = {};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  if (ioctl(descriptor, TUNSETIFF, &request) != 0) Fail(name.c_str());
  return descriptor;
}

int OpenNetwork(const std::string& process) {
  const int descriptor = open(("/proc/" + process + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) Fail("the network of a process");
  return descriptor;
}

void EnterNetwork(int descriptor) {
  if (setns(descriptor, CLONE_NEWNET) != 0) Fail("setns");
}

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

// One direction of a link.
struct Direction {
  int from;
  int to;
  Clock::duration delay;
  std::deque<Frame> waiting;
};

void ReadAll(Direction& direction) {
  std::array<char, 65536> bytes;
  while (true) {
    const ssize_t size = read(direction.from, bytes.data(), bytes.size());
    if (size <= 0) return;
    direction.waiting.push_back(
        {Clock::now() + direction.delay, {bytes.begin(), bytes.begin() + size}});
  }
}

// Frames that cannot be written are lost, as on a wire.
void WriteDue(Direction& direction) {
  while (!direction.waiting.empty() && direction.waiting.front().due <= Clock::now()) {
    const std::vector<char>& bytes = direction.waiting.front().bytes;
    [[maybe_unused]] const ssize_t size = write(direction.to, bytes.data(), bytes.size());
    direction.waiting.pop_front();
  }
}

[[noreturn]] void Relay(std::vector<Direction>& directions) {
  // The kernel would otherwise wake this thread up to 50 µs late.
  prctl(PR_SET_TIMERSLACK, 1UL);
  const int events = epoll_create1(EPOLL_CLOEXEC);
  for (size_t i = 0; i < directions.size(); ++i) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = i}};
    if (epoll_ctl(events, EPOLL_CTL_ADD, directions[i].from, &event) != 0) Fail("epoll");
  }
  while (true) {
    Clock::time_point next = Clock::now() + std::chrono::seconds(1);
    for (Direction& direction : directions) {
      WriteDue(direction);
      if (!direction.waiting.empty()) next = std::min(next, direction.waiting.front().due);
    }
    const auto rest = std::max(next - Clock::now(), Clock::duration(0));
    const timespec timeout = {
        .tv_sec = 0,
        .tv_nsec = std::min<long>(std::chrono::nanoseconds(rest).count(), 999'999'999)};
    std::array<epoll_event, 32> found;
    const int count = epoll_pwait2(events, found.data(), found.size(), &timeout, nullptr);
    for (int i = 0; i < count; ++i) ReadAll(directions[found[static_cast<size_t>(i)].data.u64]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  long microseconds = -1;
  if (argc > 1) {
    const std::string_view text = argv[1];
    std::from_chars(text.data(), text.data() + text.size(), microseconds);
  }
  if (argc < 3 || microseconds < 0) {
    std::fputs("usage: cria-delay-relay MICROSECONDS PID...\n", stderr);
    return 2;
  }
  const int own = OpenNetwork("self");
  std::vector<Direction> directions;
  for (int i = 2; i < argc; ++i) {
    EnterNetwork(OpenNetwork(argv[i]));
    const int inner = MakeInterface("eth0");
    EnterNetwork(own);
    const int port = MakeInterface("port" + std::to_string(i - 2));
    directions.push_back({inner, port, std::chrono::microseconds(microseconds), {}});
    directions.push_back({port, inner, Clock::duration(0), {}});
  }
  std::puts("ready");
  std::fflush(stdout);
  Relay(directions);
}
