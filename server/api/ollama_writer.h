#pragma once

#include <chrono>
#include <cstddef>

#include "server/api/answer_job.h"
#include "server/api/text_answer.h"
#include "server/requests/json_body.h"

namespace cria::server {

// Writes ollama's answers: the values of a stream, or one value. What differs between its paths is
// the `content` of a value, such as {"response": "text"}.
class OllamaWriter : public AnswerWriter {
 public:
  OllamaWriter(Exchange& exchange, Response& response, bool is_streamed)
      : AnswerWriter(exchange, response), is_streamed_(is_streamed), text_(response) {}

  void BeginChoice(size_t /*index*/) override {}
  void OnToken(TokenLogProbability token) override;
  void Finish() override {}

 protected:
  bool is_streamed() const { return is_streamed_; }
  // A value of the stream that is not the last.
  void SendPart(const Json& content);
  // The last value of the stream, or the whole answer.
  void SendEnd(const Json& content, const AnswerEnd& end);

 private:
  // A value of the stream without text, for tokens that are not sent yet.
  virtual void SendTokens() = 0;
  Json Value(const Json& content);

  const bool is_streamed_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Json tokens_ = Json::array();  // A stream's, with their log-probabilities; not sent yet.
  // One value with log-probabilities, which are sent while they come: they take much memory.
  TextAnswer text_;
  bool has_tokens_ = false;
};

}  // namespace cria::server
