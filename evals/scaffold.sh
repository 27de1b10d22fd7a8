#!/usr/bin/env bash
# Give a run the memory of twenty earlier sessions and the environment that memkit has built on this machine.
#
# `claude plugin eval . --scaffold` runs it in the working directory of the case, with an empty home.
set -euo pipefail

evals=$(cd "$(dirname "$0")" && pwd)
git init -q # the home of a run looks like a repository, too
mkdir -p -m 700 .memkit ~/.memkit
cp -r "$evals/memory" .memkit/memory
environments=$(eval echo "~$(id -un)")/.memkit/env
if [[ -d $environments ]]; then
    ln -s "$environments" ~/.memkit/env
fi
