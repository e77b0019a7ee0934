// Speed of constraints: constraint_benchmark CHECKPOINT… [--benchmark_filter=…], each a folder or
// file that cria-convert takes; without weights is enough. How long it takes to sort the
// vocabulary, to read a constraint, and to decide which tokens may come next after the beginning of
// a text: when all states are known but no mask is kept, and in `first_ms` when no state is. And
// what a whole answer takes of which nothing is known before.

#include <benchmark/benchmark.h>

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

constexpr std::string_view kCountedSchema = R"({
  "type": "object",
  "properties": {
    "title": {"type": "string", "minLength": 10},
    "text": {"type": "string", "minLength": 60, "maxLength": 200},
    "keywords": {"type": "array", "items": {"type": "string", "minLength": 3, "maxLength": 20}}
  },
  "required": ["title", "text", "keywords"],
  "additionalProperties": false
})";
constexpr std::string_view kCountedAnswer =
    R"({"title": "The llama on the hill", "text": "A llama lived on a hill above the village, )"
    R"(and every morning it looked down at the people who went to the market, until one day it )"
    R"(followed them.", "keywords": ["llama", "village", "market"]})";

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
  named.table.emplace(std::as_writable_bytes(std::span(named.table_memory)), vocab_size,
                      grammar::TokenPieces{Piece, &*named.tokenizer});
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

// All that a matcher does for an answer when nothing is known of its constraint.
void AnswerSpeed(benchmark::State& state, NamedVocabulary& named) {
  const auto ids = named.tokenizer->Encode(kCountedAnswer, {.parse_special = false});
  if (!ids) return state.SkipWithError(ids.error().message().c_str());
  std::vector<uint64_t> memory(grammar::Matcher::MemoryBytes(named.tokenizer->vocab_size()) / 8);
  std::chrono::duration<double, std::micro> total = {};
  std::chrono::duration<double, std::micro> longest = {};
  for (auto _ : state) {
    grammar::Matcher matcher(std::as_writable_bytes(std::span(memory)), *named.table);
    const Status compiled =
        matcher.Compile({.kind = ConstraintKind::kJsonSchema, .text = kCountedSchema});
    if (!compiled) return state.SkipWithError(compiled.error().message().c_str());
    for (const int32_t id : *ids) {
      const auto begin = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(matcher.Allowed(SIZE_MAX));
      const Status accepted = matcher.Accept(id);
      if (!accepted) return state.SkipWithError(accepted.error().message().c_str());
      matcher.Commit();
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - begin;
      total += time;
      longest = std::max(longest, time);
    }
  }
  const auto num_answers = static_cast<double>(state.iterations());
  state.counters["tokens"] = static_cast<double>(ids->size());
  state.counters["token_us"] = total.count() / num_answers / static_cast<double>(ids->size());
  state.counters["longest_us"] = longest.count();
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
    benchmark::RegisterBenchmark((name + "/answer").c_str(), [&named](benchmark::State& state) {
      AnswerSpeed(state, named);
    })->Unit(benchmark::kMillisecond);
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
