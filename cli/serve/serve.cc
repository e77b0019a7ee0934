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

#include "cli/engine_loader.h"
#include "cli/models/get_model.h"
#include "cli/plan/server_memory.h"
#include "cli/report.h"
#include "cli/serve/served_paths.h"
#include "cli/serve/shutdown_signals.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "server/http/http_server.h"
#include "server/http/service_manager.h"
#include "server/prompts/prompt_files.h"

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

void TellPlaces(const Engine& engine, const std::vector<server::Listener>& listeners,
                bool knows_calls) {
  std::string places;
  for (const server::Listener& listener : listeners) {
    places += (places.empty() ? "" : " and ") + listener.place;
  }
  // One text, so that who waits for the place reads all of it.
  std::string notice;
  if (!knows_calls) {
    notice =
        "cria-serve: the chat template shows no form of tool calls that is known here: only calls "
        "that are JSON objects with a name and arguments are found; others stay text of the "
        "answer\n";
  }
  std::fprintf(stderr, "cria-serve: %s, %zu tokens of context, %s, at %s\n%s",
               Printable(engine.file().name()).c_str(), engine.decoder().context_tokens(),
               CountText(engine.memory_plan().options.decoder.num_sequences, "sequence").c_str(),
               Printable(places).c_str(), notice.c_str());
}

// The files of prompts; null without --prefix-cache.
Result<std::unique_ptr<server::PromptFiles>> OpenPrompts(const ServeOptions& options,
                                                         Engine& engine) {
  if (options.prefix_cache.folder.empty()) return nullptr;
  if (options.engine.ranks->num_ranks() > 1) {
    return Fail(ErrorCode::kUsage, "--prefix-cache is for a model on one board");
  }
  return server::PromptFiles::Open({.folder = options.prefix_cache.folder,
                                    .max_bytes = options.prefix_cache.max_bytes,
                                    .on_notice =
                                        [](std::string_view sentence) {
                                          std::fprintf(stderr, "cria-serve: %s\n",
                                                       Printable(sentence).c_str());
                                        }},
                                   engine);
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

  options.engine.other_memory = ServerMemory(options.bounds, options.engine.num_sequences,
                                             options.max_waiting, options.prefix_cache);
  options.engine.other_threads = ServerThreads(options.engine.num_sequences, options.prefix_cache);
  options.engine.num_texts = options.engine.num_sequences;
  // Every sequence may write something that must match a schema.
  options.engine.max_constraints = options.engine.num_sequences;
  CRIA_ASSIGN_OR_RETURN(const std::string model_path, GetModel(options.model, options.engine));
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                        LoadEngine(model_path, options.engine));
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<server::PromptFiles> prompts,
                        OpenPrompts(options, *engine));
  StoredPrompts* const stored = prompts ? &engine->scheduler().UseStore(*prompts) : nullptr;
  ServedPaths paths(*engine, options, prompts.get());
  http.access.open_paths = paths.open_paths();
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<server::HttpServer> server,
                        server::HttpServer::Create(std::move(http), std::move(listeners),
                                                   paths.handler(), options.is_insecure));
  server->Start();
  const ShutdownSignals signals;
  TellPlaces(*engine, server->listeners(), paths.knows_calls());
  server::TellServiceManager("READY=1");

  signals.Wait();
  server::TellServiceManager("STOPPING=1");
  const auto deadline = Clock::now() + std::chrono::seconds(options.shutdown_seconds);
  server->StopAccepting();
  paths.Close(std::chrono::seconds(options.shutdown_seconds));
  // What was generated in time is still sent.
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  server->WaitUntilIdle(std::max(rest, std::chrono::milliseconds(500)));
  if (stored != nullptr) {
    stored->WriteAll(Clock::now() + std::chrono::seconds(options.shutdown_seconds));
  }
  return {};
}

}  // namespace cria::cli
