#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cli/serve/serve_options.h"
#include "llm/engine.h"
#include "server/http/http_exchange.h"
#include "server/prompts/prompt_files.h"

namespace cria::cli {

// What the server has at its paths: the API, and the page with its files.
class ServedPaths {
 public:
  // The engine must outlive it, and so must `prompts`, which may be null.
  ServedPaths(Engine& engine, const ServeOptions& options, const server::PromptFiles* prompts);
  ServedPaths(const ServedPaths&) = delete;
  ServedPaths& operator=(const ServedPaths&) = delete;
  ~ServedPaths();

  // Paths that need no key: whether the server is alive, and the page, which asks for the key.
  std::vector<std::string> open_paths() const;
  // See server::Api.
  bool knows_calls() const;
  // Must not be called after this object is destroyed.
  server::HttpHandler handler();
  // Refuses what waits, and ends what runs, at the latest after `grace`.
  void Close(std::chrono::milliseconds grace);

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace cria::cli
