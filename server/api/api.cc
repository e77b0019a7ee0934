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
#include "server/api/paths.h"
#include "server/api/request_error.h"

namespace cria::server {
namespace {

constexpr Response::Style kOllamaStyle = Response::Style::kOllama;
constexpr Response::Style kLlamaServerStyle = Response::Style::kLlamaServer;
constexpr Response::Style kAnthropicStyle = Response::Style::kAnthropic;

constexpr std::array<PathRoute, 34> kRoutes = {{
    {"POST", "/v1/chat/completions", HandleOpenAiChat},
    {"POST", "/v1/completions", HandleOpenAiCompletions},
    {"POST", "/v1/embeddings", HandleOpenAiEmbeddings},
    {"GET", "/v1/models", HandleOpenAiModels},
    {"GET", "/v1/models/*", HandleOpenAiModel},
    // llama-server has these paths without /v1.
    {"POST", "/chat/completions", HandleOpenAiChat},
    {"POST", "/embeddings", HandleOpenAiEmbeddings},
    {"GET", "/models", HandleOpenAiModels},
    {"POST", "/v1/messages", HandleAnthropicMessages, kAnthropicStyle},
    {"POST", "/v1/messages/count_tokens", HandleAnthropicCount, kAnthropicStyle},
    {"POST", "/completion", HandleLlamaCompletion, kLlamaServerStyle},
    {"POST", "/completions", HandleLlamaCompletion, kLlamaServerStyle},
    {"POST", "/infill", HandleInfill, kLlamaServerStyle},
    {"POST", "/tokenize", HandleTokenize},
    {"POST", "/detokenize", HandleDetokenize},
    {"POST", "/v1/rerank", HandleRerank},
    {"POST", "/v1/reranking", HandleRerank},
    {"POST", "/rerank", HandleRerank},
    {"POST", "/reranking", HandleRerank},
    {"POST", "/apply-template", HandleApplyTemplate},
    {"GET", "/health", HandleHealth},
    {"GET", "/v1/health", HandleHealth},
    {"GET", "/props", HandleProps},
    {"GET", "/metrics", HandleMetrics},
    {"GET", "/slots", HandleSlots},
    {"POST", "/slots/*", HandleSlotAction},
    {"POST", "/api/chat", HandleOllamaChat, kOllamaStyle},
    {"POST", "/api/generate", HandleOllamaGenerate, kOllamaStyle},
    {"POST", "/api/embed", HandleOllamaEmbed, kOllamaStyle},
    {"POST", "/api/embeddings", HandleOllamaEmbeddings, kOllamaStyle},
    {"GET", "/api/tags", HandleOllamaTags, kOllamaStyle},
    {"POST", "/api/show", HandleOllamaShow, kOllamaStyle},
    {"GET", "/api/ps", HandleOllamaPs, kOllamaStyle},
    {"GET", "/api/version", HandleOllamaVersion, kOllamaStyle},
}};

// Paths that other servers have, and what is said of them.
struct MissingPath {
  const char* path;
  const char* sentence;
};
constexpr std::array<MissingPath, 3> kMissingPaths = {{
    {"/embedding", "this server has /v1/embeddings"},
    {"/v1/responses", "this server has /v1/chat/completions"},
    {"/api/pull", "this server has one model, which is loaded"},
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
  const auto known = std::ranges::find(kMissingPaths, path, &MissingPath::path);
  if (known != kMissingPaths.end()) sentence += Format(": {}", known->sentence);
  throw RequestError(404, std::move(sentence), "", "not_found");
}

void Route(Exchange& exchange) {
  std::string allowed;
  const PathRoute* const route = FindRoute(exchange.request, exchange.name, allowed);
  if (route != nullptr) {
    exchange.style = route->style;
    exchange.handle = route->handle;
    if (exchange.request.body.size() > kMaxShortBodyBytes) return Enqueue(exchange);
    return route->handle(exchange);
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

Api::Api(Engine& engine, WorkQueue& work, ApiOptions options)
    : state_(std::make_unique<ApiState>(engine, work, std::move(options))) {}

Api::~Api() = default;

bool Api::knows_calls() const { return state_->model.call_style.is_known; }

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
