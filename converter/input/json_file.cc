#include "converter/input/json_file.h"

#include <utility>
#include <vector>

#include "converter/input/whole_file.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;

// Ten times what files of checkpoints have.
constexpr size_t kMaxNesting = 64;
// Twice as many as the largest vocabularies have, and enough for 450,000 tensors of safetensors.
// Limits time and memory.
constexpr size_t kMaxValues = size_t{1} << 22;

// Builds a value from the parser's events, and stops the parser at what JSON allows but a
// checkpoint's file must not have. Takes time in proportion to the text.
class DocumentBuilder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // JSON text has none.
  bool start_object(size_t /*size*/) override { return Open(json::object()); }
  bool start_array(size_t /*size*/) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    const auto [member, is_new] =
        open_.back()->get_ref<json::object_t&>().try_emplace(std::move(name));
    if (!is_new) return Stop(Format("\"{}\" appears twice", Quotable(member->first)));
    member_ = &member->second;
    return true;
  }
  bool parse_error(size_t /*position*/, const std::string& /*last_token*/,
                   const json::exception& exception) override {
    // The parser's sentence quotes the last token, which may be long.
    return Stop(Format("is not JSON ({})", Quotable(exception.what())));
  }

  json& document() { return document_; }
  // What is wrong with the text; empty if nothing is.
  const std::string& problem() const { return problem_; }

 private:
  // Stores a value as the document itself, in the innermost open array, or in the member of the
  // innermost open object whose name was read last. Returns its address, which is valid while the
  // value is open, or null if there are too many values.
  json* Place(json value) {
    if (++num_values_ > kMaxValues) {
      Stop(Format("has more than {} values; it is not a file of a checkpoint", kMaxValues));
      return nullptr;
    }
    if (open_.empty()) return &(document_ = std::move(value));
    if (open_.back()->is_object()) return &(*member_ = std::move(value));
    return &open_.back()->get_ref<json::array_t&>().emplace_back(std::move(value));
  }

  bool Add(json value) { return Place(std::move(value)) != nullptr; }

  bool Open(json container) {
    if (open_.size() == kMaxNesting) {
      return Stop(
          Format("is nested too deeply, with more than {} objects and arrays inside each "
                 "other; it is not a file of a checkpoint",
                 kMaxNesting));
    }
    open_.push_back(Place(std::move(container)));
    return open_.back() != nullptr;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  bool Stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  json document_;
  std::vector<json*> open_;  // Objects and arrays that are not closed yet, outermost first.
  json* member_ = nullptr;
  size_t num_values_ = 0;
  std::string problem_;
};

}  // namespace

Result<json> ParseJsonObject(std::string_view text, std::string_view where) {
  DocumentBuilder builder;
  json::sax_parse(text, &builder);
  if (!builder.problem().empty()) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: {}", where, builder.problem()));
  }
  if (!builder.document().is_object()) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: is not a JSON object", where));
  }
  return std::move(builder.document());
}

Result<json> ReadJsonFile(const std::filesystem::path& path, uint64_t max_bytes) {
  CRIA_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, max_bytes));
  return ParseJsonObject(text, path.string());
}

}  // namespace cria
