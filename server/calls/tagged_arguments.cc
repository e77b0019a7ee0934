// Arguments whose parameters stand between marks.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/calls/argument_reader.h"
#include "server/calls/literal_reader.h"
#include "server/calls/parameter_kind.h"
#include "server/requests/json_body.h"

namespace cria::server {
namespace {

constexpr std::string_view kCdataOpen = "<![CDATA[";
constexpr std::string_view kCdataClose = "]]>";

// How many bytes at the end of the text may begin `mark`.
size_t BegunBytes(std::string_view text, std::string_view mark) {
  for (size_t bytes = std::min(text.size(), mark.size()); bytes > 0; --bytes) {
    if (text.ends_with(mark.substr(0, bytes))) return bytes;
  }
  return 0;
}

class TaggedReader final : public ArgumentReader {
 public:
  TaggedReader(const CallForm& form, const Tool& tool)
      : form_(form),
        closing_(TrimSpace(form.param_close)),
        has_lines_(form.param_name_end.ends_with('\n')) {
    schema_ = TryReadJson(tool.parameters).value_or(Json::object());
  }

  State Take(char byte, std::string& json) override {
    if (held_.size() >= kMaxArgumentBytes) return State::kInvalid;
    held_ += byte;
    switch (place_) {
      case Place::kBetween:
        return TakeBetween(json);
      case Place::kName:
        return TakeName(json);
      case Place::kValue:
        TakeValue(json);
        break;
    }
    return State::kMore;
  }

 private:
  static constexpr size_t kMaxNameBytes = 256;

  enum class Place : uint8_t { kBetween, kName, kValue };

  State TakeBetween(std::string& json) {
    std::string_view text = held_;
    const Match closing = TakeLiteral(form_.call_close, text);
    if (closing == Match::kYes) {
      json += is_first_ ? "{}" : "}";
      return State::kComplete;
    }
    const Match opening = TakeLiteral(form_.param_open, text);
    if (opening == Match::kYes) GoTo(Place::kName);
    return opening == Match::kNo && closing == Match::kNo ? State::kInvalid : State::kMore;
  }

  State TakeName(std::string& json) {
    const size_t end = held_.find(TrimSpace(form_.param_name_end).front());
    if (end == held_.npos) return held_.size() < kMaxNameBytes ? State::kMore : State::kInvalid;
    std::string_view text = std::string_view(held_).substr(end);
    const Match match = TakeLiteral(form_.param_name_end, text);
    if (match != Match::kYes) return match == Match::kNo ? State::kInvalid : State::kMore;
    const std::string name(TrimSpace(std::string_view(held_).substr(0, end)));
    if (name.empty()) return State::kInvalid;
    json += is_first_ ? "{" : ", ";
    is_first_ = false;
    json += Written(name) + ": ";
    kind_ = KindOfParameter(name);
    GoTo(Place::kValue);
    is_line_read_ = is_begun_ = is_cdata_ = has_quote_ = false;
    return State::kMore;
  }

  ParameterKind KindOfParameter(const std::string& name) const {
    const auto properties = schema_.find("properties");
    if (properties == schema_.end()) return ParameterKind::kEither;
    const auto schema = properties->find(name);
    return schema == properties->end() ? ParameterKind::kEither : KindOf(*schema, schema_);
  }

  void TakeValue(std::string& json) {
    if (!is_begun_ && !BeginValue()) return;
    const std::string_view closing = is_cdata_ ? std::string_view(cdata_closing_) : closing_;
    if (held_.ends_with(closing)) {
      held_.resize(held_.size() - closing.size());
      if (has_lines_ && held_.ends_with('\n')) held_.pop_back();
      EndValue(json);
      return GoTo(Place::kBetween);
    }
    if (kind_ != ParameterKind::kText) return;
    // A text is passed on while it comes, but for what may be its end.
    size_t kept = BegunBytes(held_, closing);
    if (has_lines_ && held_.size() > kept && held_[held_.size() - kept - 1] == '\n') ++kept;
    PassText(held_.size() - kept, json);
  }

  // Removes what stands before the value. Returns false as long as more of it may come.
  bool BeginValue() {
    if (has_lines_ && !std::exchange(is_line_read_, true) && held_ == "\n") {
      held_.clear();
      return false;
    }
    if (form_.has_cdata && kCdataOpen.starts_with(held_)) {
      if (held_.size() < kCdataOpen.size()) return false;
      held_.clear();
      is_cdata_ = true;
    }
    is_begun_ = true;
    return true;
  }

  void PassText(size_t bytes, std::string& json) {
    if (!std::exchange(has_quote_, true)) json += '"';
    AppendEscaped(std::string_view(held_).substr(0, bytes), json);
    held_.erase(0, bytes);
  }

  void EndValue(std::string& json) {
    if (kind_ != ParameterKind::kText && !is_cdata_) {
      const auto value = kind_ == ParameterKind::kValue ? ReadLiteral(held_) : TryReadJson(held_);
      if (value) {
        json += Written(*value);
        return;
      }
    }
    PassText(held_.size(), json);
    json += '"';
  }

  void GoTo(Place place) {
    place_ = place;
    held_.clear();
  }

  const CallForm& form_;
  const std::string_view closing_;
  const std::string cdata_closing_ =
      std::string(kCdataClose) + std::string(TrimSpace(form_.param_close));
  const bool has_lines_;
  Json schema_;
  Place place_ = Place::kBetween;
  std::string held_;
  bool is_first_ = true;  // No parameter has come.
  ParameterKind kind_ = ParameterKind::kEither;
  // Whether the first byte behind the name's end was read, which may be a line end that is no part
  // of the value.
  bool is_line_read_ = false;
  bool is_begun_ = false;  // What stands before the value is read.
  bool is_cdata_ = false;
  bool has_quote_ = false;
};

}  // namespace

std::unique_ptr<ArgumentReader> MakeTaggedReader(const CallForm& form, const Tool& tool) {
  return std::make_unique<TaggedReader>(form, tool);
}

}  // namespace cria::server
