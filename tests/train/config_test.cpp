#include "annulet/train/config.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "annulet/base/error.hpp"

namespace annulet::train {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void expect_refused(void (*spoil)(Config&), const std::string& text) {
  Config config;
  spoil(config);
  EXPECT_THAT([&] { validate(config); }, ThrowsMessage<InputError>(HasSubstr(text)));
}

TEST(Config, DefaultsAreValid) { validate(Config{}); }

TEST(Config, RefusesWhatCannotBeAndNamesTheOption) {
  expect_refused([](Config& c) { c.batch = 0; }, "batch = 0 is out of range");
  expect_refused([](Config& c) { c.accumulate = 0; }, "accumulate = 0");
  expect_refused([](Config& c) { c.steps = -2; }, "steps = -2");
  expect_refused([](Config& c) { c.batch = Elements{1} << 62; }, "is out of range (1 to 2^40)");
  expect_refused([](Config& c) { c.accumulate = c.batch + 1; }, "accumulate = 65");
  expect_refused([](Config& c) { c.test_samples = -1; }, "data.test-samples = -1");
  expect_refused([](Config& c) { c.mean = std::nan(""); }, "data.mean = nan");
  expect_refused([](Config& c) { c.inject = "nan"; }, "nan:rank=1,step=3");
  expect_refused([](Config& c) { c.optimizer = "sgdm"; },
                 "optimizer.kind = 'sgdm' is unknown. Choose one of: sgd, adam, adamw.");
  expect_refused([](Config& c) { c.activation = "swish"; }, "relu, gelu, gelu_tanh, tanh");
  expect_refused([](Config& c) { c.driver = "fast"; }, "driver = 'fast'");
  expect_refused([](Config& c) { c.emulate = "slow"; }, "'slow' is not an emulated link");
  expect_refused([](Config& c) { c.bucket = Bytes(0); }, "bucket = 0");
  expect_refused([](Config& c) { c.lr = -1; }, "optimizer.lr = -1");
  expect_refused([](Config& c) { c.deviation = 0; }, "data.deviation = 0");
  expect_refused([](Config& c) { c.heads = 7; }, "model.heads = 7 belongs to model.kind = gpt, which is mlp");
  expect_refused([](Config& c) { c.model = "gpt", c.data = "text", c.heads = 7; }, "model.heads = 7 is out of range");
  expect_refused([](Config& c) { c.gelu = "sigmoid"; }, "erf, tanh");
  expect_refused([](Config& c) { c.model = "gpt"; }, "model.kind = gpt does not read data.kind = idx");
  expect_refused([](Config& c) { c.validation = 1; }, "data.validation = 1");
}

TEST(Config, TomlHoldsEveryOptionInItsSection) {
  Config config;
  config.widths = {3, 2};
  config.emulate = "alpha=1ms,bandwidth=1MB/s";
  const std::string toml = to_toml(config);
  for_each_option(config, [&](const std::string& name, const auto&, const char*) {
    EXPECT_THAT("\n" + toml, HasSubstr("\n" + name.substr(name.find('.') + 1) + " = ")) << name;
  });
  EXPECT_THAT(toml, HasSubstr("[model]\nkind = \"mlp\"\nwidths = [3, 2]\n"));
  EXPECT_THAT(toml, HasSubstr("emulate = \"alpha=1ms,bandwidth=1MB/s\""));
  EXPECT_THAT(toml, HasSubstr("\nbucket = \"auto\""));
  config.bucket = Bytes(4 << 20);
  EXPECT_THAT(to_toml(config), HasSubstr("\nbucket = \"4194304B\""));
}

TEST(Config, WritesTextsThatTheReaderTakesAsTheyAre) {
  Config config;
  config.init = R"(a\b "c".safetensors)";
  EXPECT_THAT(to_toml(config), HasSubstr(R"(init = 'a\b "c".safetensors')"));
  config.init = "both ' and \"";
  EXPECT_THROW(to_toml(config), InputError);
}

TEST(Config, FitsSegmentsAndTheirNumberToTheLink) {
  Config config;
  EXPECT_EQ(sync_options(config).segment, Bytes(512 << 10));
  EXPECT_EQ(sync_options(config).slots, 2);
  config.emulate = "alpha=10ms,bandwidth=125MB/s";  // 1.25 MB under way
  EXPECT_EQ(sync_options(config).segment, Bytes(1'250'000 / 64 * 64));
  EXPECT_EQ(sync_options(config).slots, 4);
  config.segment = Bytes(256 << 10);  // 4.8 segments under way
  EXPECT_EQ(sync_options(config).slots, 7);
  config.slots = 3;
  EXPECT_EQ(sync_options(config).slots, 3);
  config.segment = Bytes(0), config.emulate = "alpha=1us,bandwidth=1GB/s";
  EXPECT_EQ(sync_options(config).segment, Bytes(64 << 10));
}

TEST(Config, RefusesCompressionWhereItMakesNoSense) {
  expect_refused([](Config& c) { c.compress = "gzip"; }, "'gzip' is no compression");
  expect_refused([](Config& c) { c.compress = "topk:"; }, "a whole number follows topk:");
  expect_refused([](Config& c) { c.compress = "topk:0"; }, "one value in 1 to 1048576");
  expect_refused([](Config& c) { c.compress = "topk:1.5"; }, "a whole number");
  expect_refused([](Config& c) { c.compress = "topk:16", c.zero = 1; },
                 "compress = topk:16 with zero = 1 (sparse gradients are gathered whole by every rank");
  expect_refused([](Config& c) { c.compress = "topk:16", c.algorithm = "direct"; },
                 "compress = topk:16 with algorithm = direct");
  expect_refused([](Config& c) { c.compress = "bf16", c.zero = 3; },
                 "compress = bf16 with zero = 3 (most of what stage 3 sends are weights");
  expect_refused([](Config& c) { c.compress = "bf16", c.type = "double"; }, "bfloat16 is half of a float");
  Config config;
  for (const char* compress : {"none", "bf16", "topk:1", "topk:16"}) {
    config.compress = compress;
    validate(config);
    EXPECT_EQ(to_text(sync_options(config).compression), compress);
  }
  config.compress = "bf16", config.zero = 1;
  validate(config);
}

TEST(Config, RunsBucketsByTheRingUnlessItIsTold) {
  Config config;
  const auto algorithm = [&](int bytes) { return bucket_execution(Bytes(bytes), sync_options(config)).algorithm; };
  EXPECT_EQ(algorithm(1), schedule::Algorithm::ring);
  EXPECT_FALSE(preferred_executions(config));
  config.algorithm = "direct";
  EXPECT_EQ(algorithm(1), schedule::Algorithm::direct);
  EXPECT_FALSE(preferred_executions(config));
  config.algorithm = "recursive_doubling:0-1KiB";
  EXPECT_EQ(algorithm(1024), schedule::Algorithm::recursive_doubling);
  EXPECT_EQ(algorithm(1025), schedule::Algorithm::ring);  // until that is chosen
  EXPECT_TRUE(preferred_executions(config));
  config.algorithm = "auto";
  EXPECT_EQ(preferred_executions(config), std::vector<schedule::ExecutionRange>{});
  config.algorithm = "bruck";
  EXPECT_THROW(validate(config), InputError);
}

}  // namespace
}  // namespace annulet::train
