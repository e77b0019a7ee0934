// Session files that are damaged, made to do harm, or of another model, version or context.

#include <bit>
#include <limits>
#include <random>

#include "decode/kv_state.h"
#include "llm/session_file.h"
#include "llm/session_file_fixture.h"
#include "support/emulation.h"

namespace cria {
namespace {

using testing::HasSubstr;

// Changes these bytes of the file, which may be any part, and the checksum of the block of the
// state that has them.
void ChangeState(SessionBytes& file, size_t block, const KvState& state, size_t offset_in_block,
                 std::string_view bytes) {
  const size_t begin = file.state_offset() + state.BlockOffset(block);
  file.all.replace(begin + offset_in_block, bytes.size(), bytes);
  const auto changed = std::as_bytes(
      std::span(file.all).subspan(begin, state.BlockOffset(block + 1) - state.BlockOffset(block)));
  const uint64_t checksum = ChecksumOf(changed);
  std::memcpy(
      file.all.data() + sizeof(FilePreamble) + sizeof(SessionHead) + block * sizeof checksum,
      &checksum, sizeof checksum);
}

TEST_F(SessionFileTest, TruncatedAtAnyByteIsRefused) {
  const auto engine = Model().Load(KvType::kInt8, 100);
  const std::string bytes = SavedBytes(*engine, 3);
  const size_t step = support::IsEmulated() ? 17 : 1;
  for (size_t size = 0; size < bytes.size(); size += step) {
    SCOPED_TRACE(size);
    ASSERT_NO_FATAL_FAILURE(ExpectRefused(*engine, bytes.substr(0, size), ErrorCode::kInvalidFile));
  }
  ExpectRefused(*engine, bytes + '\0', ErrorCode::kInvalidFile);
  support::WriteFile(path_, bytes);
  EXPECT_TRUE(Load(*engine));
}

// Even a bit that changes nothing is found.
TEST_F(SessionFileTest, AChangedByteIsRefused) {
  const auto engine = Model().Load(KvType::kF16, 100);
  const std::string bytes = SavedBytes(*engine, 70);
  const size_t head_bytes = SessionBytes(bytes).state_offset();
  std::mt19937 random(3);
  const auto expect_refused = [&](size_t at) {
    SCOPED_TRACE(at);
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1u << random() % 8));
    support::WriteFile(path_, changed);
    const auto loaded = Load(*engine);
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message(), testing::StartsWith(path_ + ": "));
  };
  for (size_t at = 0; at < head_bytes; ++at) ASSERT_NO_FATAL_FAILURE(expect_refused(at));
  const int rounds = support::IsEmulated() ? 50 : 1000;
  for (int i = 0; i < rounds; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_refused(head_bytes + random() % (bytes.size() - head_bytes)));
  }
  // A file whose keys and values are damaged leaves an empty context, which can be used.
  EXPECT_EQ(engine->session().tokens().size(), 0u);
  ExpectPrefill(engine->session(), SomeTokens(70));
}

TEST_F(SessionFileTest, AContradictionBehindRightChecksumsIsRefused) {
  const auto engine = Model().Load(KvType::kF32, 100);
  const SessionBytes saved(SavedBytes(*engine, 70));
  ASSERT_EQ(saved.head.num_messages, 3u);
  const auto changed = [&](uint32_t SessionHead::* field, uint32_t value) {
    SessionBytes file = saved;
    file.head.*field = value;
    return file.Crafted();
  };
  using Head = SessionHead;
  const std::pair<const char*, uint32_t Head::*> sizes[] = {
      {"num_tokens", &Head::num_tokens},
      {"num_blocks", &Head::num_blocks},
      {"num_messages", &Head::num_messages},
      {"variables_bytes", &Head::variables_bytes},
  };
  for (const auto& [name, field] : sizes) {
    SCOPED_TRACE(name);
    for (const uint32_t value : {0u, saved.head.*field - 1, saved.head.*field + 1, 1u << 31,
                                 std::numeric_limits<uint32_t>::max()}) {
      SCOPED_TRACE(value);
      ExpectRefused(*engine, changed(field, value), ErrorCode::kInvalidFile);
    }
  }
  for (const uint32_t value : {0u, 1u, 64u, 69u, 71u, std::numeric_limits<uint32_t>::max()}) {
    SCOPED_TRACE(value);
    ExpectRefused(*engine, changed(&Head::num_cached_tokens, value), ErrorCode::kInvalidFile);
  }
  ExpectRefused(*engine, changed(&Head::num_system_messages, 4), ErrorCode::kInvalidFile);
  ExpectRefused(*engine, changed(&Head::has_forgotten, 2), ErrorCode::kInvalidFile);
  ExpectRefused(*engine, changed(&Head::content, 0), ErrorCode::kInvalidFile);
  ExpectRefused(*engine, changed(&Head::content, 2), ErrorCode::kInvalidFile);

  // A shift of keys, which stands behind the lengths of the messages.
  ASSERT_TRUE(Turn(engine->session()).Drop(3, 10));
  Save(*engine);
  const SessionBytes shifted(support::ReadFile(path_));
  ASSERT_EQ(shifted.head.kv_state_version, kShiftedKvStateVersion);
  const size_t shift_at =
      sizeof(FilePreamble) + sizeof(Head) + shifted.head.num_blocks * sizeof(uint64_t) +
      shifted.head.num_tokens * sizeof(int32_t) + shifted.head.num_messages * sizeof(MessageBytes);
  const auto with_shift = [&](const SequenceShift& shift) {
    SessionBytes file = shifted;
    std::memcpy(file.all.data() + shift_at, &shift, sizeof shift);
    return file.Crafted();
  };
  EXPECT_EQ(with_shift({.first = 3, .distance = 10}), shifted.all);
  for (const SequenceShift& shift :
       {SequenceShift{.first = 3, .distance = 0}, SequenceShift{.first = 60, .distance = 10},
        SequenceShift{.first = 3, .distance = SequenceShift::kMaxDistance + 1}}) {
    ExpectRefused(*engine, with_shift(shift), ErrorCode::kInvalidFile);
  }
  SessionBytes without_shift = shifted;
  without_shift.head.kv_state_version = kKvStateVersion;
  ExpectRefused(*engine, without_shift.Crafted(), ErrorCode::kInvalidFile);

  SessionBytes file = saved;
  file.head.begin_time = std::numeric_limits<int64_t>::max();
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kInvalidFile);

  // The preamble's own sizes.
  file = saved;
  file.preamble.metadata_bytes += 4;
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kInvalidFile);
  file = saved;
  file.preamble.metadata_bytes = 63;
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kInvalidFile);
  file = saved;
  file.preamble.packed_offset = 64;
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kInvalidFile);
  file = saved;
  file.preamble.file_bytes += 64;
  file.all.append(64, '\0');
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kInvalidFile);
}

TEST_F(SessionFileTest, TokensAndMessagesAreChecked) {
  const auto engine = Model().Load(KvType::kF32, 100);
  const SessionBytes saved(SavedBytes(*engine, 70));
  const size_t tokens =
      sizeof(FilePreamble) + sizeof(SessionHead) + saved.head.num_blocks * sizeof(uint64_t);
  const auto with = [&](size_t offset, uint32_t value) {
    SessionBytes file = saved;
    std::memcpy(file.all.data() + offset, &value, sizeof value);
    return file.Crafted();
  };
  ExpectRefused(*engine, with(tokens, 300), ErrorCode::kInvalidFile);
  ExpectRefused(*engine, with(tokens + 69 * 4, static_cast<uint32_t>(-1)), ErrorCode::kInvalidFile);
  const size_t messages = tokens + 70 * sizeof(int32_t);
  for (const uint32_t bytes : {0u, 5u, 7u, 1u << 30, std::numeric_limits<uint32_t>::max()}) {
    ExpectRefused(*engine, with(messages, bytes), ErrorCode::kInvalidFile);
  }
  // The variables are no longer JSON.
  SessionBytes file = saved;
  const size_t texts = messages + 3 * sizeof(MessageBytes);
  file.all[texts] = '[';
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kInvalidFile);
}

TEST_F(SessionFileTest, FieldsOfMessagesAreChecked) {
  const auto engine = Model().Load(KvType::kF32, 100);
  ConversationState conversation = SomeConversation();
  const std::string fields = R"({"name":"a"})";
  conversation.messages[1].fields = fields;
  ASSERT_TRUE(SaveSession(path_, SessionContent::kConversation, conversation, engine->session(), 0,
                          *engine));
  const SessionBytes saved(support::ReadFile(path_));
  const size_t end = saved.all.size();  // There are no keys and values.
  ASSERT_TRUE(saved.all.ends_with(std::string(1, '\0') + fields + std::string(2, '\0')));
  const auto with = [&](size_t behind, char value) {
    SessionBytes file = saved;
    file.all[end - behind] = value;
    return file.Crafted();
  };
  support::WriteFile(path_, with(5, 'b'));
  EXPECT_TRUE(Load(*engine));
  // One zero byte is missing, one is too many, and the last byte is none.
  ExpectRefused(*engine, with(2, ' '), ErrorCode::kInvalidFile);
  ExpectRefused(*engine, with(4, '\0'), ErrorCode::kInvalidFile);
  ExpectRefused(*engine, with(1, ' '), ErrorCode::kInvalidFile);
  // The fields are no JSON, or no object.
  ExpectRefused(*engine, with(3, ']'), ErrorCode::kInvalidFile);
  SessionBytes file = saved;
  file.all.replace(end - 2 - fields.size(), fields.size(), "[\"name\",\"a\"]");
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kInvalidFile);
}

TEST_F(SessionFileTest, NumbersThatAreNotFiniteAreRefused) {
  const float no_numbers[] = {std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()};
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    SCOPED_TRACE(KvTypeName(type));
    const auto engine = Model().Load(type, 100);
    const SessionBytes saved(SavedBytes(*engine, 67));
    const KvState state(engine->decoder(), TinyEngine::kSequence, 67);
    const auto refuses = [&](size_t block, size_t offset, std::string_view bytes) {
      SessionBytes file = saved;
      ChangeState(file, block, state, offset, bytes);
      support::WriteFile(path_, file.Crafted());
      const auto loaded = Load(*engine);
      return !loaded && loaded.error().message().contains("not a number");
    };
    // The second page has three rows, whose scales end the block.
    const size_t block_bytes = state.BlockOffset(2) - state.BlockOffset(1);
    for (const float value : no_numbers) {
      const auto f32 = std::bit_cast<std::array<char, 4>>(value);
      const auto f16 = std::bit_cast<std::array<char, 2>>(static_cast<_Float16>(value));
      const std::string_view bytes =
          type == KvType::kF16 ? std::string_view(f16) : std::string_view(f32);
      EXPECT_TRUE(refuses(1, block_bytes - bytes.size(), bytes));
      if (type != KvType::kInt8) {
        EXPECT_TRUE(refuses(0, 0, bytes));
        EXPECT_TRUE(refuses(3, 5 * bytes.size(), bytes));
      }
    }
    // Other bytes are numbers.
    EXPECT_FALSE(refuses(1, 0, std::string_view("\x80\x7b\x01\x12", 4)));
  }
}

// The largest finite numbers overflow in the attention, which ends in an error or in any token.
TEST_F(SessionFileTest, HugeNumbersDoNoHarm) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    SCOPED_TRACE(KvTypeName(type));
    const auto engine = Model().Load(type, 100);
    SessionBytes file(SavedBytes(*engine, 67));
    const KvState state(engine->decoder(), TinyEngine::kSequence, 67);
    const std::string_view largest =
        type == KvType::kF16 ? std::string_view("\xff\x7b\xff\xfb") : "\xff\xff\x7f\x7f";
    for (size_t block = 0; block < state.num_blocks(); ++block) {
      const uint64_t bytes = state.BlockOffset(block + 1) - state.BlockOffset(block);
      std::string numbers;
      while (numbers.size() < bytes) numbers += largest;
      ChangeState(file, block, state, 0, numbers);
    }
    support::WriteFile(path_, file.Crafted());
    ASSERT_TRUE(Load(*engine));
    auto sampler = Unwrap(Sampler::Create({}, 300));
    (void)cria::Generate(engine->session(), {.max_tokens = 5}, sampler,
                         [](const GeneratedToken&) { return true; });
  }
}

TEST_F(SessionFileTest, OfAnotherModelIsRefused) {
  const auto engine = Model().Load(KvType::kF32, 100);
  SavedBytes(*engine, 20);
  support::CheckpointSpec spec = support::SpecGqa();
  spec.seed = 2;
  const TinyModelFile other_model(spec, 512);
  const auto other = other_model.Load(KvType::kF32, 100);
  const auto loaded = Load(*other);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(loaded.error().message(),
            path_ + ": is a session with another model than " + other_model.path());
}

TEST_F(SessionFileTest, OfAnotherFormatIsRefused) {
  const auto engine = Model().Load(KvType::kF32, 100);
  const SessionBytes saved(SavedBytes(*engine, 20));
  SessionBytes file = saved;
  file.preamble.format_version = 0;
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kUnsupported);
  file.preamble.format_version = 2;
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kUnsupported);
  file = saved;
  file.preamble.magic = kModelMagic;
  ExpectRefused(*engine, file.Crafted(), ErrorCode::kInvalidFile);
  ExpectRefused(*engine, support::ReadFile(Model().path()), ErrorCode::kInvalidFile);
  EXPECT_EQ(LoadSession(folder_ / "missing", SessionContent::kText, *engine, engine->session())
                .error()
                .code(),
            ErrorCode::kNotFound);
}

// Where the keys and values cannot be used, the messages still can.
class OtherKvState : public SessionFileTest {
 protected:
  void ExpectMessagesAlone(TinyEngine& engine, const std::string& why) {
    ExpectPrefill(engine.session(), SomeTokens(5));
    const auto loaded = Load(engine);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(loaded->why_read_again, why);
    ExpectEqual(loaded->conversation, SomeConversation());
    EXPECT_EQ(engine.session().tokens().size(), 5u);
  }
};

TEST_F(OtherKvState, TypeMeansThatMessagesAreReadAgain) {
  SavedBytes(*Model().Load(KvType::kF16, 100), 20);
  ExpectMessagesAlone(*Model().Load(KvType::kInt8, 100), "its KV cache has the type f16");
}

TEST_F(OtherKvState, VersionMeansThatMessagesAreReadAgain) {
  const auto engine = Model().Load(KvType::kF16, 100);
  SessionBytes file(SavedBytes(*engine, 20));
  file.head.kv_state_version = kShiftedKvStateVersion + 1;
  support::WriteFile(path_, file.Crafted());
  ExpectMessagesAlone(*engine, "another version of Cria has written its KV cache");
  file.head.kv_state_version = kKvStateVersion;
  file.head.kv_type = 3;
  support::WriteFile(path_, file.Crafted());
  ExpectMessagesAlone(*engine, "its KV cache has an unknown type");
}

TEST_F(OtherKvState, LongerThanTheContextMeansThatMessagesAreReadAgain) {
  SavedBytes(*Model().Load(KvType::kF32, 100), 20);
  EXPECT_EQ(Load(*Model().Load(KvType::kF32, 20))->why_read_again, "");
  ExpectMessagesAlone(*Model().Load(KvType::kF32, 19),
                      "its 20 tokens do not fit the context of 19");
}

TEST_F(OtherKvState, RopeOfAnotherContextMeansThatMessagesAreReadAgain) {
  const TinyModelFile model(support::SpecDynamicRope());  // Trained for 32 tokens.
  SavedBytes(*model.Load(KvType::kF32, 128), 20);
  ExpectMessagesAlone(
      *model.Load(KvType::kF32, 64),
      "its rotary frequencies, windows or offsets of keys are those of other options");
  SavedBytes(*model.Load(KvType::kF32, 32), 20);
  EXPECT_EQ(Load(*model.Load(KvType::kF32, 24))->why_read_again, "");
}

}  // namespace
}  // namespace cria
