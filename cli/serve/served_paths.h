#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cli/serve/serve_options.h"
#include "server/http/http_exchange.h"
#include "server/models/model_store.h"

namespace cria::cli {

// What the server has at its paths: the API, and the page with its files.
class ServedPaths {
 public:
  // The models must outlive it.
  ServedPaths(server::ModelStore& models, const ServeOptions& options);
  ServedPaths(const ServedPaths&) = delete;
  ServedPaths& operator=(const ServedPaths&) = delete;
  ~ServedPaths();

  // Paths that need no key: whether the server is alive, and the page, which asks for the key.
  std::vector<std::string> open_paths() const;
  // Must not be called after this object is destroyed.
  server::HttpHandler handler();
  // Refuses what waits, and ends what runs, at the latest after `grace`.
  void Close(std::chrono::milliseconds grace);

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace cria::cli
