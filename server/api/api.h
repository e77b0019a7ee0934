#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "llm/changed_beginning.h"
#include "server/http/http_exchange.h"
#include "server/models/model_store.h"
#include "server/work/work_queue.h"

namespace cria::server {

struct ApiOptions {
  std::string slot_save_path;  // The folder of POST /slots/{id}; "": there is none.
  std::string version;         // The program's.
  // Called once, from any thread, when a client asks for a longer context than there is: it is
  // answered all the same.
  std::function<void(size_t wanted_tokens, size_t context_tokens)> on_larger_context = nullptr;
  // Called once, from any thread, when the rest of a prompt is computed again because only its
  // beginning has changed.
  std::function<void(const ChangedBeginning& change)> on_changed_beginning = nullptr;
};

// The paths, each behind its method: "GET /v1/models/*".
std::vector<std::string> ApiPaths();
// The first path of each handler: other names of the same are left out.
std::vector<std::string> ApiPathsOfHandlers();

// The table of the paths in Markdown, as server/README.md has it.
std::string ApiPathTable();

struct ApiState;

// All paths that clients of OpenAI, llama-server and ollama call. Requests that the model answers
// become jobs of the queue. Thread-safe.
class Api {
 public:
  // The sources of the models are ServedSource; if there is one alone, it is loaded, and stays so.
  // The references must outlive the object, and the queue must be closed before it is destroyed.
  Api(ModelStore& models, WorkQueue& work, ApiOptions options);
  ~Api();

  // Called by the HTTP server. Never throws.
  void Handle(HttpRequest request, std::shared_ptr<HttpAnswer> answer);

 private:
  std::unique_ptr<ApiState> state_;
};

}  // namespace cria::server
