#include "server/http/http_server.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/format.h"
#include "server/http/http_connection.h"
#include "server/http/pending_answer.h"
#include "server/http/refusal.h"
#include "server/http/wake_list.h"

namespace cria::server {
namespace {

// Tags of events; then the listeners follow, and then the connections.
constexpr uint64_t kLibraryTag = 0;
constexpr uint64_t kWakeTag = 1;
constexpr uint64_t kLingeringTag = 2;
constexpr uint64_t kFirstListenerTag = 3;

// How long nothing is accepted after descriptors or memory ran out.
constexpr auto kAcceptPause = std::chrono::milliseconds(200);
// A connection on which nothing came for this time gives its place to a new one.
constexpr auto kSilence = std::chrono::seconds(2);

Status Watch(int epoll, int descriptor, uint32_t events, uint64_t tag) {
  epoll_event event = {.events = events, .data = {.u64 = tag}};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  return Fail(ErrorCode::kIo,
              Format("cannot watch a socket: {}", static_cast<const char*>(std::strerror(errno))));
}

HttpConnection* ConnectionOf(MHD_Connection* connection) {
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == nullptr ? nullptr : static_cast<HttpConnection*>(info->socket_context);
}

}  // namespace

// What libmicrohttpd calls.
struct HttpServer::Callbacks {
  static void* NoteTarget(void*, const char* target, MHD_Connection* connection) {
    HttpConnection* const own = ConnectionOf(connection);
    if (own != nullptr) own->StartRequest(target);
    return own;
  }

  static MHD_Result Continue(void*, MHD_Connection*, const char*, const char* method, const char*,
                             const char* upload, size_t* upload_size, void** own) {
    if (*own == nullptr) return MHD_NO;
    return static_cast<HttpConnection*>(*own)->Continue(method, {upload, *upload_size},
                                                        upload_size);
  }

  static void NoteCompleted(void*, MHD_Connection*, void** own, MHD_RequestTerminationCode) {
    if (*own != nullptr) static_cast<HttpConnection*>(*own)->FinishRequest();
    *own = nullptr;
  }

  static void NoteConnection(void* server, MHD_Connection* connection, void** own,
                             MHD_ConnectionNotificationCode code) {
    auto& self = *static_cast<HttpServer*>(server);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      if (*own != nullptr) self.NoteClosed(*static_cast<HttpConnection*>(*own));
      *own = nullptr;
      return;
    }
    const MHD_ConnectionInfo* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const uint64_t tag = self.next_tag_;
    auto& added = self.connections_[tag];
    added = std::make_unique<HttpConnection>(*self.context_, connection, info->connect_fd);
    *own = added.get();
    self.NoteOpened(*added);
  }
};

Result<std::unique_ptr<HttpServer>> HttpServer::Create(HttpOptions options,
                                                       std::vector<Listener> listeners,
                                                       HttpHandler handler, bool is_insecure) {
  for (const Listener& listener : listeners) {
    if (!listener.is_local && options.access.keys.empty() && !is_insecure) {
      return Fail(ErrorCode::kUsage,
                  Format("other machines can reach {}, so that the server needs a key there",
                         listener.place),
                  RemedyKind::kNone);
    }
    if (!listener.host.empty()) options.access.allowed_hosts.push_back(listener.host);
  }
  std::unique_ptr<HttpServer> server(
      new HttpServer(std::move(options), std::move(listeners), std::move(handler)));
  CRIA_RETURN_IF_ERROR(server->Open());
  return server;
}

HttpServer::HttpServer(HttpOptions options, std::vector<Listener> listeners, HttpHandler handler)
    : listeners_(std::move(listeners)),
      context_(
          new HttpContext{.bounds = options.bounds,
                          .access = Access(std::move(options.access)),
                          .handler = std::move(handler),
                          .wake_list = std::make_shared<WakeList>(options.bounds.max_connections)}),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      next_tag_(kFirstListenerTag + listeners_.size()) {
  woken_.reserve(options.bounds.max_connections);
  connections_.reserve(options.bounds.max_connections);
}

Status HttpServer::Open() {
  const HttpBounds& bounds = context_->bounds;
  // All calls come from one thread, so that the library needs no locks. Its log is off: it would
  // repeat what clients send.
  daemon_ = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
                                 MHD_USE_NO_THREAD_SAFETY,
                             0, nullptr, nullptr, Callbacks::Continue, nullptr,  //
                             MHD_OPTION_CONNECTION_LIMIT,
                             static_cast<unsigned int>(bounds.max_connections),
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, bounds.head_bytes,  //
                             MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,                    //
                             MHD_OPTION_URI_LOG_CALLBACK, Callbacks::NoteTarget, this,
                             MHD_OPTION_NOTIFY_COMPLETED, Callbacks::NoteCompleted, this,
                             MHD_OPTION_NOTIFY_CONNECTION, Callbacks::NoteConnection, this,  //
                             MHD_OPTION_END);
  if (daemon_ == nullptr || !epoll_.is_open() || context_->wake_list->descriptor() < 0) {
    return Fail(ErrorCode::kIo, "the HTTP library does not start; are there free descriptors?");
  }
  const MHD_DaemonInfo* const info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  CRIA_RETURN_IF_ERROR(Watch(epoll_.value(), info->epoll_fd, EPOLLIN, kLibraryTag));
  CRIA_RETURN_IF_ERROR(Watch(epoll_.value(), context_->wake_list->descriptor(), EPOLLIN, kWakeTag));
  for (size_t i = 0; i < listeners_.size(); ++i) {
    CRIA_RETURN_IF_ERROR(
        Watch(epoll_.value(), listeners_[i].socket.value(), EPOLLIN, kFirstListenerTag + i));
  }
  return {};
}

HttpServer::~HttpServer() {
  ends_ = true;
  context_->wake_list->Wake();
  if (thread_.joinable()) thread_.join();
  for (const Listener& listener : listeners_) RemoveSocketFile(listener);
  if (daemon_ == nullptr) return;
  // The library does not stop while a connection is suspended.
  for (const auto& [tag, connection] : connections_) connection->Abandon();
  MHD_run(daemon_);
  MHD_stop_daemon(daemon_);
  // Answers keep the list, and so would keep themselves.
  context_->wake_list->Take(woken_);
}

void HttpServer::Start() {
  thread_ = std::thread([this] { Run(); });
}

void HttpServer::Run() {
  while (!ends_) RunOnce(std::chrono::hours(1));
}

void HttpServer::StopAccepting() {
  stops_accepting_ = true;
  context_->wake_list->Wake();
}

void HttpServer::AbandonAnswers() {
  abandons_ = true;
  context_->wake_list->Wake();
}

bool HttpServer::WaitUntilIdle(std::chrono::milliseconds patience) {
  std::unique_lock lock(figures_mutex_);
  return figures_changed_.wait_for(lock, patience, [&] { return context_->num_requests == 0; });
}

HttpServer::Figures HttpServer::figures() const {
  const std::lock_guard lock(figures_mutex_);
  Figures figures = figures_;
  // Other threads change it, too.
  figures.body_bytes = *context_->body_bytes;
  return figures;
}

void HttpServer::PublishFigures() {
  const Figures figures = {.num_connections = connections_.size(),
                           .num_requests = context_->num_requests,
                           .body_bytes = *context_->body_bytes};
  {
    const std::lock_guard lock(figures_mutex_);
    figures_ = figures;
  }
  if (figures.num_requests == 0) figures_changed_.notify_all();
}

HttpServer::Clock::time_point HttpServer::NextDeadline() const {
  Clock::time_point next = std::min(lingering_.deadline(), accepts_again_);
  for (const auto& [tag, connection] : connections_) next = std::min(next, connection->deadline());
  return next;
}

void HttpServer::RunOnce(std::chrono::milliseconds patience) {
  const Clock::time_point next = NextDeadline();
  auto wait = patience;
  if (next != Clock::time_point::max()) {
    wait = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()),
                      std::chrono::milliseconds(0), patience);
  }
  uint64_t library_wait = 0;
  if (MHD_get_timeout64(daemon_, &library_wait) == MHD_YES) {
    wait = std::min(wait, std::chrono::milliseconds(std::min<uint64_t>(
                              library_wait, static_cast<uint64_t>(wait.count()))));
  }
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.value(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(wait.count()));
  for (int i = 0; i < count; ++i) HandleEvent(events[static_cast<size_t>(i)].data.u64);
  HandleRequests();
  HandleDeadlines();
  MHD_run(daemon_);
  for (const auto& [tag, connection] : connections_) connection->CloseIfPeerIsDone();
  PublishFigures();
}

void HttpServer::HandleEvent(uint64_t tag) {
  if (tag == kLibraryTag) return;  // MHD_run does it.
  if (tag == kWakeTag) {
    HandleWakes();
  } else if (tag == kLingeringTag) {
    lingering_.Read();
  } else if (tag < kFirstListenerTag + listeners_.size()) {
    Accept(listeners_[tag - kFirstListenerTag]);
  } else if (const auto found = connections_.find(tag); found != connections_.end()) {
    found->second->NotePeerClosed();
  }
}

void HttpServer::HandleWakes() {
  context_->wake_list->Take(woken_);
  for (const auto& answer : woken_) {
    if (answer->connection != nullptr) answer->connection->Wake();
  }
  woken_.clear();
}

void HttpServer::HandleRequests() {
  if (stops_accepting_ && !context_->is_closing) {
    context_->is_closing = true;
    accepts_again_ = Clock::time_point::max();
    for (Listener& listener : listeners_) {
      RemoveSocketFile(listener);
      // Closing it also removes it from the epoll set.
      listener.socket = Descriptor();
    }
    for (const auto& [tag, connection] : connections_) {
      if (connection->phase() == HttpConnection::Phase::kIdle) connection->ShutDown();
    }
  }
  if (!abandons_.exchange(false)) return;
  for (const auto& [tag, connection] : connections_) connection->Abandon();
}

void HttpServer::HandleDeadlines() {
  const Clock::time_point now = Clock::now();
  for (const auto& [tag, connection] : connections_) {
    if (connection->deadline() <= now) connection->Expire();
  }
  if (lingering_.deadline() <= now) lingering_.Read();
  if (accepts_again_ <= now) {
    accepts_again_ = Clock::time_point::max();
    WatchListeners(true);
  }
}

void HttpServer::WatchListeners(bool is_watched) {
  for (size_t i = 0; i < listeners_.size(); ++i) {
    epoll_event event = {.events = is_watched ? uint32_t{EPOLLIN} : 0,
                         .data = {.u64 = kFirstListenerTag + i}};
    epoll_ctl(epoll_.value(), EPOLL_CTL_MOD, listeners_[i].socket.value(), &event);
  }
}

bool HttpServer::MakePlace(bool& is_hopeless) {
  is_hopeless = false;
  if (connections_.size() < context_->bounds.max_connections) return true;
  HttpConnection* oldest = nullptr;
  for (const auto& [tag, connection] : connections_) {
    // The place of one is free as soon as the library has closed it.
    if (connection->phase() == HttpConnection::Phase::kClosing) return false;
    const bool is_silent = connection->phase() == HttpConnection::Phase::kHead &&
                           connection->began() + kSilence <= Clock::now();
    if (connection->phase() != HttpConnection::Phase::kIdle && !is_silent) continue;
    if (oldest == nullptr || connection->deadline() < oldest->deadline()) oldest = connection.get();
  }
  if (oldest == nullptr) {
    is_hopeless = true;
    return false;
  }
  oldest->ShutDown();
  return false;
}

void HttpServer::Accept(const Listener& listener) {
  bool is_hopeless = false;
  const bool has_place = MakePlace(is_hopeless);
  // It stays in the kernel's queue until the next turn.
  if (!has_place && !is_hopeless) return;
  Descriptor socket(
      accept4(listener.socket.value(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      WatchListeners(false);
      accepts_again_ = Clock::now() + kAcceptPause;
    }
    return;
  }
  if (has_place) {
    AddConnection(std::move(socket));
    return;
  }
  const std::string response =
      RefusalResponse({.status = 503,
                       .code = "too_many_connections",
                       .sentence = "the server has as many connections as it may have; try again "
                                   "later"});
  // A new socket has space for it; if it fails, the client is gone.
  [[maybe_unused]] const ssize_t count =
      send(socket.value(), response.data(), response.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  lingering_.Add(std::move(socket), epoll_.value(), kLingeringTag);
}

void HttpServer::AddConnection(Descriptor socket) {
  // If this fails, the connection works all the same.
  const int buffer_bytes = context_->bounds.socket_buffer_bytes;
  setsockopt(socket.value(), SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
  // libmicrohttpd demands the address of the client, which is not used.
  sockaddr_in nowhere = {};
  nowhere.sin_family = AF_INET;
  // It closes the socket if it fails.
  MHD_add_connection(daemon_, socket.Release(), reinterpret_cast<const sockaddr*>(&nowhere),
                     sizeof nowhere);
}

void HttpServer::NoteOpened(HttpConnection& connection) {
  // Edge-triggered: it reports once that the client has closed its end.
  const Status watched = Watch(epoll_.value(), connection.socket(),
                               static_cast<uint32_t>(EPOLLRDHUP | EPOLLET), next_tag_);
  if (!watched) connection.ShutDown();
  ++next_tag_;
}

void HttpServer::NoteClosed(HttpConnection& connection) {
  epoll_ctl(epoll_.value(), EPOLL_CTL_DEL, connection.socket(), nullptr);
  if (connection.lingers()) {
    // The library closes its own descriptor after this.
    lingering_.Add(Descriptor(fcntl(connection.socket(), F_DUPFD_CLOEXEC, 0)), epoll_.value(),
                   kLingeringTag);
  }
  std::erase_if(connections_, [&](const auto& entry) { return entry.second.get() == &connection; });
}

}  // namespace cria::server
