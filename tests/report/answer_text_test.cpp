#include "annulet/report/answer_text.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace annulet::report {
namespace {

using plan::cell;

plan::Answer answer() {
  plan::Answer answer;
  answer.tables.push_back(
      {"rings",
       "two rings",
       {{"kind", "kind"}, {"time", "time_seconds"}, {"sent", "sent_bytes"}, {"fits", "fits"}},
       {{cell("ring, \"plain\""), cell(Seconds(0.0525)), cell(Bytes(23'583'522'816)), {true, "yes"}},
        {cell("größer"), cell(), cell(std::int64_t{7}), {false, "no"}}},
       "  a drawing\n"});
  answer.tables.push_back({"empty", "", {{"only", "only"}}, {}});
  answer.notes = {"a note"};
  answer.explanations = {{"time", "2 (p-1) alpha", "p = 8", "52.5 ms"}};
  return answer;
}

TEST(AnswerText, AlignsTextsLeftAndNumbersRightByCharacters) {
  EXPECT_EQ(answer_text(answer(), false),
            "two rings\n"
            "kind              time      sent  fits\n"
            "ring, \"plain\"  52.5 ms  23.58 GB   yes\n"
            "größer               -         7    no\n"
            "  a drawing\n"
            "\n"
            "only\n"
            "\n"
            "a note\n");
}

// What does not exist says nothing about its column: the first value does.
TEST(AnswerText, AlignsAColumnByItsFirstValue) {
  plan::Answer answer;
  answer.tables.push_back(
      {"t", "", {{"number", "n"}, {"text", "t"}}, {{cell(), cell()}, {cell(std::int64_t{5}), cell("ab")}}});
  EXPECT_EQ(answer_text(answer, false), "number  text\n     -  -\n     5  ab\n");
}

TEST(AnswerText, AlignsWhatDoesNotExistLikeANumber) {
  plan::Answer answer;
  answer.tables.push_back({"t", "", {{"activations", "a"}, {"x", "x"}}, {{cell(), cell("y")}}});
  EXPECT_EQ(answer_text(answer, false), "activations  x\n          -  y\n");
}

TEST(AnswerText, ExplainsWhereAsked) {
  EXPECT_EQ(answer_text(answer(), true), answer_text(answer(), false) +
                                             "\ntime\n"
                                             "  formula  2 (p-1) alpha\n"
                                             "  inputs   p = 8\n"
                                             "  result   52.5 ms\n");
}

TEST(AnswerText, OfNotesAloneIsTheNotes) {
  plan::Answer answer;
  answer.notes = {"one", "two"};
  EXPECT_EQ(answer_text(answer, true), "one\ntwo\n");
}

TEST(AnswerJson, HasEveryValueByItsKey) {
  const auto json = nlohmann::json::parse(answer_json(answer()));
  const auto& rings = json.at("rings");
  ASSERT_EQ(rings.size(), 2U);
  EXPECT_EQ(rings[0].at("kind"), "ring, \"plain\"");
  EXPECT_EQ(rings[0].at("time_seconds").get<double>(), 0.0525);
  EXPECT_EQ(rings[0].at("sent_bytes").get<std::int64_t>(), 23'583'522'816);
  EXPECT_EQ(rings[0].at("fits"), true);
  EXPECT_EQ(rings[1].at("fits"), false);
  EXPECT_TRUE(rings[1].at("time_seconds").is_null());
  EXPECT_EQ(rings[1].at("kind"), "größer");
  EXPECT_TRUE(json.at("empty").is_array() && json.at("empty").empty());
  EXPECT_EQ(json.at("notes")[0], "a note");
  EXPECT_EQ(json.at("explanations")[0].at("formula"), "2 (p-1) alpha");
  EXPECT_EQ(json.at("explanations")[0].at("result"), "52.5 ms");
}

TEST(AnswerJson, KeepsEveryDigit) {
  plan::Answer answer;
  answer.tables.push_back({"t", "", {{"s", "s"}}, {{cell(Seconds(0.1 + 0.2))}, {cell(Seconds(1e-7 / 3))}}});
  const auto json = nlohmann::json::parse(answer_json(answer));
  EXPECT_EQ(json["t"][0]["s"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(json["t"][1]["s"].get<double>(), 1e-7 / 3);
}

// JSON has no infinity: a library that wrote one would make the whole answer unreadable.
TEST(AnswerJson, StaysReadableWithoutANumber) {
  plan::Answer answer;
  answer.tables.push_back({"t", "", {{"s", "s"}}, {{cell(Seconds(std::numeric_limits<double>::infinity()))}}});
  EXPECT_TRUE(nlohmann::json::parse(answer_json(answer))["t"][0]["s"].is_null());
}

TEST(AnswerCsv, HasALineOfKeysAndQuotesWhatItMust) {
  EXPECT_EQ(answer_csv(answer()),
            "kind,time_seconds,sent_bytes,fits\n"
            "\"ring, \"\"plain\"\"\",0.0525,23583522816,true\n"
            "größer,,7,false\n"
            "\n"
            "only\n");
}

TEST(AnswerCsv, QuotesLineEnds) {
  plan::Answer answer;
  answer.tables.push_back({"t", "a title", {{"a", "a"}}, {{cell("one\ntwo")}, {cell("one\rtwo")}}});
  EXPECT_EQ(answer_csv(answer), "a\n\"one\ntwo\"\n\"one\rtwo\"\n");
}

}  // namespace
}  // namespace annulet::report
