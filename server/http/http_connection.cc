#include "server/http/http_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "server/http/host_name.h"
#include "server/http/listener.h"

namespace cria::server {
namespace {

constexpr auto kNever = HttpConnection::Clock::time_point::max();

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Replaces %XX. Nothing if that is malformed or stands for a zero byte.
std::optional<std::string> DecodePath(std::string_view text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      path += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    path += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return path;
}

ssize_t ReadPart(void* connection, uint64_t, char* destination, size_t max_bytes) {
  return static_cast<HttpConnection*>(connection)->ReadAnswer(destination, max_bytes);
}

ssize_t ReadWhole(void* connection, uint64_t offset, char* destination, size_t max_bytes) {
  return static_cast<HttpConnection*>(connection)->ReadBody(offset, destination, max_bytes);
}

// A response whose body is copied.
MHD_Response* SmallResponse(const std::string& body) {
  return MHD_create_response_from_buffer_copy(body.size(), body.data());
}

void AddHeader(MHD_Response* response, const char* name, const std::string& value) {
  MHD_add_response_header(response, name, value.c_str());
}

}  // namespace

// The headers that matter here.
struct HttpConnection::Head {
  RequestHead access;
  std::string_view content_type;
  std::optional<std::string_view> content_length;
  bool has_two_lengths = false;
  bool is_chunked = false;
  bool asks_for_method = false;

  bool has_body() const { return is_chunked || (content_length && *content_length != "0"); }
};

HttpConnection::HttpConnection(HttpContext& context, MHD_Connection* connection, int socket)
    : context_(context),
      connection_(connection),
      socket_(socket),
      local_address_(LocalAddress(socket)) {
  SetDeadline(context.bounds.request_timeout);
}

MHD_Result HttpConnection::CollectHeader(void* result, MHD_ValueKind, const char* key,
                                         size_t key_size, const char* value, size_t value_size) {
  Head& head = *static_cast<Head*>(result);
  const std::string_view name(key, key_size);
  const std::string_view text = value == nullptr ? "" : std::string_view(value, value_size);
  const auto is = [&](std::string_view known) { return EqualsIgnoringCase(name, known); };
  if (is("Host")) {
    head.access.host = text;
    ++head.access.num_hosts;
  } else if (is("Origin")) {
    head.access.origin = text;
    ++head.access.num_origins;
  } else if (is("Authorization")) {
    head.access.authorization = text;
  } else if (is("X-API-Key")) {
    head.access.api_key = text;
  } else if (is("Content-Type")) {
    head.content_type = text;
  } else if (is("Content-Length")) {
    head.has_two_lengths = head.content_length.has_value();
    head.content_length = text;
  } else if (is("Transfer-Encoding")) {
    head.is_chunked = true;
  } else if (is("Access-Control-Request-Method")) {
    head.asks_for_method = true;
  }
  return MHD_YES;
}

void HttpConnection::StartRequest(std::string_view target) {
  target_ = target;
  SetDeadline(context_.bounds.request_timeout);
}

MHD_Result HttpConnection::Continue(std::string_view method, std::string_view upload,
                                    size_t* upload_size) {
  switch (phase_) {
    case Phase::kHead:
    case Phase::kIdle:
      return BeginRequest(method);
    case Phase::kBody:
      if (upload.empty()) return Dispatch();
      *upload_size = 0;
      return TakeBody(upload);
    case Phase::kHandling:
      return Answer();
    case Phase::kAnswering:
    case Phase::kClosing:
      break;
  }
  return MHD_NO;
}

MHD_Result HttpConnection::BeginRequest(std::string_view method) {
  is_counted_ = true;
  ++context_.num_requests;
  phase_ = Phase::kBody;
  SetDeadline(context_.bounds.request_timeout);
  request_ = {.method = std::string(method == "HEAD" ? "GET" : method)};
  Head head;
  MHD_get_connection_values_n(connection_, MHD_HEADER_KIND, CollectHeader, &head);
  request_.content_type = head.content_type;
  refusal_ = CheckHead(method, head);
  // After an answer before the body, the connection is closed; without a body, it is kept.
  if (refusal_ && head.has_body()) return Refuse(*refusal_);
  if (!refusal_ && head.content_length) request_.body.reserve(reservation_->bytes());
  return MHD_YES;
}

std::optional<Refusal> HttpConnection::CheckHead(std::string_view method, Head& head) {
  if (auto refusal = ReadTarget()) return refusal;
  head.access.method = method;
  head.access.path = request_.path;
  head.access.local_address = local_address_;
  is_preflight_ = method == "OPTIONS" && head.access.origin && head.asks_for_method;
  head.access.is_preflight = is_preflight_;
  // A page of that origin may also read why it is refused.
  if (head.access.origin && context_.access.AllowsOrigin(*head.access.origin)) {
    allowed_origin_ = *head.access.origin;
  }
  if (auto refusal = context_.access.Check(head.access)) return refusal;
  if (context_.is_closing) {
    return Refusal{.status = 503,
                   .code = "shutting_down",
                   .sentence = "the server is ending; send the request again later"};
  }
  // A proxy in front of the server may have believed the other one.
  if (head.has_two_lengths || (head.content_length && head.is_chunked)) {
    return Refusal{.status = 400,
                   .code = "ambiguous_body",
                   .sentence = "the headers say in two ways how long the body is"};
  }
  if (!head.content_length) return std::nullopt;
  uint64_t bytes = 0;
  const char* const begin = head.content_length->data();
  const char* const end = begin + head.content_length->size();
  const auto [stop, error] = std::from_chars(begin, end, bytes);
  return ReserveBody(error == std::errc() && stop == end ? bytes : UINT64_MAX);
}

std::optional<Refusal> HttpConnection::ReadTarget() {
  const size_t question_mark = std::min(target_.find('?'), target_.size());
  const std::optional<std::string> path =
      DecodePath(std::string_view(target_).substr(0, question_mark));
  if (!path || !path->starts_with('/')) {
    return Refusal{
        .status = 400, .code = "invalid_path", .sentence = "the path of the request is malformed"};
  }
  request_.path = *path;
  request_.query = target_.substr(std::min(question_mark + 1, target_.size()));
  return std::nullopt;
}

std::optional<Refusal> HttpConnection::ReserveBody(uint64_t bytes) {
  if (bytes > context_.bounds.max_body_bytes) {
    return Refusal{.status = 413,
                   .code = "body_too_large",
                   .sentence = "the body of the request is longer than the server accepts"};
  }
  if (reservation_ == nullptr)
    reservation_ = std::make_shared<BodyReservation>(context_.body_bytes);
  if (bytes <= reservation_->bytes()) return std::nullopt;
  if (!reservation_->Grow(bytes, context_.bounds.total_body_bytes)) {
    return Refusal{.status = 503,
                   .code = "too_many_bodies",
                   .sentence = "the server has too many large requests; send it again later"};
  }
  return std::nullopt;
}

MHD_Result HttpConnection::TakeBody(std::string_view upload) {
  if (const auto refusal = ReserveBody(request_.body.size() + upload.size())) {
    RefuseAndClose(*refusal);
    return MHD_NO;
  }
  request_.body += upload;
  return MHD_YES;
}

MHD_Result HttpConnection::Dispatch() {
  if (refusal_) return Refuse(*refusal_);
  if (request_.method == "OPTIONS") return AnswerOptions();
  phase_ = Phase::kHandling;
  deadline_ = kNever;
  answer_ = std::make_shared<PendingAnswer>(context_.wake_list, context_.bounds.answer_buffer_bytes,
                                            context_.bounds.answer_timeout);
  answer_->connection = this;
  context_.handler(std::exchange(request_, {}), answer_->ForHandler(reservation_));
  return Answer();
}

MHD_Result HttpConnection::Answer() {
  switch (answer_->WaitForHead()) {
    case PendingAnswer::Stage::kNothing:
      // A client that has sent its request and closed its end waits for an answer that comes at
      // once, but one that has gone away looks the same.
      if (peer_has_closed_) return MHD_NO;
      Suspend();
      return MHD_YES;
    case PendingAnswer::Stage::kLost:
      return MHD_NO;
    case PendingAnswer::Stage::kWhole:
      return QueueWhole();
    case PendingAnswer::Stage::kParts:
      break;
  }
  is_in_parts_ = true;
  SetDeadline(context_.bounds.answer_timeout);
  // The library's own block is used for clients of HTTP/1.0 alone.
  constexpr size_t kBlockBytes = 2048;
  return Queue(
      answer_->head().status, answer_->head().content_type,
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlockBytes, ReadPart, this, nullptr));
}

MHD_Result HttpConnection::QueueWhole() {
  body_ = answer_->TakeBody();
  SetDeadline(context_.bounds.answer_timeout);
  const PendingAnswer::Head& head = answer_->head();
  // A block at a time, so that it is known how fast the client takes them.
  MHD_Response* const response =
      body_.empty()
          ? SmallResponse(body_)
          : MHD_create_response_from_callback(body_.size(), context_.bounds.answer_buffer_bytes,
                                              ReadWhole, this, nullptr);
  return Queue(head.status, head.content_type, response);
}

ssize_t HttpConnection::ReadBody(uint64_t offset, char* destination, size_t max_bytes) {
  SetDeadline(context_.bounds.answer_timeout);
  const size_t count = body_.copy(destination, max_bytes, static_cast<size_t>(offset));
  return count == 0 ? MHD_CONTENT_READER_END_WITH_ERROR : static_cast<ssize_t>(count);
}

ssize_t HttpConnection::ReadAnswer(char* destination, size_t max_bytes) {
  const PendingAnswer::Part part = answer_->Read({destination, max_bytes});
  if (part.is_lost) {
    // The library closes a connection at once if it cannot send, but if it is told of an error
    // here, only when the socket reports something, which one of a client that is gone never does.
    ShutDown();
    *destination = '\n';
    return 1;
  }
  // The client must take this until then; what comes later has its own time.
  SetDeadline(context_.bounds.answer_timeout);
  if (part.is_last) return MHD_CONTENT_READER_END_OF_STREAM;
  if (part.num_bytes == 0) Suspend();
  return static_cast<ssize_t>(part.num_bytes);
}

MHD_Result HttpConnection::Refuse(const Refusal& refusal) {
  SetDeadline(context_.bounds.answer_timeout);
  lingers_ = true;
  MHD_Response* const response = SmallResponse(RefusalBody(refusal));
  if (response == nullptr) return MHD_NO;
  if (refusal.status == 401) AddHeader(response, "WWW-Authenticate", "Bearer");
  if (refusal.status == 503) AddHeader(response, "Retry-After", "1");
  return Queue(refusal.status, "application/json", response);
}

MHD_Result HttpConnection::AnswerOptions() {
  constexpr const char* kMethods = "GET, HEAD, POST, DELETE, OPTIONS";
  SetDeadline(context_.bounds.answer_timeout);
  MHD_Response* const response = SmallResponse("");
  if (response == nullptr) return MHD_NO;
  if (is_preflight_ && !allowed_origin_.empty()) {
    AddHeader(response, "Access-Control-Allow-Methods", kMethods);
    AddHeader(response, "Access-Control-Allow-Headers",
              "Authorization, Content-Type, X-API-Key, Anthropic-Version, Anthropic-Beta, "
              "Anthropic-Dangerous-Direct-Browser-Access");
    AddHeader(response, "Access-Control-Max-Age", "600");
  }
  AddHeader(response, "Allow", kMethods);
  return Queue(204, "", response);
}

MHD_Result HttpConnection::Queue(int status, std::string_view content_type,
                                 MHD_Response* response) {
  if (response == nullptr) return MHD_NO;
  bool has_cache_rule = false;
  if (answer_ != nullptr) {
    for (const HttpAnswer::Header& header : answer_->head().headers) {
      has_cache_rule |= EqualsIgnoringCase(header.name, "Cache-Control");
      AddHeader(response, header.name.c_str(), header.value);
    }
  }
  if (!content_type.empty()) AddHeader(response, "Content-Type", std::string(content_type));
  // Answers are for the client alone, and are what they say they are.
  if (!has_cache_rule) AddHeader(response, "Cache-Control", "no-store");
  AddHeader(response, "X-Content-Type-Options", "nosniff");
  AddHeader(response, "Cross-Origin-Resource-Policy", "same-origin");
  if (!allowed_origin_.empty()) {
    AddHeader(response, "Access-Control-Allow-Origin", allowed_origin_);
    AddHeader(response, "Vary", "Origin");
  }
  if (context_.is_closing) AddHeader(response, "Connection", "close");
  const MHD_Result queued =
      MHD_queue_response(connection_, static_cast<unsigned int>(status), response);
  MHD_destroy_response(response);
  phase_ = Phase::kAnswering;
  return queued;
}

void HttpConnection::Suspend() {
  deadline_ = kNever;
  is_suspended_ = true;
  MHD_suspend_connection(connection_);
}

void HttpConnection::FinishRequest() {
  if (answer_ != nullptr) {
    answer_->connection = nullptr;
    answer_->Abandon();
    answer_.reset();
  }
  if (std::exchange(is_counted_, false)) --context_.num_requests;
  reservation_.reset();
  // Assigned anew, so that no memory of a large request stays.
  request_ = {};
  std::string().swap(target_);
  allowed_origin_.clear();
  refusal_.reset();
  is_in_parts_ = false;
  std::string().swap(body_);
  if (phase_ == Phase::kClosing) return;
  phase_ = Phase::kIdle;
  SetDeadline(context_.bounds.idle_timeout);
}

void HttpConnection::NotePeerClosed() {
  peer_has_closed_ = true;
  // A whole answer is on its way already, and a client may have closed its end to say that it sends
  // no more.
  if (phase_ == Phase::kHandling || is_in_parts_) Abandon();
}

void HttpConnection::CloseIfPeerIsDone() {
  if (!peer_has_closed_ || phase_ == Phase::kHandling || phase_ == Phase::kAnswering) return;
  if (phase_ == Phase::kClosing) return;
  // The library does not see an end that came together with the last bytes.
  char byte = 0;
  if (recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) ShutDown();
}

void HttpConnection::Wake() {
  if (std::exchange(is_suspended_, false)) {
    MHD_resume_connection(connection_);
  } else if (answer_ != nullptr && answer_->WaitForHead() == PendingAnswer::Stage::kLost) {
    // It waits until the client takes more, and so would not notice.
    ShutDown();
  }
}

void HttpConnection::Abandon() {
  if (answer_ == nullptr) return;
  answer_->Abandon();
  Wake();
}

void HttpConnection::Expire() {
  if (phase_ == Phase::kBody) {
    RefuseAndClose({.status = 408,
                    .code = "request_timeout",
                    .sentence = "the body of the request has not come in time"});
  }
  ShutDown();
}

void HttpConnection::RefuseAndClose(const Refusal& refusal) {
  const std::string response = RefusalResponse(refusal);
  // Nothing was sent for this request, so that there is space. If it fails, the client is gone.
  [[maybe_unused]] const ssize_t count =
      send(socket_, response.data(), response.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  lingers_ = true;
}

void HttpConnection::ShutDown() {
  phase_ = Phase::kClosing;
  deadline_ = kNever;
  shutdown(socket_, SHUT_RDWR);
}

}  // namespace cria::server
