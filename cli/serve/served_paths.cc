#include "cli/serve/served_paths.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "server/api/api.h"
#include "server/page/page.h"
#include "server/work/work_queue.h"

namespace cria::cli {
namespace {

// The page's file at this path; null if there is none.
const server::PageFile* FindPageFile(std::string_view path) {
  const auto files = server::PageFiles();
  const auto found = std::ranges::find(files, path, &server::PageFile::path);
  return found == files.end() ? nullptr : &*found;
}

void SendPageFile(const server::PageFile& file, server::HttpAnswer& answer) {
  // A browser asks again each time, so that it never mixes the files of two versions.
  const std::array<server::HttpAnswer::Header, 4> headers = {
      {{"Content-Encoding", std::string(server::PageContentEncoding())},
       {"Content-Security-Policy", std::string(server::PageContentSecurityPolicy())},
       {"Referrer-Policy", "no-referrer"},
       {"Cache-Control", "no-cache"}}};
  answer.Send(200, file.content_type, std::string(file.bytes), headers);
}

// A request is answered although it asks for a longer context than there is.
void TellLargerContext(size_t wanted_tokens, size_t context_tokens) {
  std::fprintf(stderr,
               "cria-serve: a client asks for a context of %zu tokens (num_ctx) and gets the %zu "
               "that there are; -c gives more. This is said once.\n",
               wanted_tokens, context_tokens);
}

// A prompt is computed again because of its beginning.
void TellChangedBeginning(const ChangedBeginning& change) {
  std::fprintf(
      stderr,
      "cria-serve: the tokens %zu to %zu of a prompt differ from those of an earlier one, "
      "and the %zu behind them, which are the same, were computed again: put what changes, "
      "such as the time of day, at the end of the prompt. This is said once.\n",
      change.first + 1, std::max(change.first + 1, change.end), change.num_same);
}

}  // namespace

struct ServedPaths::Parts {
  Parts(server::ModelStore& models, const ServeOptions& options)
      : work(options.engine.num_sequences, options.max_waiting),
        api(models, work,
            {.slot_save_path = options.slot_save_path,
             .version = CRIA_VERSION,
             .on_larger_context = TellLargerContext,
             .on_changed_beginning = TellChangedBeginning}) {}

  server::WorkQueue work;
  server::Api api;
};

ServedPaths::ServedPaths(server::ModelStore& models, const ServeOptions& options)
    : parts_(std::make_unique<Parts>(models, options)) {}

// Jobs use the API.
ServedPaths::~ServedPaths() { parts_->work.Close(std::chrono::milliseconds(0)); }

std::vector<std::string> ServedPaths::open_paths() const {
  std::vector<std::string> paths = {"/health"};
  for (const server::PageFile& file : server::PageFiles()) paths.emplace_back(file.path);
  return paths;
}

server::HttpHandler ServedPaths::handler() {
  return [this](server::HttpRequest request, std::shared_ptr<server::HttpAnswer> answer) {
    if (const auto* const file = FindPageFile(request.path); file && request.method == "GET") {
      return SendPageFile(*file, *answer);
    }
    parts_->api.Handle(std::move(request), std::move(answer));
  };
}

void ServedPaths::Close(std::chrono::milliseconds grace) { parts_->work.Close(grace); }

}  // namespace cria::cli
