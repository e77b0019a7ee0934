#include "support/byte_level_tokenizer.h"

#include <algorithm>
#include <array>
#include <format>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_map>

namespace cria::support {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, kNumNamedSpecialTokens> kNamedSpecialTokens = {
    "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
    "<|eot_id|>",        "<|im_start|>",    "<|im_end|>"};

// Llama 3's pattern that splits text into words; converters recognize the tokenizer by it.
constexpr char kSplitPattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::pair<std::string_view, std::string_view> kCommonMerges[] = {
    {" ", "t"}, {"h", "e"},   {" t", "he"}, {" ", "a"}, {"i", "n"},  {"n", "d"},   {" a", "nd"},
    {" ", "s"}, {"r", "e"},   {" ", "w"},   {"o", "u"}, {"a", "s"},  {" w", "as"}, {"e", "r"},
    {"o", "n"}, {"i", "t"},   {"l", "l"},   {" ", "h"}, {"in", "g"}, {" t", "o"},  {" ", "b"},
    {"e", "n"}, {" h", "e"},  {"o", "r"},   {"e", "d"}, {" ", "y"},  {" y", "ou"}, {" ", "c"},
    {"a", "t"}, {" h", "is"}, {"i", "s"},   {" ", "f"}, {" ", "l"},  {" ", "d"},   {" ", "m"},
    {" ", "o"}, {" ", "p"},   {"a", "r"},   {"l", "y"}};

constexpr std::string_view kLetters = "etaoinshrdlucmfwypvbgkjqxz";

// Bytes that represent themselves in the byte-level alphabet: printable ones of Latin-1.
bool IsPrintable(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
}

struct ByteAlphabet {
  std::array<std::string, 256> symbols;  // UTF-8, by byte.
  std::array<uint8_t, 256> bytes;        // In the order of their ids: printable ones first.
};

ByteAlphabet MakeByteAlphabet() {
  ByteAlphabet alphabet;
  size_t id = 0;
  unsigned next_unprintable = 256;
  for (const bool printable : {true, false}) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (IsPrintable(byte) != printable) continue;
      const unsigned code_point = printable ? byte : next_unprintable++;
      std::string& symbol = alphabet.symbols[byte];
      if (code_point < 0x80) {
        symbol = static_cast<char>(code_point);
      } else {
        symbol = {static_cast<char>(0xc0 | (code_point >> 6)),
                  static_cast<char>(0x80 | (code_point & 0x3f))};
      }
      alphabet.bytes[id++] = static_cast<uint8_t>(byte);
    }
  }
  return alphabet;
}

const ByteAlphabet& Alphabet() {
  static const ByteAlphabet alphabet = MakeByteAlphabet();
  return alphabet;
}

// Adds merges until there are enough pieces.
class PieceMaker {
 public:
  explicit PieceMaker(size_t num_pieces) : num_pieces_(num_pieces) {
    for (const uint8_t byte : Alphabet().bytes) Append(std::string(1, static_cast<char>(byte)));
  }

  bool full() const { return tokenizer_.pieces.size() >= num_pieces_; }
  ByteLevelTokenizer Take() { return std::move(tokenizer_); }

  // Does nothing if a part is missing, if the whole exists already, or if there is no room.
  void Merge(std::string_view left, std::string_view right) {
    const auto left_id = ids_.find(std::string(left));
    const auto right_id = ids_.find(std::string(right));
    if (full() || left_id == ids_.end() || right_id == ids_.end()) return;
    std::string merged = left_id->first + right_id->first;
    if (ids_.contains(merged)) return;
    tokenizer_.merges.emplace_back(left_id->second, right_id->second);
    Append(std::move(merged));
  }

  // Adds every word of `length` letters after `prefix`, made from two parts, of which the second
  // has `right_length` letters.
  void MergeAllWords(std::string_view prefix, size_t length, size_t right_length) {
    std::vector<size_t> letters(length, 0);
    while (!full()) {
      std::string word(prefix);
      for (const size_t letter : letters) word += kLetters[letter];
      const size_t split = word.size() - right_length;
      Merge(std::string_view(word).substr(0, split), std::string_view(word).substr(split));
      size_t place = length;
      while (place > 0 && ++letters[place - 1] == kLetters.size()) letters[--place] = 0;
      if (place == 0) return;
    }
  }

 private:
  void Append(std::string piece) {
    ids_.emplace(piece, static_cast<uint32_t>(tokenizer_.pieces.size()));
    tokenizer_.pieces.push_back(std::move(piece));
  }

  size_t num_pieces_;
  ByteLevelTokenizer tokenizer_;
  std::unordered_map<std::string, uint32_t> ids_;
};

json AddedTokens(const ByteLevelTokenizer& tokenizer) {
  json tokens = json::array();
  for (const std::string& token : tokenizer.special_tokens) {
    tokens.push_back({{"id", tokenizer.pieces.size() + tokens.size()},
                      {"content", token},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", false},
                      {"special", true}});
  }
  return tokens;
}

json ByteLevelRule(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

// Puts <|begin_of_text|> before a text.
json PostProcessor(const ByteLevelTokenizer& tokenizer) {
  const std::string bos(kNamedSpecialTokens[0]);
  const json bos_part = {{"SpecialToken", {{"id", bos}, {"type_id", 0}}}};
  const json text_part = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json second_bos = {{"SpecialToken", {{"id", bos}, {"type_id", 1}}}};
  const json second_text = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  const json bos_ids = json::array({tokenizer.SpecialTokenId(bos)});
  const json processors =
      json::array({ByteLevelRule(true, false, true),
                   {{"type", "TemplateProcessing"},
                    {"single", json::array({bos_part, text_part})},
                    {"pair", json::array({bos_part, text_part, second_bos, second_text})},
                    {"special_tokens",
                     {{bos, {{"id", bos}, {"ids", bos_ids}, {"tokens", json::array({bos})}}}}}}});
  return {{"type", "Sequence"}, {"processors", processors}};
}

}  // namespace

int ByteLevelTokenizer::SpecialTokenId(std::string_view token) const {
  const auto found = std::find(special_tokens.begin(), special_tokens.end(), token);
  if (found == special_tokens.end()) throw std::out_of_range(std::string(token));
  return static_cast<int>(pieces.size() + static_cast<size_t>(found - special_tokens.begin()));
}

ByteLevelTokenizer MakeByteLevelTokenizer(size_t vocab_size, size_t num_special_tokens) {
  if (num_special_tokens < kNumNamedSpecialTokens || vocab_size < 256 + num_special_tokens) {
    throw std::runtime_error("the vocabulary is too small for bytes and special tokens");
  }
  PieceMaker maker(vocab_size - num_special_tokens);
  for (const auto& [left, right] : kCommonMerges) maker.Merge(left, right);
  maker.MergeAllWords("", 2, 1);
  maker.MergeAllWords(" ", 1, 1);
  maker.MergeAllWords(" ", 2, 1);
  maker.MergeAllWords("", 3, 1);
  maker.MergeAllWords(" ", 3, 1);
  maker.MergeAllWords("", 4, 2);
  if (!maker.full()) throw std::runtime_error("the vocabulary is too large to make up");

  ByteLevelTokenizer tokenizer = maker.Take();
  tokenizer.special_tokens.assign(kNamedSpecialTokens.begin(), kNamedSpecialTokens.end());
  for (size_t i = 0; tokenizer.special_tokens.size() < num_special_tokens; ++i) {
    tokenizer.special_tokens.push_back(std::format("<|reserved_special_token_{}|>", i));
  }
  return tokenizer;
}

std::string InByteAlphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += Alphabet().symbols[static_cast<unsigned char>(byte)];
  return text;
}

std::string TokenizerJson(const ByteLevelTokenizer& tokenizer, bool merges_as_pairs) {
  json vocabulary = json::object();
  for (size_t id = 0; id < tokenizer.pieces.size(); ++id) {
    vocabulary[InByteAlphabet(tokenizer.pieces[id])] = id;
  }
  json merges = json::array();
  for (const auto& [left_id, right_id] : tokenizer.merges) {
    const std::string left = InByteAlphabet(tokenizer.pieces[left_id]);
    const std::string right = InByteAlphabet(tokenizer.pieces[right_id]);
    merges.push_back(merges_as_pairs ? json::array({left, right}) : json(left + " " + right));
  }
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", kSplitPattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const json file = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", AddedTokens(tokenizer)},
                     {"normalizer", nullptr},
                     {"pre_tokenizer",
                      {{"type", "Sequence"},
                       {"pretokenizers", json::array({split, ByteLevelRule(false, true, false)})}}},
                     {"post_processor", PostProcessor(tokenizer)},
                     {"decoder", ByteLevelRule(true, true, true)},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", true},
                       {"vocab", std::move(vocabulary)},
                       {"merges", std::move(merges)}}}};
  return file.dump(1);
}

std::string TokenizerConfigJson(ChatTemplateText chat_template) {
  json file = {{"tokenizer_class", "PreTrainedTokenizerFast"},
               {"bos_token", "<|begin_of_text|>"},
               {"eos_token", "<|end_of_text|>"},
               {"clean_up_tokenization_spaces", false}};
  if (chat_template == ChatTemplateText::kLlama3) {
    file["eos_token"] = "<|eot_id|>";
    file["chat_template"] =
        "{{ bos_token }}{% for message in messages %}"
        "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}"
        "{{ message['content'] | trim }}{{ '<|eot_id|>' }}{% endfor %}"
        "{% if add_generation_prompt %}"
        "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";
  } else if (chat_template == ChatTemplateText::kChatMl) {
    file["eos_token"] = "<|im_end|>";
    file["chat_template"] =
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  }
  return file.dump(1);
}

}  // namespace cria::support
