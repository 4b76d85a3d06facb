#!/usr/bin/env bash
# Installs what is missing, builds, and trains an MLP on Fashion-MNIST with four ranks. Can be run again.
# shellcheck source=scripts/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

bash scripts/setup.sh
say "building annulet in $build/"
configure -DCMAKE_BUILD_TYPE=Release
compile annulet

say "training on 4 ranks: configs/fashion-mnist-mlp.toml, results in runs/quickstart/"
launch 4 "$build/annulet" train --config configs/fashion-mnist-mlp.toml --out runs/quickstart --overwrite
