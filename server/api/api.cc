#include "server/api/api.h"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "server/api/api_state.h"
#include "server/api/json_bounds.h"
#include "server/api/model_choice.h"
#include "server/api/paths.h"
#include "server/api/request_error.h"

namespace cria::server {
namespace {

constexpr Response::Style kOllamaStyle = Response::Style::kOllama;
constexpr Response::Style kLlamaServerStyle = Response::Style::kLlamaServer;
constexpr Response::Style kAnthropicStyle = Response::Style::kAnthropic;
constexpr Response::Style kResponsesStyle = Response::Style::kResponses;

constexpr ModelUse kNeeded = ModelUse::kNeeded;

constexpr std::array<PathRoute, 38> kRoutes = {{
    {"POST", "/v1/chat/completions", HandleOpenAiChat, kNeeded},
    {"POST", "/v1/responses", HandleOpenAiResponses, kNeeded, kResponsesStyle},
    {"POST", "/v1/completions", HandleOpenAiCompletions, kNeeded},
    {"POST", "/v1/embeddings", HandleOpenAiEmbeddings, kNeeded},
    {"GET", "/v1/models", HandleOpenAiModels},
    {"GET", "/v1/models/*", HandleOpenAiModel},
    // llama-server has these paths without /v1.
    {"POST", "/chat/completions", HandleOpenAiChat, kNeeded},
    {"POST", "/responses", HandleOpenAiResponses, kNeeded, kResponsesStyle},
    {"POST", "/embeddings", HandleOpenAiEmbeddings, kNeeded},
    {"GET", "/models", HandleOpenAiModels},
    {"POST", "/models/load", HandleLoadModel, kNeeded},
    {"POST", "/models/unload", HandleUnloadModel},
    {"POST", "/v1/messages", HandleAnthropicMessages, kNeeded, kAnthropicStyle},
    {"POST", "/v1/messages/count_tokens", HandleAnthropicCount, kNeeded, kAnthropicStyle},
    {"POST", "/completion", HandleLlamaCompletion, kNeeded, kLlamaServerStyle},
    {"POST", "/completions", HandleLlamaCompletion, kNeeded, kLlamaServerStyle},
    {"POST", "/infill", HandleInfill, kNeeded, kLlamaServerStyle},
    {"POST", "/tokenize", HandleTokenize, kNeeded},
    {"POST", "/detokenize", HandleDetokenize, kNeeded},
    {"POST", "/v1/rerank", HandleRerank, kNeeded},
    {"POST", "/v1/reranking", HandleRerank, kNeeded},
    {"POST", "/rerank", HandleRerank, kNeeded},
    {"POST", "/reranking", HandleRerank, kNeeded},
    {"POST", "/apply-template", HandleApplyTemplate, kNeeded},
    {"GET", "/health", HandleHealth},
    {"GET", "/v1/health", HandleHealth},
    {"GET", "/props", HandleProps, ModelUse::kOptional},
    {"GET", "/metrics", HandleMetrics},
    {"GET", "/slots", HandleSlots, kNeeded},
    {"POST", "/slots/*", HandleSlotAction, kNeeded},
    {"POST", "/api/chat", HandleOllamaChat, ModelUse::kMayUnload, kOllamaStyle},
    {"POST", "/api/generate", HandleOllamaGenerate, ModelUse::kMayUnload, kOllamaStyle},
    {"POST", "/api/embed", HandleOllamaEmbed, kNeeded, kOllamaStyle},
    {"POST", "/api/embeddings", HandleOllamaEmbeddings, kNeeded, kOllamaStyle},
    {"GET", "/api/tags", HandleOllamaTags, ModelUse::kNone, kOllamaStyle},
    {"POST", "/api/show", HandleOllamaShow, ModelUse::kNone, kOllamaStyle},
    {"GET", "/api/ps", HandleOllamaPs, ModelUse::kNone, kOllamaStyle},
    {"GET", "/api/version", HandleOllamaVersion, ModelUse::kNone, kOllamaStyle},
}};

// Paths that other servers have, whose last part may be '*', and what is said of them.
struct MissingPath {
  const char* path;
  const char* sentence;
};
constexpr std::array<MissingPath, 3> kMissingPaths = {{
    {"/embedding", "this server has /v1/embeddings"},
    {"/v1/responses/*", "this server stores no responses"},
    {"/api/pull", "this server has the models that it was started with"},
}};

bool Matches(std::string_view pattern, std::string_view path, std::string& name) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  if (!path.starts_with(pattern) || path.size() == pattern.size()) return false;
  name = path.substr(pattern.size());
  return true;
}

// The route of a request, and the methods that its path allows if there is none.
const PathRoute* FindRoute(const HttpRequest& request, std::string& name, std::string& allowed) {
  for (const PathRoute& route : kRoutes) {
    if (!Matches(route.path, request.path, name)) continue;
    if (request.method == route.method) return &route;
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method;
  }
  return nullptr;
}

// The form of errors of a path that has no such method, or does not exist.
Response::Style StyleOfErrors(std::string_view path) {
  if (path.starts_with("/api/")) return kOllamaStyle;
  if (path.starts_with("/v1/messages")) return kAnthropicStyle;
  return Response::Style::kOpenAi;
}

// 501, which other servers send for some of these, would make clients try again.
[[noreturn]] void ThrowNotFound(std::string_view path) {
  std::string sentence = Format("there is no {}", path);
  std::string rest;
  const auto known = std::ranges::find_if(
      kMissingPaths, [&](const MissingPath& missing) { return Matches(missing.path, path, rest); });
  if (known != kMissingPaths.end()) sentence += Format(": {}", known->sentence);
  throw RequestError(404, std::move(sentence), "", "not_found");
}

void Route(Exchange& exchange) {
  std::string allowed;
  const PathRoute* const route = FindRoute(exchange.request, exchange.name, allowed);
  if (route != nullptr) {
    exchange.style = route->style;
    exchange.handle = route->handle;
    exchange.use = route->model;
    const bool is_short = exchange.request.body.size() <= kMaxShortBodyBytes;
    return IsReady(exchange, is_short) && is_short ? route->handle(exchange) : Enqueue(exchange);
  }
  exchange.style = StyleOfErrors(exchange.request.path);
  if (allowed.empty()) ThrowNotFound(exchange.request.path);
  Response(exchange.http, exchange.style)
      .Fail({405, Format("{} takes only {}", exchange.request.path, allowed), "",
             "method_not_allowed"},
            allowed);
}

}  // namespace

std::vector<std::string> ApiPaths() {
  std::vector<std::string> paths;
  paths.reserve(std::size(kRoutes));
  for (const PathRoute& route : kRoutes) {
    paths.push_back(std::string(route.method) + " " + route.path);
  }
  return paths;
}

Api::Api(ModelStore& models, WorkQueue& work, ApiOptions options)
    : state_(std::make_unique<ApiState>(models, work, std::move(options))) {}

Api::~Api() = default;

void Api::Handle(HttpRequest request, std::shared_ptr<HttpAnswer> answer) {
  Exchange exchange = {*state_, std::move(request), answer};
  // Fails with what was thrown; nothing was sent before.
  const auto fail = [&](const RequestError& error) {
    Response(answer, exchange.style).Fail(error);
  };
  try {
    Route(exchange);
  } catch (const RequestError& error) {
    fail(error);
  } catch (const std::bad_alloc&) {
    fail({503, "there is too little memory for this request", "", "out_of_memory"});
  } catch (const std::exception& error) {
    fail({500, error.what()});
  }
}

}  // namespace cria::server
