#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/flags/server_options.h"
#include "llm/engine.h"
#include "server/http/http_bounds.h"
#include "server/models/model_store.h"

namespace cria::cli {

struct ServeOptions {
  std::vector<std::string> models;  // As FindNamedModel takes them.
  bool agrees = false;              // Nothing is asked before models are downloaded or converted.
  std::string models_folder;        // Has more model files; empty: none.
  // How long an idle one of several models stays loaded.
  server::ModelStore::Clock::duration keep_alive = server::ModelStore::kDefaultKeepAlive;
  std::string alias;  // The only model's name for clients; empty: that of the model.
  EngineOptions engine;

  std::string host = "127.0.0.1";
  uint32_t port = 8080;
  std::string unix_socket;  // Not empty: instead of host and port.
  std::string api_key_path;
  bool is_insecure = false;
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allowed_origins;

  std::string slot_save_path;
  PrefixCacheOptions prefix_cache;
  server::HttpBounds bounds;
  size_t max_waiting = kServerQueue;
  uint32_t timeout_seconds = 30;
  uint32_t shutdown_seconds = 10;
};

void AddServeOptions(CommandLine& program, ServeOptions& options);

}  // namespace cria::cli
