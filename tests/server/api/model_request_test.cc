#include "server/api/model_request.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "server/requests/request_error.h"

namespace cria::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Duration = ModelStore::Clock::duration;

TEST(ModelRequest, HasTheFieldsOfTheOutermostObject) {
  const ModelRequest read = ReadModelRequest(
      R"({"messages":[{"role":"user","model":"c","content":"x"}],"options":{"model":"b"},)"
      R"("model":"a","keep_alive":"5m","prompt":""})");
  EXPECT_EQ(read.model, "a");
  EXPECT_EQ(read.keep_alive, Duration(minutes(5)));
  EXPECT_TRUE(read.has_messages);
  EXPECT_FALSE(read.has_prompt);
}

TEST(ModelRequest, EmptyTextsAreNone) {
  EXPECT_FALSE(ReadModelRequest("").model);
  EXPECT_FALSE(ReadModelRequest("[]").model);
  const ModelRequest read = ReadModelRequest(R"({"name":"a","messages":[],"prompt":"p"})");
  EXPECT_EQ(read.model, "a");
  EXPECT_FALSE(read.has_messages);
  EXPECT_TRUE(read.has_prompt);
  EXPECT_EQ(ReadModelRequest(R"({"model":"a","name":"b"})").model, "a");
  EXPECT_FALSE(ReadModelRequest(R"({"model":null,"keep_alive":null})").keep_alive);
}

TEST(ModelRequest, WhatIsMalformedIsRefused) {
  EXPECT_THROW(ReadModelRequest(R"({"model":"a")"), RequestError);
  EXPECT_THROW(ReadModelRequest(R"({"keep_alive":true})"), RequestError);
  EXPECT_THROW(ReadModelRequest(R"({"keep_alive":"5 minutes"})"), RequestError);
  // As deep as a body can be.
  EXPECT_THROW(ReadModelRequest(std::string(1'000'000, '[')), RequestError);
}

TEST(KeepAlive, IsSecondsOrATextWithUnits) {
  EXPECT_EQ(ReadKeepAlive(Json(0)), Duration(0));
  EXPECT_EQ(ReadKeepAlive(Json("0")), Duration(0));
  EXPECT_EQ(ReadKeepAlive(Json("0s")), Duration(0));
  EXPECT_EQ(ReadKeepAlive(Json("0h0m")), Duration(0));
  EXPECT_EQ(ReadKeepAlive(Json(90)), Duration(seconds(90)));
  EXPECT_EQ(ReadKeepAlive(Json(0.5)), Duration(milliseconds(500)));
  EXPECT_EQ(ReadKeepAlive(Json("10")), Duration(seconds(10)));
  EXPECT_EQ(ReadKeepAlive(Json("250ms")), Duration(milliseconds(250)));
  EXPECT_EQ(ReadKeepAlive(Json("1h30m")), Duration(minutes(90)));
  EXPECT_EQ(ReadKeepAlive(Json("1.5h")), Duration(minutes(90)));
  EXPECT_EQ(ReadKeepAlive(Json(-1)), ModelStore::kForever);
  EXPECT_EQ(ReadKeepAlive(Json("-1")), ModelStore::kForever);
  EXPECT_EQ(ReadKeepAlive(Json("-1m")), ModelStore::kForever);
  EXPECT_EQ(ReadKeepAlive(Json(1e300)), ModelStore::kForever);
  for (const char* const text : {"", "-", "m", "5x", "5m ", "1h5", "--1", "1e5", "nan", "inf"}) {
    EXPECT_FALSE(ReadKeepAlive(Json(text))) << text;
  }
  EXPECT_FALSE(ReadKeepAlive(Json::array()));
}

TEST(QueryValue, IsDecoded) {
  EXPECT_EQ(QueryValue("model=a", "model"), "a");
  EXPECT_EQ(QueryValue("x=1&model=a%20b%2Fc+d&y", "model"), "a b/c d");
  EXPECT_EQ(QueryValue("model=", "model"), "");
  EXPECT_EQ(QueryValue("model=%2", "model"), "%2");
  EXPECT_EQ(QueryValue("model=%zz", "model"), "%zz");
  EXPECT_FALSE(QueryValue("models=a&model", "model"));
  EXPECT_FALSE(QueryValue("", "model"));
}

}  // namespace
}  // namespace cria::server
