#include "server/api/api.h"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "server/api/api_state.h"
#include "server/api/model_choice.h"
#include "server/api/paths.h"
#include "server/requests/json_bounds.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

constexpr Response::Style kOllamaStyle = Response::Style::kOllama;
constexpr Response::Style kLlamaServerStyle = Response::Style::kLlamaServer;
constexpr Response::Style kAnthropicStyle = Response::Style::kAnthropic;
constexpr Response::Style kResponsesStyle = Response::Style::kResponses;

constexpr ModelUse kNeeded = ModelUse::kNeeded;

// What is said of the paths of several rows.
constexpr const char* kChat =
    "OpenAI's chat: streams, tools, `response_format`, log probabilities, several choices";
constexpr const char* kResponses =
    "OpenAI's responses: streams, function calls, reasoning, `text.format`; nothing is stored";
constexpr const char* kEmbeddings = "OpenAI's embeddings of texts";
constexpr const char* kModels = "the models, and which are loaded";
constexpr const char* kLoading =
    "loads one of several models, or gives it up, as llama-server does";
constexpr const char* kAnthropic = "Anthropic's messages: streams, tools, reasoning";
constexpr const char* kLlamaTexts =
    "continues a text, or writes the middle of one, as llama-server does";
constexpr const char* kLlamaTokens = "as llama-server has them";
constexpr const char* kRerank = "ranks documents, if the model is a reranker";
constexpr const char* kSlots =
    "the sequences, and their states in `--slot-save-path`: `?action=save`, `restore`, `erase`";
constexpr const char* kOllama = "as Ollama has them";

constexpr std::array<PathRoute, 38> kRoutes = {{
    {"POST", "/v1/chat/completions", kChat, HandleOpenAiChat, kNeeded},
    {"POST", "/v1/responses", kResponses, HandleOpenAiResponses, kNeeded, kResponsesStyle},
    {"POST", "/v1/completions", "OpenAI's completions", HandleOpenAiCompletions, kNeeded},
    {"POST", "/v1/embeddings", kEmbeddings, HandleOpenAiEmbeddings, kNeeded},
    {"GET", "/v1/models", kModels, HandleOpenAiModels},
    {"GET", "/v1/models/*", kModels, HandleOpenAiModel},
    // llama-server has these paths without /v1.
    {"POST", "/chat/completions", kChat, HandleOpenAiChat, kNeeded},
    {"POST", "/responses", kResponses, HandleOpenAiResponses, kNeeded, kResponsesStyle},
    {"POST", "/embeddings", kEmbeddings, HandleOpenAiEmbeddings, kNeeded},
    {"GET", "/models", kModels, HandleOpenAiModels},
    {"POST", "/models/load", kLoading, HandleLoadModel, kNeeded},
    {"POST", "/models/unload", kLoading, HandleUnloadModel},
    {"POST", "/v1/messages", kAnthropic, HandleAnthropicMessages, kNeeded, kAnthropicStyle},
    {"POST", "/v1/messages/count_tokens", kAnthropic, HandleAnthropicCount, kNeeded,
     kAnthropicStyle},
    {"POST", "/completion", kLlamaTexts, HandleLlamaCompletion, kNeeded, kLlamaServerStyle},
    {"POST", "/completions", kLlamaTexts, HandleLlamaCompletion, kNeeded, kLlamaServerStyle},
    {"POST", "/infill", kLlamaTexts, HandleInfill, kNeeded, kLlamaServerStyle},
    {"POST", "/tokenize", kLlamaTokens, HandleTokenize, kNeeded},
    {"POST", "/detokenize", kLlamaTokens, HandleDetokenize, kNeeded},
    {"POST", "/v1/rerank", kRerank, HandleRerank, kNeeded},
    {"POST", "/v1/reranking", kRerank, HandleRerank, kNeeded},
    {"POST", "/rerank", kRerank, HandleRerank, kNeeded},
    {"POST", "/reranking", kRerank, HandleRerank, kNeeded},
    {"POST", "/apply-template", kLlamaTokens, HandleApplyTemplate, kNeeded},
    {"GET", "/health", "whether the server is well; needs no key", HandleHealth},
    {"GET", "/v1/health", "the same, if the key is right", HandleHealth},
    {"GET", "/props", "the model, its chat template, the plan of its memory", HandleProps,
     ModelUse::kOptional},
    {"GET", "/metrics", "figures for Prometheus", HandleMetrics},
    {"GET", "/slots", kSlots, HandleSlots, kNeeded},
    {"POST", "/slots/*", kSlots, HandleSlotAction, kNeeded},
    {"POST", "/api/chat", kOllama, HandleOllamaChat, ModelUse::kMayUnload, kOllamaStyle},
    {"POST", "/api/generate", kOllama, HandleOllamaGenerate, ModelUse::kMayUnload, kOllamaStyle},
    {"POST", "/api/embed", kOllama, HandleOllamaEmbed, kNeeded, kOllamaStyle},
    {"POST", "/api/embeddings", kOllama, HandleOllamaEmbeddings, kNeeded, kOllamaStyle},
    {"GET", "/api/tags", kOllama, HandleOllamaTags, ModelUse::kNone, kOllamaStyle},
    {"POST", "/api/show", kOllama, HandleOllamaShow, ModelUse::kNone, kOllamaStyle},
    {"GET", "/api/ps", kOllama, HandleOllamaPs, ModelUse::kNone, kOllamaStyle},
    {"GET", "/api/version", kOllama, HandleOllamaVersion, ModelUse::kNone, kOllamaStyle},
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

std::string NameOf(const PathRoute& route) { return std::string(route.method) + " " + route.path; }

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
  for (const PathRoute& route : kRoutes) paths.push_back(NameOf(route));
  return paths;
}

std::vector<std::string> ApiPathsOfHandlers() {
  std::vector<std::string> paths;
  std::vector<PathHandler> handlers;
  for (const PathRoute& route : kRoutes) {
    if (std::ranges::contains(handlers, route.handle)) continue;
    handlers.push_back(route.handle);
    paths.push_back(NameOf(route));
  }
  return paths;
}

std::string ApiPathTable() {
  std::vector<std::string_view> whats;
  for (const PathRoute& route : kRoutes) {
    if (!std::ranges::contains(whats, std::string_view(route.what))) whats.push_back(route.what);
  }
  std::string table = "| path | what |\n| --- | --- |\n";
  for (const std::string_view what : whats) {
    std::string paths;
    std::string_view method;
    for (const PathRoute& route : kRoutes) {
      if (route.what != what) continue;
      if (!paths.empty()) paths += ", ";
      paths += '`';
      if (method != route.method) paths += std::string(route.method) + " ";
      method = route.method;
      paths += route.path;
      if (paths.ends_with('*')) paths.replace(paths.size() - 1, 1, "…");
      paths += '`';
    }
    table += Format("| {} | {} |\n", paths, what);
  }
  return table;
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
