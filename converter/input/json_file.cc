#include "converter/input/json_file.h"

#include <format>
#include <span>
#include <system_error>
#include <unordered_set>
#include <vector>

#include "core/platform.h"

namespace cria {
namespace {

// No file of a checkpoint needs a tenth of it.
constexpr int kMaxNesting = 64;

// Follows the parser and notices what it does not mind.
class ParseObserver {
 public:
  // Whether the parser should keep what it has come to.
  bool Observe(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    // The parser does not report the ends of what it drops, so that nothing is counted from there.
    const bool opens = event == Event::object_start || event == Event::array_start;
    is_too_deep_ = is_too_deep_ || (opens && depth >= kMaxNesting);
    if (is_too_deep_) return false;
    if (event == Event::object_start) open_objects_.emplace_back();
    if (event == Event::object_end) open_objects_.pop_back();
    if (event == Event::key && duplicate_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open_objects_.back().insert(key).second) duplicate_ = key;
    }
    return true;
  }
  bool is_too_deep() const { return is_too_deep_; }
  const std::string& duplicate() const { return duplicate_; }

 private:
  std::vector<std::unordered_set<std::string>> open_objects_;
  std::string duplicate_;
  bool is_too_deep_ = false;
};

// The parser's sentence, which quotes what it read last, however long that is.
std::string Shortened(std::string_view sentence) {
  constexpr size_t kMaxBytes = 200;
  if (sentence.size() <= kMaxBytes) return std::string(sentence);
  return std::string(sentence.substr(0, kMaxBytes)) + "...";
}

}  // namespace

bool FileExists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Result<nlohmann::json> ParseJsonObject(std::string_view text, std::string_view where) {
  ParseObserver observer;
  nlohmann::json parsed;
  std::string parse_error;
  try {
    parsed = nlohmann::json::parse(
        text, [&observer](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
          return observer.Observe(depth, event, value);
        });
  } catch (const nlohmann::json::exception& exception) {
    parse_error = exception.what();
  }
  if (observer.is_too_deep()) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: is nested too deeply, with more than {} objects and arrays inside "
                            "each other; it is not a file of a checkpoint",
                            where, kMaxNesting));
  }
  if (!parse_error.empty()) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: is not JSON ({})", where, Shortened(parse_error)));
  }
  if (!observer.duplicate().empty()) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: \"{}\" appears twice", where, observer.duplicate()));
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
