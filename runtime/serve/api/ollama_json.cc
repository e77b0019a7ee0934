#include "serve/api/ollama_json.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "serve/api/request_error.h"
#include "serve/api/sampling_fields.h"

namespace cria::serve {
namespace {

AnswerShape ReadOllamaFormat(const Fields& request) {
  AnswerShape shape = {.field = "format"};
  const Json* const format = request.Find("format");
  if (format == nullptr || *format == "") return shape;
  if (*format == "json") {
    shape.kind = AnswerShape::Kind::kJsonObject;
  } else if (format->is_object()) {
    shape.kind = AnswerShape::Kind::kJsonSchema;
    shape.text = Written(*format);
  } else {
    RefuseField("format", "is neither \"json\" nor a JSON Schema");
  }
  return shape;
}

int64_t Nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
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

void AddOllamaEnd(Json& answer, const AnswerEnd& end, std::chrono::steady_clock::time_point begin) {
  answer["done"] = true;
  answer["done_reason"] = end.reason == FinishReason::kLength ? "length" : "stop";
  answer["total_duration"] = Nanoseconds(std::chrono::steady_clock::now() - begin);
  answer["load_duration"] = 0;
  answer["prompt_eval_count"] = end.prompt_tokens;
  answer["prompt_eval_duration"] = Nanoseconds(end.prompt_time);
  answer["eval_count"] = end.completion_tokens;
  answer["eval_duration"] = Nanoseconds(end.completion_time);
}

AnswerOptions ReadOllamaOptions(const ApiState& state, const Fields& request) {
  static_cast<void>(request.String("model"));
  const Json empty = Json::object();
  const auto given = request.Object("options");
  const Fields fields = given ? *given : Fields(empty, "options");
  AnswerOptions options;
  options.sampler = ReadSampler(fields);
  options.stop = fields.Strings("stop", AnswerOptions::kMaxStopStrings);
  // -2 means "until the context is full", which ends every answer here.
  const auto count = fields.Integer("num_predict", -2);
  if (count && *count == 0) RefuseField("options.num_predict", "is 0: there would be no answer");
  if (count && *count > 0) options.max_tokens = static_cast<size_t>(*count);
  const size_t context = state.engine.decoder().context_tokens();
  if (const auto wanted = fields.Integer("num_ctx", 1);
      wanted && std::cmp_greater(*wanted, context)) {
    RefuseField("options.num_ctx",
                Format("is {}, but this server's context has {} tokens", *wanted, context));
  }
  options.shape = ReadOllamaFormat(request);
  return options;
}

Json OllamaDetails(const ApiState& state) {
  const std::string& family = state.engine.file().config().architecture;
  return {{"parent_model", ""},   {"format", "cria"},
          {"family", family},     {"families", Json::array({family})},
          {"parameter_size", ""}, {"quantization_level", ""}};
}

}  // namespace cria::serve
