#include "converter/hub/model_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "converter/hub/hub_errors.h"
#include "converter/input/json_fields.h"
#include "converter/input/json_file.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria::hub {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxInfoBytes = uint64_t{32} << 20;
constexpr size_t kMaxFiles = 50'000;
constexpr size_t kMaxLicenceBytes = 200;

std::optional<uint64_t> SizeIn(const json& object) {
  const auto size = object.find("size");
  if (size == object.end() || !size->is_number_unsigned()) return std::nullopt;
  return size->get<uint64_t>();
}

std::optional<ExpectedHash> HashIn(const json& object, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto digits = object.find(name);
    if (digits == object.end() || !digits->is_string()) continue;
    return HashOfDigits(digits->get_ref<const std::string&>());
  }
  return std::nullopt;
}

Result<RemoteFile> ReadFile(const json& sibling, std::string_view where) {
  const auto path = sibling.is_object() ? sibling.find("rfilename") : sibling.end();
  if (!sibling.is_object() || path == sibling.end() || !path->is_string()) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: the hub lists a file without a name", where));
  }
  RemoteFile file = {.path = path->get<std::string>()};
  if (!IsSafePath(file.path)) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: the hub lists a file with the name \"{}\", which could lead out of "
                       "the model's folder",
                       where, Quotable(file.path)));
  }
  file.size_bytes = SizeIn(sibling);
  // For a large file, the other id is that of a pointer to it, not of its content.
  if (const auto lfs = sibling.find("lfs"); lfs != sibling.end() && lfs->is_object()) {
    file.hash = HashIn(*lfs, {"sha256", "oid"});
    if (const auto size = SizeIn(*lfs)) file.size_bytes = size;
  } else {
    file.hash = HashIn(sibling, {"blobId", "oid"});
  }
  return file;
}

// "false", or how users get access: "auto" or "manual".
bool IsGated(const json& info) {
  const auto gated = info.find("gated");
  if (gated == info.end()) return false;
  return gated->is_string() || (gated->is_boolean() && gated->get<bool>());
}

// A model card has one licence or a list of them.
std::string LicenceIn(const json& info) {
  const auto card = info.find("cardData");
  if (card == info.end() || !card->is_object()) return "";
  const auto text_of = [&](const char* field) -> std::string {
    const auto value = card->find(field);
    if (value == card->end()) return "";
    if (value->is_string()) return value->get<std::string>();
    std::string all;
    for (const json& one : value->is_array() ? *value : json::array()) {
      if (one.is_string()) all += (all.empty() ? "" : ", ") + one.get<std::string>();
    }
    return all;
  };
  std::string licence = text_of("license");
  // Models with a licence of their own say "other", and then its name.
  if (const std::string name = text_of("license_name"); licence == "other" && !name.empty()) {
    licence = name;
  }
  return Quotable(std::string_view(licence).substr(0, kMaxLicenceBytes));
}

bool IsCommit(std::string_view text) {
  const auto hash = HashOfDigits(text);
  return hash && hash->kind == ExpectedHash::Kind::kGitBlob;
}

}  // namespace

const RemoteFile* ModelInfo::Find(std::string_view path) const {
  const auto found = std::ranges::find(files, path, &RemoteFile::path);
  return found == files.end() ? nullptr : &*found;
}

Result<ModelInfo> ParseModelInfo(std::string_view text, std::string_view where) {
  CRIA_ASSIGN_OR_RETURN(const json info,
                        ParseJsonObject(text, Format("{}: the hub's answer", where)));
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: the hub's answer {}", where, what));
  };
  const auto commit = info.find("sha");
  if (commit == info.end() || !commit->is_string() ||
      !IsCommit(commit->get_ref<const std::string&>())) {
    return bad("names no commit");
  }
  ModelInfo result = {
      .commit = commit->get<std::string>(), .licence = LicenceIn(info), .is_gated = IsGated(info)};
  const auto siblings = info.find("siblings");
  if (siblings == info.end() || !siblings->is_array()) return bad("has no list of files");
  if (siblings->size() > kMaxFiles) {
    return bad(Format("lists {} files; at most {} are supported", siblings->size(), kMaxFiles));
  }
  std::set<std::string_view> paths;
  result.files.reserve(siblings->size());  // `paths` has views of the names.
  for (const json& sibling : *siblings) {
    CRIA_ASSIGN_OR_RETURN(RemoteFile file, ReadFile(sibling, where));
    result.files.push_back(std::move(file));
    if (!paths.insert(result.files.back().path).second) {
      return bad(Format("lists the file \"{}\" twice", Quotable(result.files.back().path)));
    }
  }
  return result;
}

Result<ModelInfo> FetchModelInfo(HubClient& client, const CheckpointName& name) {
  const std::string where = "hf:" + name.repository();
  const std::string path = Format("/api/models/{}/revision/{}?blobs=true", name.repository(),
                                  PercentEncode(name.revision, /*keep_slashes=*/false));
  HubAnswer answer;
  CRIA_ASSIGN_OR_RETURN(const std::string text, client.GetText(path, kMaxInfoBytes, &answer));
  if (!answer.answer.is_success() || answer.answer.breakdown) {
    return FailureOf(answer.answer, client, name, {});
  }
  CRIA_ASSIGN_OR_RETURN(ModelInfo info, ParseModelInfo(text, where));
  if (IsCommit(name.revision) && info.commit != name.revision) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: the hub answered with commit {} instead of {}",
                                                where, info.commit, name.revision));
  }
  return info;
}

std::string FilePathOnHub(const CheckpointName& name, const std::string& commit,
                          std::string_view file) {
  return Format("/{}/resolve/{}/{}", name.repository(), commit,
                PercentEncode(file, /*keep_slashes=*/true));
}

}  // namespace cria::hub
