#include "cli/serve/serve.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/report.h"
#include "cli/serve/served_models.h"
#include "cli/serve/served_paths.h"
#include "cli/serve/shutdown_signals.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "server/api/served_model.h"
#include "server/http/http_server.h"
#include "server/http/service_manager.h"

namespace cria::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kUnixPrefix = "unix:";

Result<std::vector<server::Listener>> Listen(const ServeOptions& options) {
  CRIA_ASSIGN_OR_RETURN(std::vector<server::Listener> listeners, server::TakePassedListeners());
  if (!listeners.empty()) return listeners;
  std::string path = options.unix_socket;
  if (path.empty() && options.host.starts_with(kUnixPrefix)) {
    path = options.host.substr(kUnixPrefix.size());
  }
  if (path.empty()) {
    return server::ListenAtHost(options.host, static_cast<uint16_t>(options.port));
  }
  CRIA_ASSIGN_OR_RETURN(server::Listener listener, server::ListenAtPath(path));
  listeners.push_back(std::move(listener));
  return listeners;
}

Status CheckHasKey(const std::vector<server::Listener>& listeners, const server::ApiKeys& keys) {
  for (const server::Listener& listener : listeners) {
    if (listener.is_local || !keys.empty()) continue;
    return Fail(ErrorCode::kUsage,
                Format("other machines can reach {}: give the server a key with --api-key-file, or "
                       "let everybody send requests with --insecure",
                       listener.place));
  }
  return {};
}

// Every connection has a descriptor, and there are some others.
Status RaiseDescriptorLimit(size_t max_connections) {
  constexpr rlim_t kOthers = 64;
  const rlim_t needed = max_connections + kOthers;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= needed) return {};
  return Fail(ErrorCode::kUsage,
              Format("{} connections need {} open files, and the limit is {}: raise it with ulimit "
                     "-n, or choose fewer with --max-connections",
                     max_connections, needed, limit.rlim_max));
}

// "NAME, 2048 tokens of context, 4 sequences" for the only model, and otherwise their number.
std::string ModelsText(const server::ModelStore& models, const server::ServedModel* only) {
  if (only == nullptr) return CountText(models.size(), "model");
  const Engine& engine = only->engine;
  return Format("{}, {} tokens of context, {}", Printable(engine.file().name()),
                engine.decoder().context_tokens(),
                CountText(engine.memory_plan().options.decoder.num_sequences, "sequence"));
}

void TellPlaces(server::ModelStore& models, const std::vector<server::Listener>& listeners) {
  std::string places;
  for (const server::Listener& listener : listeners) {
    places += (places.empty() ? "" : " and ") + listener.place;
  }
  const auto lease = models.size() == 1 ? models.Peek(0) : std::nullopt;
  const auto* const only = lease ? static_cast<server::ServedModel*>(&lease->model()) : nullptr;
  // One text, so that who waits for the place reads all of it.
  std::string notice;
  if (only != nullptr && !only->call_style.is_known) {
    notice = Format("cria-serve: {}\n", kUnknownCalls);
  }
  std::fprintf(stderr, "cria-serve: %s, at %s\n%s", ModelsText(models, only).c_str(),
               Printable(places).c_str(), notice.c_str());
}

}  // namespace

Status Serve(ServeOptions options) {
  // A client that goes away is no reason to end.
  std::signal(SIGPIPE, SIG_IGN);
  options.bounds.request_timeout = std::chrono::seconds(options.timeout_seconds);
  options.bounds.answer_timeout = options.bounds.request_timeout;
  CRIA_RETURN_IF_ERROR(RaiseDescriptorLimit(options.bounds.max_connections));
  server::HttpOptions http = {.bounds = options.bounds,
                              .access = {.allowed_hosts = options.allowed_hosts,
                                         .allowed_origins = options.allowed_origins}};
  if (!options.api_key_path.empty()) {
    CRIA_ASSIGN_OR_RETURN(http.access.keys, server::ApiKeys::Read(options.api_key_path));
  }
  // Before the model is loaded, so that a port that is taken does not cost that time.
  CRIA_ASSIGN_OR_RETURN(std::vector<server::Listener> listeners, Listen(options));
  if (!options.is_insecure) CRIA_RETURN_IF_ERROR(CheckHasKey(listeners, http.access.keys));

  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<server::ModelStore> models,
                        OpenServedModels(options));
  ServedPaths paths(*models, options);
  http.access.open_paths = paths.open_paths();
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<server::HttpServer> server,
                        server::HttpServer::Create(std::move(http), std::move(listeners),
                                                   paths.handler(), options.is_insecure));
  server->Start();
  const ShutdownSignals signals;
  TellPlaces(*models, server->listeners());
  server::TellServiceManager("READY=1");

  signals.Wait();
  server::TellServiceManager("STOPPING=1");
  const auto deadline = Clock::now() + std::chrono::seconds(options.shutdown_seconds);
  server->StopAccepting();
  models->Close();
  paths.Close(std::chrono::seconds(options.shutdown_seconds));
  // What was generated in time is still sent.
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  server->WaitUntilIdle(std::max(rest, std::chrono::milliseconds(500)));
  return {};
}

}  // namespace cria::cli
