#include "converter/json_file.h"

#include <format>
#include <span>
#include <unordered_set>
#include <vector>

#include "core/platform.h"

namespace cria {
namespace {

// Notices a name that comes twice in one object, while the parser goes through it.
class DuplicateKeyFinder {
 public:
  void Observe(nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open_objects_.emplace_back();
    if (event == Event::object_end) open_objects_.pop_back();
    if (event == Event::key && duplicate_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open_objects_.back().insert(key).second) duplicate_ = key;
    }
  }
  const std::string& duplicate() const { return duplicate_; }

 private:
  std::vector<std::unordered_set<std::string>> open_objects_;
  std::string duplicate_;
};

}  // namespace

Result<nlohmann::json> ParseJsonObject(std::string_view text, std::string_view where) {
  DuplicateKeyFinder finder;
  nlohmann::json parsed;
  try {
    parsed = nlohmann::json::parse(
        text, [&finder](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
          finder.Observe(event, value);
          return true;
        });
  } catch (const nlohmann::json::exception& exception) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: is not JSON ({})", where, exception.what()));
  }
  if (!finder.duplicate().empty()) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: \"{}\" appears twice", where, finder.duplicate()));
  }
  if (!parsed.is_object()) {
    return Fail(ErrorCode::kInvalidFile, std::format("{}: is not a JSON object", where));
  }
  return parsed;
}

Result<nlohmann::json> ReadJsonFile(const std::filesystem::path& path, uint64_t most_bytes) {
  CRIA_ASSIGN_OR_RETURN(const auto file, platform::File::Open(path.string()));
  if (file.size_bytes() > most_bytes) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: is {} bytes, more than the {} that such a file may have",
                            file.path(), file.size_bytes(), most_bytes));
  }
  std::string text(file.size_bytes(), '\0');
  CRIA_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text))));
  return ParseJsonObject(text, file.path());
}

}  // namespace cria
