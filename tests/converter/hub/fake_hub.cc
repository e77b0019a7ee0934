#include "converter/hub/fake_hub.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>
#include <string_view>

#include "converter/hub/content_hash.h"
#include "core/format.h"
#include "support/files.h"

namespace cria {
namespace {

using nlohmann::json;
using support::HttpRequest;
using support::HttpResponse;

std::string HashOf(hub::ExpectedHash::Kind kind, const std::string& content) {
  hub::ContentHash hash(kind, content.size());
  hash.Add(std::as_bytes(std::span(content)));
  return hash.Finish();
}

}  // namespace

std::string Sha256Of(const std::string& content) {
  return HashOf(hub::ExpectedHash::Kind::kSha256, content);
}

std::string GitIdOf(const std::string& content) {
  return HashOf(hub::ExpectedHash::Kind::kGitBlob, content);
}

void FakeHub::AddFolder(const std::string& folder) {
  for (const std::string& name : support::FileNames(folder)) {
    files[name] = support::ReadFile(std::filesystem::path(folder) / name);
  }
}

std::string FakeHub::url() {
  if (!server_) server_.emplace([this](const HttpRequest& request) { return Answer(request); });
  return server_->url();
}

std::vector<HttpRequest> FakeHub::requests() {
  return server_ ? server_->requests() : std::vector<HttpRequest>();
}

size_t FakeHub::NumRequests(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      requests(), [&](const HttpRequest& request) { return request.target.contains(text); }));
}

bool FakeHub::IsLarge(const std::string& name) const {
  return std::ranges::contains(large_files, name);
}

HttpResponse FakeHub::AnswerApi() const {
  json siblings = json::array();
  for (const auto& [name, content] : files) {
    json sibling = {{"rfilename", name}};
    if (gives_sizes) {
      sibling["size"] = content.size();
      // For a large file, this is the id of a pointer, which says nothing about the content.
      sibling["blobId"] = IsLarge(name) ? GitIdOf("a pointer") : GitIdOf(content);
      if (IsLarge(name)) {
        sibling["lfs"] = {
            {"sha256", Sha256Of(content)}, {"size", content.size()}, {"pointerSize", 134}};
      }
    }
    siblings.push_back(sibling);
  }
  return {.body = json({{"id", repository},
                        {"sha", kCommit},
                        {"gated", gated},
                        {"cardData", card},
                        {"siblings", siblings}})
                      .dump()};
}

HttpResponse FakeHub::AnswerContent(const HttpRequest& request, const std::string& name) const {
  HttpResponse response = {.body = files.at(name)};
  constexpr std::string_view kUnit = "bytes=";
  const std::string range = request.header("range");
  if (!knows_ranges || !range.starts_with(kUnit)) return response;
  size_t first = 0;
  std::from_chars(range.data() + kUnit.size(), range.data() + range.size(), first);
  const size_t total = response.body.size();
  if (first >= total) return {.status = 416};
  response.status = 206;
  response.headers.emplace_back("Content-Range", Format("bytes {}-{}/{}", first, total - 1, total));
  response.body.erase(0, first);
  return response;
}

HttpResponse FakeHub::AnswerFile(const HttpRequest& request, const std::string& name) {
  if (!token.empty() && request.header("authorization") != "Bearer " + token) {
    HttpResponse response = {.status = refusal_status};
    if (!refusal.empty()) response.headers.emplace_back("X-Error-Code", refusal);
    return response;
  }
  if (!files.contains(name)) return {.status = 404, .headers = {{"X-Error-Code", "EntryNotFound"}}};
  const std::string& content = files.at(name);
  if (IsLarge(name)) {
    return {.status = 302,
            .headers = {{"X-Linked-Size", std::to_string(content.size())},
                        {"X-Linked-Etag", '"' + Sha256Of(content) + '"'},
                        {"ETag", "\"of-the-redirect\""},
                        {"X-Repo-Commit", kCommit},
                        {"Location", "/storage/" + name}}};
  }
  HttpResponse response = AnswerContent(request, name);
  response.headers.emplace_back("ETag", '"' + GitIdOf(content) + '"');
  response.headers.emplace_back("X-Repo-Commit", kCommit);
  if (change_file) change_file(request, response);
  return response;
}

HttpResponse FakeHub::Answer(const HttpRequest& request) {
  const std::lock_guard lock(mutex_);
  const std::string api = Format("/api/models/{}/revision/", repository);
  const std::string resolve = Format("/{}/resolve/{}/", repository, kCommit);
  const std::string storage = "/storage/";
  if (request.target.starts_with(api)) {
    HttpResponse response = {.status = 404, .headers = {{"X-Error-Code", "RevisionNotFound"}}};
    for (const char* revision : {"main", "refs%2Fpr%2F1", kCommit}) {
      if (request.target == api + revision + "?blobs=true") response = AnswerApi();
    }
    if (change_api) change_api(request, response);
    return response;
  }
  if (request.target.starts_with(resolve)) {
    return AnswerFile(request, request.target.substr(resolve.size()));
  }
  if (request.target.starts_with(storage)) {
    const std::string name = request.target.substr(storage.size());
    HttpResponse response = AnswerContent(request, name);
    response.headers.emplace_back("ETag", "\"of-the-storage\"");
    if (change_file) change_file(request, response);
    return response;
  }
  return {.status = 401, .headers = {{"X-Error-Code", "RepoNotFound"}}};
}

}  // namespace cria
