#include "converter/tokenizer/split_patterns_by_name.h"

#include <algorithm>
#include <array>

namespace cria {
namespace {

constexpr std::array kGpt2 = {kGpt2Pattern};
constexpr std::array kLlama3Patterns = {kLlama3Pattern};
// Like Llama 3's, but every digit is a word.
constexpr std::array<std::string_view, 1> kQwen2 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};
// This differs in that marks belong to the letters before them.
constexpr std::array<std::string_view, 1> kQwen35 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 2> kDigitsThenGpt2 = {R"(\p{N})", kGpt2Pattern};
// Line ends, letters, punctuation, letters of East Asia, single digits.
constexpr std::array<std::string_view, 5> kDeepSeekCoder = {
    R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", R"(\p{N})"};
// Mistral's since Nemo: words end where a capital letter follows a small one.
constexpr std::array<std::string_view, 1> kTekken = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// GPT-4o's, which Phi-4-mini has: like Tekken's, but a contraction belongs to the word before it,
// and up to three digits are a word.
constexpr std::array<std::string_view, 1> kGpt4o = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)"};
// Line ends, cased letters (as of an older Unicode version), punctuation, white space at the end,
// letters of East Asia, digits.
constexpr std::array<std::string_view, 6> kDeepSeekLlm = {
    R"([\r\n])",
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})"
    R"(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3})"
    R"(\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D})"
    R"(\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"
    R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
    R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    R"(\s+$)",
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
    R"(\p{N}+)"};
// MiniCPM5's: up to three digits are a word before white space is divided as Llama 3 does it.
constexpr std::array<std::string_view, 2> kMiniCpm5 = {
    R"(\p{N}{1,3})",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};
// Seed-OSS's: like Qwen 2's, but line ends are no part of a word of punctuation.
constexpr std::array<std::string_view, 1> kSeedCoder = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};
// Hunyuan's dense models have those of DeepSeek V3: up to three digits, letters of East Asia, and
// words that may begin with a punctuation mark.
constexpr std::array<std::string_view, 3> kDeepSeek3 = {
    R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// ggml's patterns for a file that does not name any.
constexpr std::array<std::string_view, 4> kDefault = {R"([\p{P}$+<=>^~|]+)", kGpt2Pattern,
                                                      R"(\p{N}+)", R"([0-9][0-9][0-9])"};

constexpr std::array kPreTokenizers = {
    PreTokenizer{.name = "llama-bpe",
                 .split_patterns = kLlama3Patterns,
                 .ignore_merges = true,
                 .add_bos_token = true},
    PreTokenizer{.name = "llama3",
                 .split_patterns = kLlama3Patterns,
                 .ignore_merges = true,
                 .add_bos_token = true},
    PreTokenizer{.name = "llama-v3",
                 .split_patterns = kLlama3Patterns,
                 .ignore_merges = true,
                 .add_bos_token = true},
    PreTokenizer{.name = "lfm2",
                 .split_patterns = kLlama3Patterns,
                 .ignore_merges = true,
                 .add_bos_token = true},
    PreTokenizer{
        .name = "tekken", .split_patterns = kTekken, .ignore_merges = true, .add_bos_token = true},
    PreTokenizer{.name = "minicpm5", .split_patterns = kMiniCpm5, .ignore_merges = true},
    PreTokenizer{.name = "gpt-4o", .split_patterns = kGpt4o},
    // OLMo 2's and SmolLM3's: Llama 3's patterns without its other rules.
    PreTokenizer{.name = "dbrx", .split_patterns = kLlama3Patterns},
    PreTokenizer{.name = "smaug-bpe", .split_patterns = kLlama3Patterns},
    // llama.cpp does not normalize text for these. But the models were trained on normalized text,
    // as their tokenizer.json says.
    PreTokenizer{.name = "qwen2", .split_patterns = kQwen2, .normalize_nfc = true},
    PreTokenizer{.name = "qwen35", .split_patterns = kQwen35, .normalize_nfc = true},
    PreTokenizer{.name = "deepseek-r1-qwen", .split_patterns = kQwen2, .normalize_nfc = true},
    PreTokenizer{.name = "glm4", .split_patterns = kLlama3Patterns},
    PreTokenizer{.name = "chatglm-bpe", .split_patterns = kLlama3Patterns},
    PreTokenizer{.name = "exaone4", .split_patterns = kGpt2},
    PreTokenizer{.name = "seed-coder", .split_patterns = kSeedCoder},
    PreTokenizer{.name = "hunyuan-dense", .split_patterns = kDeepSeek3},
    PreTokenizer{.name = "deepseek-llm", .split_patterns = kDeepSeekLlm},
    PreTokenizer{.name = "deepseek-coder", .split_patterns = kDeepSeekCoder},
    PreTokenizer{.name = "smollm", .split_patterns = kDigitsThenGpt2},
    PreTokenizer{.name = "starcoder", .split_patterns = kDigitsThenGpt2},
    PreTokenizer{.name = "refact", .split_patterns = kDigitsThenGpt2},
    // The tokenizer of GPT-NeoX.
    PreTokenizer{.name = "mpt", .split_patterns = kGpt2, .normalize_nfc = true},
    PreTokenizer{.name = "olmo", .split_patterns = kGpt2, .normalize_nfc = true},
    PreTokenizer{.name = "gpt-2", .split_patterns = kGpt2},
    PreTokenizer{.name = "default", .split_patterns = kDefault},
};

}  // namespace

const PreTokenizer* FindPreTokenizer(std::string_view name) {
  const auto* found = std::ranges::find(kPreTokenizers, name, &PreTokenizer::name);
  return found == kPreTokenizers.end() ? nullptr : found;
}

}  // namespace cria
