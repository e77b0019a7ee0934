#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/http_server.h"

namespace cria {

// A hub with one model. It answers as Hugging Face's does. Its fields may be changed before
// the first request.
class FakeHub {
 public:
  static constexpr const char* kRepository = "tiny-org/tiny-llama";
  static constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

  FakeHub() = default;
  FakeHub(const FakeHub&) = delete;
  FakeHub& operator=(const FakeHub&) = delete;

  // Adds all files of a folder.
  void AddFolder(const std::string& folder);

  // Starts the server at the first call.
  std::string url();
  std::vector<support::HttpRequest> requests();
  // How many requests there were whose target has this text.
  size_t NumRequests(const std::string& text);

  std::string repository = kRepository;
  std::map<std::string, std::string> files;
  // Files in the storage of large files: the hub redirects to it, and gives their SHA-256.
  std::vector<std::string> large_files = {"model.safetensors"};
  nlohmann::json gated = false;
  nlohmann::json card = {{"license", "apache-2.0"}};
  std::string token;                  // Files are given only to those who send it.
  std::string refusal = "GatedRepo";  // X-Error-Code of other requests for files; may be empty.
  int refusal_status = 401;
  bool gives_sizes = true;  // In the list of files; the headers of files always have them.
  bool knows_ranges = true;
  // Called with each answer to a request for a file's content, which it may change.
  std::function<void(const support::HttpRequest&, support::HttpResponse&)> change_file;
  // Called with each answer of the API.
  std::function<void(const support::HttpRequest&, support::HttpResponse&)> change_api;

 private:
  support::HttpResponse Answer(const support::HttpRequest& request);
  support::HttpResponse AnswerApi() const;
  support::HttpResponse AnswerFile(const support::HttpRequest& request, const std::string& name);
  support::HttpResponse AnswerContent(const support::HttpRequest& request,
                                      const std::string& name) const;
  bool IsLarge(const std::string& name) const;

  std::mutex mutex_;
  // Last, so that no request is answered after the other fields are gone.
  std::optional<support::HttpServer> server_;
};

// SHA-256, and git's id of the content.
std::string Sha256Of(const std::string& content);
std::string GitIdOf(const std::string& content);

}  // namespace cria
