// Schemas with instances that are valid and others that are not: our own, and the official test
// suite of JSON Schema, which is external test data.

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "golden/test_data.h"
#include "grammar/expression_texts.h"
#include "grammar/json_schema.h"
#include "support/files.h"
#include "support/paths.h"

namespace cria::grammar {
namespace {

using Json = nlohmann::ordered_json;

// Where instances that the suite calls valid are refused, or the reverse, by "FILE: GROUP: TEST",
// or "FILE: GROUP" for all tests of a group.
const std::map<std::string, std::string> kExceptions = {
    {"optional/bignum.json: integer", "numbers have at most 20 digits before the point"},
    {"optional/bignum.json: number", "numbers have at most 20 digits before the point"},
    {"optional/float-overflow.json", "numbers have at most 20 digits before the point"},
    {"optional/format/date-time.json: validation of date-time strings: a valid date-time with a "
     "leap second, with minus offset",
     "leap seconds are read only in UTC"},
    {"optional/format/time.json: validation of time strings: valid leap second, positive "
     "time-offset",
     "leap seconds are read only in UTC"},
    {"optional/format/time.json: validation of time strings: valid leap second, large positive "
     "time-offset",
     "leap seconds are read only in UTC"},
    {"optional/format/time.json: validation of time strings: valid leap second, negative "
     "time-offset",
     "leap seconds are read only in UTC"},
    {"optional/format/time.json: validation of time strings: valid leap second, large negative "
     "time-offset",
     "leap seconds are read only in UTC"},
    {"vocabulary.json: schema that uses custom metaschema with with no validation vocabulary",
     "every schema is read as draft 2020-12 with all vocabularies"},
};

// By this, the suite says that formats are not checked. Here they are, as the specification allows.
constexpr std::string_view kFormatsAreAnnotations = "is only an annotation by default";

bool IsCheckedFormat(const std::string& format) {
  static const std::set<std::string> formats = {"date", "time",        "date-time", "duration",
                                                "uuid", "ipv4",        "ipv6",      "email",
                                                "uri",  "json-pointer"};
  return formats.contains(format);
}

// Keywords that schemas are refused for.
constexpr const char* kRefusedKeywords[] = {
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "uniqueItems",
    "multipleOf",
    // To other documents.
    "$ref",
    // Where more properties are demanded than are named.
    "minProperties",
};

// The names of properties in the order in which a schema has them: those of `properties` and of
// constants, and, if `is_demanded`, those that other keywords demand.
void AddNames(const Json& schema, bool is_demanded, std::vector<std::string>* names) {
  if (schema.is_array()) {
    for (const Json& part : schema) AddNames(part, is_demanded, names);
  }
  if (!schema.is_object()) return;
  const auto add_keys = [names](const Json& object) {
    if (!object.is_object()) return;
    for (const auto& [name, part] : object.items()) names->push_back(name);
  };
  const auto add_items = [names](const Json& list) {
    if (!list.is_array()) return;
    for (const Json& name : list) {
      if (name.is_string()) names->push_back(name);
    }
  };
  for (const auto& [key, value] : schema.items()) {
    if (!is_demanded) {
      if (key == "properties" || key == "const") add_keys(value);
      if (key == "enum" && value.is_array()) {
        for (const Json& constant : value) add_keys(constant);
      }
    } else if (key == "required") {
      add_items(value);
    } else if (key.starts_with("depende") && value.is_object()) {
      for (const auto& [name, demanded] : value.items()) {
        names->push_back(name);
        add_items(demanded);
      }
    }
    AddNames(value, is_demanded, names);
  }
}

// Values as the constraint wants them, with properties in the order in which a schema names them.
class Writer {
 public:
  enum class Spacing { kNone, kSpaces, kLines };

  Writer(std::vector<std::string> names, Spacing spacing)
      : names_(std::move(names)), spacing_(spacing) {}

  std::string Write(const Json& value, size_t depth = 0) const {
    if (value.is_string()) return '"' + JsonOf(value.get<std::string>()) + '"';
    if (value.is_number_float()) return Number(value.get<double>());
    if (!value.is_structured()) return value.dump();
    std::vector<std::string> parts;
    if (value.is_array()) {
      for (const Json& item : value) parts.push_back(Write(item, depth + 1));
    } else {
      for (const std::string& name : Ordered(value)) {
        parts.push_back('"' + JsonOf(name) + (spacing_ == Spacing::kNone ? "\":" : "\": ") +
                        Write(value[name], depth + 1));
      }
    }
    std::string text;
    for (const std::string& part : parts) {
      if (!text.empty()) text += spacing_ == Spacing::kSpaces ? ", " : ",";
      if (spacing_ == Spacing::kLines) text += '\n' + std::string(2 * depth + 2, ' ');
      text += part;
    }
    if (spacing_ == Spacing::kLines && !parts.empty()) text += '\n' + std::string(2 * depth, ' ');
    return value.is_array() ? '[' + text + ']' : '{' + text + '}';
  }

 private:
  static std::string Number(double number) {
    std::string buffer(400, ' ');
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                   std::chars_format::fixed);
    return {buffer.data(), end.ptr};
  }

  std::vector<std::string> Ordered(const Json& object) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : object.items()) names.push_back(name);
    std::stable_sort(names.begin(), names.end(), [this](const auto& a, const auto& b) {
      return std::find(names_.begin(), names_.end(), a) <
             std::find(names_.begin(), names_.end(), b);
    });
    return names;
  }

  std::vector<std::string> names_;
  Spacing spacing_;
};

struct Figures {
  int accepted = 0;
  int refused = 0;
  int refused_schemas = 0;
  int contradictions = 0;
};

class JsonSchemaSuiteTest : public testing::Test {
 protected:
  // What is wrong with the place; an exception of this name is used up.
  void Report(const std::string& place, const std::string& what) {
    for (const auto& [name, reason] : kExceptions) {
      if (place != name && !place.starts_with(name + ": ")) continue;
      used_.insert(name);
      return;
    }
    ADD_FAILURE() << place << ": " << what;
  }

  void CheckFolder(const std::filesystem::path& folder) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".json") continue;
      const std::string file = entry.path().lexically_relative(folder).string();
      // Other formats are annotations.
      if (file.starts_with("optional/format/") && !IsCheckedFormat(entry.path().stem())) continue;
      for (const Json& group : Json::parse(support::ReadFile(entry.path()))) {
        CheckGroup(file + ": " + group["description"].get<std::string>(), group);
      }
    }
  }

  void CheckGroup(const std::string& place, const Json& group) {
    const std::string schema = group["schema"].dump();
    ExpressionTexts texts(size_t{16} << 20);
    const Result<Node> node = ReadJsonSchema(texts.expressions(), schema);
    if (!node) {
      const std::string& error = node.error().message();
      if (error.contains("contradiction")) {
        for (const Json& test : group["tests"]) {
          if (test["valid"].get<bool>()) Report(place, error);
        }
        ++figures_.contradictions;
        return;
      }
      const bool is_named = std::any_of(
          std::begin(kRefusedKeywords), std::end(kRefusedKeywords), [&](const char* keyword) {
            return error.contains("has '" + std::string(keyword) + "', which");
          });
      if (!is_named) Report(place, error);
      ++figures_.refused_schemas;
      return;
    }
    const Status begun = texts.Begin(*node);
    if (!begun) return Report(place, begun.error().message());
    std::vector<std::string> names;
    AddNames(group["schema"], /*is_demanded=*/false, &names);
    AddNames(group["schema"], /*is_demanded=*/true, &names);
    for (const Json& test : group["tests"]) {
      const std::string name = place + ": " + test["description"].get<std::string>();
      if (name.ends_with(kFormatsAreAnnotations) && IsCheckedFormat(group["schema"]["format"])) {
        CheckInvalid(name, texts, test["data"]);
        continue;
      }
      if (test["valid"].get<bool>()) {
        CheckValid(name, texts, test["data"], names);
      } else {
        CheckInvalid(name, texts, test["data"]);
      }
    }
  }

  void CheckValid(const std::string& name, ExpressionTexts& texts, const Json& value,
                  const std::vector<std::string>& names) {
    for (const auto spacing :
         {Writer::Spacing::kNone, Writer::Spacing::kSpaces, Writer::Spacing::kLines}) {
      const std::string text = Writer(names, spacing).Write(value);
      if (!texts.Matches(text)) return Report(name, "refuses " + text);
    }
    ++figures_.accepted;
  }

  // In any order of the properties that are named first.
  void CheckInvalid(const std::string& name, ExpressionTexts& texts, const Json& value) {
    std::vector<std::string> order;
    if (value.is_object()) {
      for (const auto& [key, part] : value.items()) order.push_back(key);
    }
    std::sort(order.begin(), order.end());
    if (order.size() > 5) order.resize(5);
    do {
      const std::string text = Writer(order, Writer::Spacing::kNone).Write(value);
      if (texts.Matches(text)) return Report(name, "accepts " + text);
    } while (std::next_permutation(order.begin(), order.end()));
    ++figures_.refused;
  }

  Figures figures_;
  std::set<std::string> used_;
};

TEST_F(JsonSchemaSuiteTest, AgreesAboutOwnInstances) {
  CheckFolder(support::SourcePath("tests/grammar/schema_suite"));
  EXPECT_TRUE(used_.empty());
  EXPECT_GT(figures_.accepted, 80);
  EXPECT_GT(figures_.refused, 100);
  EXPECT_EQ(figures_.refused_schemas, 3);
  EXPECT_EQ(figures_.contradictions, 2);
}

TEST_F(JsonSchemaSuiteTest, AgreesAboutInstances) {
  CRIA_NEEDS_TEST_DATA("json-schema-test-suite");
  CheckFolder(ExternalTestData() / "json-schema-test-suite/tests/draft2020-12");
  for (const auto& [name, reason] : kExceptions) {
    EXPECT_TRUE(used_.contains(name)) << "is no exception: " << name;
  }
  std::printf("%d accepted, %d refused, %d schemas refused, %d contradictions\n", figures_.accepted,
              figures_.refused, figures_.refused_schemas, figures_.contradictions);
  EXPECT_GT(figures_.accepted, 700);
  EXPECT_GT(figures_.refused, 600);
}

}  // namespace
}  // namespace cria::grammar
