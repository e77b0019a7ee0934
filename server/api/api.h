#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "llm/engine.h"
#include "server/http/http_exchange.h"
#include "server/prompts/prompt_files.h"
#include "server/work/work_queue.h"

namespace cria::server {

struct ApiOptions {
  std::string model_name;      // What /v1/models and answers call the model; "": the file's name.
  std::string slot_save_path;  // The folder of POST /slots/{id}; "": there is none.
  std::string version;         // The program's.
  const PromptFiles* prompts = nullptr;  // Where the engine keeps prompts; null: nowhere.
  // Called once, from any thread, when a client asks for a longer context than there is: it is
  // answered all the same.
  std::function<void(size_t wanted_tokens)> on_larger_context = nullptr;
  // Called once, from any thread, when the rest of a prompt is computed again because only its
  // beginning has changed.
  std::function<void(const ChangedBeginning& change)> on_changed_beginning = nullptr;
};

// The paths, each behind its method: "GET /v1/models/*".
std::vector<std::string> ApiPaths();

struct ApiState;

// All paths that clients of OpenAI, llama-server and ollama call. Requests that the model answers
// become jobs of the queue. Thread-safe.
class Api {
 public:
  // The references must outlive the object, and the queue must be closed before it is destroyed.
  Api(Engine& engine, WorkQueue& work, ApiOptions options);
  ~Api();

  // Whether calls of tools are found in the form that the model writes (CallStyle::is_known).
  bool knows_calls() const;

  // Called by the HTTP server. Never throws.
  void Handle(HttpRequest request, std::shared_ptr<HttpAnswer> answer);

 private:
  std::unique_ptr<ApiState> state_;
};

}  // namespace cria::server
