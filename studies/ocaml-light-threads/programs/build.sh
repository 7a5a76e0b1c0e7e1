#!/bin/sh
# Compiles every program with one implementation of the threads: build.sh STYLE OWN MAILBOX INTO.
# $BYTE and $NATIVE are the compilers with their options; an empty one is skipped.
set -eu
here=$(dirname "$0")
mkdir -p "$4"
cat "$2" "$here/mailboxes/$3.ml" > "$4/light.ml"
cp "$here"/*.ml "$here/$1"/* "$4"
cd "$4"
for name in kpn sieve sorter; do
  modules="measured.ml hamming.ml light.mli light.ml network.ml fifo.ml $name.ml"
  $BYTE $modules -o $name.byte
  test -z "$NATIVE" || $NATIVE $modules -o $name.native
done
