#pragma once
// Everything that decides a run, as typed values with their defaults. for_each_option lists the options once, with name
// and meaning: the command line, the configuration file, its resolved copy in the run folder and the help all read it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "annulet/base/units.hpp"
#include "annulet/nn/gpt.hpp"
#include "annulet/nn/mlp.hpp"
#include "annulet/nn/optimizer.hpp"
#include "annulet/parallel/gradient_sync.hpp"

namespace annulet::train {

struct Config {
  long steps = -1;
  long epochs = 1;
  Elements batch = 64;
  Elements accumulate = 1;
  int zero = 0;
  int reproducible = 0;
  long check_replicas = 0;
  std::uint64_t seed = 1;
  std::string type = "float";
  std::string init;
  long evaluate_every = 0;

  std::string model = "mlp";
  std::vector<Elements> widths{784, 256, 10};
  std::string activation = "relu";
  std::string loss = "cross_entropy";
  double dropout = 0;
  Elements vocabulary = 0, context = 64, layers = 4, heads = 4, width = 128, hidden = 0;
  std::string gelu = "erf";
  bool bias = true, tied = true;
  std::string initial = "scaled";
  bool recompute = false;

  std::string data = "idx";
  std::string images, labels, test_images, test_labels;
  Elements classes = 0;
  double mean = 0, deviation = 1;
  bool shuffle = true;
  Elements samples = 4096, test_samples = 0;
  std::string text;
  double validation = 0.1;

  std::string optimizer = "sgd";
  double lr = 0.1, momentum = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0, clip = 0;
  bool nesterov = false;
  std::string decay_on = "all";
  std::string schedule = "constant";
  long warmup = 0;
  double final_lr = 0;

  std::string driver = "auto";
  std::optional<Bytes> bucket;  // nothing: auto
  std::string algorithm = "ring";
  std::string compress = "none";
  Bytes first_bucket{1 << 20}, segment{0};
  int slots = 0;
  std::string emulate;
  Seconds deadline{300};
  std::string inject;
};

// Calls visit(name, member, meaning) for every option, in the order in which they are shown.
template <class ConfigType, class Visitor>
void for_each_option(ConfigType& c, Visitor visit) {
  visit("steps", c.steps, "optimiser steps; -1: as many as the epochs have; 0: only evaluate");
  visit("epochs", c.epochs, "passes over the training data, where steps is -1");
  visit("batch", c.batch, "samples of a step over all ranks (the global batch)");
  visit("accumulate", c.accumulate, "micro-batches a rank adds up before it communicates once");
  visit(
      "zero", c.zero,
      "stage of ZeRO, what each rank keeps only its shard of: 1 the optimiser's state, 2 gradients too, 3 weights too");
  visit(
      "reproducible", c.reproducible,
      "micro-shards that every step is cut into, 1 to 64: the same bits on any number of ranks up to that; 0: not so");
  visit("check-replicas", c.check_replicas, "steps between comparisons of all ranks' weights; 0: none");
  visit("seed", c.seed, "of initial weights, sample order and dropout");
  visit("type", c.type, "what is computed in: float or double");
  visit("init", c.init, "a safetensors file to start from instead of the seed");
  visit("evaluate-every", c.evaluate_every, "steps between evaluations; 0: after every epoch; the last step always");

  visit("model.kind", c.model, "mlp or gpt");
  visit("model.widths", c.widths, "mlp: inputs, hidden layers, outputs");
  visit("model.activation", c.activation, "mlp: relu, gelu, gelu_tanh or tanh");
  visit("model.loss", c.loss, "mlp: cross_entropy or mse (mean over all elements)");
  visit("model.dropout", c.dropout, "share of activations set to 0 while training, in [0, 1)");
  visit("model.vocabulary", c.vocabulary, "gpt: number of tokens; 0: as many as the data have");
  visit("model.context", c.context, "gpt: tokens of a window");
  visit("model.layers", c.layers, "gpt: blocks");
  visit("model.heads", c.heads, "gpt: attention heads of a block");
  visit("model.width", c.width, "gpt: columns of the residual stream, a multiple of the heads");
  visit("model.hidden", c.hidden, "gpt: width of the blocks' MLPs; 0: 4 x width");
  visit("model.gelu", c.gelu, "gpt: erf or tanh");
  visit("model.bias", c.bias, "gpt: Linears in blocks have a bias");
  visit("model.tied", c.tied, "gpt: the head's weight is the embedding of the tokens");
  visit("model.initial", c.initial,
        "gpt: normal (deviation 0.02) or scaled (residual projections 0.02 / sqrt(2 layers))");
  visit("model.recompute", c.recompute, "gpt: compute activations of a block again in backward, for less memory");

  visit("data.kind", c.data, "idx (files as MNIST has them, plain or gzip), text (bytes of a file) or synthetic");
  visit("data.text", c.text, "text: a file, plain or gzip");
  visit("data.validation", c.validation, "text: share at its end that is evaluated on, not trained on");
  visit("data.images", c.images, "idx: training features, any rank; bytes are divided by 255");
  visit("data.labels", c.labels, "idx: training labels, integers (classes) or reals (regression)");
  visit("data.test-images", c.test_images, "idx: features to evaluate on; empty: no evaluation");
  visit("data.test-labels", c.test_labels, "idx: labels to evaluate on");
  visit("data.classes", c.classes, "idx: number of classes; 0: the model's outputs");
  visit("data.mean", c.mean, "idx: subtracted from every feature");
  visit("data.deviation", c.deviation, "idx: every feature is divided by it");
  visit("data.shuffle", c.shuffle, "a new order each epoch, the same for any number of ranks");
  visit("data.samples", c.samples, "synthetic: training samples (gpt: windows that the tokens would fill)");
  visit("data.test-samples", c.test_samples, "synthetic: samples to evaluate on");

  visit("optimizer.kind", c.optimizer, "sgd, adam or adamw");
  visit("optimizer.lr", c.lr, "learning rate (its peak, with a schedule)");
  visit("optimizer.momentum", c.momentum, "sgd");
  visit("optimizer.nesterov", c.nesterov, "sgd: look ahead along the momentum");
  visit("optimizer.beta1", c.beta1, "adam, adamw");
  visit("optimizer.beta2", c.beta2, "adam, adamw");
  visit("optimizer.epsilon", c.epsilon, "adam, adamw");
  visit("optimizer.decay", c.decay, "weight decay: added to the gradient (sgd, adam) or decoupled (adamw)");
  visit("optimizer.decay-on", c.decay_on, "all, or matrices: tensors of two or more dimensions");
  visit("optimizer.clip", c.clip, "largest norm of the summed gradient; 0: no clipping");
  visit("optimizer.schedule", c.schedule, "constant, or cosine from the peak to final-lr at the last step");
  visit("optimizer.warmup", c.warmup, "steps of linear warm-up");
  visit("optimizer.final-lr", c.final_lr, "cosine: learning rate of the last step");

  visit("driver", c.driver, "who moves communication: blocking, polling, thread or auto");
  visit("bucket", c.bucket, "most bytes of gradients reduced together; auto: the cheapest predicted step");
  visit("first-bucket", c.first_bucket, "the same for the first bucket, so that communication starts early");
  visit("algorithm", c.algorithm,
        "of buckets' all-reduces: ring or another; auto, by predicted cost; or by size as "
        "recursive_doubling:0-8KiB;ring:1MiB-max, auto elsewhere");
  visit("compress", c.compress,
        "gradients on the wire: none, bf16, or topk:16 (one value in 16 with its position; the rest is sent later)");
  visit("segment", c.segment, "most bytes in one message; 0: by the link");
  visit("slots", c.slots, "received segments that may wait to be added; 0: by the link");
  visit("emulate", c.emulate, "a slower link than the one there is: alpha=1ms,bandwidth=125MB/s");
  visit("deadline", c.deadline, "longest time to wait for a rank that does not move");
  visit("inject", c.inject, "for tests: throw, nan, slow, stop or flip, as nan:rank=1,step=3 or throw:rank=all,step=2");
}

// The typed parts, `auto` as its default. Each throws InputError naming the option, the value and what there is.
nn::MlpOptions mlp_options(const Config& config);
nn::GptOptions gpt_options(const Config& config);  // with a vocabulary of 0 where the data decide
nn::OptimizerOptions optimizer_options(const Config& config);
nn::Schedule schedule(const Config& config, long total_steps);
parallel::SyncOptions sync_options(const Config& config);  // by the ring where `auto` has yet to be decided

// What the algorithm option says of buckets by size, if something is left to be chosen by predicted cost.
std::optional<std::vector<schedule::ExecutionRange>> preferred_executions(const Config& config);

// Refuses a compression that makes no sense with the stage of ZeRO, the algorithm or the type. Throws InputError.
void validate_compression(const Config& config);

// Checks what can be checked before anything is read or measured. Throws InputError.
void validate(const Config& config);

// The configuration file that gives this run again.
std::string to_toml(const Config& config);

}  // namespace annulet::train
