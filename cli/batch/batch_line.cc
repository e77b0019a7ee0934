#include "cli/batch/batch_line.h"

#include <limits>
#include <utility>

#include "cli/input/json_document.h"
#include "cli/input/messages_file.h"
#include "core/format.h"
#include "jinja/text.h"
#include "messages/json_text.h"

namespace cria::cli {
namespace {

using jinja::Kind;
using jinja::Value;

std::unexpected<Error> BadField(std::string_view name, std::string_view problem) {
  return Fail(ErrorCode::kInvalidFile, Format("{} {}", name, problem));
}

// The fields of one line.
class LineReader {
 public:
  LineReader(JsonDocument& document, BatchLine& line, const ChatTemplate& chat_template)
      : document_(document), line_(line), chat_template_(chat_template) {}

  Status Read(const std::string& name, const Value& value) {
    SamplerOptions& sampler = line_.sampler;
    if (value.is(Kind::kNone)) return {};
    if (name == "prompt") return ReadPrompt(value);
    if (name == "messages") return ReadMessageField(value);
    if (name == "max_tokens" || name == "max_completion_tokens") {
      return ReadCount(name, value, line_.max_tokens);
    }
    if (name == "top_k") return ReadCount(name, value, sampler.top_k);
    if (name == "temperature") return ReadReal(name, value, 100.0, sampler.temperature);
    if (name == "top_p") return ReadReal(name, value, 1.0, sampler.top_p);
    if (name == "min_p") return ReadReal(name, value, 1.0, sampler.min_p);
    if (name == "typical_p") return ReadReal(name, value, 1.0, sampler.typical_p);
    if (name == "xtc_probability") return ReadReal(name, value, 1.0, sampler.xtc_probability);
    if (name == "xtc_threshold") return ReadReal(name, value, 1.0, sampler.xtc_threshold);
    if (name == "repeat_penalty") return ReadReal(name, value, 100.0, sampler.repeat_penalty);
    if (name == "presence_penalty") {
      return ReadReal(name, value, 100.0, sampler.presence_penalty, -100.0);
    }
    if (name == "frequency_penalty") {
      return ReadReal(name, value, 100.0, sampler.frequency_penalty, -100.0);
    }
    if (name == "dry_multiplier") return ReadReal(name, value, 100.0, sampler.dry.multiplier);
    if (name == "dry_base") return ReadReal(name, value, 100.0, sampler.dry.base, 1.0);
    if (name == "dry_allowed_length") return ReadCount(name, value, sampler.dry.allowed_length);
    if (name == "seed") return ReadSeed(value);
    if (name == "stop") return ReadStop(value);
    if (name == "json_schema") return ReadSchema(name, value);
    if (name == "response_format") return ReadFormat(value);
    if (name == "id" || name == "custom_id") {
      line_.id = JsonOfValue(document_, value);
      return {};
    }
    return BadField(name, "is not known");
  }

 private:
  Status ReadPrompt(const Value& value) {
    if (!value.is(Kind::kString)) return BadField("prompt", "is not a text");
    line_.prompt = document_.String(value);
    return {};
  }
  Status ReadMessageField(const Value& value) {
    if (!value.is(Kind::kList)) return BadField("messages", "is not a list");
    std::vector<std::string> unknown;
    CRIA_ASSIGN_OR_RETURN(line_.messages,
                          ReadMessages(document_, value, "messages", chat_template_, unknown));
    if (!unknown.empty()) return BadField(unknown.front(), "is not known");
    if (line_.messages.empty()) return BadField("messages", "is empty");
    return {};
  }
  static Status ReadCount(std::string_view name, const Value& value, size_t& count) {
    if (!value.is(Kind::kInt) || value.integer < 0) {
      return BadField(name, "is not a whole number of 0 or more");
    }
    count = static_cast<size_t>(value.integer);
    return {};
  }
  static Status ReadReal(std::string_view name, const Value& value, double most, float& real,
                         double least = 0.0) {
    const double number = value.is(Kind::kFloat) ? value.real
                          : value.is(Kind::kInt) ? static_cast<double>(value.integer)
                                                 : std::numeric_limits<double>::quiet_NaN();
    if (!(number >= least && number <= most)) {
      return BadField(name, Format("is not a number from {} to {}", least, most));
    }
    real = static_cast<float>(number);
    return {};
  }
  Status ReadSeed(const Value& value) {
    if (!value.is(Kind::kInt)) return BadField("seed", "is not a whole number");
    line_.sampler.seed = static_cast<uint64_t>(value.integer);
    return {};
  }
  Status ReadStop(const Value& value) {
    line_.stop.clear();
    if (value.is(Kind::kString)) {
      line_.stop.push_back(document_.String(value));
      return {};
    }
    if (!value.is(Kind::kList)) return BadField("stop", "is neither a text nor a list of texts");
    line_.stop.reserve(value.list->items.size());
    for (const Value& item : value.list->items) {
      if (!item.is(Kind::kString)) return BadField("stop", "has something that is not a text");
      line_.stop.push_back(document_.String(item));
    }
    return {};
  }
  Status ReadSchema(std::string_view name, const Value& value) {
    if (!value.is(Kind::kDict) && !value.is(Kind::kBool)) return BadField(name, "is not a schema");
    line_.schema = WriteJson(JsonOfValue(document_, value));
    return {};
  }
  Status ReadFormat(const Value& value) {
    constexpr const char* kName = "response_format";
    const Value* const type =
        value.is(Kind::kDict) ? jinja::Find(value.dict->entries, "type") : nullptr;
    const std::string text =
        type != nullptr && type->is(Kind::kString) ? document_.String(*type) : "";
    if (text == "text") return {};
    if (text == "json_object") {
      // Other servers take a schema here, too.
      const Value* const schema = jinja::Find(value.dict->entries, "schema");
      if (schema != nullptr) return ReadSchema("response_format.schema", *schema);
      line_.any_json = true;
      return {};
    }
    if (text != "json_schema") {
      return BadField(kName, "has a type other than text, json_object and json_schema");
    }
    const Value* const outer = jinja::Find(value.dict->entries, "json_schema");
    const Value* const schema = outer != nullptr && outer->is(Kind::kDict)
                                    ? jinja::Find(outer->dict->entries, "schema")
                                    : nullptr;
    if (schema == nullptr) return BadField(kName, "has no json_schema with a schema");
    return ReadSchema("response_format.json_schema.schema", *schema);
  }

  JsonDocument& document_;
  BatchLine& line_;
  const ChatTemplate& chat_template_;
};

}  // namespace

Result<BatchLine> ReadBatchLine(std::string_view text, const BatchLine& defaults,
                                const ChatTemplate& chat_template) {
  BatchLine line = defaults;
  JsonDocument document(text);
  CRIA_ASSIGN_OR_RETURN(const Value value, document.Read("the line", "a prompt"));
  if (!value.is(Kind::kDict)) return BadField("the line", "is not an object");
  LineReader reader(document, line, chat_template);
  for (const auto& [name, item] : value.dict->entries) {
    CRIA_RETURN_IF_ERROR(reader.Read(document.String(name), item));
  }
  if (line.prompt.has_value() == !line.messages.empty()) {
    return BadField("the line", "needs either a prompt or messages");
  }
  return line;
}

}  // namespace cria::cli
