// Speed of constraints: constraint_benchmark CHECKPOINT… [--benchmark_filter=…], each a folder or
// file that cria-convert takes; without weights is enough. How long it takes to sort the
// vocabulary, to read a constraint, and to decide which tokens may come next after the beginning of
// a text: when all states are known but no mask is kept, and in `first_ms` when no state is. And
// what the first tokens of an answer take of which nothing is known before, in processor time:
// `answer` without a limit, `limited` where the last of them must end the text.

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/open_checkpoint.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "grammar/automaton.h"
#include "grammar/constraint_source.h"
#include "grammar/matcher.h"
#include "grammar/token_masks.h"
#include "grammar/token_table.h"
#include "text/tokenizer.h"

namespace cria {
namespace {

using grammar::ConstraintKind;

constexpr std::string_view kSchema = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string"},
    "short_name": {"type": "string", "maxLength": 5000},
    "kind": {"enum": ["alpaca", "guanaco", "llama", "vicuña"]},
    "born": {"type": "string", "format": "date"},
    "weights": {"type": "array", "items": {"type": "number", "minimum": 0}}
  },
  "required": ["name", "short_name", "kind", "born", "weights"],
  "additionalProperties": false
})";

struct Case {
  const char* name;
  ConstraintKind kind;
  std::string_view source;
  std::string_view text;  // So far.
};

constexpr Case kCases[] = {
    {"json_begin", ConstraintKind::kJson, "", ""},
    {"json_string", ConstraintKind::kJson, "", R"({"name": "A )"},
    {"json_number", ConstraintKind::kJson, "", "[12"},
    {"schema_string", ConstraintKind::kJsonSchema, kSchema, R"({"name": "A )"},
    {"schema_counted_string", ConstraintKind::kJsonSchema, kSchema,
     R"({"name": "Al", "short_name": "A )"},
    {"schema_enum", ConstraintKind::kJsonSchema, kSchema,
     R"({"name": "Al", "short_name": "A", "kind": ")"},
    {"regex_words", ConstraintKind::kRegex, "(\\p{L}+[ ,.])*", "Lamas eat grass."},
    {"gbnf_lines", ConstraintKind::kGbnf, "root ::= (\"- \" [^\\n]+ \"\\n\")+", "- hay\n- g"},
};

// A constraint and a text that it allows, for AnswerSpeed.
struct Answer {
  const char* name;
  ConstraintKind kind;
  std::string_view source;
  std::string_view text;
};

constexpr Answer kAnswers[] = {
    {"counted", ConstraintKind::kJsonSchema, R"({
  "type": "object",
  "properties": {
    "title": {"type": "string", "minLength": 10},
    "text": {"type": "string", "minLength": 60, "maxLength": 200},
    "keywords": {"type": "array", "items": {"type": "string", "minLength": 3, "maxLength": 20}}
  },
  "required": ["title", "text", "keywords"],
  "additionalProperties": false
})",
     R"({"title": "The llama on the hill", "text": "A llama lived on a hill above the village, )"
     R"(and every morning it looked down at the people who went to the market, until one day it )"
     R"(followed them.", "keywords": ["llama", "village", "market"]})"},
    {"long_minimum", ConstraintKind::kJsonSchema,
     R"({"type": "object", "required": ["story"], "properties": {"story": {"type": "string",
         "minLength": 400}}})",
     R"({"story": "A llama lived on a hill above the village, and every morning it looked down at )"
     R"(the people who went to the market, until one day it followed them. There were carrots and )"
     R"(apples, and a man with a drum, and children who had never seen a llama before. It bought )"
     R"(nothing, because it had no money, but it came home with a hat.)"},
    {"short_strings", ConstraintKind::kJsonSchema,
     R"({"type": "array", "items": {"type": "object", "required": ["id", "name", "note"],
         "properties": {"id": {"type": "string", "minLength": 4, "maxLength": 6},
                        "name": {"type": "string", "minLength": 2, "maxLength": 12},
                        "note": {"type": "string", "maxLength": 30}},
         "additionalProperties": false}})",
     R"([{"id": "ab-12", "name": "Alpaca", "note": "Likes to stand in the rain."},)"
     R"( {"id": "xy-993", "name": "Guanaco", "note": "Runs."},)"
     R"( {"id": "q7-0", "name": "Vicuña", "note": "Has the finest wool of all."}])"},
    {"patterns", ConstraintKind::kJsonSchema,
     R"({"type": "object", "required": ["code", "slug", "mail", "born", "uuid", "name"],
         "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
           "slug": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
           "mail": {"type": "string", "format": "email"},
           "born": {"type": "string", "format": "date-time"},
           "uuid": {"type": "string", "format": "uuid"},
           "name": {"type": "string", "pattern": "^\\p{L}{3,20}( \\p{L}{3,20})*$"}}})",
     R"({"code": "AB-1234", "slug": "a-llama-on-a-hill", "mail": "llama@example.org",)"
     R"( "born": "2019-04-01T10:20:30Z", "uuid": "123e4567-e89b-12d3-a456-426614174000",)"
     R"( "name": "Lama Pacos Vicugna"})"},
    {"nested", ConstraintKind::kJsonSchema,
     R"({"$defs": {"animal": {"type": "object", "required": ["kind", "age", "weight"],
           "properties": {"kind": {"enum": ["alpaca", "guanaco", "llama", "vicuña"]},
             "age": {"type": "integer", "minimum": 0, "maximum": 40},
             "weight": {"type": "number", "minimum": 0.5, "exclusiveMaximum": 300},
             "young": {"type": "array", "items": {"$ref": "#/$defs/animal"}, "maxItems": 3}},
           "additionalProperties": false}},
         "type": "object", "properties": {"herd": {"type": "array", "minItems": 2,
           "items": {"$ref": "#/$defs/animal"}}}, "required": ["herd"]})",
     R"({"herd": [{"kind": "llama", "age": 12, "weight": 140.5, "young": [{"kind": "llama", )"
     R"("age": 1, "weight": 42}]}, {"kind": "vicuña", "age": 3, "weight": 51.25}]})"},
    {"additional", ConstraintKind::kJsonSchema,
     R"({"type": "object", "properties": {"title": {"type": "string"}},
         "patternProperties": {"^x-": {"type": "integer"}},
         "additionalProperties": {"type": "string", "minLength": 5}})",
     R"({"title": "Llamas", "x-count": 12, "food": "hay and grass", "home": "the high Andes", )"
     R"("colour": "brown, white or black", "voice": "a soft hum", "x-age": 20})"},
    {"any_json", ConstraintKind::kJson, "",
     R"({"name": "Llama", "tags": ["wool", "hill", "Perú"], "size": {"height": 1.75, "weight": )"
     R"(140}, "friendly": true, "owner": null, "text": "It hums, \"softly\", when it is tired."})"},
    {"regex_words", ConstraintKind::kRegex, "(\\p{L}+[ ,.]+)*",
     "A llama lived on a hill above the village, and every morning it looked down at the people "
     "who went to the market, until one day it followed them. Vicuña y guanaco, dos primos. "},
    {"regex_counted_words", ConstraintKind::kRegex, "(\\p{L}{1,12}[ ,.]{1,2}){3,40}",
     "A llama lived on a hill above the village, and every morning it looked down at the people "
     "who went to the market, until one day it followed them. "},
    {"gbnf_list", ConstraintKind::kGbnf,
     "root ::= item+\nitem ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\"\n",
     "- hay and grass\n- a little salt\n- water from the well\n- carrots, if there are any\n"
     "- leaves of the trees behind the house\n"},
    {"gbnf_arithmetic", ConstraintKind::kGbnf,
     "root  ::= (expr \"=\" ws term \"\\n\")+\nexpr  ::= term ([-+*/] term)*\n"
     "term  ::= ident | num | \"(\" ws expr \")\" ws\nident ::= [a-z] [a-z0-9_]* ws\n"
     "num   ::= [0-9]+ ws\nws    ::= [ \\t\\n]*\n",
     "(alpha +12) *beta_2 = result\n3 *(x -y) /(z +4) = 17\nsum +total = whole\n"},
    {"gbnf_letters", ConstraintKind::kGbnf,
     "root ::= char+ ([ \\t\\n] char+)*\n"
     "char ::= [a-zA-Z] | [0-9] | [!\"#$%&'()*+,-./:;<=>?@[\\\\\\]^_`{|}~]\n",
     "A llama lived on a hill above the village, and every morning it looked down at the people "
     "who went to the market, until one day it followed them."},
    {"gbnf_japanese", ConstraintKind::kGbnf,
     "root ::= jp+ ([ \\t\\n] jp+)*\njp ::= [ぁ-ゟ] | [ァ-ヿ] | [、-〾] | [一-鿿]\n",
     "リャマは丘の上に住んでいました。毎朝、市場に行く人々を見ていました。ある日、ついて行きました"
     "。"},
};

struct NamedVocabulary {
  OwnedVocabulary vocabulary;
  std::optional<Tokenizer> tokenizer;
  std::vector<uint64_t> table_memory;
  std::optional<grammar::TokenTable> table;
};

std::string_view Piece(const void* context, int32_t id) {
  const auto& tokenizer = *static_cast<const Tokenizer*>(context);
  const bool is_control =
      tokenizer.vocabulary().piece_types[static_cast<size_t>(id)] == PieceType::kControl;
  return is_control ? std::string_view() : tokenizer.Piece(id);
}

void SortVocabulary(NamedVocabulary& named) {
  const size_t vocab_size = named.tokenizer->vocab_size();
  named.table_memory.resize(grammar::TokenTable::MemoryBytes(vocab_size) / sizeof(uint64_t));
  named.table.emplace(
      std::as_writable_bytes(std::span(named.table_memory)), vocab_size,
      grammar::TokenPieces{Piece, &*named.tokenizer, named.tokenizer->vocabulary().sorted_ids});
}

void TableSpeed(benchmark::State& state, NamedVocabulary& named) {
  for (auto _ : state) SortVocabulary(named);
}

// The states of a case, without kept masks.
struct CaseStates {
  explicit CaseStates(const Case& c)
      : memory(size_t{4} << 17), expressions(std::as_writable_bytes(std::span(memory))) {
    const auto start = grammar::ReadConstraint(expressions, {.kind = c.kind, .text = c.source});
    if (!start) {
      error = start.error().message();
      return;
    }
    const Status finished = expressions.Finish(*start);
    if (!finished) {
      error = finished.error().message();
      return;
    }
    states_memory.resize(size_t{2} << 17);
    automaton = grammar::Automaton(std::as_writable_bytes(std::span(states_memory)), &expressions);
    (void)automaton.Begin(*start);
    path[0] = path[1] = grammar::Automaton::kFirst;
    for (const char byte : c.text) {
      const Status stepped = automaton.Step(std::span(path).first(2), static_cast<uint8_t>(byte));
      if (!stepped) {
        error = stepped.error().message();
        return;
      }
      if (path[1] == grammar::Automaton::kDead) error = "the text does not match";
      path[0] = path[1];
    }
  }

  std::string error;
  std::vector<uint64_t> memory;
  std::vector<uint64_t> states_memory;
  grammar::Expressions expressions;
  grammar::Automaton automaton;
  std::vector<grammar::Automaton::State> path = std::vector<grammar::Automaton::State>(512);
};

void MaskSpeed(benchmark::State& state, NamedVocabulary& named, const Case& c) {
  CaseStates states(c);
  if (!states.error.empty()) return state.SkipWithError(states.error.c_str());
  std::vector<uint64_t> mask_memory(
      2 * grammar::TokenMasks::MaskBytes(named.tokenizer->vocab_size()) / sizeof(uint64_t));
  grammar::TokenMasks masks(std::as_writable_bytes(std::span(mask_memory)), *named.table);
  const auto find = [&] {
    states.expressions.BeginWork();
    return masks.FindWithin(states.automaton, std::span(states.path).first(1),
                            grammar::NodeStore::kMaxRest);
  };
  const auto begin = std::chrono::steady_clock::now();
  const auto first = find();
  const std::chrono::duration<double, std::milli> first_time =
      std::chrono::steady_clock::now() - begin;
  if (!first) return state.SkipWithError(first.error().message().c_str());
  for (auto _ : state) benchmark::DoNotOptimize(find());
  state.counters["first_ms"] = first_time.count();
  state.counters["tokens"] = (*first)->count;
  state.counters["states"] = static_cast<double>(states.automaton.num_states());
}

// What this thread has computed, in microseconds.
double ProcessorMicroseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// All that a matcher does for the first kAnswerTokens of an answer when nothing is known of its
// constraint. If `is_limited`, no more tokens may come, so that many texts could not be ended.
void AnswerSpeed(benchmark::State& state, NamedVocabulary& named, const Answer& answer,
                 bool is_limited) {
  constexpr size_t kAnswerTokens = 60;
  auto ids = named.tokenizer->Encode(answer.text, {.parse_special = false});
  if (!ids) return state.SkipWithError(ids.error().message().c_str());
  ids->resize(std::min(ids->size(), kAnswerTokens));
  std::vector<uint64_t> memory(grammar::Matcher::MemoryBytes(named.tokenizer->vocab_size()) / 8);
  double compiling = 0.0;
  double tokens = 0.0;
  double longest = 0.0;
  for (auto _ : state) {
    double before = ProcessorMicroseconds();
    grammar::Matcher matcher(std::as_writable_bytes(std::span(memory)), *named.table);
    const Status compiled = matcher.Compile({.kind = answer.kind, .text = answer.source});
    if (!compiled) return state.SkipWithError(compiled.error().message().c_str());
    double now = ProcessorMicroseconds();
    compiling += now - before;
    for (size_t i = 0; i < ids->size(); ++i) {
      before = now;
      const size_t remaining = is_limited ? kAnswerTokens - i : SIZE_MAX;
      // A generator asks twice: whether there is a choice, and for the mask.
      for (int asked = 0; asked < 2; ++asked) {
        benchmark::DoNotOptimize(matcher.Allowed(remaining));
      }
      const Status accepted = matcher.Accept((*ids)[i]);
      if (!accepted) return state.SkipWithError(accepted.error().message().c_str());
      matcher.Commit();
      now = ProcessorMicroseconds();
      tokens += now - before;
      longest = std::max(longest, now - before);
    }
  }
  const auto num_answers = static_cast<double>(state.iterations());
  state.counters["tokens"] = static_cast<double>(ids->size());
  state.counters["compile_us"] = compiling / num_answers;
  state.counters["token_us"] = tokens / num_answers / static_cast<double>(ids->size());
  state.counters["longest_us"] = longest;
}

void ReadSpeed(benchmark::State& state, const Case& c) {
  std::vector<uint64_t> memory(size_t{4} << 17);
  for (auto _ : state) {
    grammar::Expressions expressions(std::as_writable_bytes(std::span(memory)));
    const auto start = grammar::ReadConstraint(expressions, {.kind = c.kind, .text = c.source});
    if (!start) return state.SkipWithError(start.error().message().c_str());
    benchmark::DoNotOptimize(expressions.Finish(*start));
    state.counters["nodes"] = static_cast<double>(expressions.store().size());
    state.counters["classes"] = static_cast<double>(expressions.num_classes());
  }
}

Result<std::unique_ptr<NamedVocabulary>> Open(const char* path) {
  CRIA_ASSIGN_OR_RETURN(CheckpointVocabulary opened, OpenVocabulary(path));
  CRIA_ASSIGN_OR_RETURN(ImportedTokenizer imported,
                        ImportTokenizer(std::move(opened.tokenizer), std::nullopt));
  auto named = std::make_unique<NamedVocabulary>();
  named->vocabulary = std::move(imported.vocabulary);
  CRIA_ASSIGN_OR_RETURN(named->tokenizer, Tokenizer::Create(named->vocabulary.view()));
  SortVocabulary(*named);
  return named;
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<std::unique_ptr<NamedVocabulary>> vocabularies;
  for (int i = 1; i < argc; ++i) {
    auto opened = Open(argv[i]);
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.error().message().c_str());
      return 1;
    }
    vocabularies.push_back(*std::move(opened));
    NamedVocabulary& named = *vocabularies.back();
    const std::string_view path = argv[i];
    const std::string name(path.substr(path.rfind('/') + 1));
    benchmark::RegisterBenchmark((name + "/table").c_str(), [&named](benchmark::State& state) {
      TableSpeed(state, named);
    })->Unit(benchmark::kMillisecond);
    for (const Answer& answer : kAnswers) {
      for (const bool is_limited : {false, true}) {
        benchmark::RegisterBenchmark(
            (name + (is_limited ? "/limited/" : "/answer/") + answer.name).c_str(),
            [&named, &answer, is_limited](benchmark::State& state) {
              AnswerSpeed(state, named, answer, is_limited);
            })
            ->Unit(benchmark::kMillisecond);
      }
    }
    for (const Case& c : kCases) {
      benchmark::RegisterBenchmark(
          (name + "/mask/" + c.name).c_str(),
          [&named, &c](benchmark::State& state) { MaskSpeed(state, named, c); })
          ->Unit(benchmark::kMicrosecond);
    }
  }
  for (const Case& c : kCases) {
    benchmark::RegisterBenchmark((std::string("read/") + c.name).c_str(),
                                 [&c](benchmark::State& state) { ReadSpeed(state, c); })
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace cria

int main(int argc, char** argv) { return cria::Main(argc, argv); }
