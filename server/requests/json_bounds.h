#pragma once

#include <cstddef>
#include <cstdint>

namespace cria::server {

// Bounds of a request's JSON. Deeper values would take more stack in functions that call
// themselves; objects look for a key one by one, so that their size bounds the time. A list of
// tokens may be as long as a long context. Values with memory of their own, which are texts, lists,
// objects and numbers that are kept as text, count as three, and so do names in objects.
inline constexpr size_t kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonValues = 150'000;
inline constexpr size_t kCountOfLargeValue = 3;
inline constexpr size_t kMaxJsonKeys = 1024;  // In one object.

// The most memory of values without their strings, with what is copied of them: of each its own
// bytes and those of a list or object, and the places that a growing list reserves.
inline constexpr uint64_t kMaxJsonBytes = uint64_t{80} * kMaxJsonValues;

// What a chat template may take for a conversation. When it is rendered, the values are freed; the
// rest is for the text that it writes.
inline constexpr size_t kMaxTemplateBytes = size_t{10} << 20;

// The most memory of the one large request that is read: its values, and what is made of them. Its
// text becomes tokens after the values are freed, and then takes at most 14 bytes for each byte.
constexpr uint64_t LargeRequestBytes(uint64_t max_body_bytes) {
  return kMaxJsonBytes + 2 * max_body_bytes;
}

// A larger body is read on a thread of the queue alone: it would keep the HTTP thread busy.
inline constexpr size_t kMaxShortBodyBytes = size_t{16} << 10;
// The most memory of a shorter one: values of two bytes each.
inline constexpr uint64_t kShortRequestBytes = uint64_t{25} * kMaxShortBodyBytes;

// A request may set so many values, in all variables of the chat template together.
inline constexpr size_t kMaxVariableValues = 8192;
// A conversation may have so many messages, and so many calls. As a value of Jinja, each takes up
// to two kilobytes.
inline constexpr size_t kMaxMessages = 4096;
// The arguments of all calls may have so many values. They may be JSON in texts, which the bound of
// the request's values does not count.
inline constexpr size_t kMaxArgumentValues = size_t{1} << 15;

// A request for embeddings, or to rank documents, may have so many texts, as OpenAI's, and so many
// tokens in all of them.
inline constexpr size_t kMaxEmbeddingInputs = 2048;
inline constexpr size_t kMaxEmbeddingTokens = size_t{1} << 18;
// Embeddings that wait for those before them in the answer; there is always room for one.
inline constexpr size_t kHeldEmbeddingBytes = size_t{64} << 10;
// What such a request keeps while its texts run: their tokens, in a list each, and embeddings.
inline constexpr uint64_t kEmbeddingBytes = kMaxEmbeddingTokens * sizeof(int32_t) +
                                            kMaxEmbeddingInputs * uint64_t{64} +
                                            kHeldEmbeddingBytes;

// A schema that an answer must match may have so many values. What it takes while it is read is a
// line of the engine's plan.
inline constexpr size_t kMaxSchemaValues = 8192;
// A tool whose schema has more values is shown to the model, but not enforced.
inline constexpr size_t kMaxToolValues = 1024;

}  // namespace cria::server
