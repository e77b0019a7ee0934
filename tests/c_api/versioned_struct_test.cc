#include "c_api/versioned_struct.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace cria::c_api {
namespace {

// A struct as three versions know it.
struct First {
  size_t struct_size;
  int64_t a;
};
struct Second {
  size_t struct_size;
  int64_t a;
  int64_t b;
};
struct Third {
  size_t struct_size;
  int64_t a;
  int64_t b;
  int64_t c;
};

}  // namespace

// The library is the second version.
template <>
inline constexpr size_t kFirstVersionBytes<Second> = sizeof(First);

namespace {

constexpr Second kDefaults = {sizeof(Second), 10, 20};

template <typename Caller>
Result<Second> Read(const Caller& given) {
  return ReadStruct(reinterpret_cast<const Second*>(&given), kDefaults, "options");
}

TEST(VersionedStructTest, NullIsTheDefaults) {
  const auto read = ReadStruct<Second>(nullptr, kDefaults, "options");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->a, 10);
  EXPECT_EQ(read->b, 20);
}

TEST(VersionedStructTest, FieldsOfALaterVersionThanTheCallersAreTheDefaults) {
  const auto read = Read(First{sizeof(First), 1});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->a, 1);
  EXPECT_EQ(read->b, 20);
}

TEST(VersionedStructTest, FieldsOfALaterVersionThanTheLibrarysMustBeZero) {
  const auto read = Read(Third{sizeof(Third), 1, 2, 0});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->a, 1);
  EXPECT_EQ(read->b, 2);
  const auto unknown = Read(Third{sizeof(Third), 1, 2, 3});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::kUnsupported);
}

TEST(VersionedStructTest, ASizeThatNoVersionHasIsRefused) {
  for (const size_t size : {size_t{0}, sizeof(First) - 1, kMaxStructBytes + 1, SIZE_MAX}) {
    const auto read = Read(Second{size, 1, 2});
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code(), ErrorCode::kUsage);
    EXPECT_NE(read.error().message().find("options"), std::string::npos);
  }
}

template <typename Caller>
Status Write(Caller& out) {
  return WriteStruct<Second>({sizeof(Second), 1, 2}, reinterpret_cast<Second*>(&out), "result");
}

TEST(VersionedStructTest, AResultIsFilledAsFarAsTheCallerHasIt) {
  struct {
    First first = {sizeof(First), 0};
    int64_t behind = 7;
  } older;
  ASSERT_TRUE(Write(older.first));
  EXPECT_EQ(older.first.struct_size, sizeof(First));
  EXPECT_EQ(older.first.a, 1);
  EXPECT_EQ(older.behind, 7);

  Third newer = {sizeof(Third), 9, 9, 9};
  ASSERT_TRUE(Write(newer));
  EXPECT_EQ(newer.struct_size, sizeof(Third));
  EXPECT_EQ(newer.a, 1);
  EXPECT_EQ(newer.b, 2);
  EXPECT_EQ(newer.c, 0);

  First unset = {0, 9};
  EXPECT_FALSE(Write(unset));
  EXPECT_EQ(unset.a, 9);
}

}  // namespace
}  // namespace cria::c_api
