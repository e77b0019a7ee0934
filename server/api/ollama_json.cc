#include "server/api/ollama_json.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/format.h"
#include "server/requests/answer_format.h"
#include "server/requests/request_error.h"
#include "server/requests/sampling_fields.h"

namespace cria::server {
namespace {

AnswerShape ReadOllamaFormat(const Fields& request) {
  AnswerShape shape = {.field = "format"};
  const Json* const format = request.Find("format");
  if (format == nullptr || *format == "") return shape;
  if (*format == "json") {
    shape.kind = AnswerShape::Kind::kJsonObject;
  } else if (format->is_object()) {
    return ShapeOfSchema(*format, shape.field);
  } else {
    RefuseField("format", "is neither \"json\" nor a JSON Schema");
  }
  return shape;
}

}  // namespace

std::string TimeText(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(
                                time - std::chrono::system_clock::from_time_t(seconds))
                                .count();
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  return Format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                std::clamp<int64_t>(microseconds, 0, 999'999));
}

Json OllamaHead(const std::string& model_name) {
  return {{"model", model_name}, {"created_at", TimeText(std::chrono::system_clock::now())}};
}

void SendOllamaLoaded(Exchange& exchange, const Fields& request, const Json& content) {
  Json answer = OllamaHead(exchange.model_name());
  answer.update(content);
  const Json* const keep_alive = request.Find("keep_alive");
  const bool is_over =
      keep_alive != nullptr && ReadKeepAlive(*keep_alive) == ModelStore::Clock::duration(0);
  answer["done_reason"] = is_over ? "unload" : "load";
  answer["done"] = true;
  SendNow(exchange, answer);
}

AnswerOptions ReadOllamaOptions(Exchange& exchange, const Fields& request) {
  ApiState& state = exchange.state;
  static_cast<void>(request.String("model"));
  const Json empty = Json::object();
  const auto given = request.Object("options");
  const Fields fields = given ? *given : Fields(empty, "options");
  AnswerOptions options;
  options.sampler = ReadSampler(fields);
  options.stop = ReadStop(fields);
  // -2 means "until the context is full", which ends every answer here.
  const auto count = fields.Integer("num_predict", -2);
  if (count && *count == 0) RefuseField("options.num_predict", "is 0: there would be no answer");
  if (count && *count > 0) options.max_tokens = static_cast<size_t>(*count);
  // Clients send a fixed number, and cannot know how long the server's context is.
  const auto context = fields.Integer("num_ctx", 1);
  if (context && std::cmp_greater(*context, exchange.model().engine.decoder().context_tokens()) &&
      state.options.on_larger_context && !state.has_told_context.exchange(true)) {
    state.options.on_larger_context(static_cast<size_t>(*context),
                                    exchange.model().engine.decoder().context_tokens());
  }
  options.shape = ReadOllamaFormat(request);
  ReadLogProbabilities(request, options);
  return options;
}

Json OllamaDetails(const std::string& family) {
  return {{"parent_model", ""},   {"format", "cria"},
          {"family", family},     {"families", Json::array({family})},
          {"parameter_size", ""}, {"quantization_level", ""}};
}

}  // namespace cria::server
