#include "server/http/pending_answer.h"

#include <algorithm>
#include <utility>

#include "server/http/refusal.h"

namespace cria::server {
namespace {

PendingAnswer::Head HeadOf(int status, std::string_view content_type,
                           std::span<const HttpAnswer::Header> headers) {
  return {.status = status,
          .content_type = std::string(content_type),
          .headers = std::vector(headers.begin(), headers.end())};
}

}  // namespace

class PendingAnswer::Handle : public HttpAnswer {
 public:
  Handle(std::shared_ptr<PendingAnswer> answer, std::shared_ptr<const BodyReservation> reservation)
      : answer_(std::move(answer)), reservation_(std::move(reservation)) {}
  ~Handle() override { answer_->Drop(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void Send(int status, std::string_view content_type, std::string body,
            std::span<const Header> headers) override {
    // Before the client may send its next request.
    reservation_.reset();
    answer_->SendWhole(HeadOf(status, content_type, headers), std::move(body));
  }
  void Begin(int status, std::string_view content_type, std::span<const Header> headers) override {
    answer_->Begin(HeadOf(status, content_type, headers));
  }
  bool Write(std::string_view bytes) override { return answer_->Write(bytes); }
  void End() override {
    reservation_.reset();
    answer_->End();
  }
  const std::atomic<bool>& gone() const override { return answer_->gone_; }

 private:
  const std::shared_ptr<PendingAnswer> answer_;
  std::shared_ptr<const BodyReservation> reservation_;
};

PendingAnswer::PendingAnswer(std::shared_ptr<WakeList> wake_list, size_t buffer_bytes,
                             std::chrono::milliseconds timeout)
    : wake_list_(std::move(wake_list)), buffer_bytes_(buffer_bytes), timeout_(timeout) {}

std::shared_ptr<HttpAnswer> PendingAnswer::ForHandler(
    std::shared_ptr<const BodyReservation> reservation) {
  return std::make_shared<Handle>(shared_from_this(), std::move(reservation));
}

void PendingAnswer::WakeReader() {
  if (std::exchange(reader_waits_, false)) wake_list_->Wake(shared_from_this());
}

void PendingAnswer::SendWhole(Head head, std::string body) {
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::kNothing) return;
  head_ = std::move(head);
  body_ = std::move(body);
  stage_ = Stage::kWhole;
  has_ended_ = true;
  WakeReader();
}

void PendingAnswer::Begin(Head head) {
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::kNothing) return;
  head_ = std::move(head);
  buffer_.resize(buffer_bytes_);
  stage_ = Stage::kParts;
  WakeReader();
}

void PendingAnswer::Append(std::string_view bytes) {
  const size_t end = (begin_ + size_) % buffer_.size();
  const size_t first = std::min(bytes.size(), buffer_.size() - end);
  std::ranges::copy(bytes.substr(0, first), buffer_.begin() + static_cast<std::ptrdiff_t>(end));
  std::ranges::copy(bytes.substr(first), buffer_.begin());
  size_ += bytes.size();
}

bool PendingAnswer::Write(std::string_view bytes) {
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  std::unique_lock lock(mutex_);
  while (stage_ == Stage::kParts && !has_ended_ && !bytes.empty()) {
    const bool has_space = has_space_.wait_until(
        lock, deadline, [&] { return size_ < buffer_.size() || stage_ != Stage::kParts; });
    if (!has_space) {
      // The connection is blocked by its reader, so that it must be told.
      stage_ = Stage::kLost;
      gone_ = true;
      reader_waits_ = false;
      wake_list_->Wake(shared_from_this());
      return false;
    }
    if (stage_ != Stage::kParts) break;
    const std::string_view part = bytes.substr(0, buffer_.size() - size_);
    Append(part);
    bytes.remove_prefix(part.size());
    WakeReader();
  }
  return stage_ == Stage::kParts && !has_ended_;
}

void PendingAnswer::End() {
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::kParts) return;
  has_ended_ = true;
  WakeReader();
}

void PendingAnswer::Drop() {
  const std::lock_guard lock(mutex_);
  if (has_ended_ || stage_ == Stage::kLost) return;
  if (stage_ == Stage::kNothing) {
    const Refusal refusal = {.status = 500,
                             .code = "internal_error",
                             .sentence = "the server has dropped the request; send it again"};
    head_ = {.status = refusal.status, .content_type = "application/json"};
    body_ = RefusalBody(refusal);
    stage_ = Stage::kWhole;
    has_ended_ = true;
  } else {
    stage_ = Stage::kLost;
  }
  WakeReader();
}

PendingAnswer::Stage PendingAnswer::WaitForHead() {
  const std::lock_guard lock(mutex_);
  reader_waits_ = stage_ == Stage::kNothing;
  return stage_;
}

PendingAnswer::Part PendingAnswer::Read(std::span<char> destination) {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::kLost) return {.is_last = true, .is_lost = true};
  const size_t count = std::min(size_, destination.size());
  const size_t first = std::min(count, buffer_.size() - begin_);
  std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), first, destination.begin());
  std::copy_n(buffer_.begin(), count - first,
              destination.begin() + static_cast<std::ptrdiff_t>(first));
  begin_ = (begin_ + count) % buffer_.size();
  size_ -= count;
  if (count != 0) has_space_.notify_all();
  reader_waits_ = count == 0 && !has_ended_;
  return {.num_bytes = count, .is_last = count == 0 && has_ended_};
}

void PendingAnswer::Abandon() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  stage_ = Stage::kLost;
  reader_waits_ = false;
  // What it holds is not needed any more, although the handler may keep it for some time.
  std::vector<char>().swap(buffer_);
  begin_ = size_ = 0;
  has_space_.notify_all();
}

}  // namespace cria::server
